"""Identified parameters and their file format: keys, reader and writer."""
