"""Command ``haptics experiment``: psychophysical experiments, from the design file to verified data."""
