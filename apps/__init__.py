"""Applications: interactive sessions, the live view, replay, and the command line.

This is the top layer: it may import every other package, and no other package imports it.
"""
