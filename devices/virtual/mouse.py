"""The mouse as a hand: the live view says where it is, sixty times a second; a filter makes a smooth motion of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from devices.virtual.hand import GripSettings, Hand, HandSample, Tremor, Workspace
from haptics.device import Vector
from haptics.errors import ConfigurationError
from haptics.lane import Lane
from haptics.settings import bounded, free

HAND_TARGET = np.dtype([("position", "<f8", (2,)), ("engaged", "<i8")])
"""What the view publishes: where the mouse is on the plane [m], and 1 while it holds the handle, else 0."""


@dataclass(frozen=True)
class MouseSettings(GripSettings):
    """Settings of the hand "mouse".

    Attributes
    ----------
    target : str
        File of the `haptics.lane.Lane` of dtype `HAND_TARGET` that the live view writes.
    smoothing : float
        Time constant of the filter [s]: both its poles are at minus its inverse.
    """

    target: str = free("", "a file", "where the live view puts the mouse; set by the session")
    smoothing: float = bounded(0.03, minimum=0.001, maximum=1.0, unit="s", doc="time constant of the mouse filter")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.target:
            raise ConfigurationError("the hand mouse needs the live view, which was not started: choose another hand.")

    def build(self, seed: int, workspace: Workspace) -> MouseHand:
        """Attach to the view's file; `seed` decides the tremor, if there is any."""
        return MouseHand(self, Tremor(self.tremor, seed), workspace)


class MouseHand(Hand):
    """A hand that follows the mouse. Build it with `MouseSettings.build`."""

    def __init__(self, settings: MouseSettings, tremor: Tremor, workspace: Workspace) -> None:
        self.stiffness, self.damping = settings.stiffness, settings.damping
        self.start = workspace.centre
        self._lane = Lane(Path(settings.target), HAND_TARGET)
        self._rate = 1.0 / settings.smoothing
        self._tremor = tremor
        self._workspace = workspace
        self.restart()

    def restart(self) -> None:
        """Begin anew at time zero, with the hand off the handle."""
        self._time = 0.0
        self._version = -1
        self._wanted = self._target = self.start
        self._velocity = (0.0, 0.0)
        self._engaged = False

    def sample(self, time: float, handle: Vector) -> HandSample:
        """Return the hand at `time` [s]; while the mouse is off, it floats along with the `handle`, (2,) [m]."""
        self._look()
        elapsed, self._time = time - self._time, time
        if not self._engaged:
            self._target, self._velocity = (float(handle[0]), float(handle[1])), (0.0, 0.0)
            return HandSample(*self._target, 0.0, 0.0, 0.0)
        self._follow(elapsed)
        return HandSample(*self._target, *self._tremor.force(time))

    def _look(self) -> None:
        """Take over what the view has published since the last look."""
        if self._lane.version == self._version:
            return
        latest = self._lane.read()
        if latest is None:  # the view is writing at this very moment: the next tick will see it
            return
        self._version, value = latest
        x, y = (float(part) for part in value["position"][0])
        self._engaged = bool(value["engaged"][0]) and math.isfinite(x + y)
        if self._engaged:
            self._wanted = self._workspace.clamp(x, y)

    def _follow(self, elapsed: float) -> None:
        """Advance the critically damped filter exactly, the mouse standing still meanwhile."""
        rate, decay = self._rate, math.exp(-self._rate * elapsed)
        (x, y), (vx, vy), (wx, wy) = self._target, self._velocity, self._wanted
        cx, cy = vx + rate * (x - wx), vy + rate * (y - wy)
        self._target = wx + (x - wx + cx * elapsed) * decay, wy + (y - wy + cy * elapsed) * decay
        self._velocity = (vx - rate * cx * elapsed) * decay, (vy - rate * cy * elapsed) * decay
