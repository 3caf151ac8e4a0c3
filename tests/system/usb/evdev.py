"""The kernel's own way to a force-feedback stick, by ioctl on ``/dev/input/event*`` and ``/dev/hidraw*``.

Numbers and structures are those of linux/input.h, linux/input-event-codes.h and linux/hidraw.h on 64 bits.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.processes import until

EV_ABS, EV_FF = 0x03, 0x15
ABS_X, ABS_Y = 0x00, 0x01
FF_CONSTANT, FF_AUTOCENTER = 0x52, 0x61
NEW = -1

FROM_LEFT, FROM_AWAY = 0xC000, 0x0000
"""From where an effect pushes, clockwise from away from the person; a full turn is 0x10000."""

_EVENT = struct.Struct("@llHHi")
_AXIS = struct.Struct("@6i")
"""value, minimum, maximum, fuzz, flat, resolution"""
_EFFECT = struct.Struct("@HhHHHHH2xh30x")
"""type, id, direction, trigger button and interval, length, delay [ms]; of a constant effect the level."""

_UPLOAD = 0x40304580
_ERASE = 0x40044581
_EFFECTS = 0x80044584
_ABSOLUTE = 0x80184540
_SET_ABSOLUTE = 0x401845C0
_DESCRIPTOR_SIZE = 0x80044801
_DESCRIPTOR = 0x90044802


def force_nodes() -> list[Path]:
    """Return the event devices that can play forces."""
    nodes = sorted(Path("/sys/class/input").glob("event*"))
    return [Path("/dev/input") / node.name for node in nodes if (node / "device/capabilities/ff").read_text() != "0\n"]


def wait_for_node() -> Path:
    """Return the stick's event device as soon as it can be used."""
    nodes: list[Path] = until(force_nodes, "the kernel made no force-feedback device", 20.0)
    until(nodes[0].exists, f"{nodes[0]} never came", 5.0)
    return nodes[0]


def wait_for_no_node() -> None:
    """Wait until the kernel has let go of the stick."""
    until(lambda: not force_nodes(), "the kernel kept its force-feedback device", 20.0)


def report_descriptor() -> bytes:
    """Return the report descriptor that the kernel has read from the stick, through ``/dev/hidraw*``."""
    (node,) = Path("/dev").glob("hidraw*")
    with open(node, "rb") as device:
        size = bytearray(4)
        fcntl.ioctl(device, _DESCRIPTOR_SIZE, size)
        buffer = bytearray(bytes(size) + bytes(4096))
        fcntl.ioctl(device, _DESCRIPTOR, buffer)
    return bytes(buffer[4 : 4 + int.from_bytes(size, "little")])


class EventDevice:
    """An open event device."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @property
    def effects(self) -> int:
        """How many effects it can hold."""
        count = bytearray(4)
        fcntl.ioctl(self._descriptor, _EFFECTS, count)
        return int.from_bytes(count, "little")

    def axis(self, code: int) -> int:
        """Return where an axis is, in counts."""
        return self._absolute(code)[0]

    def sharpen(self, code: int) -> None:
        """Let an axis show every count: the kernel hides changes below a share of the range (fuzz)."""
        value, least, most, _, flat, resolution = self._absolute(code)
        fcntl.ioctl(self._descriptor, _SET_ABSOLUTE + code, _AXIS.pack(value, least, most, 0, flat, resolution))

    def _absolute(self, code: int) -> tuple[int, ...]:
        data = bytearray(_AXIS.size)
        fcntl.ioctl(self._descriptor, _ABSOLUTE + code, data)
        return _AXIS.unpack(data)

    def moves(self) -> list[tuple[int, int]]:
        """Return what has been reported of axes since the last call, code and counts; empties the queue."""
        found = []
        while select.select([self._descriptor], [], [], 0.0)[0]:
            events = _EVENT.iter_unpack(os.read(self._descriptor, 64 * _EVENT.size))
            found += [(code, value) for _, _, kind, code, value in events if kind == EV_ABS]
        return found

    def constant(self, level: int, direction: int, length: int, effect: int = NEW) -> int:
        """Upload a constant effect of `level` (-0x8000 to 0x7FFF) and `length` [ms]; return its number."""
        data = bytearray(_EFFECT.pack(FF_CONSTANT, effect, direction, 0, 0, length, 0, level))
        fcntl.ioctl(self._descriptor, _UPLOAD, data)
        return int(_EFFECT.unpack(data)[1])

    def let_go(self) -> None:
        """Switch off the spring that centres the handle, where there is one."""
        os.write(self._descriptor, _EVENT.pack(0, 0, EV_FF, FF_AUTOCENTER, 0))

    def play(self, effect: int, count: int) -> None:
        """Play an effect `count` times, or stop it with 0."""
        os.write(self._descriptor, _EVENT.pack(0, 0, EV_FF, effect, count))

    def erase(self, effect: int) -> None:
        """Take an effect off the device."""
        fcntl.ioctl(self._descriptor, _ERASE, effect)


@contextmanager
def opened(node: Path) -> Iterator[EventDevice]:
    """Open an event device for a while."""
    descriptor = os.open(node, os.O_RDWR)
    try:
        yield EventDevice(descriptor)
    finally:
        os.close(descriptor)
