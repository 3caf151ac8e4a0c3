"""The one place that imports Qt and pyqtgraph, and the helpers that every window shares."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import cast

# pyqtgraph takes the first Qt binding it finds unless it is told.
os.environ.setdefault("PYQTGRAPH_QT_LIB", "PySide6")

import pyqtgraph as pg
from PySide6 import QtCore, QtGui, QtWidgets

from apps.shared.stamps import instant_of
from apps.shared.theme import Theme, by_name
from apps.view.sheet import sheet

__all__ = [
    "POINT_SIZE",
    "KeyFilter",
    "KeyPress",
    "QtCore",
    "QtGui",
    "QtWidgets",
    "application",
    "desktop_theme",
    "dress",
    "fit",
    "font",
    "grow",
    "label",
    "pg",
    "px",
]

POINT_SIZE = 10.5
"""Size of ordinary text on a screen of up to `_ORDINARY`."""

_ORDINARY = (1760, 990)
"""On a larger screen [pixel] everything grows with it, at most by `_LARGEST`."""

_LARGEST = 2.5

_STYLE = "fusion"

_GROWN = "grown"
"""Property of the application: by how much."""

KeyPress = Callable[[QtCore.Qt.Key, QtCore.Qt.KeyboardModifier], bool]
"""Gets a key and its modifiers; returns whether it has dealt with them."""


def application() -> QtWidgets.QApplication:
    """Return the application object, made and dressed if there is none yet."""
    running = QtWidgets.QApplication.instance()
    if running is None:
        running = QtWidgets.QApplication(["haptics"])
    app = cast(QtWidgets.QApplication, running)
    if app.style().objectName() != _STYLE:  # every widget there is would be polished anew
        app.setStyle(_STYLE)
    if app.property(_GROWN) is None:
        room = app.primaryScreen().availableGeometry()
        grow(room.width(), room.height())
    return app


def grow(width: int, height: int) -> None:
    """Let texts and widths of all windows that will be built suit a screen of this size [pixel]."""
    app = cast(QtWidgets.QApplication, QtWidgets.QApplication.instance())
    ratio = min(width / _ORDINARY[0], height / _ORDINARY[1])
    app.setProperty(_GROWN, round(20 * min(max(ratio, 1.0), _LARGEST)) / 20)
    size = QtGui.QFont(app.font())
    size.setPointSizeF(POINT_SIZE * _grown())
    app.setFont(size)


def _grown() -> float:
    app = QtWidgets.QApplication.instance()
    return float((app.property(_GROWN) if app is not None else None) or 1.0)


def px(pixels: float) -> int:
    """Return a length for an ordinary screen [pixel] as it is on this one."""
    return round(pixels * _grown())


def desktop_theme(name: str) -> Theme:
    """Return the theme called `name`, where ``auto`` follows the desktop."""
    scheme = QtGui.QGuiApplication.styleHints().colorScheme()
    return by_name(name, scheme == QtCore.Qt.ColorScheme.Dark)


_FRAME = (16, 48)
"""What a window manager's frame may add to a window [pixel]."""


def fit(window: QtWidgets.QWidget, width: int, height: int) -> None:
    """Give a window this size [pixel, on an ordinary screen], or less where the screen has no room for it."""
    room = window.screen().availableGeometry()
    window.resize(min(px(width), room.width() - _FRAME[0]), min(px(height), room.height() - _FRAME[1]))


def font(size: float = POINT_SIZE, bold: bool = False) -> QtGui.QFont:
    """Return the application's font in another size."""
    result = QtGui.QFont(QtWidgets.QApplication.font())
    result.setPointSizeF(size * _grown())
    result.setBold(bold)
    return result


def label(text: str = "", size: float = POINT_SIZE, bold: bool = False, faint: bool = False) -> QtWidgets.QLabel:
    """Return a label; `faint` ones get the theme's less important text colour."""
    result = QtWidgets.QLabel(text)
    result.setFont(font(size, bold))
    if faint:
        result.setProperty("faint", True)
    return result


_KEYS = (QtCore.QEvent.Type.KeyPress, QtCore.QEvent.Type.KeyRelease)


class KeyFilter(QtCore.QObject):
    """Sees every key of the application before any widget does, spin boxes and lists included.

    Parameters
    ----------
    press : callable
        Called once per press (not for repeats unless `repeats`); the press is swallowed if it returns True.
    release : callable, optional
        Called likewise when a key is let go, which no repeat is.

    Attributes
    ----------
    at : float
        When the latest key went down or came up, on the monotonic clock [s].
    """

    def __init__(
        self,
        press: KeyPress,
        repeats: bool = False,
        parent: QtCore.QObject | None = None,
        release: KeyPress = lambda key, modifiers: False,
    ) -> None:
        super().__init__(parent)
        self._press = press
        self._release = release
        self._repeats = repeats
        self.at = 0.0
        QtWidgets.QApplication.instance().installEventFilter(self)  # type: ignore[union-attr]

    def eventFilter(self, watched: QtCore.QObject, event: QtCore.QEvent) -> bool:  # noqa: N802
        """Hand keys on (Qt calls this)."""
        if event.type() not in _KEYS or not isinstance(event, QtGui.QKeyEvent):
            return False
        self.at = instant_of(event.timestamp())
        down = event.type() == QtCore.QEvent.Type.KeyPress
        if event.isAutoRepeat() and not (down and self._repeats):
            return event.key() == QtCore.Qt.Key.Key_Space
        return (self._press if down else self._release)(QtCore.Qt.Key(event.key()), event.modifiers())

    def remove(self) -> None:
        """See no more keys."""
        app = QtWidgets.QApplication.instance()
        if app is not None:
            app.removeEventFilter(self)


def dress(window: QtWidgets.QWidget, theme: Theme) -> None:
    """Give a window and all it holds the colours of `theme`."""
    # From these two the style derives the shades of frames, gradients and arrows.
    palette = QtGui.QPalette(QtGui.QColor(theme.panel), QtGui.QColor(theme.ground))
    role = QtGui.QPalette.ColorRole
    for target, colour in (
        (role.Window, theme.ground),
        (role.Base, theme.panel),
        (role.AlternateBase, theme.ground),
        (role.Button, theme.panel),
        (role.WindowText, theme.text),
        (role.Text, theme.text),
        (role.ButtonText, theme.text),
        (role.ToolTipBase, theme.panel),
        (role.ToolTipText, theme.text),
        (role.Highlight, theme.motion),
        (role.HighlightedText, theme.panel),
    ):
        palette.setColor(target, QtGui.QColor(colour))
    for target in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QtGui.QPalette.ColorGroup.Disabled, target, QtGui.QColor(theme.faint))
    # For the application, not the window: a window's palette does not reach widgets that a style sheet touches.
    QtWidgets.QApplication.setPalette(palette)
    window.setStyleSheet(sheet(theme, _grown()))
