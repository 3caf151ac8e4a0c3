"""The experimenter's window, which displays the state of the servo from the trace.

The view is a separate process and never accesses the servo: it reads the trace and sends requests to the session.
Importing this package imports neither Qt nor NumPy; each entry point is a module:

- `apps.view.launch.main`: the live view, or the window of an experiment, in the process that the session spawns.
- `apps.view.replay.run`: the same panels for a recording, with a slider.
- `apps.view.comparison.run`: two runs side by side.
- `apps.view.screenshot.grab`: a picture of the window from recorded rows, without a display.

`history`, `overview`, `feed` and `laws` do not depend on Qt. `time_plots` and `xy_plots` contain the plots, with zoom,
cursors and tables of their values (`plot`, `charts`). `controls`, `indicators` and `transport` contain the other
visible parts, and ``style.qss`` is their style sheet. `dashboard` and `window`, which also handles keys and mouse,
assemble them.
"""
