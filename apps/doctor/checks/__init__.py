"""Checks of ``haptics doctor``, one module per subject."""
