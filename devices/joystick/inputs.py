"""Where positions and buttons are in the input reports of a stick."""

from __future__ import annotations

from typing import NamedTuple

from devices.joystick.hid import usages as use
from devices.joystick.hid.descriptor import Field, ReportDescriptor, ReportType
from devices.joystick.hid.report import Value
from haptics.errors import DeviceOpenError

MOST_BUTTONS = 31
"""So many buttons are looked at: with the dead-man's own bit they make a word."""


class Sample(NamedTuple):
    """One input report: counts of the two axes, buttons (bit n is button n + 1), when it arrived [s, perf_counter]."""

    x: int
    y: int
    buttons: int
    time: float


class InputLayout:
    """Where position, buttons and the device's own state are in its input reports.

    Parameters
    ----------
    descriptor : ReportDescriptor
        What the device says of itself.
    usage_x, usage_y : int
        The two axes.

    Attributes
    ----------
    report : Report
        The one with the position.
    state : Report or None
        The one with the device's own state.
    buttons : int
        How many buttons there are.

    Raises
    ------
    DeviceOpenError
        If no report has both axes.
    """

    def __init__(self, descriptor: ReportDescriptor, usage_x: int, usage_y: int) -> None:
        report = descriptor.with_usage(ReportType.INPUT, usage_x)
        fields = tuple(report.field(usage) for usage in (usage_x, usage_y)) if report is not None else ()
        if report is None or None in fields:
            raise DeviceOpenError(
                f"the stick has no input report with the axes {usage_x:#010x} and {usage_y:#010x}: calibrate it anew."
            )
        self.report = report
        self.state = descriptor.of(ReportType.INPUT, use.STATE_REPORT)
        self._x, self._y = Value(report, usage_x), Value(report, usage_y)
        bits = report.field(use.BUTTON_1)
        self.buttons = _number_of_bits(bits)
        self._buttons = _place_of_bits(bits, self.buttons)

    @property
    def ranges(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Least and greatest count of each axis."""
        x, y = self._x.field, self._y.field
        return (x.logical_min, x.logical_max), (y.logical_min, y.logical_max)

    def is_position(self, data: bytes) -> bool:
        """Tell whether an input report is the one with the position, be it cut short."""
        return not self.report.id or not data or data[0] == self.report.id

    def is_state(self, data: bytes) -> bool:
        """Tell whether an input report is the one with the device's own state."""
        state = self.state
        return state is not None and 0 < state.id != self.report.id and data[:1] == bytes((state.id,))

    def sample(self, data: bytes, now: float) -> Sample:
        """Return what an input report says that arrived at `now` [s]."""
        start, end, shift, mask = self._buttons
        buttons = int.from_bytes(data[start:end], "little") >> shift & mask
        return Sample(self._x.get(data), self._y.get(data), buttons, now)


def _number_of_bits(field: Field | None) -> int:
    if field is None or field.size != 1 or field.array:
        return 0
    return min(field.count, MOST_BUTTONS)


def _place_of_bits(field: Field | None, count: int) -> tuple[int, int, int, int]:
    """Return where a row of so many single bits is: first byte, end, shift and mask."""
    if field is None or not count:
        return 0, 0, 0, 0
    start, shift = divmod(field.offset, 8)
    return start, -(-(field.offset + count) // 8), shift, (1 << count) - 1
