"""Profiles of the emulated sticks: report descriptors, layouts of reports, directions of forces."""
