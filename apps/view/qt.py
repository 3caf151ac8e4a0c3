"""Imports of Qt and pyqtgraph, made only here; theme, fonts and keys shared by all windows."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import cast

# By default, pyqtgraph uses the first Qt binding that it finds.
os.environ.setdefault("PYQTGRAPH_QT_LIB", "PySide6")

import pyqtgraph as pg
from PySide6 import QtCore, QtGui, QtWidgets

from apps.front_ends.front_end import instant_of
from apps.shared.theme import Theme, by_name

__all__ = ["QtCore", "QtGui", "QtWidgets", "pg"]
"""Names of other packages for the modules of the view."""

POINT_SIZE = 10.5
"""Size of ordinary text on screens up to `_ORDINARY`."""

_ORDINARY = (1760, 990)
"""Screen size above which windows are magnified [pixel], by at most `_LARGEST`."""

_LARGEST = 2.5

_STYLE = "fusion"

_SHEET = Template((Path(__file__).parent / "style.qss").read_text(encoding="utf-8"))
"""Style sheet with placeholders for the colours of a theme and for lengths."""

_GROWN, _THEME = "grown", "theme"
"""Properties of the application that store the magnification and the name of the theme."""

KeyPress = Callable[[QtCore.Qt.Key, QtCore.Qt.KeyboardModifier], bool]
"""Handles a key and its modifiers. Returns True if the key was handled."""


def application() -> QtWidgets.QApplication:
    """Return the application object; create and style it if it does not exist."""
    running = QtWidgets.QApplication.instance()
    if running is None:
        running = QtWidgets.QApplication(["haptics"])
    app = cast(QtWidgets.QApplication, running)
    if app.style().objectName() != _STYLE:  # setting the style again would restyle every existing widget
        app.setStyle(_STYLE)
    if app.property(_GROWN) is None:
        room = app.primaryScreen().availableGeometry()
        grow(room.width(), room.height())
    return app


def grow(width: int, height: int) -> None:
    """Set the magnification of new windows for a screen of the given size [pixel]."""
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
    """Convert a length on an ordinary screen [pixel] to the magnification of this screen."""
    return round(pixels * _grown())


def current_theme() -> Theme:
    """Return the theme that was applied last by `dress`; the dark one before."""
    app = QtWidgets.QApplication.instance()
    return by_name((app.property(_THEME) if app is not None else None) or "dark")


def desktop_theme(name: str) -> Theme:
    """Return the theme `name`, where ``auto`` follows the desktop."""
    scheme = QtGui.QGuiApplication.styleHints().colorScheme()
    return by_name(name, scheme == QtCore.Qt.ColorScheme.Dark)


def run_window(build: Callable[[Theme], QtWidgets.QWidget], theme: str) -> None:
    """Show the window that `build` makes in a theme, which may be ``auto``, until it is closed."""
    app = application()
    window = build(desktop_theme(theme))
    window.show()
    app.exec()


_FRAME = (16, 48)
"""Allowance for the window manager's frame [pixel]."""


def fit(window: QtWidgets.QWidget, width: int, height: int) -> None:
    """Resize a window to a size on an ordinary screen [pixel], reduced where the screen is too small."""
    room = window.screen().availableGeometry()
    window.resize(min(px(width), room.width() - _FRAME[0]), min(px(height), room.height() - _FRAME[1]))


def font(size: float = POINT_SIZE, bold: bool = False) -> QtGui.QFont:
    """Return the application's font in another size."""
    result = QtGui.QFont(QtWidgets.QApplication.font())
    result.setPointSizeF(size * _grown())
    result.setBold(bold)
    return result


def label(
    text: str = "",
    size: float = POINT_SIZE,
    *,
    bold: bool = False,
    faint: bool = False,
    wrap: bool = False,
    centred: bool = False,
) -> QtWidgets.QLabel:
    """Return a label; a `faint` one has the theme's colour for less important text."""
    result = QtWidgets.QLabel(text)
    result.setFont(font(size, bold))
    result.setWordWrap(wrap)
    if centred:
        result.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
    if faint:
        result.setProperty("faint", True)
    return result


def tool_button(text: str, tip: str, name: str = "", *, checkable: bool = False) -> QtWidgets.QToolButton:
    """Return a small button that does not take the focus, with a tool tip and a name for screen readers."""
    button = QtWidgets.QToolButton()
    button.setText(text)
    button.setToolTip(tip)
    button.setAccessibleName(name)
    button.setCheckable(checkable)
    button.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
    return button


