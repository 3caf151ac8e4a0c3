"""Decoding of OptoForce frames from a byte stream that may be truncated, damaged or mixed.

A frame begins with four bytes that identify its kind and ends with the 16-bit sum of all bytes before. All numbers are
big-endian. The decoder searches for the beginning of a frame, waits until the frame is complete, and accepts it if the
sum is correct. Otherwise it continues after the *first byte* of the false beginning, not after its end, because a valid
frame may begin in between. The result depends only on the bytes, not on how they were split.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

_VALUES = {b"\xaa\x07\x08\x0a": 3, b"\xaa\x07\x08\x10": 6, b"\xaa\x07\x08\x1c": 12}
"""Number of counts by the beginning of a frame."""

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
    """Decoder of a byte stream.

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
        own = self._bytes
        own += data
        found: list[Frame | Acknowledgement] = []
        at = 0
        while (length := self._length(at)) is not None:
            if length == 0 or not _sum_is_right(own, at, length):
                self.tally["damaged"] += length > 0
                self.tally["skipped"] += 1
                at += 1
                continue
            found.append(self._parse(bytes(own[at : at + length])))
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

    def _parse(self, data: bytes) -> Frame | Acknowledgement:
        if data.startswith(_ACKNOWLEDGEMENT):
            return Acknowledgement(data[4])
        count = _VALUES[data[:4]]
        number, status, *counts = struct.unpack(f">HH{count}h", data[4:-2])
        self._count(number)
        return Frame(number, status, tuple(counts))

    def _count(self, number: int) -> None:
        """Count a frame with this `number`, which has 16 bits and wraps."""
        tally = self.tally
        tally["received"] += 1
        ahead = 1 if self._last is None else (number - self._last) % _WRAP
        self._last = number
        if ahead == 0:
            tally["duplicated"] += 1
        elif ahead >= _HALF:  # bytes on a cable arrive in order: the sensor has restarted
            tally["restarted"] += 1
        elif ahead > 1:
            tally["gaps"] += 1
            tally["lost"] += ahead - 1


def configuration(speed: int, cutoff: int, zero: int) -> bytes:
    """Return the message that sets speed and filter; `zero` is 255 to tare, 0 to cancel the tare."""
    message = bytes((0xAA, 0x00, 0x32, 0x03, speed, cutoff, zero))
    return message + (sum(message) % _WRAP).to_bytes(2, "big")


def _sum_is_right(data: bytearray, at: int, length: int) -> bool:
    end = at + length - 2
    return sum(data[at:end]) % _WRAP == data[end] << 8 | data[end + 1]


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
