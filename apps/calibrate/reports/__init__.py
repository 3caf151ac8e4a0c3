"""Figures, tables and reports of ``haptics calibrate``."""
