"""Simulated hands that move virtual devices; `registry` lists them by name."""
