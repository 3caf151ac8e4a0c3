"""Interface of a motor stage: the operations of two motors that an arm uses, independent of the drive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from devices.common.latch import Wake
from haptics.device import Vector
from haptics.errors import DeviceFault
from haptics.records import Rows


class MotorStage(Protocol):
    """Two motors that hold or follow angles at the arm's joints, each behind its gear.

    The order of calls is ``open``, ``home`` (where the encoders need it), ``arm``, many ``tick``, ``disarm``,
    ``close``. When open and not armed, the motors are free to move. ``disarm`` and ``close`` may be called at any time,
    also twice; neither leaves a motor armed. If ticks stop, the motors are brought to rest and disarmed.
    """

    @property
    def sampled(self) -> float:
        """Time at which the latest sample was requested [s, perf_counter]."""
        ...

    @property
    def record(self) -> Rows:
        """Kernel record, (1,) of dtype `devices.arm.motors.motor_kernels.MOTORS`; it is never replaced."""
        ...

    @property
    def wake(self) -> Wake:
        """Wake function of the drive's thread, to be called after a command was written to the record.

        Raises `DeviceOpenError` if the motors are not armed.
        """
        ...

    @property
    def failure(self) -> str:
        """Reason why the samples have ended; empty otherwise."""
        ...

    @property
    def homed(self) -> bool:
        """Whether the angles are relative to the arm's zero."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts that the drive reports when opened, such as its limits: plain values for a recording."""
        ...

    def open(self) -> None:
        """Connect and check; raise `DeviceNotFoundError` or `DeviceOpenError` with the remedy."""
        ...

    def home(self, angles: Vector) -> None:
        """Define the present pose of the joints, at rest and not armed, as `angles`, (2,) [rad]."""
        ...

    def arm(self) -> None:
        """Arm the motors at their present positions; raise `DeviceOpenError` on failure."""
        ...

    def read_angles(self) -> Vector:
        """Return the angles of the joints, (2,) [rad]; the array is reused.

        If the motors are armed, the latest sample is returned without waiting; otherwise the angles are requested.
        `DeviceFault` is raised as by `tick`.
        """
        ...

    def tick(self, command: Vector, speeds: Vector | None = None, torques: Vector | None = None) -> Vector:
        """Command joint angles, and return the angles of the latest sample.

        It never waits for the communication: in both directions only the latest value counts.

        Parameters
        ----------
        command : (2,) float array
            Angles [rad].
        speeds : (2,) float array, optional
            Speed of the command [rad/s]; by default its change since the last tick, divided by the period.
        torques : (2,) float array, optional
            Feed-forward torque in addition to the position control, seen at the joints [N m]; by default 0.

        Returns
        -------
        (2,) float array
            Angles [rad]; the array is reused.

        Raises
        ------
        DeviceFault
            If the samples have ended, or the motors no longer follow.
        """
        ...

    def too_far(self, command: Vector) -> DeviceFault:
        """Return the error for a command, (2,) [rad], that is out of range."""
        ...

    def disarm(self) -> None:
        """Stop and disarm the motors; raise `DeviceFault` if they may still be armed."""
        ...

    def close(self) -> None:
        """Disarm and disconnect."""
        ...
