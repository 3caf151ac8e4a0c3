"""Lossless compression of the recordings of sessions."""
