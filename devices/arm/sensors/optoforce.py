"""OptoForce and OnRobot force sensors on USB: a DAQ unit that streams frames over a serial port.

The counts per newton differ between individual sensors and are not part of the stream. They are given in the
sensitivity report of each sensor, as counts at full load for each axis. There is therefore no default value.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import struct
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from devices.arm import OPTOFORCE
from devices.arm.sensors.force_sensor import Health, Sample, SensorSettings, Wire, check_one_of
from devices.common.bus import find_port, open_port
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.settings import bounded, documented, string, unrestricted

# Number of counts by the beginning of a frame.
_VALUES = {b"\xaa\x07\x08\x0a": 3, b"\xaa\x07\x08\x10": 6, b"\xaa\x07\x08\x1c": 12}

_ACKNOWLEDGEMENT = b"\xaa\x00\x50\x01"

_LENGTHS = {**{start: 10 + 2 * count for start, count in _VALUES.items()}, _ACKNOWLEDGEMENT: 7}

_WRAP = 1 << 16
_HALF = 1 << 15


class Frame(NamedTuple):
    """Measurement: number in the stream, status, and counts of 3 or 6 axes, or of four 3-axis sensors."""

    number: int
    status: int
    counts: tuple[int, ...]


class Acknowledgement(NamedTuple):
    """Reply to a configuration; an `error` of 0 means success."""

    error: int


class Decoder:
    """Decoder of a byte stream that may be truncated, damaged or mixed.

    A frame begins with four bytes that identify its kind and ends with the 16-bit sum of all bytes before. All numbers
    are big-endian. The decoder searches for the beginning of a frame, waits until the frame is complete, and accepts it
    if the sum is correct. Otherwise it continues after the *first byte* of the false beginning, not after its end,
    because a valid frame may begin in between. The result depends only on the bytes, not on how they were split.

    Attributes
    ----------
    tally : dict
        Number of frames ``received``, ``lost`` (missing numbers), ``duplicated`` (repeated numbers) and ``damaged``
        (wrong sum); number of ``gaps`` in the numbers and of restarts of the numbers (``restarted``); number of
        ``skipped`` bytes that belong to no valid frame.
    """

    def __init__(self) -> None:
        names = ("received", "lost", "duplicated", "damaged", "gaps", "restarted", "skipped")
        self.tally = dict.fromkeys(names, 0)
        self._bytes = bytearray()
        self._last: int | None = None

    def feed(self, data: bytes) -> list[Frame | Acknowledgement]:
        """Append data; return the frames that are complete now, in order."""
        own, tally = self._bytes, self.tally
        own += data
        found: list[Frame | Acknowledgement] = []
        at = 0
        while (length := self._length(at)) is not None:
            end = at + length - 2
            if length == 0 or sum(own[at:end]) % _WRAP != own[end] << 8 | own[end + 1]:
                tally["damaged"] += length > 0
                tally["skipped"] += 1
                at += 1
                continue
            start, data = bytes(own[at : at + 4]), bytes(own[at + 4 : end])
            if start == _ACKNOWLEDGEMENT:
                found.append(Acknowledgement(data[0]))
            else:
                number, status, *counts = struct.unpack(f">HH{_VALUES[start]}h", data)
                tally["received"] += 1
                ahead = 1 if self._last is None else (number - self._last) % _WRAP  # numbers have 16 bits and wrap
                self._last = number
                if ahead == 0:
                    tally["duplicated"] += 1
                elif ahead >= _HALF:  # bytes on a cable arrive in order: the sensor has restarted
                    tally["restarted"] += 1
                else:
                    tally["gaps"] += ahead > 1
                    tally["lost"] += ahead - 1
                found.append(Frame(number, status, tuple(counts)))
            at += length
        del own[:at]
        return found

    def _length(self, at: int) -> int | None:
        """Return the length of the frame that begins at `at`, 0 if none does; None if more bytes are needed."""
        own = self._bytes
        start = bytes(own[at : at + 4])
        if len(start) < 4:
            possible = bool(start) and not any(kind.startswith(start) for kind in _LENGTHS)
            return 0 if possible else None
        length = _LENGTHS.get(start, 0)
        return length if len(own) - at >= length else None


def configuration(speed: int, cutoff: int, zero: int) -> bytes:
    """Return the message that sets speed and filter; `zero` is 255 to tare, 0 to cancel the tare."""
    message = bytes((0xAA, 0x00, 0x32, 0x03, speed, cutoff, zero))
    return message + (sum(message) % _WRAP).to_bytes(2, "big")


_OVERLOADS = ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")
_UNIT_ERRORS = {1: "error of the DAQ unit", 2: "the DAQ unit cannot talk to the sensor"}
_SENSOR_ERRORS = {
    1: "no sensor at the DAQ unit: check the cable between them",
    2: "the sensor has failed",
    4: "the sensor is too hot or too cold",
}


def status_words(status: int) -> str:
    """Return a description of the status of a frame; empty if it has no error."""
    words = []
    unit, sensor = status >> 13 & 7, status >> 10 & 7
    if unit:
        words.append(_UNIT_ERRORS.get(unit, f"error {unit} of the DAQ unit"))
    if sensor:
        words.append(_SENSOR_ERRORS.get(sensor, f"error {sensor} of the sensor"))
    overloaded = [name for bit, name in enumerate(_OVERLOADS) if status >> 9 - bit & 1]
    if overloaded:
        words.append(f"overloaded in {', '.join(overloaded)}: take the load away")
    if status >> 3 & 1:
        words.append("several sensors have errors")
    return f"{'; '.join(words)} (status {status:#06x})" if words else ""


SPEEDS: Mapping[int, int] = {1000: 1, 333: 3, 100: 10, 30: 33}
"""Number of the speed, which is the period in milliseconds, by frames per second."""

FILTERS: Mapping[float, int] = {0: 0, 500: 1, 150: 2, 50: 3, 15: 4, 5: 5, 1.5: 6}
"""Number of a filter by its cut-off frequency [Hz], 0 for none."""

STOPPED = 0
NOT_TARED = 0

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

    port: str = string("", allowed="a serial port such as /dev/ttyACM0", doc="serial port; empty to search for it")
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
        doc="cut-off of its low-pass filter, 0 for none; 1.5 Hz delays the force by 0.1 s",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(self, "rate", list(SPEEDS), "Hz")
        check_one_of(self, "filter", list(FILTERS), "Hz")
        try:
            numbers = [number for counts, load in self.sensitivity for number in (counts, load)]
            valid = len(numbers) // 2 in _AXES and all(number > 0 and math.isfinite(number) for number in numbers)
        except (TypeError, ValueError):
            valid = False
        if not valid:
            raise ConfigurationError(
                f"device.sensor.sensitivity = {self.sensitivity!r}: must be one pair [counts, load in N or N m] for "
                "each of 3 or 6 axes, from the sensitivity report of this very sensor, such as "
                "[[7925, 300], [8641, 300], [6049, 2000]]."
            )


class OptoForceWire(Wire):
    """DAQ unit with a sensor.

    Parameters
    ----------
    settings : OptoForceSettings
        Port and sensitivity of the sensor.
    """

    def __init__(self, settings: OptoForceSettings) -> None:
        self._settings = settings
        self._units = tuple(load / counts for counts, load in settings.sensitivity)  # of the counts [N], [N m]
        self.name = "the OptoForce sensor"
        self.silence = (
            "nothing comes from it: check its cable, plug it in anew, and see that it is an OptoForce DAQ unit."
        )
        self._decoder = Decoder()
        self.tally = self._decoder.tally
        self._port: int | None = None
        self._number: int | None = None
        self._measured = 0.0

    def open(self) -> None:
        """Open the port, configure the sensor and start its stream, not tared."""
        path = self._settings.port or find_port(OPTOFORCE, "OptoForce sensor", _PORT)
        self._port = open_port(path, _PORT, termios.B1000000)
        self.name = f"the OptoForce sensor at {path}"
        self._decoder = Decoder()
        self.tally = self._decoder.tally
        self._configure(self._port, SPEEDS[self._settings.rate])

    def close(self) -> None:
        """Stop the stream and close the port."""
        port = self._port
        if port is None:
            return
        with contextlib.suppress(DeviceFault, DeviceOpenError):  # an unplugged device does not stream any longer
            self._configure(port, STOPPED)
        self._port = None
        os.close(port)

    def poll(self, patience: float) -> Sample | None:
        """Wait for at most `patience` [s] for data; read all of them and return the newest measurement."""
        frames = [found for found in self._receive(patience) if isinstance(found, Frame)]
        if not frames:
            return None
        words = next((words for frame in reversed(frames) if (words := status_words(frame.status))), "")
        newest, now = frames[-1], time.perf_counter()
        if len(newest.counts) != len(self._units):
            raise DeviceFault(
                f"it sends {len(newest.counts)} values and device.sensor.sensitivity has {len(self._units)}: use the "
                "sensitivity report of this sensor, one pair for each of its axes."
            )
        wrench = [unit * count for unit, count in zip(self._units, newest.counts, strict=True)]
        if newest.number != self._number:
            self._number, self._measured = newest.number, now
        health = Health.FAULT if words else Health.OK
        return Sample((*wrench, *([0.0] * (6 - len(wrench)))), now, self._measured, health, words)

    def _receive(self, patience: float) -> list[Frame | Acknowledgement]:
        """Return the frames received, waiting for at most `patience` [s]."""
        port = self._port
        if port is None:
            raise DeviceFault(f"{self.name} is not open: call open() first.")
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

    def _configure(self, port: int, speed: int) -> None:
        """Send the configuration to the sensor, and wait for its acknowledgement."""
        message = configuration(speed, FILTERS[self._settings.filter], NOT_TARED)
        for _ in range(ATTEMPTS):
            try:
                os.write(port, message)
            except OSError as error:
                raise _gone(error) from error
            latest = time.monotonic() + ANSWER
            while (left := latest - time.monotonic()) > 0.0:
                for found in self._receive(left):
                    if isinstance(found, Acknowledgement):
                        if found.error:
                            raise DeviceOpenError(f"{self.name} does not take its settings (error {found.error}).")
                        return
        raise DeviceOpenError(f"{self.name} does not answer: {self.silence}")


def _gone(why: object) -> DeviceFault:
    return DeviceFault(f"it is gone ({why}): check its cable and plug it in anew.")
