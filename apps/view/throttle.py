"""Rate limiter for a stream of positions that never drops the last one."""

from __future__ import annotations

from collections.abc import Callable

from apps.view.qt import QtCore

Send = Callable[[float, float], None]
"""Receives x and y."""


class Throttle(QtCore.QObject):
    """Forwards positions at a limited rate.

    A position is forwarded immediately, or at the end of the pause after the previous one; of the positions received
    during a pause, only the newest is forwarded.

    Parameters
    ----------
    send : callable
        Receives x and y.
    pause_ms : int
        Minimum time between two calls [ms].
    """

    def __init__(self, send: Send, pause_ms: int, parent: QtCore.QObject | None = None) -> None:
        super().__init__(parent)
        self._send = send
        self._waiting: tuple[float, float] | None = None
        self._timer = QtCore.QTimer(self)
        self._timer.setTimerType(QtCore.Qt.TimerType.PreciseTimer)
        self._timer.setSingleShot(True)
        self._timer.setInterval(pause_ms)
        self._timer.timeout.connect(self._over)

    def offer(self, x: float, y: float) -> None:
        """Handle a new position."""
        if self._timer.isActive():
            self._waiting = (x, y)
        else:
            self._pass(x, y)

    def _over(self) -> None:
        if self._waiting is not None:
            self._pass(*self._waiting)

    def _pass(self, x: float, y: float) -> None:
        self._waiting = None
        self._timer.start()
        self._send(x, y)
