"""The stage: the plane as the hand sees it, drawn by pyglet in a process of its own.

It reads the trace and sends wishes to the session, as the live view does, and never touches the servo. Importing this
package imports neither pyglet nor NumPy; the entry points are `apps.stage.launch` for the session and
`apps.stage.process.main` for the process.

Behind them: `layout`, `legend`, `motion`, `marks`, `ribbons`, `ground`, `material` and `scenery` know nothing of
OpenGL; the package `drawing` draws what these say; `window` has messages, keys and the hand, `pointing` the gamepad
and the pen.
"""
