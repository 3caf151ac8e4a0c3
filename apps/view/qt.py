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
    "label",
    "pg",
]

POINT_SIZE = 10.5
"""Size of ordinary text."""

KeyPress = Callable[[QtCore.Qt.Key, QtCore.Qt.KeyboardModifier], bool]
"""Gets a key and its modifiers; returns whether it has dealt with them."""


def application() -> QtWidgets.QApplication:
    """Return the application object, made and dressed if there is none yet."""
    running = QtWidgets.QApplication.instance()
    if running is None:
        running = QtWidgets.QApplication(["haptics"])
    app = cast(QtWidgets.QApplication, running)
    app.setStyle("Fusion")
    font = app.font()
    font.setPointSizeF(POINT_SIZE)
    app.setFont(font)
    return app


def desktop_theme(name: str) -> Theme:
    """Return the theme called `name`, where ``auto`` follows the desktop."""
    scheme = QtGui.QGuiApplication.styleHints().colorScheme()
    return by_name(name, scheme == QtCore.Qt.ColorScheme.Dark)


_FRAME = (16, 48)
"""What a window manager's frame may add to a window [pixel]."""


def fit(window: QtWidgets.QWidget, width: int, height: int) -> None:
    """Give a window this size [pixel], or less where the screen has no room for it."""
    room = window.screen().availableGeometry()
    window.resize(min(width, room.width() - _FRAME[0]), min(height, room.height() - _FRAME[1]))


def font(size: float = POINT_SIZE, bold: bool = False) -> QtGui.QFont:
    """Return the application's font in another size."""
    result = QtGui.QFont(QtWidgets.QApplication.font())
    result.setPointSizeF(size)
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
    window.setStyleSheet(_sheet(theme))


def _sheet(theme: Theme) -> str:
    return f"""
    QWidget {{ color: {theme.text}; }}
    QLabel[faint="true"] {{ color: {theme.faint}; }}
    QFrame#panel {{ background: {theme.panel}; border: 1px solid {theme.border}; border-radius: 6px; }}
    QFrame#notice {{ background: {theme.notice}; border-radius: 6px; }}
    QFrame#notice QLabel {{ color: #000000; }}
    QPushButton#start {{ background: {theme.panel}; border: 2px solid {theme.force}; border-radius: 6px;
                         padding: 5px; font-weight: bold; }}
    QPushButton#start:hover {{ background: {theme.ground}; }}
    QPushButton#start:disabled {{ border-color: {theme.border}; color: {theme.faint}; }}
    QPushButton#stop {{ background: {theme.stop}; color: {theme.on_stop}; border: none; border-radius: 8px; }}
    QPushButton#stop:hover {{ background: #d93b3b; }}
    QPushButton#stop:pressed {{ background: #9d1d1d; }}
    QPushButton#stop[idle="true"] {{ background: {theme.panel}; color: {theme.faint};
                                     border: 2px solid {theme.border}; }}
    QPushButton#start[pending="true"] {{ background: {theme.notice}; color: #000000;
                                         border: 2px solid {theme.notice}; }}
    QSlider::groove:horizontal {{ height: 4px; border-radius: 2px; background: {theme.border}; }}
    QSlider::sub-page:horizontal {{ height: 4px; border-radius: 2px; background: {theme.motion}; }}
    QSlider::handle:horizontal {{ width: 14px; margin: -5px 0; border-radius: 7px; background: {theme.text}; }}
    QSlider::handle:horizontal:focus {{ background: {theme.motion}; }}
    QSlider::handle:horizontal:disabled, QSlider::sub-page:horizontal:disabled {{ background: {theme.faint}; }}
    QScrollArea {{ background: transparent; border: none; }}
    QScrollArea > QWidget > QWidget {{ background: transparent; }}
    QScrollBar:vertical {{ width: 8px; margin: 0; background: transparent; }}
    QScrollBar::handle:vertical {{ min-height: 24px; border-radius: 4px; background: {theme.border}; }}
    QScrollBar::handle:vertical:hover {{ background: {theme.faint}; }}
    QScrollBar::add-line:vertical, QScrollBar::sub-line:vertical {{ height: 0; }}
    QScrollBar::add-page:vertical, QScrollBar::sub-page:vertical {{ background: transparent; }}
    QToolTip {{ color: {theme.text}; background: {theme.panel}; border: 1px solid {theme.border}; }}
    """
