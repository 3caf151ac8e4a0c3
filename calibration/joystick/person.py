"""Person who calibrates a stick, validated user input about the stick, and a simulated person for emulated sticks.

Directions refer to the person in front of the stick: x to the right, y away. The simulated person moves and observes
the handle independently of counts. The stick may be emulated in another process. Commands to its hand and the position
of the handle are exchanged through a file.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from devices.common.settings import Point, Workspace
from devices.virtual.hands.hand import Hand, HandSample, HandSettings
from haptics.device import Vector
from haptics.errors import ConfigurationError
from haptics.settings import unknown_name
from haptics.shared import Mailbox, SharedFile

Pair = tuple[float, float]


class Place(NamedTuple):
    """Place of the handle: description, and position as a fraction of half the travel along x and y."""

    words: str
    x: float
    y: float


GRAVITY = 9.80665
"""Standard acceleration of gravity [m/s²]."""

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

    def bring(self, place: Place, read_counts: CountReader) -> None:
        """Move the handle to `place` and hold it there."""

    def release_handle(self, read_counts: CountReader) -> None:
        """Release the handle at its present position."""

    def watch(self, words: str) -> None:
        """Observe the handle, which is about to be pushed."""

    def saw(self, motion: Pair) -> bool:
        """Return True if the handle has just moved by the given displacement, (x, y) [m]."""

    def hang(self, mass: float, read_counts: CountReader) -> None:
        """Attach a weight of `mass` [kg] that pulls the handle towards the person, and release the handle."""

    def take_off(self, mass: float, read_counts: CountReader) -> None:
        """Remove the weight, which the stick has ceased to carry."""


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


# --- simulated person -------------------------------------------------------------------------------------------------

_SPEED = 1.0
_STILL = 0.2
_SIGHT = 0.5e-3
_ALIKE = 0.7

OPERATION = np.dtype([("wanted", "<f8", (2,)), ("load", "<f8", (2,)), ("holds", "<i8"), ("handle", "<f8", (2,))])
"""Shared record of a simulated hand.

Commanded position [m], additional load [N], whether the hand holds the handle, and true position of the handle [m].
"""


@dataclass(frozen=True)
class OperatedHandSettings(HandSettings):
    """Settings of an operated hand.

    Attributes
    ----------
    operation : str
        File of a `haptics.shared.Mailbox` of dtype `OPERATION`.
    """

    operation: str

    def build(self, seed: int, workspace: Workspace) -> OperatedHand:
        """Create the hand; it has no random properties."""
        return OperatedHand(Mailbox(Path(self.operation), OPERATION), workspace)


class OperatedHand(Hand):
    """Hand that is operated while the device runs, at a moderate speed.

    Parameters
    ----------
    mailbox : Mailbox
        Source of the commands.
    workspace : Workspace
        Workspace of the device.
    """

    def __init__(self, mailbox: Mailbox, workspace: Workspace) -> None:
        self.stiffness, self.damping = 600.0, 20.0
        self.start = workspace.centre
        self._mailbox = mailbox
        self.restart()

    def restart(self) -> None:
        """Reset the hand to the middle at time zero."""
        self._target, self._time = self.start, 0.0

    def sample(self, time: float, handle: Vector) -> HandSample:
        """Return the hand at `time` [s]; a hand that does not hold the handle follows its position, (2,) [m]."""
        elapsed, self._time = time - self._time, time
        record = self._mailbox.record[0]
        record["handle"][:] = handle
        load: Point = (float(record["load"][0]), float(record["load"][1]))
        if not record["holds"]:
            self._target = (float(handle[0]), float(handle[1]))
            return HandSample(*self._target, *load, 0.0)
        (x, y), (wx, wy) = self._target, record["wanted"].tolist()
        way = math.hypot(wx - x, wy - y)
        part = min(1.0, _SPEED * elapsed / way) if way > 0.0 else 1.0
        self._target = (x + part * (wx - x), y + part * (wy - y))
        return HandSample(*self._target, *load)


class EmulatedPerson:
    """Simulated person who calibrates an emulated stick.

    The person observes the true motion of the handle, so that a direction is confirmed only if it is correct.

    Parameters
    ----------
    mailbox : Mailbox
        Writable mailbox of the hand.
    reach : (x, y)
        Half the travel [m].
    wait : callable
        Function that waits for a time [s].
    """

    def __init__(self, mailbox: Mailbox, reach: Point, wait: Callable[[float], None] = time.sleep) -> None:
        self.hand = mailbox.record[0]
        self._reach, self._wait = reach, wait
        self.hand["holds"] = 1
        self._before = np.array(self.hand["handle"])

    def show_message(self, words: str) -> None:
        """Ignore the message."""

    def bring(self, place: Place, read_counts: CountReader) -> None:
        """Move the handle to a place and hold it there."""
        right, away = self._reach
        self.hand["wanted"][:] = place.x * right, place.y * away
        self.hand["holds"] = 1
        self._wait(math.dist(self.hand["handle"], self.hand["wanted"]) / _SPEED + _STILL)

    def release_handle(self, read_counts: CountReader) -> None:
        """Release the handle."""
        self.hand["holds"] = 0
        self._wait(0.05)

    def watch(self, words: str) -> None:
        """Record the present position of the handle."""
        self._before = np.array(self.hand["handle"])

    def saw(self, motion: Pair) -> bool:
        """Return True if the handle has moved in that direction."""
        x, y = self.hand["handle"] - self._before
        seen, expected = math.hypot(x, y), math.hypot(*motion)
        return seen > _SIGHT and (x * motion[0] + y * motion[1]) > _ALIKE * seen * expected

    def hang(self, mass: float, read_counts: CountReader) -> None:
        """Attach the weight and release the handle."""
        self.hand["load"][:] = 0.0, -mass * GRAVITY
        self.hand["holds"] = 0
        self._wait(0.5)

    def take_off(self, mass: float, read_counts: CountReader) -> None:
        """Remove the weight."""
        self.hand["load"][:] = 0.0


@contextlib.contextmanager
def operated() -> Iterator[tuple[OperatedHandSettings, Mailbox]]:
    """Yield the settings of a hand, for a stick in any process, and the mailbox that moves it."""
    shared = SharedFile("hand")
    try:
        mailbox = Mailbox(shared.path, OPERATION, create=True)
        yield OperatedHandSettings(str(shared.path)), mailbox
    finally:
        shared.close()
