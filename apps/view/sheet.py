"""Style sheet of the windows. No Qt."""

from __future__ import annotations

from apps.shared.theme import Theme


def sheet(theme: Theme, scale: float = 1.0) -> str:
    """Return the style sheet for a theme, with handles magnified by `scale`."""
    return _surfaces(theme) + _handles(theme, scale) + _buttons(theme)


def _surfaces(theme: Theme) -> str:
    return f"""
    QWidget {{ color: {theme.text}; }}
    QLabel[faint="true"] {{ color: {theme.faint}; }}
    QFrame#panel {{ background: {theme.panel}; border: 1px solid {theme.border}; border-radius: 6px; }}
    QFrame#notice {{ background: {theme.notice}; border-radius: 6px; }}
    QFrame#notice QLabel {{ color: #000000; }}
    QLabel[pending="true"] {{ background: {theme.notice}; color: #000000; border-radius: 5px; padding: 3px 6px; }}
    QMenu {{ background: {theme.panel}; border: 1px solid {theme.border}; }}
    QMenu::item {{ padding: 4px 18px; }}
    QMenu::item:selected {{ background: {theme.motion}; color: {theme.panel}; }}
    QTextBrowser {{ background: {theme.panel}; border: none; }}
    QScrollArea {{ background: transparent; border: none; }}
    QScrollArea > QWidget > QWidget {{ background: transparent; }}
    QToolTip {{ color: {theme.text}; background: {theme.panel}; border: 1px solid {theme.border}; }}
    """


def _handles(theme: Theme, unit: float) -> str:
    """Return the style of the parts that are dragged with the mouse."""
    groove = f"height: {4 * unit:.0f}px; border-radius: {2 * unit:.0f}px"
    handle = f"width: {14 * unit:.0f}px; margin: -{5 * unit:.0f}px 0; border-radius: {7 * unit:.0f}px"
    grip = f"min-height: {24 * unit:.0f}px; border-radius: {4 * unit:.0f}px"
    return f"""
    QSlider::groove:horizontal {{ {groove}; background: {theme.border}; }}
    QSlider::sub-page:horizontal {{ {groove}; background: {theme.motion}; }}
    QSlider::handle:horizontal {{ {handle}; background: {theme.text}; }}
    QSlider::handle:horizontal:focus {{ background: {theme.motion}; }}
    QSlider::handle:horizontal:disabled, QSlider::sub-page:horizontal:disabled {{ background: {theme.faint}; }}
    QScrollBar:vertical {{ width: {8 * unit:.0f}px; margin: 0; background: transparent; }}
    QScrollBar::handle:vertical {{ {grip}; background: {theme.border}; }}
    QScrollBar::handle:vertical:hover {{ background: {theme.faint}; }}
    QScrollBar::add-line:vertical, QScrollBar::sub-line:vertical {{ height: 0; }}
    QScrollBar::add-page:vertical, QScrollBar::sub-page:vertical {{ background: transparent; }}
    """


def _buttons(theme: Theme) -> str:
    return f"""
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
    QToolButton {{ background: {theme.panel}; border: 1px solid {theme.border}; border-radius: 5px; padding: 2px 6px; }}
    QToolButton[slim="true"] {{ padding: 0 3px; border-color: transparent; }}
    QToolButton:hover, QToolButton[slim="true"]:hover {{ border-color: {theme.faint}; }}
    QToolButton:checked {{ background: {theme.motion}; color: {theme.panel}; border-color: {theme.motion}; }}
    QToolButton:disabled {{ color: {theme.faint}; }}
    QToolButton::menu-indicator {{ image: none; }}
    """
