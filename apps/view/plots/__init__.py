"""Plots of the view, one module each, and their common parts (`plot`, `strip`, `cursors`, `places`)."""
