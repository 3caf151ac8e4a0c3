"""OptoForce and OnRobot force sensors on USB: a DAQ unit that streams frames over a serial port.

The counts per newton differ between individual sensors and are not part of the stream. They are given in the
sensitivity report of each sensor, as counts at full load for each axis. There is therefore no default value.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from devices.arm.identities import OPTOFORCE
from devices.arm.sensors.force_sensor import ForceSensor
from devices.arm.sensors.mounting import SensorSettings, check_one_of
from devices.arm.sensors.optoforce_frames import Acknowledgement, Decoder, Frame, configuration, status_words
from devices.arm.sensors.wire import Health, Sample
from devices.common.bus import find_port, open_port
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.settings import bounded, documented, string, unrestricted

SPEEDS: Mapping[int, int] = {1000: 1, 333: 3, 100: 10, 30: 33}
"""Number of the speed, which is the period in milliseconds, by frames per second."""

FILTERS: Mapping[float, int] = {0: 0, 500: 1, 150: 2, 50: 3, 15: 4, 5: 5, 1.5: 6}
"""Number of a filter by its cut-off frequency [Hz], 0 for none."""

STOPPED = 0
TARED, NOT_TARED = 255, 0

ATTEMPTS = 5
ANSWER = 0.1
"""Timeout of a reply [s], after which the request is repeated."""

_AXES = (3, 6)
_CHUNK = 4096
_PORT = "device.sensor.port"


@documented
@dataclass(frozen=True, kw_only=True)
class OptoForceSettings(SensorSettings):
    """Settings of an OptoForce sensor."""

    port: str = string(
        "", allowed="a serial port such as /dev/ttyACM0", doc="serial port; empty to look for the sensor"
    )
    sensitivity: Any = unrestricted(
        None,
        "one pair [counts, load] for each of 3 or 6 axes",
        doc="for each axis the counts at full load and that load (N, torques N m), as in the sensor's sensitivity "
        "report",
    )
    rate: int = bounded(1000, minimum=30, maximum=1000, unit="Hz", doc="frames per second")
    filter: float = bounded(
        500.0,
        minimum=0.0,
        unit="Hz",
        doc="cut-off frequency of its low-pass filter, 0 for none; a low one makes the force late: 1.5 Hz by 0.1 s",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(self, "rate", list(SPEEDS), "Hz")
        check_one_of(self, "filter", list(FILTERS), "Hz")
        if not _is_sensitivity(self.sensitivity):
            raise ConfigurationError(
                f"device.sensor.sensitivity = {self.sensitivity!r}: must be one pair [counts, load in N or N m] for "
                "each of 3 or 6 axes, from the sensitivity report of this very sensor, such as "
                "[[7925, 300], [8641, 300], [6049, 2000]]."
            )

    @property
    def units(self) -> tuple[float, ...]:
        """Unit of the counts of each axis [N], [N m]."""
        return tuple(load / counts for counts, load in self.sensitivity)

    def build(self) -> ForceSensor:
        """Return the sensor, not opened."""
        return ForceSensor(OptoForceWire(self), self)


def _is_sensitivity(value: Any) -> bool:
    try:
        return len(value) in _AXES and all(
            len(pair) == 2 and all(number > 0 and math.isfinite(number) for number in pair) for pair in value
        )
    except TypeError:
        return False


class OptoForceWire:
    """DAQ unit with a sensor.

    Parameters
    ----------
    settings : OptoForceSettings
        Port and sensitivity of the sensor.
    """

    def __init__(self, settings: OptoForceSettings) -> None:
        self._settings = settings
        self._units = settings.units
        self.name = "the OptoForce sensor"
        self.silence = (
            "nothing comes from it: check its cable, plug it in anew, and see that it is an OptoForce DAQ unit."
        )
        self._decoder = Decoder()
        self._port: int | None = None
        self._number: int | None = None
        self._measured = 0.0

    @property
    def tally(self) -> Mapping[str, int]:
        """Counters of frames and bytes, as in `Decoder`."""
        return self._decoder.tally

    def open(self) -> None:
        """Open the port, configure the sensor and start its stream, not tared."""
        path = self._settings.port or find_port(OPTOFORCE, "OptoForce sensor", _PORT)
        self._port = open_port(path, _PORT, termios.B1000000)
        self.name = f"the OptoForce sensor at {path}"
        self._decoder = Decoder()
        self._configure(SPEEDS[self._settings.rate], NOT_TARED)

    def close(self) -> None:
        """Stop the stream and close the port."""
        port = self._port
        if port is None:
            return
        with contextlib.suppress(DeviceFault, DeviceOpenError):  # an unplugged device does not stream any longer
            self._configure(STOPPED, NOT_TARED)
        self._port = None
        os.close(port)

    def poll(self, patience: float) -> Sample | None:
        """Wait for at most `patience` [s] for data; read all of them and return the newest measurement."""
        frames = [found for found in self._receive(patience) if isinstance(found, Frame)]
        if not frames:
            return None
        words = next((words for frame in reversed(frames) if (words := status_words(frame.status))), "")
        return self._sample(frames[-1], words, time.perf_counter())

    def zero(self) -> None:
        """Tare the sensor: its present load becomes zero."""
        self._configure(SPEEDS[self._settings.rate], TARED)

    @property
    def _open_descriptor(self) -> int:
        if self._port is None:
            raise DeviceFault(f"{self.name} is not open: call open() first.")
        return self._port

    def _receive(self, patience: float) -> list[Frame | Acknowledgement]:
        """Return the frames received, waiting for at most `patience` [s]."""
        port = self._open_descriptor
        try:
            if not select.select([port], [], [], patience)[0]:
                return []
            data = os.read(port, _CHUNK)
        except BlockingIOError:
            return []
        except OSError as error:
            raise _gone(error) from error
        if not data:
            raise _gone("it hung up")
        return self._decoder.feed(data)

    def _configure(self, speed: int, zero: int) -> None:
        """Send the configuration to the sensor, and wait for its acknowledgement."""
        message = configuration(speed, FILTERS[self._settings.filter], zero)
        for _ in range(ATTEMPTS):
            self._send(message)
            latest = time.monotonic() + ANSWER
            while (left := latest - time.monotonic()) > 0.0:
                for found in self._receive(left):
                    if isinstance(found, Acknowledgement):
                        if found.error:
                            raise DeviceOpenError(f"{self.name} does not take its settings (error {found.error}).")
                        return
        raise DeviceOpenError(f"{self.name} does not answer: {self.silence}")

    def _send(self, message: bytes) -> None:
        try:
            os.write(self._open_descriptor, message)
        except OSError as error:
            raise _gone(error) from error

    def _sample(self, frame: Frame, words: str, now: float) -> Sample:
        """Return the sample of a frame received at `now` [s], with `words` describing an error."""
        if len(frame.counts) != len(self._units):
            raise DeviceFault(
                f"it sends {len(frame.counts)} values and device.sensor.sensitivity has {len(self._units)}: use the "
                "sensitivity report of this sensor, one pair for each of its axes."
            )
        wrench = [unit * count for unit, count in zip(self._units, frame.counts, strict=True)]
        if frame.number != self._number:
            self._number, self._measured = frame.number, now
        health = Health.FAULT if words else Health.OK
        return Sample((*wrench, *([0.0] * (6 - len(wrench)))), now, self._measured, health, words)


def _gone(why: object) -> DeviceFault:
    return DeviceFault(f"it is gone ({why}): check its cable and plug it in anew.")
