"""What motor stages have in common whose motors are driven by a thread (`devices.arm.motors.streaming`)."""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from devices.arm.motors.settings import WHERE, OdriveSettings
from devices.arm.motors.streaming import Streaming
from haptics.device import Vector
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.settings import build

_FARTHEST = 1e5
"""The drive's numbers have no room for fractions of so many turns, or turns per second."""


class StreamedStage(ABC):
    """Two motors behind gears, told position and speed in every tick; what is left is how they are reached.

    Parameters
    ----------
    settings : mapping or None
        Those of `OdriveSettings`.
    period : float
        Of a tick [s]; what a command has moved in it is its speed where none is given.

    Attributes
    ----------
    settings : OdriveSettings
        What was chosen.
    homed : bool
        Whether the angles count from the arm's zero.
    facts : dict
        What the drive says of itself, once it was opened (`devices.arm.motors.stage.MotorStage.facts`).
    """

    def __init__(self, settings: Mapping[str, Any] | None, period: float) -> None:
        self.settings = build(OdriveSettings, settings or {}, WHERE)
        self.homed = False
        self.facts: dict[str, Any] = {}
        self._period = period
        self._ratios = np.array((self.settings.reduction_1, self.settings.reduction_2))
        self._per_radian = self._ratios / math.tau
        self._offsets = np.zeros(2)  # where the arm's zero is, of what the drive counts [turn]
        self._angles, self._speeds, self._nothing = np.zeros(2), np.zeros(2), np.zeros(2)
        self._last: Vector | None = None
        self._streaming: Streaming | None = None

    @abstractmethod
    def open(self) -> None:
        """Connect to the drive and check it; its motors are disarmed afterwards."""

    @abstractmethod
    def home(self, angles: Vector) -> None:
        """Declare that the joints, which are at rest and not armed, are at `angles`, (2,) [rad]."""

    @abstractmethod
    def arm(self) -> None:
        """Have the motors hold where they are."""

    @abstractmethod
    def close(self) -> None:
        """Disarm and give the drive back; nothing happens if it is not open."""

    @abstractmethod
    def _turns(self) -> Vector:
        """Return where the motors are that are not armed, as the drive counts, (2,) [turn]."""

    @abstractmethod
    def _let_go(self) -> None:
        """Disarm both motors and make sure of it; raise `DeviceFault` if that is not certain."""

    @property
    def speeds(self) -> Vector:
        """Speeds of the latest sample, (2,) [rad/s]; reused."""
        return self._speeds

    @property
    def sampled(self) -> float:
        """When the latest sample was asked for, or came unasked [s, perf_counter]."""
        return self._streaming.sample.time if self._streaming is not None else -math.inf

    def require_homed(self) -> None:
        """Raise `DeviceOpenError` if it is not known where the joints are."""
        if not self.homed:
            raise DeviceOpenError(
                "the arm was not homed, and its encoders lose their zero when the power goes: bring it to its home "
                "pose, hold it there and home it."
            )

    def look(self) -> Vector:
        """Return the angles of the joints; see `devices.arm.motors.stage.MotorStage.look`."""
        if self._streaming is None:
            np.divide(self._turns() - self._offsets, self._per_radian, out=self._angles)
            return self._angles
        sample = self._alive().sample
        np.subtract((sample.first, sample.second), self._offsets, out=self._angles)
        np.divide(self._angles, self._per_radian, out=self._angles)
        np.divide((sample.first_speed, sample.second_speed), self._per_radian, out=self._speeds)
        return self._angles

    def tick(self, command: Vector, speeds: Vector | None = None, torques: Vector | None = None) -> Vector:
        """Take the angles to go to, return those of the latest sample; see `MotorStage.tick`."""
        streaming = self._alive()
        wanted = np.asarray(command, np.float64) * self._per_radian + self._offsets
        if speeds is not None:
            moving = np.asarray(speeds, np.float64) * self._per_radian
        elif self._last is not None:
            moving = (wanted - self._last) / self._period
        else:
            moving = np.zeros(2)
        pushing = self._nothing if torques is None else np.asarray(torques, np.float64) / self._ratios
        told = (*wanted.tolist(), *moving.tolist(), *pushing.tolist())
        if not sum(map(abs, told)) < _FARTHEST:
            raise DeviceFault(f"the motors were given the command {command}: it must be finite, and not that far.")
        self._last = wanted
        streaming.command(told)
        return self.look()

    def _alive(self) -> Streaming:
        streaming = self._streaming
        if streaming is None:
            raise DeviceOpenError("the motors are not armed: call arm() first.")
        if streaming.failure:
            raise DeviceFault(streaming.failure)
        return streaming

    def disarm(self) -> None:
        """Stop and disarm the motors; nothing happens if they are disarmed.

        Raises
        ------
        DeviceFault
            If it is not certain that they are.
        """
        streaming, self._streaming = self._streaming, None
        if streaming is None:
            return
        streaming.stop()
        try:
            self._let_go()
        except DeviceFault as error:
            raise DeviceFault(
                f"the motors could not be disarmed ({error}) Their own watchdog does so within "
                f"{self.settings.watchdog:g} s; if it does not, switch their supply off."
            ) from error

    def __enter__(self) -> Self:
        """Open the stage."""
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the stage."""
        self.close()


@contextlib.contextmanager
def opening() -> Iterator[None]:
    """Turn what goes wrong before the motors move into a refusal to open."""
    try:
        yield
    except DeviceFault as error:
        raise DeviceOpenError(str(error)) from error
