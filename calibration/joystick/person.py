"""Person who calibrates a stick, and validated user input about the stick.

Directions refer to the person in front of the stick: x to the right, y away.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from haptics.errors import ConfigurationError
from haptics.settings import unknown_name

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


CountReader = Callable[[], tuple[int, int]]
"""Function that returns the present counts of the axes."""


class Person(Protocol):
    """Person who moves the handle, observes it, and answers.

    Any method may abort the calibration by an exception.
    """

    def show_message(self, words: str) -> None:
        """Show a message."""
        ...

    def bring(self, place: Place, read_counts: CountReader) -> None:
        """Move the handle to `place` and hold it there."""
        ...

    def release_handle(self, read_counts: CountReader) -> None:
        """Release the handle at its present position."""
        ...

    def watch(self, words: str) -> None:
        """Observe the handle, which is about to be pushed."""
        ...

    def saw(self, motion: Pair) -> bool:
        """Return True if the handle has just moved by the given displacement, (x, y) [m]."""
        ...

    def hang(self, mass: float, read_counts: CountReader) -> None:
        """Attach a weight of `mass` [kg] that pulls the handle towards the person, and release the handle."""
        ...

    def take_off(self, mass: float, read_counts: CountReader) -> None:
        """Remove the weight, which the stick has ceased to carry."""
        ...


# --- request ----------------------------------------------------------------------------------------------------------

_ALLOWED = {
    "travel_x": (0.01, 1.0, " m"),
    "travel_y": (0.01, 1.0, " m"),
    "rim_radius": (0.02, 1.0, " m"),
    "turn": (20.0, 720.0, " degrees"),
    "weight": (0.01, 5.0, " kg"),
    "stated_max_force": (0.1, 200.0, " N"),
    "push_level": (0.01, 1.0, ""),
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """Known properties of the stick.

    Attributes
    ----------
    travel_x, travel_y : float or None
        Total travel of a stick's handle between its stops, to the right and away from the person [m].
    rim_radius : float or None
        Radius of the rim of a wheel [m].
    turn : float
        Angle by which a wheel is turned to either side during the measurement [degrees].
    gate : str
        Shape that bounds the handle of a stick: a key of `calibration.joystick.person.GATES`.
    weight : float or None
        Mass of the weight that the stick will carry [kg].
    stated_max_force : float or None
        Manufacturer's largest force of the stick in every direction, or of a wheel along its rim [N].
    push_level : float
        Maximum level of a push.

    Raises
    ------
    ConfigurationError
        If a value is not allowed, not exactly one of weight and stated force is given, or not exactly one of stick and
        wheel is described.
    """

    travel_x: float | None = None
    travel_y: float | None = None
    rim_radius: float | None = None
    turn: float = 90.0
    gate: str = "square"
    weight: float | None = None
    stated_max_force: float | None = None
    push_level: float = 0.3

    def __post_init__(self) -> None:
        if self.gate not in GATES:
            raise unknown_name("--gate", self.gate, GATES)
        travels = [self.travel_x is not None, self.travel_y is not None]
        wheel = self.rim_radius is not None
        if wheel == any(travels) or any(travels) != all(travels):
            raise ConfigurationError(
                "the size is needed, of a stick or of a wheel: --travel-x M and --travel-y M, from stop to stop, or "
                "--rim-radius M."
            )
        if wheel and self.weight is not None:
            raise ConfigurationError(
                "--weight is for sticks: the scale of a wheel is its largest force along the rim, --stated-max-force N "
                "(its torque divided by the radius)."
            )
        if (self.weight is None) == (self.stated_max_force is None):
            raise ConfigurationError(
                "the scale of the forces needs exactly one of two options: --weight KG, a known weight that the stick "
                "will carry, or --stated-max-force N, its largest force as its maker states it."
            )
        for name, (least, most, unit) in _ALLOWED.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise ConfigurationError(
                    f"--{name.replace('_', '-')} = {value:g}: must be at least {least:g} and at most {most:g}{unit}."
                )

    @property
    def travel(self) -> Pair:
        """Total travel of a stick along x and y [m]."""
        return self.travel_x or 0.0, self.travel_y or 0.0

    def reach(self, half_width: float, half_height: float) -> Pair:
        """Return the distance of the places from the middle [m]; for a stick, the given half travels."""
        if self.rim_radius is not None:
            return self.rim_radius * math.radians(self.turn), 0.0
        return half_width, half_height

    @property
    def size(self) -> str:
        """Description of the size: travel of a stick, or rim of a wheel."""
        if self.rim_radius is not None:
            return f"a rim of {self.rim_radius:g} m radius, turned by {self.turn:g} degrees"
        return f"{self.gate} travel of {self.travel_x:g} m by {self.travel_y:g} m"
