"""Least squares for calibration: weighted, robust, separable; intervals and errors of prediction."""
