"""The stage: a view of the plane as the hand experiences it, drawn by pyglet in a separate process.

Like the live view, it reads the trace and sends requests to the session, and it never accesses the servo. Importing
this package imports neither pyglet nor NumPy. The entry points are `apps.stage.launch` for the session and
`apps.stage.launch.main` for the process.

`layout`, `legend`, `motion`, `marks`, `ribbons`, `ground`, `material` and `scenery` compute the content without OpenGL,
and the package `drawing` draws it. `window` handles messages, keys and the hand, `pointing` the gamepad and the pen.
"""
