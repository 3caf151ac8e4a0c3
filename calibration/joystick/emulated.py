"""Simulated person for emulated sticks, who moves and observes the handle independently of counts.

The stick may be emulated in another process. Commands to its hand and the position of the handle are exchanged through
a file.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.joystick.forces import GRAVITY
from calibration.joystick.person import CountReader, Pair, Place
from devices.common.settings import Point, Workspace
from devices.virtual.hands.hand import Hand, HandSample, HandSettings
from haptics.device import Vector
from haptics.shared import Mailbox, SharedFile

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
    lane : Lane
        Source of the commands.
    workspace : Workspace
        Workspace of the device.
    """

    def __init__(self, lane: Mailbox, workspace: Workspace) -> None:
        self.stiffness, self.damping = 600.0, 20.0
        self.start = workspace.centre
        self._lane = lane
        self.restart()

    def restart(self) -> None:
        """Reset the hand to the middle at time zero."""
        self._target, self._time = self.start, 0.0

    def sample(self, time: float, handle: Vector) -> HandSample:
        """Return the hand at `time` [s]; a hand that does not hold the handle follows its position, (2,) [m]."""
        elapsed, self._time = time - self._time, time
        record = self._lane.record[0]
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
    lane : Lane
        Writable lane of the hand.
    reach : (x, y)
        Half the travel [m].
    wait : callable
        Function that waits for a time [s].
    """

    def __init__(self, lane: Mailbox, reach: Point, wait: Callable[[float], None] = time.sleep) -> None:
        self.hand = lane.record[0]
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
    """Yield the settings of a hand, for a stick in any process, and the lane that moves it."""
    shared = SharedFile("hand")
    try:
        lane = Mailbox(shared.path, OPERATION, create=True)
        yield OperatedHandSettings(str(shared.path)), lane
    finally:
        shared.close()
