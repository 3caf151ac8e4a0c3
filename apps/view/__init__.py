"""The experimenter's window: what the servo does, seen through the trace.

The view is a process of its own and never touches the servo: it reads the trace and sends wishes to the session.
Importing this package imports neither Qt nor NumPy; each entry point is a module:

- `apps.view.process.main`: the live view, or the window of an experimenter, in the process that the session spawns.
- `apps.view.replay.run`: the same panels over a recorded array, with a scrub slider.
- `apps.view.screenshot.grab`: a picture of the window from recorded rows, without a display.

Behind them: `history`, `counts` and `feed` know nothing of Qt; `plots` has the plots, with zoom, cursors and
tables of what they show, `panels` all else that is seen, `instrument` the files that a person saves, and help;
`dashboard` and `window` put them together.
"""
