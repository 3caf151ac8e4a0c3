"""Live view in a separate process that runs in parallel with a measurement.

It is the window of `apps.view` with a trace that changes continuously, independently of the measured candidate: its
process repeatedly publishes the ticks of an earlier run. Without a display it is drawn offscreen.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from apps.bench.outcome import CannotMeasure, Stop, child_process
from apps.front_ends.messages import Quit, SessionStarted
from apps.view.launch import window_obstacle
from haptics.records import Rows, with_missing_columns
from haptics.shared import Mailbox, SharedFile
from haptics.trace import Trace

ENOUGH = 5.0
"""Minimum frame rate of a view that counts as running [1/s]."""

DRAWN = np.dtype([("frames", "<i8")])
"""Frame counter shared by the process of the view."""

Frames = Callable[[], int]
"""Returns the number of frames drawn since a window was opened."""

_FEED_MS = 10
_FIRST_FRAMES = 10
_PATIENCE = 60.0


def view_obstacle() -> str:
    """Return the reason why no view can be drawn, with or without a display; empty if it can."""
    try:
        importlib.import_module("PySide6.QtWidgets")
    except ImportError as error:
        return f"Qt cannot be loaded ({error}); './run setup' names the missing system libraries"
    return ""


@contextlib.contextmanager
def open_views(
    rows: Rows, started: dict[str, Any], stop: Stop, targets: Iterable[Callable[..., None]]
) -> Iterator[Frames | None]:
    """Open windows in separate processes, which are drawn within the block; yield their frame counter.

    Parameters
    ----------
    rows : structured array
        Ticks to show.
    started : dict
        Description of their run; see `apps.session.run.Session.started`.
    stop : Stop
        Polled while the windows open.
    targets : iterable of callable
        Main functions of the processes: `show_view` for the live view, `show_stage` for the stage.

    Yields
    ------
    callable or None
        Returns the minimum number of frames drawn by any of the windows. None without windows.
    """
    with contextlib.ExitStack() as windows:
        counters = [windows.enter_context(_open_view(rows, started, stop, target)) for target in targets]
        yield (lambda: min(int(counter[0]) for counter in counters)) if counters else None


@contextlib.contextmanager
def _open_view(rows: Rows, started: dict[str, Any], stop: Stop, target: Callable[..., None]) -> Iterator[Any]:
    """Open a window in a separate process within the block; yield its number of frames, (1,)."""
    with contextlib.closing(SharedFile("view-trace")) as trace, contextlib.closing(SharedFile("view-frames")) as drawn:
        Trace.create(trace.path)
        frames = Mailbox(drawn.path, DRAWN, create=True).record["frames"]
        message = SessionStarted(**{**started, "trace": str(trace.path)}, parameters=(), choices={}, hands=())
        arguments = trace.path, drawn.path, rows, message.rate_hz
        with child_process(target, *arguments, name="haptics view", farewell=Quit()) as (connection, process):
            connection.send(message)
            until = time.monotonic() + _PATIENCE
            while frames[0] < _FIRST_FRAMES:
                stop.check()
                if not process.is_alive() or time.monotonic() > until:
                    raise CannotMeasure("a window draws nothing here: leave it out with --view off.")
                time.sleep(0.05)
            yield frames


# --- process of the view -------------------------------------------------------------------------------------------


def show_view(connection: Connection, trace: Path, drawn: Path, rows: Rows, rate: float) -> None:
    """Show the live view, publish `rows` to its `trace` at `rate` [Hz] and count its frames.

    This is the target of the process of the view.
    """
    if window_obstacle():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from apps.view.launch import main
    from apps.view.qt import QtCore, application

    app = application()
    timer = QtCore.QTimer(app)
    timer.timeout.connect(_feeder(Trace.attach(trace), rows, rate))
    timer.start(_FEED_MS)
    frames = Mailbox(drawn, DRAWN).record["frames"]
    QtCore.QTimer.singleShot(0, lambda: _count_frames(frames))  # after the window has been created
    main(connection)


def show_stage(connection: Connection, trace: Path, drawn: Path, rows: Rows, rate: float) -> None:
    """Show the stage in the same way as `show_view`.

    This is the target of its process.
    """
    from apps.stage.launch import SIZE, open_stage

    stage = open_stage(connection, "dark", SIZE)
    feed = _feeder(Trace.attach(trace), rows, rate)
    frames = Mailbox(drawn, DRAWN).record["frames"]

    def meanwhile() -> None:
        feed()
        frames[0] = stage.frames

    stage.run(meanwhile)


def _feeder(trace: Trace, rows: Rows, rate: float) -> Callable[[], None]:
    """Return a function that publishes the rows that are due: the same ones repeatedly, at the rate of their run."""
    start = time.monotonic()

    def feed() -> None:
        due = int((time.monotonic() - start) * rate)
        numbers = np.arange(max(trace.count, due - trace.capacity), due)
        published = with_missing_columns(rows[numbers % len(rows)])
        published["tick"], published["time"] = numbers, numbers / rate
        trace.slots[numbers % trace.capacity] = published
        trace.publish(due)

    return feed


def _count_frames(frames: Any) -> None:
    """Count the paint events of the live window's plane in `frames`, (1,)."""
    from apps.view.qt import QtCore, QtWidgets
    from apps.view.window import LiveWindow

    class Painted(QtCore.QObject):
        def eventFilter(self, watched: QtCore.QObject, event: QtCore.QEvent) -> bool:  # noqa: N802
            if event.type() == QtCore.QEvent.Type.Paint:
                frames[0] += 1
            return False

    for window in QtWidgets.QApplication.topLevelWidgets():
        if isinstance(window, LiveWindow):
            plane = window.dashboard.plane.chart.viewport()
            plane.installEventFilter(Painted(plane))
