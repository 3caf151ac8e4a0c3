"""The command ``haptics calibrate``: from a device or from data to a parameter file."""
