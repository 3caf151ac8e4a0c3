"""Tokenizer of HID report descriptors: bytes to items, without interpretation.

Device Class Definition for Human Interface Devices 1.11, section 6.2.2: an item is a prefix byte (tag, type, size) and
0, 1, 2 or 4 data bytes, little-endian. Long items (prefix 0xFE) have no defined meaning and are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from haptics.errors import HapticError

LONGEST_DESCRIPTOR = 0xFFFF
"""Maximum length of a descriptor [byte]; the bus transmits the length as a 16-bit number."""
_LONG_ITEM = 0xFE
_SIZES = (0, 1, 2, 4)

# Tag and type: the prefix without its size.
INPUT, OUTPUT, FEATURE, COLLECTION, END_COLLECTION = 0x80, 0x90, 0xB0, 0xA0, 0xC0
USAGE_PAGE, LOGICAL_MINIMUM, LOGICAL_MAXIMUM, PHYSICAL_MINIMUM, PHYSICAL_MAXIMUM = 0x04, 0x14, 0x24, 0x34, 0x44
UNIT_EXPONENT, UNIT, REPORT_SIZE, REPORT_ID, REPORT_COUNT, PUSH, POP = 0x54, 0x64, 0x74, 0x84, 0x94, 0xA4, 0xB4
USAGE, USAGE_MINIMUM, USAGE_MAXIMUM, DELIMITER = 0x08, 0x18, 0x28, 0xA8

_TYPE, _MAIN, _GLOBAL = 0x0C, 0x00, 0x04


class DescriptorError(HapticError):
    """Invalid report descriptor, or one beyond the limits of the parser.

    The message states the byte offset and the reason.
    """


@dataclass(frozen=True, slots=True)
class Item:
    """Short item of a descriptor.

    Attributes
    ----------
    offset : int
        Position in the descriptor [byte].
    tag : int
        Prefix byte without the size: ``USAGE``, ``INPUT`` ...
    data : bytes
        0, 1, 2 or 4 bytes.
    """

    offset: int
    tag: int
    data: bytes

    @property
    def unsigned(self) -> int:
        """Data as an unsigned number."""
        return int.from_bytes(self.data, "little")

    @property
    def signed(self) -> int:
        """Data as a two's complement number of the same size."""
        return int.from_bytes(self.data, "little", signed=True)

    @property
    def is_main(self) -> bool:
        """Whether the item is a main item, which defines a field or a collection from the preceding items."""
        return self.tag & _TYPE == _MAIN

    @property
    def is_global(self) -> bool:
        """Whether the item is a global item, which applies until it is stated again."""
        return self.tag & _TYPE == _GLOBAL

    def error(self, reason: str) -> DescriptorError:
        """Return an error that refers to this item."""
        return DescriptorError(f"report descriptor, byte {self.offset}: {reason}.")


def read_items(data: bytes) -> Iterator[Item]:
    """Yield the short items of a descriptor in order.

    Raises
    ------
    DescriptorError
        If the last item is truncated or the descriptor is longer than a device can state.
    """
    if len(data) > LONGEST_DESCRIPTOR:
        raise DescriptorError(f"report descriptor of {len(data)} bytes: at most {LONGEST_DESCRIPTOR}.")
    offset = 0
    while offset < len(data):
        prefix = data[offset]
        start, size = offset + 1, _SIZES[prefix & 3]
        if prefix == _LONG_ITEM:  # two data bytes: size and tag of the long data
            size += data[start] if start < len(data) else 0
        end = start + size
        if end > len(data):
            raise DescriptorError(f"report descriptor, byte {offset}: an item of {size} bytes is cut off.")
        if prefix != _LONG_ITEM:
            yield Item(offset, prefix & ~3, data[start:end])
        offset = end
