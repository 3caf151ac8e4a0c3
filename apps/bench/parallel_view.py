"""Live view in a separate process that runs in parallel with a measurement.

It is the window of `apps.view` with a trace that changes continuously, independently of the measured candidate: its
process repeatedly publishes the ticks of an earlier run. Without a display it is drawn offscreen.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from apps.bench.outcome import CannotMeasure, Stop
from apps.front_ends.messages import Quit, SessionStarted
from apps.view.launch import window_obstacle
from haptics.records import Rows, with_missing_columns
from haptics.servo.standby import without_signals
from haptics.shared import Mailbox, SharedFile
from haptics.trace import Trace

ENOUGH = 5.0
"""Minimum frame rate of a view that counts as running [1/s]."""

DRAWN = np.dtype([("frames", "<i8")])
"""Frame counter shared by the process of the view."""

_FEED_MS = 10
_FIRST_FRAMES = 10
_PATIENCE, _QUITTING = 60.0, 2.0


def view_obstacle() -> str:
    """Return the reason why no view can be drawn, with or without a display; empty if it can."""
    try:
        importlib.import_module("PySide6.QtWidgets")
    except ImportError as error:
        return f"Qt cannot be loaded ({error}); './run setup' names the missing system libraries"
    return ""


class View:
    """Window in a separate process, which is drawn while the context is active.

    Parameters
    ----------
    rows : structured array
        Ticks to show.
    started : dict
        Description of their run; see `apps.session.run.Session.started`.
    stop : Stop
        Polled while the window opens.
    show : callable
        Main function of the process: `show_view` for the live view, `show_stage` for the stage.
    """

    def __init__(
        self, rows: Rows, started: dict[str, Any], stop: Stop, show: Callable[..., None] | None = None
    ) -> None:
        self._rows = rows
        self._started = started
        self._stop = stop
        self._show = show or show_view

    @property
    def frames(self) -> int:
        """Number of frames drawn since the window was opened."""
        return int(self._drawn.record["frames"][0])

    def __enter__(self) -> Self:
        self._files = trace, drawn = SharedFile("view-trace"), SharedFile("view-frames")
        Trace.create(trace.path)
        self._drawn = Mailbox(drawn.path, DRAWN, create=True)
        message = SessionStarted(**{**self._started, "trace": str(trace.path)}, parameters=(), choices={}, hands=())
        context = multiprocessing.get_context("spawn")
        self._connection, far_end = context.Pipe()
        self._process = context.Process(
            target=self._show,
            args=(far_end, trace.path, drawn.path, self._rows, message.rate_hz),
            name="haptics view",
            daemon=True,
        )
        try:
            with without_signals():
                self._process.start()
            far_end.close()
            self._connection.send(message)
            until = time.monotonic() + _PATIENCE
            while self.frames < _FIRST_FRAMES:
                self._stop.check()
                if not self._process.is_alive() or time.monotonic() > until:
                    raise CannotMeasure("a window draws nothing here: leave it out with --view off.")
                time.sleep(0.05)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        with contextlib.suppress(OSError):  # the connection was closed, or the process has died
            self._connection.send(Quit())
        self._process.join(_QUITTING)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._connection.close()
        for file in self._files:
            file.close()


class Together:
    """Several windows at once.

    Parameters
    ----------
    windows : View
        The windows.
    """

    def __init__(self, *windows: View) -> None:
        self._windows = windows
        self._open = contextlib.ExitStack()

    @property
    def frames(self) -> int:
        """Minimum number of frames drawn by any of the windows."""
        return min(window.frames for window in self._windows)

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            for window in self._windows:
                stack.enter_context(window)
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()


Windows = View | Together
"""Windows that run in parallel with a measurement."""


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
    feeder = Feeder(Trace.attach(trace), rows, rate)
    timer = QtCore.QTimer(app)
    timer.timeout.connect(lambda: feeder.feed(time.monotonic()))
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
    feeder = Feeder(Trace.attach(trace), rows, rate)
    frames = Mailbox(drawn, DRAWN).record["frames"]

    def meanwhile() -> None:
        feeder.feed(time.monotonic())
        frames[0] = stage.frames

    stage.run(meanwhile)


class Feeder:
    """Publishes the same rows repeatedly, at the rate of their run."""

    def __init__(self, trace: Trace, rows: Rows, rate: float) -> None:
        self._trace = trace
        self._rows = rows
        self._rate = rate
        self._start = time.monotonic()

    def feed(self, now: float) -> None:
        """Publish the rows that are due at `now` (monotonic clock) [s]."""
        due = int((now - self._start) * self._rate)
        numbers = np.arange(max(self._trace.count, due - self._trace.capacity), due)
        rows = with_missing_columns(self._rows[numbers % len(self._rows)])
        rows["tick"], rows["time"] = numbers, numbers / self._rate
        self._trace.slots[numbers % self._trace.capacity] = rows
        self._trace.publish(due)


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
