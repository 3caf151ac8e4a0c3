"""A person for emulated sticks: does with the handle what a real one would be asked to, and has eyes of their own.

The stick may be emulated in another process: its hand is told what to do, and tells where the handle is, by a file.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.joystick.balance import GRAVITY
from calibration.joystick.person import Look, Pair, Place
from devices.common.workspace import Point, Workspace
from devices.virtual.hands.hand import Hand, HandSample, HandSettings
from haptics.device import Vector
from haptics.servo.lane import Lane
from haptics.shared import SharedFile

_SPEED = 1.0
_STILL = 0.2
_SIGHT = 0.5e-3
_ALIKE = 0.7

OPERATION = np.dtype([("wanted", "<f8", (2,)), ("load", "<f8", (2,)), ("holds", "<i8"), ("handle", "<f8", (2,))])
"""Where a hand is to bring the handle [m], what force pulls at that besides [N], whether the hand has hold of it; and
where it really is [m]."""


@dataclass(frozen=True)
class OperatedHandSettings(HandSettings):
    """Settings of a hand that a person moves.

    Attributes
    ----------
    operation : str
        File of a `haptics.servo.lane.Lane` of dtype `OPERATION`.
    """

    operation: str

    def build(self, seed: int, workspace: Workspace) -> OperatedHand:
        """Make the hand; nothing about it is random."""
        return OperatedHand(Lane(Path(self.operation), OPERATION), workspace)


class OperatedHand(Hand):
    """A hand that a person moves while the device runs, at a moderate speed.

    Parameters
    ----------
    lane : Lane
        Tells what it is to do.
    workspace : Workspace
        Of the device.
    """

    def __init__(self, lane: Lane, workspace: Workspace) -> None:
        self.stiffness, self.damping = 600.0, 20.0
        self.start = workspace.centre
        self._lane = lane
        self.restart()

    def restart(self) -> None:
        """Begin anew at time zero in the middle."""
        self._target, self._time = self.start, 0.0

    def sample(self, time: float, handle: Vector) -> HandSample:
        """Return the hand at `time` [s]; while it does not hold the handle, (2,) [m], it is beside it."""
        elapsed, self._time = time - self._time, time
        told = self._lane.record[0]
        told["handle"][:] = handle
        load: Point = (float(told["load"][0]), float(told["load"][1]))
        if not told["holds"]:
            self._target = (float(handle[0]), float(handle[1]))
            return HandSample(*self._target, *load, 0.0)
        (x, y), (wx, wy) = self._target, told["wanted"].tolist()
        way = math.hypot(wx - x, wy - y)
        part = min(1.0, _SPEED * elapsed / way) if way > 0.0 else 1.0
        self._target = (x + part * (wx - x), y + part * (wy - y))
        return HandSample(*self._target, *load)


class EmulatedPerson:
    """Who calibrates an emulated stick.

    What they see is the true motion of the handle, so a direction is confirmed only if it is right.

    Parameters
    ----------
    lane : Lane
        Of the hand; writable here.
    reach : (x, y)
        Half the travel [m].
    wait : callable
        Lets so many seconds go by.
    """

    def __init__(self, lane: Lane, reach: Point, wait: Callable[[float], None] = time.sleep) -> None:
        self.hand = lane.record[0]
        self._reach, self._wait = reach, wait
        self.hand["holds"] = 1
        self._before = np.array(self.hand["handle"])

    def tell(self, words: str) -> None:
        """Take notice."""

    def bring(self, place: Place, look: Look) -> None:
        """Bring the handle to a place and hold it there."""
        right, away = self._reach
        self.hand["wanted"][:] = place.x * right, place.y * away
        self.hand["holds"] = 1
        self._wait(math.dist(self.hand["handle"], self.hand["wanted"]) / _SPEED + _STILL)

    def let_go(self, look: Look) -> None:
        """Let go of the handle."""
        self.hand["holds"] = 0
        self._wait(0.05)

    def watch(self, words: str) -> None:
        """Look where the handle is."""
        self._before = np.array(self.hand["handle"])

    def saw(self, motion: Pair) -> bool:
        """Tell whether the handle has moved that way."""
        x, y = self.hand["handle"] - self._before
        seen, said = math.hypot(x, y), math.hypot(*motion)
        return seen > _SIGHT and (x * motion[0] + y * motion[1]) > _ALIKE * seen * said

    def hang(self, mass: float, look: Look) -> None:
        """Hang the weight on and step back."""
        self.hand["load"][:] = 0.0, -mass * GRAVITY
        self.hand["holds"] = 0
        self._wait(0.5)

    def take_off(self, mass: float, look: Look) -> None:
        """Take the weight off."""
        self.hand["load"][:] = 0.0


@contextlib.contextmanager
def operated() -> Iterator[tuple[OperatedHandSettings, Lane]]:
    """Give the settings of a hand, for a stick in whatever process, and the lane that moves it."""
    shared = SharedFile("hand")
    try:
        lane = Lane(shared.path, OPERATION, create=True)
        yield OperatedHandSettings(str(shared.path)), lane
    finally:
        shared.close()
