"""The command ``haptics experiment``: psychophysics, from one file to data that can neither be lost nor be wrong."""
