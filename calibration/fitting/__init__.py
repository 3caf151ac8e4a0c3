"""Least squares for calibration: weighted, robust and separable fits, intervals and prediction errors."""
