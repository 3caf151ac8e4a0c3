"""Opening a window of pyglet's, and why there is none."""

from __future__ import annotations

import sys
from typing import Any

Size = tuple[int, int]
"""Width and height [pixel]."""


def open_window(caption: str, *, screen: int = 0, size: Size | None = None, visible: bool = True) -> Any:
    """Open a window whose `stamp` is that of its newest key event (`apps.opengl.keys.instant`).

    Parameters
    ----------
    caption : str
        Its title.
    screen : int
        Which screen; the last one, if there are not so many.
    size : (int, int), optional
        Width and height [pixel]; without it the window has the whole screen.
    visible : bool
        Whether it is shown.

    Raises
    ------
    Exception
        Whatever the graphics libraries raise where there is no display or no OpenGL 3.3; see `why`.
    """
    import pyglet

    pyglet.options.shadow_window = False
    # To ask for errors after every call would cost more than what is drawn.
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


def why(what: str, error: Exception) -> str:
    """Say why `what` cannot be shown, and what to do."""
    reason = str(error) or type(error).__name__
    return (
        f"{what} cannot be shown: {reason}. It needs a display (DISPLAY) with OpenGL 3.3 or later; "
        "where there is no graphics card, Debian's libgl1-mesa-dri does it in software."
    )


def _window_class() -> type:
    """Return the kind of window that knows when the newest key went down, where the window system says so."""
    import pyglet

    if not sys.platform.startswith("linux"):
        return pyglet.window.Window  # type: ignore[no-any-return]
    from pyglet.libs.x11 import xlib

    class StampedWindow(pyglet.window.Window):  # type: ignore[misc]
        """Notes stamp and number of each key before pyglet makes an event of it."""

        stamp = 0
        code = 0

        def dispatch_platform_event(self, e: Any) -> None:
            """Take an event of the window."""
            self._note(e)
            super().dispatch_platform_event(e)

        def dispatch_platform_event_view(self, e: Any) -> None:
            """Take an event of the area in it."""
            self._note(e)
            super().dispatch_platform_event_view(e)

        def _note(self, e: Any) -> None:
            if e.type in (xlib.KeyPress, xlib.KeyRelease):
                self.stamp, self.code = int(e.xkey.time), int(e.xkey.keycode)
                # pyglet remembers keys by what they stand for, which another key may change before they come up: then
                # it would swallow the next press. `Keyboard` goes by their numbers.
                self.pressed_keys.clear()

    return StampedWindow
