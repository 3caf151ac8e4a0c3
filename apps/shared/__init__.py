"""Shared parts of the applications: picture and certificate of a run, text, colours, progress, answers."""
