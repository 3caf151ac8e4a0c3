"""Screen of the participant: a pyglet window in a separate process."""
