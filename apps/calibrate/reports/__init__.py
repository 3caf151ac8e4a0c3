"""What ``haptics calibrate`` shows: figures, tables and reports."""
