"""Records of the raw data transfer: from datagrams in any order to the newest measurement.

A record is 36 bytes, big-endian: its number in the stream, the number of the measurement, a status word, six counts.
Numbers are 32 bits and wrap. A datagram holds one record, or several back to back. Datagrams may be lost, duplicated
or reordered.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

RECORD = struct.Struct(">3I6i")
_NUMBERS = struct.Struct(">3I")

_WRAP = 1 << 32
_HALF = 1 << 31

RESTARTED = 10
"""Number of consecutive old-looking records after which the stream is considered restarted."""


class Record(NamedTuple):
    """Record: number, number of the measurement, status and the counts of Fx, Fy, Fz, Tx, Ty, Tz."""

    number: int
    measurement: int
    status: int
    counts: tuple[int, ...]


def parse_record(data: bytes, offset: int = 0) -> Record:
    """Return the record in `data` at `offset`."""
    number, measurement, status, *counts = RECORD.unpack_from(data, offset)
    return Record(number, measurement, status, tuple(counts))


class Records:
    """Collects datagrams and returns the newest record.

    The status bits of all records since the last `collect` also apply to the newest one: after a peak that overloaded
    the sensor, filtered values are wrong for a while.

    Attributes
    ----------
    tally : dict
        Number of records ``received`` (new ones), ``lost`` (missing when a newer one arrived), ``duplicated``, ``late``
        (after a newer one, dropped), ``restarted`` (the numbers restarted); number of ``malformed`` datagrams.
    """

    def __init__(self) -> None:
        self.tally = dict.fromkeys(("received", "lost", "duplicated", "late", "restarted", "malformed"), 0)
        self._last: int | None = None
        self._late = 0
        self._status = 0
        self._newest: tuple[bytes, int] | None = None

    def reset(self) -> None:
        """Reset: the next record is the first of a stream."""
        self._last, self._late, self._status, self._newest = None, 0, 0, None

    def add(self, datagram: bytes) -> None:
        """Add a datagram."""
        if not datagram or len(datagram) % RECORD.size:
            self.tally["malformed"] += 1
            return
        for offset in range(0, len(datagram), RECORD.size):
            number, _, status = _NUMBERS.unpack_from(datagram, offset)
            if self._is_new(number):
                self._status |= status
                self._newest = datagram, offset

    def collect(self) -> Record | None:
        """Return the newest record since the last call, with all status bits since; None if no record arrived."""
        if self._newest is None:
            return None
        record = parse_record(*self._newest)._replace(status=self._status)
        self._newest, self._status = None, 0
        return record

    def _is_new(self, number: int) -> bool:
        """Count a record with this `number`; return True if it is newer than all before."""
        tally = self.tally
        ahead = 1 if self._last is None else (number - self._last) % _WRAP
        if ahead == 0:
            tally["duplicated"] += 1
            return False
        if ahead >= _HALF:
            tally["late"] += 1
            self._late += 1
            if self._late < RESTARTED:
                return False
            tally["restarted"] += 1
            ahead = 1
        tally["received"] += 1
        tally["lost"] += ahead - 1
        self._last, self._late = number, 0
        return True
