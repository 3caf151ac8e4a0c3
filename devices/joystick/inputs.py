"""Positions of axes and buttons in the input reports of a stick."""

from __future__ import annotations

from typing import NamedTuple

from devices.joystick.hid import usages as use
from devices.joystick.hid.descriptor import Field, Report, ReportDescriptor, ReportType
from devices.joystick.hid.report import ReportError, Value
from haptics.errors import DeviceOpenError

MOST_BUTTONS = 31
"""Maximum number of buttons; together with the dead-man's bit they fit into one 32-bit word."""

_APPLICATION = 1
"""Kind of an application collection, which represents a separate device."""


class Sample(NamedTuple):
    """Input report: counts of both axes, buttons (bit n is button n + 1), arrival time [s, perf_counter].

    A wheel has one axis; the count of the other is 0.
    """

    x: int
    y: int
    buttons: int
    time: float


class InputLayout:
    """Location of position, buttons and device state in the input reports.

    A device may combine several applications, such as a mouse and a stick. The position is taken from the application
    that has the effects, and never from a relative axis.

    Parameters
    ----------
    descriptor : ReportDescriptor
        Parsed report descriptor of the device.
    *usages : int
        Usages of the two axes of a stick, or of the only axis of a wheel.

    Attributes
    ----------
    report : Report
        Report with the position.
    state : Report or None
        Report with the device state.
    usages : tuple of int
        Usages of the axes.
    buttons : int
        Number of buttons.

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
        """Minimum and maximum count of each axis."""
        return tuple((axis.field.logical_min, axis.field.logical_max) for axis in self._axes)

    def is_position(self, data: bytes) -> bool:
        """Return True if an input report is the one with the position, even if it is truncated."""
        return not self.report.id or not data or data[0] == self.report.id

    def is_state(self, data: bytes) -> bool:
        """Return True if an input report is the one with the device state."""
        state = self.state
        return state is not None and 0 < state.id != self.report.id and data[:1] == bytes((state.id,))

    def sample(self, data: bytes, now: float) -> Sample:
        """Decode an input report that arrived at `now` [s]."""
        start, end, shift, mask = self._buttons
        buttons = int.from_bytes(data[start:end], "little") >> shift & mask
        return Sample(self._x.get(data), 0 if self._y is None else self._y.get(data), buttons, now)


def _position(descriptor: ReportDescriptor, usages: tuple[int, ...]) -> tuple[Report, tuple[Value, ...]]:
    """Return the input report with all axes, and the axes; the application with the effects is preferred.

    Raises
    ------
    DeviceOpenError
        If no such report exists.
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
    """Return the number of the outermost collection around a field, 0 without a collection."""
    return field.collections[0].number if field.collections else 0


def _absolute(report: Report, usage: int) -> Value | None:
    """Return the absolute element of an axis in a report, None if absent. Axes of a mouse are ignored."""
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
    """Return the location of `count` consecutive single bits: first byte, end byte, shift and mask."""
    if field is None or not count:
        return 0, 0, 0, 0
    start, shift = divmod(field.offset, 8)
    return start, -(-(field.offset + count) // 8), shift, (1 << count) - 1
