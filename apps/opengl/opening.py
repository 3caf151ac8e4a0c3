"""Opening of pyglet windows, and error messages if that fails."""

from __future__ import annotations

import sys
from typing import Any

Size = tuple[int, int]
"""Width and height [pixel]."""


def open_window(caption: str, *, screen: int = 0, size: Size | None = None, visible: bool = True) -> Any:
    """Open a window. Its `stamp` is the time stamp of its newest key event (`apps.opengl.keys.instant`).

    Parameters
    ----------
    caption : str
        Title of the window.
    screen : int
        Index of the screen; the last screen if the index is too large.
    size : (int, int), optional
        Width and height [pixel]; full screen by default.
    visible : bool
        Whether the window is shown.

    Raises
    ------
    Exception
        Any error of the graphics libraries without a display or OpenGL 3.3; see `why`.
    """
    import pyglet

    pyglet.options.shadow_window = False
    # Checking for errors after every OpenGL call would take longer than drawing.
    pyglet.options.debug_gl = False
    screens = pyglet.display.get_display().get_screens()
    options: dict[str, Any] = {} if size is None else {"width": size[0], "height": size[1]}
    return _window_class()(
        caption=caption,
        screen=screens[min(screen, len(screens) - 1)],
        fullscreen=size is None,
        config=pyglet.gl.Config(double_buffer=True),
        vsync=False,
        resizable=True,
        visible=visible,
        **options,
    )


def unavailable_message(window: str, error: Exception) -> str:
    """Return an error message for a window that cannot be shown, with a remedy."""
    reason = str(error) or type(error).__name__
    return (
        f"{window} cannot be shown: {reason}. It needs a display (DISPLAY) with OpenGL 3.3 or later; "
        "where there is no graphics card, Debian's libgl1-mesa-dri does it in software."
    )


def _window_class() -> type:
    """Return a window class that stores the time stamp of key events if the window system has stamps."""
    import pyglet

    if not sys.platform.startswith("linux"):
        return pyglet.window.Window  # type: ignore[no-any-return]
    from pyglet.libs.x11 import xlib

    class StampedWindow(pyglet.window.Window):  # type: ignore[misc]
        """Window that stores the time stamp and code of each key event before pyglet processes it."""

        stamp = 0
        code = 0

        def dispatch_platform_event(self, e: Any) -> None:
            """Handle an event of the window."""
            self._note(e)
            super().dispatch_platform_event(e)

        def dispatch_platform_event_view(self, e: Any) -> None:
            """Handle an event of the view inside the window."""
            self._note(e)
            super().dispatch_platform_event_view(e)

        def _note(self, e: Any) -> None:
            if e.type in (xlib.KeyPress, xlib.KeyRelease):
                self.stamp, self.code = int(e.xkey.time), int(e.xkey.keycode)
                # pyglet tracks pressed keys by symbol. If the symbol of a key changes while it is pressed, pyglet would
                # ignore its next press. `Keyboard` tracks keys by code instead.
                self.pressed_keys.clear()

    return StampedWindow
