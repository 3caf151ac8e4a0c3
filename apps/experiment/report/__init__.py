"""The report of an experiment: a page for each participant and one for the group, in one HTML file."""
