"""What a test does with a live window."""

from __future__ import annotations

from PySide6 import QtWidgets


def publish(trace, rows) -> None:
    """Append rows to a trace."""
    for row in rows:
        trace.append(row)


def frames(live, count: int = 3) -> None:
    """Let the window draw: numbers change in every third frame only."""
    for _ in range(count):
        live.window.frame()
        QtWidgets.QApplication.processEvents()
