"""Keyboard input of a pyglet window: names of keys, times of events, and pressed keys."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyglet

from apps.shared.stamps import instant_of

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


def name_of(symbol: int) -> str:
    """Return the name of a key in messages and recordings (`apps.front_ends.messages.Key`)."""
    if symbol >= 1 << 32:
        return f"key {symbol >> 32}"  # a letter of another script, identified by the number of the key
    name = str(pyglet.window.key.symbol_string(symbol)).lower()
    if name in _SAME:
        return _SAME[name]
    return name.removeprefix("num_") if name.startswith("num_") else name.removeprefix("_")


def instant(window: Any) -> float:
    """Return the time of the newest key event of a window [s], from the display's stamp if available."""
    return instant_of(getattr(window, "stamp", 0)) if hasattr(window, "stamp") else time.monotonic()


class Keyboard:
    """Reports each press and release of a key once.

    All keys count as released when the window loses the focus.

    pyglet asks the display for key repeats without releases, so every release event is real.

    Parameters
    ----------
    window : pyglet Window
        Window that receives the key events.
    say : callable
        Receives the name of a key, True for a press, and the instant [s].
    """

    def __init__(self, window: Any, say: Callable[[str, bool, float], None]) -> None:
        self._window, self._say = window, say
        self._down: dict[int, str] = {}
        window.push_handlers(on_key_press=self._press, on_key_release=self._release, on_deactivate=self.release_all)

    def _press(self, symbol: int, modifiers: int) -> bool:
        code = getattr(self._window, "code", symbol)
        if code not in self._down:
            self._down[code] = name_of(symbol)
            self._say(self._down[code], True, instant(self._window))
        return True  # marks the event as handled: otherwise pyglet closes the window on Esc

    def _release(self, symbol: int, modifiers: int) -> bool:
        name = self._down.pop(getattr(self._window, "code", symbol), None)
        if name is not None:
            self._say(name, False, instant(self._window))
        return True

    def release_all(self) -> None:
        """Report all pressed keys as released, since their releases are sent to another window."""
        for name in self._down.values():
            self._say(name, False, time.monotonic())
        self._down.clear()
