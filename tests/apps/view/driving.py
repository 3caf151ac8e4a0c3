"""User input on a live window."""

import numpy as np
from PySide6 import QtCore, QtGui, QtTest, QtWidgets


def publish(trace, rows):
    """Append rows to a trace."""
    for row in rows:
        trace.append(row)


def frames(live, count=3):
    """Draw frames; numbers change in every third frame."""
    for _ in range(count):
        live.window.frame()
        QtWidgets.QApplication.processEvents()


def law_drawn(live, plot):
    """Return the law that `plot` draws [mm/s, N] after it has updated."""
    frames(live)
    plot.law.wait()
    frames(live)
    return plot._laws[0].getData()


def controls_of(window):
    """Return all visible and enabled controls."""
    kinds = (QtWidgets.QAbstractButton, QtWidgets.QComboBox, QtWidgets.QSlider, QtWidgets.QAbstractSpinBox)
    return [w for kind in kinds for w in window.findChildren(kind) if w.isVisible() and w.isEnabled()]


def charts_of(window):
    """Return the visible charts."""
    return [w for w in window.findChildren(QtWidgets.QGraphicsView) if w.isVisible()]


def use(widget, share=0.7):
    """Use a control: click it, drag it, or select the entry at a `share` of its range."""
    if isinstance(widget, QtWidgets.QToolButton) and widget.menu() is not None:
        actions = [action for action in widget.menu().actions() if not action.isSeparator()]
        actions[int(share * len(actions)) % len(actions)].trigger()  # an opened menu would block
    elif isinstance(widget, QtWidgets.QAbstractButton):
        QtTest.QTest.mouseClick(widget, QtCore.Qt.MouseButton.LeftButton)
    elif isinstance(widget, QtWidgets.QComboBox) and widget.count():
        widget.setCurrentIndex(int(share * widget.count()) % widget.count())
        widget.activated.emit(widget.currentIndex())
    elif isinstance(widget, QtWidgets.QSlider):
        drag(widget, (0.2, 0.5), (share, 0.5))
    elif isinstance(widget, QtWidgets.QAbstractSpinBox):
        widget.stepBy(1 if share > 0.5 else -1)


def drag(widget, start, end):
    """Drag with the left button between two places of a widget, given as shares of its size."""
    area = widget.viewport() if isinstance(widget, QtWidgets.QAbstractScrollArea) else widget
    shares = np.linspace(start, end, 5) * (area.width(), area.height())
    points = [QtCore.QPoint(round(x), round(y)) for x, y in shares]
    left, none = QtCore.Qt.MouseButton.LeftButton, QtCore.Qt.MouseButton.NoButton
    mouse(area, QtCore.QEvent.Type.MouseButtonPress, points[0], left, left)
    for point in points[1:]:
        mouse(area, QtCore.QEvent.Type.MouseMove, point, none, left)
    mouse(area, QtCore.QEvent.Type.MouseButtonRelease, points[-1], left, none)
    QtWidgets.QApplication.processEvents()


def mouse(area, kind, point, button, held):
    """Send a mouse event."""
    at, modifier = QtCore.QPointF(point), QtCore.Qt.KeyboardModifier.NoModifier
    event = QtGui.QMouseEvent(kind, at, QtCore.QPointF(area.mapToGlobal(point)), button, held, modifier)
    QtWidgets.QApplication.sendEvent(area, event)


def turn_wheel(widget, steps, share=(0.6, 0.5)):
    """Turn the wheel of the mouse over a chart."""
    area = widget.viewport()
    point = QtCore.QPointF(share[0] * area.width(), share[1] * area.height())
    places = point, QtCore.QPointF(area.mapToGlobal(point.toPoint())), QtCore.QPoint(), QtCore.QPoint(0, 120 * steps)
    button, modifier = QtCore.Qt.MouseButton.NoButton, QtCore.Qt.KeyboardModifier.NoModifier
    event = QtGui.QWheelEvent(*places, button, modifier, QtCore.Qt.ScrollPhase.NoScrollPhase, False)
    QtWidgets.QApplication.sendEvent(area, event)
    QtWidgets.QApplication.processEvents()


def cut_texts(window):
    """Return the texts of visible labels and buttons that are cut or outside the window."""
    # The window's own timer may have changed a text at the end of the last processing of events.
    QtCore.QCoreApplication.sendPostedEvents(None, QtCore.QEvent.Type.LayoutRequest)
    found = []
    for widget in window.findChildren(QtWidgets.QWidget):
        if not isinstance(widget, QtWidgets.QLabel | QtWidgets.QAbstractButton) or not widget.isVisible():
            continue
        if not widget.text() or widget.sizePolicy().horizontalPolicy() == QtWidgets.QSizePolicy.Policy.Ignored:
            continue  # elided on purpose
        if isinstance(widget, QtWidgets.QLabel) and widget.wordWrap():
            cut = widget.height() < widget.heightForWidth(widget.width())
        else:
            least = widget.minimumSizeHint()
            cut = widget.width() < least.width() or widget.height() < least.height() - 2
        corner = widget.mapTo(window, QtCore.QPoint(0, 0))
        parent = widget.parentWidget()
        while parent is not None and not isinstance(parent, QtWidgets.QScrollArea):
            parent = parent.parentWidget()
        outside = parent is None and not window.rect().contains(QtCore.QRect(corner, widget.size()))
        if cut or outside:
            found.append(widget.text())
    return found


def colour_of(widget):
    """Return the colour of a widget inside its left edge."""
    return widget.grab().toImage().pixelColor(4, widget.height() // 2).name()


def texts_of(widget):
    """Return the texts of all labels of a widget, one per line."""
    return "\n".join(label.text() for label in widget.findChildren(QtWidgets.QLabel))
