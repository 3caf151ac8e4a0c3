"""Recordings on disk: writing, validation, replay and the timing certificate of a run."""
