"""Pyglet windows: opening, keyboard, dead-man's key, and the mouse as the virtual hand.

pyglet is imported when the first window is opened.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from apps.front_ends.front_end import instant_of
from apps.front_ends.messages import HOLD_EVERY, HandButtons, HandTarget, HoldKey
from apps.opengl.plane import Plane

Size = tuple[int, int]
"""Width and height [pixel]."""

KEY = "space"
"""The dead-man's key."""

_SAME = {
    "enter": "return",  # pyglet has two names for this key and reports this one
    "num_enter": "enter",
    "num_decimal": "period",
    "num_separator": "comma",
    "num_subtract": "minus",
    "num_add": "plus",
    "num_multiply": "asterisk",
    "num_divide": "slash",
    "num_page_up": "pageup",
    "num_page_down": "pagedown",
    "exclamation": "exclam",
    "doublequote": "quotedbl",
    "pound": "numbersign",
    "grave": "quoteleft",
    "lshift": "shift",
    "rshift": "shift",
    "lctrl": "control",
    "rctrl": "control",
    "lalt": "alt",
    "ralt": "alt",
}
"""Names of keys in pyglet and the corresponding names in the live view."""


def open_window(caption: str, *, screen: int = 0, size: Size | None = None, visible: bool = True) -> Any:
    """Open a window.

    If the window system has time stamps, the window stores ``stamp`` and ``code`` of its newest key event.

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
        Any error of the graphics libraries without a display or OpenGL 3.3; see `unavailable_message`.
    """
    import pyglet

    pyglet.options.shadow_window = False
    # Checking for errors after every OpenGL call would take longer than drawing.
    pyglet.options.debug_gl = False
    screens = pyglet.display.get_display().get_screens()
    options: dict[str, Any] = {} if size is None else {"width": size[0], "height": size[1]}
    return (_stamped_window() if sys.platform.startswith("linux") else pyglet.window.Window)(
        caption=caption,
        screen=screens[min(screen, len(screens) - 1)],
        fullscreen=size is None,
        config=pyglet.gl.Config(double_buffer=True),
        vsync=False,
        resizable=True,
        visible=visible,
        **options,
    )


def _stamped_window() -> type:
    """Return a window class that stores the time stamp and code of each key event before pyglet processes it."""
    import pyglet
    from pyglet.libs.x11 import xlib

    class StampedWindow(pyglet.window.Window):  # type: ignore[misc]
        stamp = 0
        code = 0

        def dispatch_platform_event(self, e: Any) -> None:
            """Handle an event of the window."""
            self._store(e)
            super().dispatch_platform_event(e)

        def dispatch_platform_event_view(self, e: Any) -> None:
            """Handle an event of the view inside the window."""
            self._store(e)
            super().dispatch_platform_event_view(e)

        def _store(self, e: Any) -> None:
            if e.type in (xlib.KeyPress, xlib.KeyRelease):
                self.stamp, self.code = int(e.xkey.time), int(e.xkey.keycode)
                # pyglet tracks pressed keys by symbol. If the symbol of a key changes while it is pressed, pyglet would
                # ignore its next press. `Keyboard` tracks keys by code instead.
                self.pressed_keys.clear()

    return StampedWindow


def unavailable_message(window: str, error: Exception) -> str:
    """Return an error message for a window that cannot be shown, with a remedy."""
    reason = str(error) or type(error).__name__
    return (
        f"{window} cannot be shown: {reason}. It needs a display (DISPLAY) with OpenGL 3.3 or later; "
        "where there is no graphics card, Debian's libgl1-mesa-dri does it in software."
    )


def name_of(symbol: int) -> str:
    """Return the name of a key in messages and recordings (`apps.front_ends.messages.Key`)."""
    from pyglet.window import key

    if symbol >= 1 << 32:
        return f"key {symbol >> 32}"  # a letter of another script, identified by the number of the key
    name = str(key.symbol_string(symbol)).lower()
    if name in _SAME:
        return _SAME[name]
    return name.removeprefix("num_") if name.startswith("num_") else name.removeprefix("_")


