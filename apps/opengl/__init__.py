"""Shared parts of windows drawn by pyglet: opening, keys, the mouse as the hand, texts, pictures."""
