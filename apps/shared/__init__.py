"""Shared parts of the applications: picture and summary of a run, text, colours, progress, answers."""
