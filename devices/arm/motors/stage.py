"""Interface of a motor stage: what an arm needs of its two motors, whatever the drive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from devices.common.waking import Wake
from haptics.device import Vector
from haptics.errors import DeviceFault
from haptics.records import Rows


class MotorStage(Protocol):
    """Two motors that hold or follow angles at the arm's joints, each behind its gear.

    The order is ``open``, ``home`` (where the encoders need it), ``arm``, many ``tick``, ``disarm``, ``close``. Opened
    and not armed, the motors are loose. ``disarm`` and ``close`` may be called at any time, also twice; neither leaves
    a motor driven. If ticks stay out, the motors come to rest and are let go.
    """

    @property
    def sampled(self) -> float:
        """When the latest sample was asked for [s, perf_counter]."""
        ...

    @property
    def record(self) -> Rows:
        """What kernels know of it, (1,) of dtype `devices.arm.motors.motor_kernels.MOTORS`; the same for ever."""
        ...

    @property
    def wake(self) -> Wake:
        """To be called when a command was left in the record; raises `DeviceOpenError` if the motors are not armed."""
        ...

    @property
    def failure(self) -> str:
        """Why there will be no more samples, in words; empty while there will."""
        ...

    @property
    def homed(self) -> bool:
        """Whether the angles count from the arm's zero."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the drive says of itself, once it was opened, such as its limits: plain values for a recording."""
        ...

    def open(self) -> None:
        """Connect and check; raise `DeviceNotFoundError` or `DeviceOpenError` with the remedy."""
        ...

    def home(self, angles: Vector) -> None:
        """Declare that the joints, which are at rest and not armed, are at `angles`, (2,) [rad]."""
        ...

    def arm(self) -> None:
        """Have the motors hold where they are; raise `DeviceOpenError` if they do not."""
        ...

    def look(self) -> Vector:
        """Return the angles of the joints, (2,) [rad]; reused.

        Those of the latest sample, at once, if the motors are armed; else they are asked for. Raises `DeviceFault` as
        `tick` does.
        """
        ...

    def tick(self, command: Vector, speeds: Vector | None = None, torques: Vector | None = None) -> Vector:
        """Take the angles to go to, return those of the latest sample.

        It never waits for the wire: in both directions the latest value wins.

        Parameters
        ----------
        command : (2,) float array
            Angles [rad].
        speeds : (2,) float array, optional
            How fast the command moves [rad/s]; by default what it has moved since the last tick, by its period.
        torques : (2,) float array, optional
            What the motors do besides what their position control makes them do, seen at the joints [N m]; by default
            nothing.

        Returns
        -------
        (2,) float array
            Angles [rad]; reused.

        Raises
        ------
        DeviceFault
            If there will be no more samples, or the motors do not follow any more.
        """
        ...

    def too_far(self, command: Vector) -> DeviceFault:
        """Return what is said about a command, (2,) [rad], that the motors cannot be told."""
        ...

    def disarm(self) -> None:
        """Stop and disarm the motors; raise `DeviceFault` if it is not certain that they are."""
        ...

    def close(self) -> None:
        """Disarm and disconnect."""
        ...
