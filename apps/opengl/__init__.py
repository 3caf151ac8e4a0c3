"""What every window drawn by pyglet shares: opening it, its keys, the mouse as the hand, texts and shapes."""
