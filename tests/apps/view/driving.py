"""What a test does with a live window."""

from __future__ import annotations

import numpy as np
from PySide6 import QtCore, QtGui, QtTest, QtWidgets


def publish(trace, rows) -> None:
    """Append rows to a trace."""
    for row in rows:
        trace.append(row)


def frames(live, count: int = 3) -> None:
    """Let the window draw: numbers change in every third frame only."""
    for _ in range(count):
        live.window.frame()
        QtWidgets.QApplication.processEvents()


def law_drawn(live, plot) -> tuple[np.ndarray, np.ndarray]:
    """Return the law that `plot` draws [mm/s, N] once it is the one that is in force now."""
    frames(live)
    plot.law.wait()
    frames(live)
    return plot._laws[0].getData()


def controls_of(window) -> list[QtWidgets.QWidget]:
    """Return everything in sight that a person can press, turn or choose from."""
    kinds = (QtWidgets.QAbstractButton, QtWidgets.QComboBox, QtWidgets.QSlider, QtWidgets.QAbstractSpinBox)
    return [w for kind in kinds for w in window.findChildren(kind) if w.isVisible() and w.isEnabled()]


def charts_of(window) -> list[QtWidgets.QWidget]:
    """Return the charts in sight."""
    return [w for w in window.findChildren(QtWidgets.QGraphicsView) if w.isVisible()]


def use(widget: QtWidgets.QWidget, share: float = 0.7) -> None:
    """Do with a control what it is there for: click it, drag it, or choose what stands at a `share` of its range."""
    if isinstance(widget, QtWidgets.QToolButton) and widget.menu() is not None:
        actions = [action for action in widget.menu().actions() if not action.isSeparator()]
        actions[int(share * len(actions)) % len(actions)].trigger()  # a menu that is opened would wait for a person
    elif isinstance(widget, QtWidgets.QAbstractButton):
        QtTest.QTest.mouseClick(widget, QtCore.Qt.MouseButton.LeftButton)
    elif isinstance(widget, QtWidgets.QComboBox) and widget.count():
        widget.setCurrentIndex(int(share * widget.count()) % widget.count())
        widget.activated.emit(widget.currentIndex())
    elif isinstance(widget, QtWidgets.QSlider):
        drag(widget, (0.2, 0.5), (share, 0.5))
    elif isinstance(widget, QtWidgets.QAbstractSpinBox):
        widget.stepBy(1 if share > 0.5 else -1)


def drag(widget: QtWidgets.QWidget, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag with the left button from one place of a widget to another, both as parts of its size."""
    area = widget.viewport() if isinstance(widget, QtWidgets.QAbstractScrollArea) else widget
    points = [
        QtCore.QPoint(
            round(start[0] * area.width() + k / 4 * (end[0] - start[0]) * area.width()),
            round(start[1] * area.height() + k / 4 * (end[1] - start[1]) * area.height()),
        )
        for k in range(5)
    ]
    left, none = QtCore.Qt.MouseButton.LeftButton, QtCore.Qt.MouseButton.NoButton
    mouse(area, QtCore.QEvent.Type.MouseButtonPress, points[0], left, left)
    for point in points[1:]:
        mouse(area, QtCore.QEvent.Type.MouseMove, point, none, left)
    mouse(area, QtCore.QEvent.Type.MouseButtonRelease, points[-1], left, none)
    QtWidgets.QApplication.processEvents()


def mouse(area, kind, point, button, held) -> None:
    """Send one event of the mouse."""
    at, modifier = QtCore.QPointF(point), QtCore.Qt.KeyboardModifier.NoModifier
    event = QtGui.QMouseEvent(kind, at, QtCore.QPointF(area.mapToGlobal(point)), button, held, modifier)
    QtWidgets.QApplication.sendEvent(area, event)


def turn_wheel(widget: QtWidgets.QAbstractScrollArea, steps: int, share: tuple[float, float] = (0.6, 0.5)) -> None:
    """Turn the wheel of the mouse over a chart."""
    area = widget.viewport()
    point = QtCore.QPointF(share[0] * area.width(), share[1] * area.height())
    event = QtGui.QWheelEvent(
        point,
        QtCore.QPointF(area.mapToGlobal(point.toPoint())),
        QtCore.QPoint(),
        QtCore.QPoint(0, 120 * steps),
        QtCore.Qt.MouseButton.NoButton,
        QtCore.Qt.KeyboardModifier.NoModifier,
        QtCore.Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QtWidgets.QApplication.sendEvent(area, event)
    QtWidgets.QApplication.processEvents()


def cut_texts(window: QtWidgets.QWidget) -> list[str]:
    """Return the texts of labels and buttons in sight that have less room than they need, or lie outside the window."""
    found = []
    for widget in window.findChildren(QtWidgets.QWidget):
        if not isinstance(widget, QtWidgets.QLabel | QtWidgets.QAbstractButton) or not widget.isVisible():
            continue
        if not widget.text() or widget.sizePolicy().horizontalPolicy() == QtWidgets.QSizePolicy.Policy.Ignored:
            continue  # one that gives up its middle on purpose
        if isinstance(widget, QtWidgets.QLabel) and widget.wordWrap():
            cut = widget.height() < widget.heightForWidth(widget.width())
        else:
            least = widget.minimumSizeHint()
            cut = widget.width() < least.width() or widget.height() < least.height() - 2
        corner = widget.mapTo(window, QtCore.QPoint(0, 0))
        scrolls = any(isinstance(parent, QtWidgets.QScrollArea) for parent in _parents(widget))
        outside = not scrolls and not window.rect().contains(QtCore.QRect(corner, widget.size()))
        if cut or outside:
            found.append(widget.text())
    return found


def _parents(widget: QtWidgets.QWidget) -> list[QtWidgets.QWidget]:
    found = []
    while (parent := widget.parentWidget()) is not None:
        found.append(parent)
        widget = parent
    return found
