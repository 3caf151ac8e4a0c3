"""Sessions of an experiment: trials and blocks, live or without a clock, resumable after an interruption."""
