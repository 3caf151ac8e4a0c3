"""Recordings: rows on disk, what they must look like, their replay and the timing certificate of a run."""
