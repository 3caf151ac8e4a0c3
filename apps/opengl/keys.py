"""The keys of a pyglet window: what they are called here, when they went down, and which are held."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyglet

from apps.shared.stamps import instant_of

_SAME = {
    "enter": "return",  # pyglet has two names for one key, and takes this one
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
"""Names of pyglet's, and what the live view calls the same keys."""


def name_of(symbol: int) -> str:
    """Return what a key is called in messages and recordings (`apps.front_ends.messages.Key`)."""
    if symbol >= 1 << 32:
        return f"key {symbol >> 32}"  # a letter of another script: the number of the key
    name = str(pyglet.window.key.symbol_string(symbol)).lower()
    if name in _SAME:
        return _SAME[name]
    return name.removeprefix("num_") if name.startswith("num_") else name.removeprefix("_")


def instant(window: Any) -> float:
    """Return when the newest key event of a window happened [s]: by the display's stamp, or just now."""
    return instant_of(getattr(window, "stamp", 0)) if hasattr(window, "stamp") else time.monotonic()


class Keyboard:
    """Says once that a key went down, and once that it came up; forgets all when another window gets the keys.

    pyglet asks the display for repeats without releases, so that a release is one.

    Parameters
    ----------
    window : pyglet Window
        Whose keys.
    say : callable
        Gets the name of a key, whether it went down, and the instant [s].
    """

    def __init__(self, window: Any, say: Callable[[str, bool, float], None]) -> None:
        self._window, self._say = window, say
        self._down: dict[int, str] = {}
        window.push_handlers(on_key_press=self._press, on_key_release=self._release, on_deactivate=self.forget)

    def _press(self, symbol: int, modifiers: int) -> bool:
        code = getattr(self._window, "code", symbol)
        if code not in self._down:
            self._down[code] = name_of(symbol)
            self._say(self._down[code], True, instant(self._window))
        return True  # Esc closes a window of pyglet unless somebody has dealt with it

    def _release(self, symbol: int, modifiers: int) -> bool:
        name = self._down.pop(getattr(self._window, "code", symbol), None)
        if name is not None:
            self._say(name, False, instant(self._window))
        return True

    def forget(self) -> None:
        """Take all keys for let go: nobody can tell any more."""
        for name in self._down.values():
            self._say(name, False, time.monotonic())
        self._down.clear()
