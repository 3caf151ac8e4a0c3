"""Walls in a recording, recomputed from its rows."""
