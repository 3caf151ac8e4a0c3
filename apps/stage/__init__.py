"""The stage: a view of the plane as the hand experiences it, drawn by pyglet in a separate process.

Like the live view, it reads the trace and sends requests to the session, and it never accesses the servo. Importing
this package imports neither pyglet nor NumPy. `launch` starts the process and is its entry point; `window` handles
messages, keys and the hand, `pointing` the gamepad and the pen.

`layout`, `motion`, `shapes` and `ground` compute the content without OpenGL; `picture` and `gl` draw it.
"""
