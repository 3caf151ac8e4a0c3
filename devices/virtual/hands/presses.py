"""The buttons that a hand presses: which one, when, for how long; and as what a kernel reads that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from devices.common.timed import ROUNDING, Timed, parts_of
from haptics.errors import ConfigurationError

MOST_BUTTONS = 31
"""Buttons are numbered from 1 to this; button n is bit n of the column ``buttons``."""

CLICK = 0.1
"""How long a button is held where nothing is said [s]."""

EDGE = np.dtype([("time", "<f8"), ("buttons", "<i8")])
"""From when on [s] which buttons are held, as bits."""

_FORM = "a list of texts BUTTON@SECONDS+DURATION, such as ['2@1.5+0.2']"


@dataclass(frozen=True, slots=True)
class Press(Timed):
    """A button that is pressed, and when. As text, ``2@1.5`` or ``2@1.5+0.2``, it is what `parse_presses` reads.

    Attributes
    ----------
    name : str
        The button's number; the dead-man's button, 0, belongs to the grip.
    duration : float or None
        How long it is held [s]; None for `CLICK`.

    Raises
    ------
    ConfigurationError
        If there is no such button, or the time is not one.
    """

    KIND: ClassVar[str] = "press"

    def __post_init__(self) -> None:
        if not (self.name.isascii() and self.name.isdecimal() and 1 <= int(self.name) <= MOST_BUTTONS):
            grip = " (0, the dead-man's, is held by a firm grip)" if self.name == "0" else ""
            raise ConfigurationError(f"press {self}: must be of a button with a number from 1 to {MOST_BUTTONS}{grip}.")
        Timed.__post_init__(self)  # a class with slots is made twice: `super` would look in the first

    @property
    def bit(self) -> int:
        """The button as a bit."""
        return 1 << int(self.name)

    @property
    def span(self) -> tuple[float, float]:
        """From when to when it is held [s]; a tick that is due at the end does not have it any more."""
        return self.start - ROUNDING, self.start + (CLICK if self.duration is None else self.duration) - ROUNDING


def parse_presses(texts: Any, where: str) -> tuple[Press, ...]:
    """Read a list of ``BUTTON@SECONDS`` or ``BUTTON@SECONDS+DURATION``; `where` is what a person calls the list.

    Raises
    ------
    ConfigurationError
        Naming the text and what is allowed.
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
    """Return when which buttons are held, (n,) of dtype `EDGE`, by time; before the first one none is."""
    spans = [(*press.span, press.bit) for press in presses]
    times = sorted({time for begin, end, _ in spans for time in (begin, end)})
    edges = np.zeros(len(times), EDGE)
    edges["time"] = times
    for begin, end, bit in spans:
        edges["buttons"][np.searchsorted(times, begin) : np.searchsorted(times, end)] |= bit
    return edges
