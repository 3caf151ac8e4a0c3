"""Curves of the law in force, and its parameters at a position of a scene. No Qt."""
