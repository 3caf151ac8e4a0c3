"""What a person is asked to do while a stick is calibrated.

The plane is that of a person in front of the stick: x to the right, y away.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

Pair = tuple[float, float]


class Place(NamedTuple):
    """A place of the handle: in words, and in parts of half the travel along x and y."""

    words: str
    x: float
    y: float


MIDDLE = Place("the middle", 0.0, 0.0)

GATES: dict[str, tuple[Place, ...]] = {
    "square": (
        Place("the far right corner", 1.0, 1.0),
        Place("the far left corner", -1.0, 1.0),
        Place("the near left corner", -1.0, -1.0),
        Place("the near right corner", 1.0, -1.0),
    ),
    "round": (
        Place("the stop straight to the right", 1.0, 0.0),
        Place("the stop straight away from you", 0.0, 1.0),
        Place("the stop straight to the left", -1.0, 0.0),
        Place("the stop straight towards you", 0.0, -1.0),
    ),
}
"""By the shape of what bounds the handle: places that can be found without measuring."""

TURNS = (
    Place("the angle to the right, clockwise", 1.0, 0.0),
    Place("the angle to the left, anticlockwise", -1.0, 0.0),
    Place("the middle, straight ahead", 0.0, 0.0),
)
"""Where a wheel is turned to; its handle is the top of the rim."""

_SECTORS = (
    "to the right",
    "to the right and away from you",
    "away from you",
    "to the left and away from you",
    "to the left",
    "to the left and towards you",
    "towards you",
    "to the right and towards you",
)


def in_words(motion: Pair) -> str:
    """Return the direction of a motion, to the eighth of a circle."""
    eighth = round(math.atan2(motion[1], motion[0]) / (0.25 * math.pi)) % len(_SECTORS)
    return _SECTORS[eighth]


Look = Callable[[], tuple[int, int]]
"""Tells the counts of the axes now."""


class Person(Protocol):
    """Who moves the handle, watches it, and answers; any method may end the calibration by an exception."""

    def tell(self, words: str) -> None:
        """Take notice of something."""
        ...

    def bring(self, place: Place, look: Look) -> None:
        """Bring the handle to `place` and hold it there."""
        ...

    def let_go(self, look: Look) -> None:
        """Leave the handle where it is, free to move."""
        ...

    def watch(self, words: str) -> None:
        """Watch the handle: it is about to be pushed."""
        ...

    def saw(self, motion: Pair) -> bool:
        """Tell whether the handle has just moved as said, (x, y) [m]."""
        ...

    def hang(self, mass: float, look: Look) -> None:
        """Let a weight of `mass` [kg] pull the handle towards yourself, and keep your hands off."""
        ...

    def take_off(self, mass: float, look: Look) -> None:
        """Take the weight off again; the stick does not carry it any more."""
        ...
