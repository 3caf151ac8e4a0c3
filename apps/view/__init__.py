"""The experimenter's window: what the servo does, seen through the trace.

The view is a process of its own and never touches the servo: it reads the trace and sends wishes to the session.
Importing this package imports neither Qt nor NumPy; each entry point is a module:

- `apps.view.process.main`: the live view, target of the process that the session spawns.
- `apps.view.replay.run`: the same panels over a recorded array, with a scrub slider.
- `apps.view.screenshot.grab`: a picture of the window from recorded rows, without a display.

Behind them: `history`, `counts`, `scale`, `feed`, `run`, `summary` and `theme` know nothing of Qt; `plane`, `series`,
`timing`, `safety`, `dead_man`, `end`, `controls` and `transport` are the panels; `dashboard` and `window` put them
together.
"""