class Keyboard:
    """Reports each press and release of a key once.

    All keys count as released when the window loses the focus.

    pyglet asks the display for key repeats without releases, so every release event is real.

    Parameters
    ----------
    window : pyglet Window
        Window that receives the key events.
    report : callable
        Receives the name of a key, True for a press, and the instant [s].
    """

    def __init__(self, window: Any, report: Callable[[str, bool, float], None]) -> None:
        self._window, self._report = window, report
        self._down: dict[int, str] = {}
        window.push_handlers(on_key_press=self._press, on_key_release=self._release, on_deactivate=self.release_all)

    def _press(self, symbol: int, modifiers: int) -> bool:
        code = getattr(self._window, "code", symbol)
        if code not in self._down:
            self._down[code] = name_of(symbol)
            self._report(self._down[code], True, instant_of(getattr(self._window, "stamp", 0)))
        return True  # marks the event as handled: otherwise pyglet closes the window on Esc

    def _release(self, symbol: int, modifiers: int) -> bool:
        name = self._down.pop(getattr(self._window, "code", symbol), None)
        if name is not None:
            self._report(name, False, instant_of(getattr(self._window, "stamp", 0)))
        return True

    def release_all(self) -> None:
        """Report all pressed keys as released, since their releases are sent to another window."""
        for name in self._down.values():
            self._report(name, False, time.monotonic())
        self._down.clear()


class DeadMansKey:
    """Sends `HoldKey` messages while a run requires the key: on press, periodically while held, and on release.

    Parameters
    ----------
    send : callable
        Receives the messages.

    Attributes
    ----------
    required : bool
        Whether the run requires the key.
    held : bool
        Whether the key is down.
    """

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._sent = 0.0
        self.held = False
        self.required = False

    def set_required(self, required: bool, *, require_release: bool = False) -> None:
        """Set whether the present run requires the key.

        Parameters
        ----------
        require_release : bool
            Whether a key that is down must be released and pressed again to count.
        """
        self.required = required
        self.held = self.held and not require_release

    def press(self, down: bool, at: float) -> None:
        """Handle a press (`down`) or release of the key at the instant `at` [s]."""
        self.held = down
        if self.required:
            self._send(HoldKey(down, at))
            self._sent = time.monotonic()

    def repeat(self, now: float) -> None:
        """Report again that the key is held, if `HOLD_EVERY` has passed."""
        if self.required and self.held and now - self._sent >= HOLD_EVERY:
            self._send(HoldKey(True))
            self._sent = now


class Hand:
    """Sends position and buttons of the mouse on the plane while the mouse acts as the hand.

    Parameters
    ----------
    window : pyglet Window
        Window that receives the mouse events.
    send : callable
        Receives `HandTarget` and `HandButtons`.

    Attributes
    ----------
    grip : float
        Relative grip strength, 0 to 1: 1 for a mouse, the pressure for the pen of a tablet.
    """

    def __init__(self, window: Any, send: Callable[[Any], None]) -> None:
        from pyglet.window import mouse

        self._send = send
        self._plane: Plane | None = None
        self._buttons = 0
        self.grip = 1.0
        bits = {mouse.LEFT: 1 << 1, mouse.RIGHT: 1 << 2, mouse.MIDDLE: 1 << 3}
        window.push_handlers(
            on_mouse_motion=lambda x, y, dx, dy: self.move(x, y),
            on_mouse_drag=lambda x, y, dx, dy, buttons, modifiers: self.move(x, y),
            on_mouse_press=lambda x, y, button, modifiers: self._hold(self._buttons | bits.get(button, 0)),
            on_mouse_release=lambda x, y, button, modifiers: self._hold(self._buttons & ~bits.get(button, 0)),
            on_deactivate=lambda: self._hold(0),
        )

    def set_plane(self, plane: Plane | None) -> None:
        """Use the mouse as the hand on `plane`, or stop using it if `plane` is None."""
        self._hold(0)
        self._plane = plane

    def place(self, plane: Plane) -> None:
        """Update the position of the plane in the window, if the mouse acts as the hand."""
        if self._plane is not None:
            self._plane = plane

    def move(self, x: float, y: float) -> None:
        """Move the hand to a pixel of the window."""
        if self._plane is not None:
            self._send(HandTarget(*self._plane.to_plane(x, y), self.grip))

    def _hold(self, buttons: int) -> None:
        if self._plane is not None and buttons != self._buttons:
            self._buttons = buttons
            self._send(HandButtons(buttons))
