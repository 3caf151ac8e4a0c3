"""What a force sensor is to the arm: the newest wrench, how old it is, and whether it can be trusted.

A thread of its own reads the sensor, so that a tick never waits for the wire; the latest measurement wins. Age counts
from when the last *usable* measurement came: neither silence, nor the same measurement once more, nor a measurement
that the sensor itself marks as wrong makes it younger. What an old force means is the envelope's business; after a
`patience` it is a fault, with the reason.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from devices.arm.sensors.mounting import Array, Mounting, SensorSettings
from devices.arm.sensors.sensor_kernels import READING, SENSOR
from devices.arm.sensors.wire import Health, Sample, Wire
from devices.common.latch import Latch
from haptics.clock import pause
from haptics.errors import DeviceFault, DeviceOpenError, HapticError

LOOK = 0.01
"""The reader waits for something new for so long before it sees whether it shall end [s]."""

FIRST = 1.0
"""A sensor that has been started is given this long for a usable measurement [s]."""

_PAUSE = 5e-4
"""Between two looks at the latest measurement while waiting [s]."""


class Reading(NamedTuple):
    """What the arm gets of its sensor at a tick.

    Attributes
    ----------
    wrench : (6,) float array
        Of the hand on the handle, in the axes of the world [N], [N m]; zeros if it cannot be trusted.
    age : float
        Since the last measurement came that can be trusted [s].
    health : Health
        Whether the newest one can be trusted.
    words : str
        What is the matter with it; empty if nothing.
    """

    wrench: Array
    age: float
    health: Health
    words: str


class ForceSensor:
    """A force sensor, read by a thread.

    Parameters
    ----------
    wire : Wire
        How to talk to it.
    settings : SensorSettings
        How it sits on the arm, and how patient to be.

    Attributes
    ----------
    record : (1,) structured array
        What kernels know of it (`devices.arm.sensors.sensor_kernels.SENSOR`).
    """

    def __init__(self, wire: Wire, settings: SensorSettings) -> None:
        self._wire = wire
        self._settings = settings
        self._mounting = Mounting(settings)
        self._readings, self._lost = Latch(READING), np.zeros(1)
        record = self.record = np.zeros(1, SENSOR)
        record["readings"], record["lost"] = self._readings.place, self._lost.ctypes.data
        record["mounting"], record["patience"] = self._mounting.record.ctypes.data, settings.patience
        self._latest: tuple[Sample, float] | None = None
        self._failure: Exception | None = None
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def name(self) -> str:
        """The sensor, for messages and records."""
        return self._wire.name

    @property
    def tally(self) -> Mapping[str, int]:
        """What came and what did not, by name."""
        return self._wire.tally

    # --- beginning and end -------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, start the stream and wait for a measurement; nothing happens if it is open.

        Raises
        ------
        DeviceNotFoundError, DeviceOpenError
            With the remedy.
        """
        if self._thread is not None:
            return
        self._mounting.gravity()  # it is compiled now, and not when the motors are driven
        try:
            self._wire.open()
            self._start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the stream and disconnect."""
        self._stop()
        self._latest = None
        self._wire.close()

    def _start(self) -> None:
        """Start the reader and wait for a usable measurement."""
        self._latest, self._failure = None, None
        self._readings.publish(-math.inf, 1.0, *6 * (0.0,))
        self._lost[0] = 0.0
        self._ending.clear()
        self._thread = threading.Thread(target=self._read_on, name="force sensor", daemon=True)
        self._thread.start()
        latest = time.monotonic() + FIRST
        while True:
            with contextlib.suppress(DeviceFault):
                if self._state() is not None:
                    return
            if self._failure is not None or time.monotonic() > latest:
                raise DeviceOpenError(f"{self.name} sends no usable force: {self._why(time.perf_counter())}")
            pause(_PAUSE)

    def _stop(self) -> None:
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _read_on(self) -> None:
        try:
            while not self._ending.is_set():
                sample = self._wire.look(LOOK)
                if sample is not None:
                    self._take(sample)
        except Exception as error:  # whatever it is, the tick has to know
            self._failure = error
            self._lost[0] = 1.0

    def _take(self, sample: Sample) -> None:
        if sample.health is not Health.FAULT:
            usable = sample.measured
        else:
            usable = self._latest[1] if self._latest is not None else -math.inf
        self._latest = sample, usable
        self._readings.publish(usable, float(sample.health is Health.FAULT), *sample.wrench)

    # --- the force ---------------------------------------------------------------------------------------------------

    def latest(self, orientation: Array | None = None) -> Reading:
        """Return the newest force of the hand, at once.

        Parameters
        ----------
        orientation : (3, 3) float array, optional
            Turns the axes of the flange into those of the world (`devices.arm.sensors.mounting.turn` makes one); as
            they are if none.

        Raises
        ------
        DeviceFault
            If there will be no more, or there has been no usable one for longer than the patience.
        """
        state = self._state()
        if state is None:
            raise DeviceFault(f"{self.name} is not open: call open() first.")
        sample, age = state
        wrench = np.zeros(6) if sample.health is Health.FAULT else self._mounting.hand(sample.wrench, orientation)
        return Reading(wrench, age, sample.health, sample.words)

    def _state(self) -> tuple[Sample, float] | None:
        """Return the newest sample, and how old the last usable one is [s]; nothing before the first."""
        latest, now = self._latest, time.perf_counter()
        if self._failure is not None:
            raise self.trouble(math.inf) from self._failure
        if latest is None:
            return None
        age = now - latest[1]
        if age > self._settings.patience:
            raise self.trouble(age)
        return latest[0], age

    def trouble(self, age: float) -> DeviceFault:
        """Return what is said when it has failed, or its last usable force is of an `age` [s] that is too much."""
        why = self._why(time.perf_counter())
        if self._failure is not None:
            return DeviceFault(f"{self.name} failed: {why}")
        return DeviceFault(f"{self.name} has sent no usable force for {1e3 * age:.0f} ms: {why}")

    def _why(self, now: float) -> str:
        """Say why there is no usable force, and what to do."""
        if self._failure is not None:
            return str(self._failure)
        heard = self._latest is not None and now - self._latest[0].received < self._settings.patience
        words = self._latest[0].words if heard and self._latest is not None else ""
        return words or self._wire.silence

    # --- tare --------------------------------------------------------------------------------------------------------

    def tare(self, orientation: Array | None = None) -> None:
        """Tare: take the present load, without the handle's weight, as zero force; nobody may touch the handle.

        Parameters
        ----------
        orientation : (3, 3) float array, optional
            Of the flange now, as for `latest`.

        Raises
        ------
        DeviceOpenError
            If the force was not steady.
        DeviceFault
            If the sensor fails.
        """
        wanted = self._settings.tare_samples
        wrenches: list[tuple[float, ...]] = []
        last = -math.inf
        while len(wrenches) < wanted:
            state = self._state()
            if state is None:
                raise DeviceFault(f"{self.name} is not open: call open() first.")
            sample = state[0]
            if sample.health is not Health.FAULT and sample.measured > last:
                last = sample.measured
                wrenches.append(sample.wrench)
            time.sleep(_PAUSE)
        all_of_them = np.array(wrenches)
        spread = float(np.ptp(all_of_them[:, :3], axis=0).max())
        if spread > self._settings.tare_spread:
            raise DeviceOpenError(
                f"{self.name} showed forces {spread:.3g} N apart during its tare: let go of the handle and keep the "
                "arm at rest, or allow more with device.sensor.tare_spread."
            )
        self._mounting.tare(all_of_them.mean(axis=0), orientation)

    def zero(self, orientation: Array | None = None) -> None:
        """Tare the sensor itself; the stream is interrupted for a moment.

        It is as good as `tare` for the force of the hand; prefer that, which does without the sensor. Nobody may touch
        the handle.

        Parameters
        ----------
        orientation : (3, 3) float array, optional
            Of the flange now, as for `latest`.

        Raises
        ------
        DeviceOpenError
            If the stream does not come back.
        """
        self._stop()
        try:
            self._wire.zero()
            self._mounting.tare(np.zeros(6), orientation)
            self._start()
        except HapticError:
            self.close()
            raise
