"""The participant's screen: a window drawn by pyglet, in a process of its own."""
