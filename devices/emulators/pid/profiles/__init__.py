"""The sticks that can be emulated: report descriptors, layouts of reports, directions of forces."""
