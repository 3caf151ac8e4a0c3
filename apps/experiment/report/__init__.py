"""Report of an experiment: a page for the group and for each participant, in one HTML file."""
