"""Experiment engine: trials and blocks, live or without a clock, in resumable sessions."""
