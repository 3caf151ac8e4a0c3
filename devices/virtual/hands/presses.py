"""Button presses of a hand, with times and durations, and their table for kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from devices.common.timed import ROUNDING, Timed, parts_of
from haptics.errors import ConfigurationError

MOST_BUTTONS = 31
"""Maximum button number; button n is bit n of the column ``buttons``."""

CLICK = 0.1
"""Default duration of a press [s]."""

EDGE = np.dtype([("time", "<f8"), ("buttons", "<i8")])
"""Buttons that are pressed from a time [s] on, as bits."""

_FORM = "a list of texts BUTTON@SECONDS+DURATION, such as ['2@1.5+0.2']"


@dataclass(frozen=True, slots=True)
class Press(Timed):
    """Press of a button at a time.

    ``str()`` gives text such as ``2@1.5+0.2``, which `parse_presses` parses.

    Attributes
    ----------
    name : str
        Number of the button; button 0, the dead-man's button, belongs to the grip.
    duration : float or None
        Duration of the press [s]; None for `CLICK`.

    Raises
    ------
    ConfigurationError
        If the button does not exist, or the time is invalid.
    """

    KIND: ClassVar[str] = "press"

    def __post_init__(self) -> None:
        if not (self.name.isascii() and self.name.isdecimal() and 1 <= int(self.name) <= MOST_BUTTONS):
            grip = " (0, the dead-man's, is held by a firm grip)" if self.name == "0" else ""
            raise ConfigurationError(f"press {self}: must be of a button with a number from 1 to {MOST_BUTTONS}{grip}.")
        Timed.__post_init__(self)  # `super()` without arguments fails here: `slots=True` creates the class twice

    @property
    def bit(self) -> int:
        """The button as a bit."""
        return 1 << int(self.name)

    @property
    def span(self) -> tuple[float, float]:
        """Start and end of the press [s]; a tick that is due at the end is outside."""
        return self.start - ROUNDING, self.start + (CLICK if self.duration is None else self.duration) - ROUNDING


def parse_presses(texts: Any, where: str) -> tuple[Press, ...]:
    """Parse a list of ``BUTTON@SECONDS`` or ``BUTTON@SECONDS+DURATION``; `where` is its name in messages.

    Raises
    ------
    ConfigurationError
        With the invalid text and the allowed form.
    """
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ConfigurationError(f"{where} = {texts!r}: must be {_FORM}.")
    presses = []
    for text in texts:
        parts = parts_of(text)
        if parts is None:
            raise ConfigurationError(f"{where} has {text!r}: must be {_FORM}.")
        presses.append(Press(*parts))
    return tuple(presses)


def edges_of(presses: Iterable[Press]) -> NDArray[Any]:
    """Return the table of pressed buttons, (n,) of dtype `EDGE`, sorted by time."""
    spans = [(*press.span, press.bit) for press in presses]
    times = sorted({time for begin, end, _ in spans for time in (begin, end)})
    edges = np.zeros(len(times), EDGE)
    edges["time"] = times
    for begin, end, bit in spans:
        edges["buttons"][np.searchsorted(times, begin) : np.searchsorted(times, end)] |= bit
    return edges
