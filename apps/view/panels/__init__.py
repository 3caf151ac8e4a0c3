"""The panels of the live view, one module each."""
