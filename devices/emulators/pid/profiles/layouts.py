"""Byte layouts of the output reports, by kind and family of sticks; all numbers are little-endian.

The positions are fixed and taken from tables, independent of the report descriptors.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """Output report: number, kind, and fields.

    Attributes
    ----------
    number : int
        Report id, the first byte.
    kind : str
        Kind of the report, such as ``set-effect``.
    form : str
        Format of the fields after the id, for `struct`.
    names : str
        Names of the fields, separated by blanks.
    """

    number: int
    kind: str
    form: str
    names: str

    @property
    def size(self) -> int:
        """Length with the id [byte]."""
        return 1 + struct.calcsize("<" + self.form)

    def unpack(self, data: bytes) -> dict[str, int]:
        """Return the fields of a report, which includes the id and is long enough."""
        return dict(zip(self.names.split(), struct.unpack_from("<" + self.form, data, 1), strict=True))


def _common(control: str = "command") -> tuple[Layout, ...]:
    """Return the reports that all families share."""
    return (
        Layout(5, "constant", "Bh", "block magnitude"),
        Layout(10, "operation", "BBB", "block operation loops"),
        Layout(11, "free", "B", "block"),
        Layout(12, "control", "B", control),
        Layout(13, "gain", "B", "gain"),
    )


_CONDITION = "block place centre positive negative positive_saturation negative_saturation dead_band"
_ENVELOPE = "block attack_level fade_level attack_time fade_time"
_PERIODIC = "block magnitude offset phase period"
_EFFECT = "block type duration trigger_repeat sample_period"

_WIDE = (
    Layout(2, "envelope", "BHHII", _ENVELOPE),
    Layout(3, "condition", "BBhhhHHH", _CONDITION),
    Layout(4, "periodic", "BHhHI", _PERIODIC),
    Layout(6, "ramp", "Bhh", "block start end"),
)
_CUSTOM = (
    Layout(7, "custom-data", "BH12s", "block offset samples"),
    Layout(14, "custom", "BBH", "block count period"),
)

_VENDOR = Layout(0xA1, "vendor", "BHBIQQ", "type class instance command data address")

OPENFFBOARD = (
    Layout(
        1,
        "set-effect",
        "BBHHHHBBBHHHH",
        f"{_EFFECT} start_delay gain trigger axes direction direction_y offset_x offset_y",
    ),
    *_WIDE,
    *_common("bits"),
    _VENDOR,
)
"""Reports of the OpenFFBoard with two axes of 16 bits."""

OPENFFBOARD_WHEEL = (
    Layout(1, "set-effect", "BBHHHHBBBHH", f"{_EFFECT} start_delay gain trigger axes direction offset_x"),
    *OPENFFBOARD[1:],
)
"""Reports of the OpenFFBoard with one axis: one angle and one offset less."""

ARDUINO = (
    Layout(
        1,
        "set-effect",
        "BBHHHBBBBBHH",
        f"{_EFFECT} gain trigger axes direction direction_y offset_x offset_y",
    ),
    *_WIDE,
    *_CUSTOM,
    Layout(8, "force-sample", "b", "x"),
    *_common(),
)
"""Reports of the Arduino force-feedback library: no start delay, eight bits of direction."""

SIDEWINDER = (
    Layout(
        1,
        "set-effect",
        "BBHHHBBBBBH",
        f"{_EFFECT} gain trigger axes direction direction_y start_delay",
    ),
    Layout(2, "envelope", "BBBHH", _ENVELOPE),
    Layout(3, "condition", "BBbbbBBB", _CONDITION),
    Layout(4, "periodic", "BBbBH", _PERIODIC),
    Layout(6, "ramp", "Bbb", "block start end"),
    *_CUSTOM,
    Layout(8, "force-sample", "bb", "x y"),
    *_common(),
)
"""Reports of the SideWinder Force Feedback 2: 8 bits of nearly everything, 9 of the constant force."""


def openffboard_input(x: int, y: int, buttons: int) -> bytes:
    """Return input report 1: 64 buttons, eight axes of 16 bits."""
    return struct.pack("<BQ8h", 1, buttons, x, y, 0, 0, 0, 0, 0, 0)


def arduino_input(x: int, y: int, buttons: int) -> bytes:
    """Return input report 1: 8 buttons, two axes of 16 bits."""
    return struct.pack("<BBhh", 1, buttons & 0xFF, x, y)


def sidewinder_input(x: int, y: int, buttons: int) -> bytes:
    """Return input report 1: two axes of 10 bits, the twist and the slider at rest, no hat, 8 buttons."""
    return struct.pack("<BHHBBBB4x", 1, x & 0x3FF, y & 0x3FF, 0, 0, 8, buttons & 0xFF)


def state_with_block(flags: int, playing: bool, block: int) -> bytes:
    """Return input report 2: paused, enabled, safety switch, override, power; playing, and block number."""
    paused_enabled_safety, power = flags & 0b111, flags >> 3 & 1
    return struct.pack("<BBB", 2, paused_enabled_safety | power << 4, int(playing) | (block & 0x7F) << 1)


def state_without_block(flags: int, playing: bool, block: int) -> bytes:
    """Return input report 2: paused, enabled, safety switch, power, playing; without the block number."""
    return struct.pack("<BB", 2, flags & 0b1111 | int(playing) << 4)
