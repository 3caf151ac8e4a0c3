"""Command ``haptics calibrate``: identify a device or recorded joints and write a parameter file."""
