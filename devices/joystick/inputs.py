"""Where positions and buttons are in the input reports of a stick."""

from __future__ import annotations

from typing import NamedTuple

from devices.joystick.hid import usages as use
from devices.joystick.hid.descriptor import Field, Report, ReportDescriptor, ReportType
from devices.joystick.hid.report import ReportError, Value
from haptics.errors import DeviceOpenError

MOST_BUTTONS = 31
"""So many buttons are looked at: with the dead-man's own bit they make a word."""

_APPLICATION = 1
"""Kind of a collection that is a device of its own."""


class Sample(NamedTuple):
    """One input report: counts of the two axes, buttons (bit n is button n + 1), when it arrived [s, perf_counter].

    A wheel has one axis; the count of the other is 0.
    """

    x: int
    y: int
    buttons: int
    time: float


class InputLayout:
    """Where position, buttons and the device's own state are in its input reports.

    A device may be several in one, a mouse for instance besides a stick: the position is that of the application which
    has the effects, and never a change since the last report.

    Parameters
    ----------
    descriptor : ReportDescriptor
        What the device says of itself.
    *usages : int
        The two axes of a stick, or the only one of a wheel.

    Attributes
    ----------
    report : Report
        The one with the position.
    state : Report or None
        The one with the device's own state.
    usages : tuple of int
        The same.
    buttons : int
        How many buttons there are.

    Raises
    ------
    DeviceOpenError
        If no report has all axes.
    """

    def __init__(self, descriptor: ReportDescriptor, *usages: int) -> None:
        self.usages = usages
        self.report, self._axes = _position(descriptor, usages)
        self._x, self._y = self._axes[0], self._axes[1] if len(usages) > 1 else None
        self.state = descriptor.of(ReportType.INPUT, use.STATE_REPORT)
        bits = self.report.field(use.BUTTON_1)
        self.buttons = _number_of_bits(bits)
        self._buttons = _place_of_bits(bits, self.buttons)

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Least and greatest count of each axis."""
        return tuple((axis.field.logical_min, axis.field.logical_max) for axis in self._axes)

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
        return Sample(self._x.get(data), 0 if self._y is None else self._y.get(data), buttons, now)


def _position(descriptor: ReportDescriptor, usages: tuple[int, ...]) -> tuple[Report, tuple[Value, ...]]:
    """Return the input report with all axes, and where they are in it: that of the application with the effects first.

    Raises
    ------
    DeviceOpenError
        If there is none.
    """
    effects = descriptor.of(ReportType.OUTPUT, use.SET_EFFECT)
    home = _application(effects.fields[0]) if effects else None
    found = []
    for report in descriptor.reports:
        axes = tuple(axis for usage in usages if (axis := _absolute(report, usage)) is not None)
        if report.type is ReportType.INPUT and len(axes) == len(usages):
            found.append((_application(axes[0].field) != home, report, axes))
    if not found:
        words = " and ".join(f"{usage:#010x}" for usage in usages)
        raise DeviceOpenError(f"the stick has no input report with the axes {words}: calibrate it anew.")
    _, report, axes = min(found, key=lambda one: one[0])
    return report, axes


def _application(field: Field) -> int:
    """Return the number of the outermost collection around a field, 0 without one."""
    return field.collections[0].number if field.collections else 0


def _absolute(report: Report, usage: int) -> Value | None:
    """Return where an axis has its position in a report; a mouse has none, however it reports."""
    index = 0
    while True:
        try:
            axis = Value(report, usage, index)
        except ReportError:
            return None
        index += 1
        applications = {collection.usage for collection in axis.field.collections if collection.kind == _APPLICATION}
        if not axis.field.relative and not applications & {use.MOUSE, use.POINTER}:
            return axis


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