def timer(parent: QtCore.QObject, milliseconds: int, act: Callable[[], object], *, once: bool = False) -> QtCore.QTimer:
    """Return a precise timer that calls `act` periodically, or `once`, after it was started."""
    result = QtCore.QTimer(parent)
    result.setTimerType(QtCore.Qt.TimerType.PreciseTimer)
    result.setSingleShot(once)
    result.setInterval(milliseconds)
    result.timeout.connect(act)
    return result


def lay_out(
    layout: QtWidgets.QBoxLayout,
    *items: QtWidgets.QWidget | QtWidgets.QLayout | tuple[QtWidgets.QWidget | QtWidgets.QLayout, int],
    margins: tuple[int, int, int, int] = (0, 0, 0, 0),
    spacing: int | None = None,
) -> QtWidgets.QBoxLayout:
    """Add widgets and layouts, each alone or with its stretch, to a row or a column; return it."""
    layout.setContentsMargins(*margins)
    if spacing is not None:
        layout.setSpacing(spacing)
    for item in items:
        part, stretch = item if isinstance(item, tuple) else (item, 0)
        if isinstance(part, QtWidgets.QWidget):
            layout.addWidget(part, stretch)
        else:
            layout.addLayout(part, stretch)
    return layout


def remove_all(layout: QtWidgets.QLayout) -> None:
    """Remove and delete all widgets of a layout."""
    while (item := layout.takeAt(0)) is not None:
        widget = item.widget()
        if widget is not None:
            widget.hide()
            widget.deleteLater()


def restyle(widget: QtWidgets.QWidget, name: str, value: object) -> None:
    """Set a property on which the style sheet depends, and restyle the widget and all widgets inside it."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        for part in (widget, *widget.findChildren(QtWidgets.QWidget)):
            part.style().unpolish(part)
            part.style().polish(part)


_KEYS = (QtCore.QEvent.Type.KeyPress, QtCore.QEvent.Type.KeyRelease)


class KeyFilter(QtCore.QObject):
    """Event filter that receives every key of the application before any widget, such as a spin box.

    Parameters
    ----------
    press : callable
        Called once per press, and for repeats if `repeats`. The event is consumed if it returns True.
    release : callable, optional
        Called likewise for each release, but not for repeats.

    Attributes
    ----------
    at : float
        Time of the latest key event on the monotonic clock [s].
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
        """Pass key events to the callbacks (Qt event handler)."""
        if event.type() not in _KEYS or not isinstance(event, QtGui.QKeyEvent):
            return False
        self.at = instant_of(event.timestamp())
        down = event.type() == QtCore.QEvent.Type.KeyPress
        if event.isAutoRepeat() and not (down and self._repeats):
            return event.key() == QtCore.Qt.Key.Key_Space
        return (self._press if down else self._release)(QtCore.Qt.Key(event.key()), event.modifiers())

    def remove(self) -> None:
        """Remove the filter."""
        app = QtWidgets.QApplication.instance()
        if app is not None:
            app.removeEventFilter(self)


def dress(window: QtWidgets.QWidget, theme: Theme) -> None:
    """Apply the colours of `theme` to a window, and call the method ``apply`` of all its widgets that have one."""
    # The style derives the shades of frames, gradients, and arrows from these two colours.
    palette = QtGui.QPalette(QtGui.QColor(theme.panel), QtGui.QColor(theme.ground))
    role, texts = QtGui.QPalette.ColorRole, ("WindowText", "Text", "ButtonText")
    for colour, names in (
        (theme.ground, ("Window", "AlternateBase")),
        (theme.panel, ("Base", "Button", "ToolTipBase", "HighlightedText")),
        (theme.text, (*texts, "ToolTipText")),
        (theme.motion, ("Highlight",)),
    ):
        for name in names:
            palette.setColor(role[name], QtGui.QColor(colour))
    for name in texts:
        palette.setColor(QtGui.QPalette.ColorGroup.Disabled, role[name], QtGui.QColor(theme.faint))
    # The palette is set for the application, since the palette of a window does not reach widgets with a style sheet.
    QtWidgets.QApplication.setPalette(palette)
    cast(QtWidgets.QApplication, QtWidgets.QApplication.instance()).setProperty(_THEME, theme.name)
    lengths = {f"px{length}": f"{length * _grown():.0f}px" for length in (2, 4, 5, 7, 8, 14, 24)}
    window.setStyleSheet(_SHEET.substitute(vars(theme), **lengths))
    for part in window.findChildren(QtWidgets.QWidget):
        if hasattr(part, "apply"):
            part.apply(theme)
