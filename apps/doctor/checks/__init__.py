"""The checks of ``haptics doctor``, one subject a module."""
