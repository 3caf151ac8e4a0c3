"""Common base of motor stages whose motors are driven by a thread (`devices.arm.motors.streaming`)."""

from __future__ import annotations

import contextlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from devices.arm.motors.motor_kernels import COMMAND, MOTORS, SAMPLE, command_motors, read_motors
from devices.arm.motors.settings import WHERE, OdriveSettings
from devices.arm.motors.streaming import Streaming
from devices.common.latch import Latch, Wake
from haptics.device import Vector
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.settings import build


class StreamedStage(ABC):
    """Two motors behind gears that get position and speed in every tick.

    Subclasses implement the communication.

    Parameters
    ----------
    settings : mapping or None
        Settings of `OdriveSettings`.
    period : float
        Period of a tick [s], from which the speed of commands without a speed is computed.

    Attributes
    ----------
    settings : OdriveSettings
        Validated settings.
    homed : bool
        Whether the angles are relative to the arm's zero.
    facts : dict
        Facts that the drive reports when opened (`devices.arm.motors.stage.MotorStage.facts`).
    record : (1,) structured array
        Kernel record (`devices.arm.motors.motor_kernels.MOTORS`).
    """

    def __init__(self, settings: Mapping[str, Any] | None, period: float) -> None:
        self.settings = build(OdriveSettings, settings or {}, WHERE)
        self.homed = False
        self.facts: dict[str, Any] = {}
        self._period = period
        record = self.record = np.zeros(1, MOTORS)
        record["ratios"] = self.settings.reduction_1, self.settings.reduction_2
        record["per_radian"] = record["ratios"] / math.tau
        self._per_radian: Vector = record["per_radian"][0]
        self._offsets: Vector = record["offsets"][0]
        self._angles: Vector = record["angles"][0]
        self._last: Vector | None = None
        self._streaming: Streaming | None = None
        self._compile()

    @abstractmethod
    def open(self) -> None:
        """Connect to the drive, check it and disarm its motors."""

    @abstractmethod
    def home(self, angles: Vector) -> None:
        """Define the present pose of the joints, at rest and not armed, as `angles`, (2,) [rad]."""

    @abstractmethod
    def arm(self) -> None:
        """Arm the motors at their present positions."""

    @abstractmethod
    def close(self) -> None:
        """Disarm the motors and close the drive; do nothing if not open."""

    @abstractmethod
    def _turns(self) -> Vector:
        """Read the positions of the disarmed motors in the drive's counting, (2,) [turn]."""

    @abstractmethod
    def _disarm(self) -> None:
        """Disarm both motors and verify it; raise `DeviceFault` if they may still be armed."""

    @property
    def sampled(self) -> float:
        """Time at which the latest sample was requested, or arrived unrequested [s, perf_counter]."""
        return self._streaming.sample.time if self._streaming is not None else -math.inf

    @property
    def wake(self) -> Wake:
        """Wakes the communication thread; see `devices.arm.motors.stage.MotorStage.wake`."""
        return self._armed().wake

    @property
    def failure(self) -> str:
        """Reason why the samples have ended; empty otherwise and if the motors are not armed."""
        return self._streaming.failure if self._streaming is not None else ""

    def require_homed(self) -> None:
        """Raise `DeviceOpenError` if the joint angles are unknown."""
        if not self.homed:
            raise DeviceOpenError(
                "the arm was not homed, and its encoders lose their zero when the power goes: bring it to its home "
                "pose, hold it there and home it."
            )

    def _compile(self) -> None:
        """Compile the kernels of a tick now: later, watchdogs would expire and samples of a sensor become too old."""
        samples, commands, record = Latch(SAMPLE), Latch(COMMAND), self.record.copy()
        record["samples"], record["commands"] = samples.place, commands.place
        read_motors(record)
        command_motors(record, 0.0)

    def _stream(self, streaming: Streaming) -> None:
        """Start `streaming` and connect the kernel record to it."""
        self._last, self._streaming = None, streaming
        record = self.record
        record["samples"], record["commands"] = streaming.samples.place, streaming.commands.place
        record["lost"] = streaming.lost.ctypes.data
        streaming.start()

    def read_angles(self) -> Vector:
        """Return the angles of the joints; see `devices.arm.motors.stage.MotorStage.read_angles`."""
        if self._streaming is None:
            np.divide(self._turns() - self._offsets, self._per_radian, out=self._angles)
            return self._angles
        self._alive()
        read_motors(self.record)
        return self._angles

    def tick(self, command: Vector, speeds: Vector | None = None, torques: Vector | None = None) -> Vector:
        """Command joint angles, and return the angles of the latest sample; see `MotorStage.tick`."""
        streaming, wanted = self._alive(), np.array(command, np.float64)
        if speeds is None:
            speeds = (wanted - self._last) / self._period if self._last is not None else np.zeros(2)
        self._last = wanted
        told = self.record["told"][0]
        told[:2], told[2:4], told[4:6] = wanted, speeds, 0.0 if torques is None else torques
        if not command_motors(self.record, time.perf_counter()):
            raise self.too_far(command)
        streaming.wake.call()
        return self.read_angles()

    def too_far(self, command: Vector) -> DeviceFault:
        """Return the error for a command, (2,) [rad], that is out of range."""
        return DeviceFault(f"the motors were given the command {command}: it must be finite, and not that far.")

    def _armed(self) -> Streaming:
        if self._streaming is None:
            raise DeviceOpenError("the motors are not armed: call arm() first.")
        return self._streaming

    def _alive(self) -> Streaming:
        streaming = self._armed()
        if streaming.failure:
            raise DeviceFault(streaming.failure)
        return streaming

    def disarm(self) -> None:
        """Stop and disarm the motors; do nothing if already disarmed.

        Raises
        ------
        DeviceFault
            If they may still be armed.
        """
        streaming, self._streaming = self._streaming, None
        if streaming is None:
            return
        streaming.stop()
        try:
            self._disarm()
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
    """Convert a `DeviceFault` before the motors move into a `DeviceOpenError`."""
    try:
        yield
    except DeviceFault as error:
        raise DeviceOpenError(str(error)) from error
