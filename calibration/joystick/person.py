"""Interface of the person who calibrates a stick.

Directions refer to the person in front of the stick: x to the right, y away.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

Pair = tuple[float, float]


class Place(NamedTuple):
    """Place of the handle: description, and position as a fraction of half the travel along x and y."""

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
"""Places that can be found without measuring, by the shape of the gate that bounds the handle."""

TURNS = (
    Place("the angle to the right, clockwise", 1.0, 0.0),
    Place("the angle to the left, anticlockwise", -1.0, 0.0),
    Place("the middle, straight ahead", 0.0, 0.0),
)
"""Angles of a wheel; the top of its rim serves as handle."""

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
    """Return the verbal direction of a motion, rounded to an eighth of a circle."""
    eighth = round(math.atan2(motion[1], motion[0]) / (0.25 * math.pi)) % len(_SECTORS)
    return _SECTORS[eighth]


Look = Callable[[], tuple[int, int]]
"""Function that returns the present counts of the axes."""


class Person(Protocol):
    """Person who moves the handle, observes it, and answers.

    Any method may abort the calibration by an exception.
    """

    def show_message(self, words: str) -> None:
        """Show a message."""
        ...

    def bring(self, place: Place, look: Look) -> None:
        """Move the handle to `place` and hold it there."""
        ...

    def release_handle(self, look: Look) -> None:
        """Release the handle at its present position."""
        ...

    def watch(self, words: str) -> None:
        """Observe the handle, which is about to be pushed."""
        ...

    def saw(self, motion: Pair) -> bool:
        """Return True if the handle has just moved by the given displacement, (x, y) [m]."""
        ...

    def hang(self, mass: float, look: Look) -> None:
        """Attach a weight of `mass` [kg] that pulls the handle towards the person, and release the handle."""
        ...

    def take_off(self, mass: float, look: Look) -> None:
        """Remove the weight, which the stick has ceased to carry."""
        ...
