"""OpenGL drawing of the stage: static background, moving objects, numbers, and overlays."""
