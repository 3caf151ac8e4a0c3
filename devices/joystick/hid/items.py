"""The items of a HID report descriptor: its bytes as tokens, not yet interpreted.

Device Class Definition for Human Interface Devices 1.11, section 6.2.2: an item is a prefix byte (tag, type, size) and
0, 1, 2 or 4 data bytes, little-endian. A long item (prefix 0xFE) has no meaning anywhere and is stepped over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from haptics.errors import HapticError

LONGEST_DESCRIPTOR = 0xFFFF
"""Bytes; the length is a 16-bit number on the bus."""
_LONG_ITEM = 0xFE
_SIZES = (0, 1, 2, 4)

# Tag and type: the prefix without its size.
INPUT, OUTPUT, FEATURE, COLLECTION, END_COLLECTION = 0x80, 0x90, 0xB0, 0xA0, 0xC0
USAGE_PAGE, LOGICAL_MINIMUM, LOGICAL_MAXIMUM, PHYSICAL_MINIMUM, PHYSICAL_MAXIMUM = 0x04, 0x14, 0x24, 0x34, 0x44
UNIT_EXPONENT, UNIT, REPORT_SIZE, REPORT_ID, REPORT_COUNT, PUSH, POP = 0x54, 0x64, 0x74, 0x84, 0x94, 0xA4, 0xB4
USAGE, USAGE_MINIMUM, USAGE_MAXIMUM, DELIMITER = 0x08, 0x18, 0x28, 0xA8

_TYPE, _MAIN, _GLOBAL = 0x0C, 0x00, 0x04


class DescriptorError(HapticError):
    """A report descriptor is not one, or more than any device needs; says at which byte and why."""


@dataclass(frozen=True, slots=True)
class Item:
    """One short item.

    Attributes
    ----------
    offset : int
        Where it begins in the descriptor [byte].
    tag : int
        The prefix byte without the size: ``USAGE``, ``INPUT`` ...
    data : bytes
        0, 1, 2 or 4 bytes.
    """

    offset: int
    tag: int
    data: bytes

    @property
    def unsigned(self) -> int:
        """The data as a number without sign."""
        return int.from_bytes(self.data, "little")

    @property
    def signed(self) -> int:
        """The data as a two's complement of its own size."""
        return int.from_bytes(self.data, "little", signed=True)

    @property
    def is_main(self) -> bool:
        """Whether the item makes something of what was stated before it."""
        return self.tag & _TYPE == _MAIN

    @property
    def is_global(self) -> bool:
        """Whether the item holds until it is stated again."""
        return self.tag & _TYPE == _GLOBAL

    def error(self, reason: str) -> DescriptorError:
        """Return the error to raise for this item."""
        return DescriptorError(f"report descriptor, byte {self.offset}: {reason}.")


def read_items(data: bytes) -> Iterator[Item]:
    """Yield the short items of a descriptor in order.

    Raises
    ------
    DescriptorError
        If the last item is cut off or the descriptor is longer than a device can state.
    """
    if len(data) > LONGEST_DESCRIPTOR:
        raise DescriptorError(f"report descriptor of {len(data)} bytes: at most {LONGEST_DESCRIPTOR}.")
    offset = 0
    while offset < len(data):
        prefix = data[offset]
        start, size = offset + 1, _SIZES[prefix & 3]
        if prefix == _LONG_ITEM:  # its two data bytes are the size and the tag of what follows
            size += data[start] if start < len(data) else 0
        end = start + size
        if end > len(data):
            raise DescriptorError(f"report descriptor, byte {offset}: an item of {size} bytes is cut off.")
        if prefix != _LONG_ITEM:
            yield Item(offset, prefix & ~3, data[start:end])
        offset = end
