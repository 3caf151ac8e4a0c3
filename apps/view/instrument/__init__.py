"""Saving of pictures and data, comparison of runs, and help."""
