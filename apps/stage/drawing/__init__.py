"""What draws the stage with OpenGL: what stands still, what moves, the numbers, and what is laid over them."""
