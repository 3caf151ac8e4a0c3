"""Panels of the live view, one module each."""
