"""Reports of a force-feedback stick: positions and buttons in its input, constant forces in its output."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from devices.joystick.families import Family
from devices.joystick.hid import usages as use
from devices.joystick.hid.descriptor import Field, Report, ReportDescriptor, ReportType
from devices.joystick.hid.report import Raw, ReportError, Value, encode, value_of, values_of
from haptics.errors import DeviceOpenError

# --- input ------------------------------------------------------------------------------------------------------------

MOST_BUTTONS = 31
"""Maximum number of buttons; together with the dead-man's bit they fit into one 32-bit word."""

_APPLICATION = 1  # kind of an application collection, which represents a separate device


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
    ranges : tuple of (int, int)
        Minimum and maximum count of each axis.
    buttons : int
        Number of buttons.

    Raises
    ------
    DeviceOpenError
        If no report has all axes.
    """

    def __init__(self, descriptor: ReportDescriptor, *usages: int) -> None:
        self.usages = usages
        effects = descriptor.of(ReportType.OUTPUT, use.SET_EFFECT)
        home = _application(effects.fields[0]) if effects else None
        found = []
        for report in descriptor.reports:
            axes = [axis for usage in usages if (axis := _absolute(report, usage)) is not None]
            if report.type is ReportType.INPUT and len(axes) == len(usages):
                found.append((_application(axes[0].field) != home, report, axes))
        if not found:
            words = " and ".join(f"{usage:#010x}" for usage in usages)
            raise DeviceOpenError(f"the stick has no input report with the axes {words}: calibrate it anew.")
        _, self.report, self._axes = min(found, key=lambda candidate: candidate[0])
        self.state = descriptor.of(ReportType.INPUT, use.STATE_REPORT)
        self.ranges = tuple((axis.field.logical_min, axis.field.logical_max) for axis in self._axes)
        self.buttons, self._buttons = 0, (0, 0, 0, 0)
        bits = self.report.field(use.BUTTON_1)
        if bits is not None and bits.size == 1 and not bits.array:
            self.buttons = count = min(bits.count, MOST_BUTTONS)
            start, shift = divmod(bits.offset, 8)
            self._buttons = start, -(-(bits.offset + count) // 8), shift, (1 << count) - 1  # first, end byte, mask

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
        counts = [axis.get(data) for axis in self._axes]
        return Sample(counts[0], counts[1] if len(counts) > 1 else 0, buttons, now)


def _application(field: Field) -> int:
    """Return the number of the outermost collection around a field, 0 without a collection."""
    return field.collections[0].number if field.collections else 0


def _absolute(report: Report, usage: int) -> Value | None:
    """Return the absolute element of an axis in a report, None if absent. Axes of a mouse are ignored."""
    for axis in values_of(report, usage):
        applications = {collection.usage for collection in axis.field.collections if collection.kind == _APPLICATION}
        if not axis.field.relative and not applications & {use.MOUSE, use.POINTER}:
            return axis
    return None


# --- output -----------------------------------------------------------------------------------------------------------

# Required device control commands, with their descriptions for messages.
_COMMANDS = {
    use.DEVICE_RESET: "reset it (Device Reset)",
    use.STOP_ALL_EFFECTS: "stop all effects (Stop All Effects)",
    use.ENABLE_ACTUATORS: "switch its motors on (Enable Actuators)",
    use.DISABLE_ACTUATORS: "switch its motors off (Disable Actuators)",
}
# Required effect operations, with their descriptions for messages.
_OPERATIONS = {use.START: "start an effect (Start)", use.STOP: "stop an effect (Stop)"}

_TIME_UNITS = (0x1001, 0x1003)
_OUTPUT, _FEATURE = ReportType.OUTPUT, ReportType.FEATURE


class Playbook:
    """Encoder of the reports that play constant forces, located by their usages.

    Parameters
    ----------
    descriptor : ReportDescriptor
        Parsed report descriptor of the device.
    family : Family
        Quirks of the device.

    Attributes
    ----------
    full_scale : int
        Count of magnitude 1. The negated count is valid, too.
    magnitude, angle : Value
        Magnitude of a constant force, and direction of an effect.
    block_load : Report
        Report of the block of a new effect.
    pool : Report or None
        Report of the memory of the device.
    create : bytes
        Report that requests a new constant effect.
    gain : bytes or None
        Report that sets the device gain to its maximum, None if the device has no gain.

    Raises
    ------
    DeviceOpenError
        If the device cannot play constant forces; names the missing part.
    """

    def __init__(self, descriptor: ReportDescriptor, family: Family) -> None:
        def find(kind: ReportType, usage: int, name: str) -> Report:
            report = descriptor.of(kind, usage)
            if report is None:
                raise _unsuitable(f"it has no report {name}.")
            return report

        self._family = family
        self._effect = find(_OUTPUT, use.SET_EFFECT, "Set Effect")
        self._constant = find(_OUTPUT, use.SET_CONSTANT_FORCE, "Set Constant Force")
        self._operation = find(_OUTPUT, use.EFFECT_OPERATION_REPORT, "Effect Operation")
        self._control = find(_OUTPUT, use.DEVICE_CONTROL, "Device Control")
        create = find(_FEATURE, use.CREATE_NEW_EFFECT, "Create New Effect")
        self.block_load = find(_FEATURE, use.BLOCK_LOAD_REPORT, "Block Load")
        self.pool = descriptor.of(_FEATURE, use.POOL_REPORT)
        gain = descriptor.of(_OUTPUT, use.DEVICE_GAIN_REPORT)
        self._free = descriptor.of(_OUTPUT, use.BLOCK_FREE_REPORT)
        try:
            self.magnitude = value_of(self._constant, use.MAGNITUDE)
            self.angle = value_of(self._effect, use.ORDINAL_1, within=use.DIRECTION)
            lists = ((self._control, _COMMANDS), (self._operation, _OPERATIONS))
            missing = [text for report, known in lists for usage, text in known.items() if report.field(usage) is None]
            if missing:
                raise _unsuitable(f"it has no command to {', nor to '.join(missing)}.")
            # Encode every report once, so that a missing usage is found before a force is on.
            for command in _COMMANDS:
                self.control(command)
            self.gain = encode(gain, {use.DEVICE_GAIN: _field(gain, use.DEVICE_GAIN).logical_max}) if gain else None
            self.create = encode(create, {use.EFFECT_TYPE: use.CONSTANT_FORCE})
            self.effect(1, 0.0, 0.2)
            self.operation(1, use.START)
            self.ending(1)
        except ReportError as error:
            raise _unsuitable(str(error)) from error
        low, high = self.magnitude.field.logical_min, self.magnitude.field.logical_max
        self.full_scale = min(high, -low)
        if self.full_scale < 1:
            raise _unsuitable(f"its magnitudes, {low} to {high}, have no sign.")

    def control(self, command: int) -> bytes:
        """Return the report of a device control command: reset, enable ...

        In a list, the first command is number 1 even if the range in the descriptor begins at 0: the kernel's driver,
        with which manufacturers test, sends this number.
        """
        place = self._control.field(command)
        number = Raw(1 + place.usages.index(command)) if place is not None and place.array else command
        return encode(self._control, {use.DEVICE_CONTROL: number})

    def constant(self, block: int) -> bytes:
        """Return the report that sets the magnitude of an effect to zero."""
        return encode(self._constant, {use.EFFECT_BLOCK_INDEX: block, use.MAGNITUDE: 0})

    def operation(self, block: int, operation: int) -> bytes:
        """Return the report that starts (once) or stops an effect."""
        values: dict[Any, int] = {use.EFFECT_BLOCK_INDEX: block, use.EFFECT_OPERATION: operation}
        if self._operation.field(use.LOOP_COUNT) is not None:
            values[use.LOOP_COUNT] = int(operation == use.START)
        return encode(self._operation, values)

    def ending(self, block: int) -> tuple[bytes | None, ...]:
        """Return the reports that end an effect: zero force, stop, free the block if the device can do that."""
        free = encode(self._free, {use.EFFECT_BLOCK_INDEX: block}) if self._free is not None else None
        return self.constant(block), self.operation(block, use.STOP), free

    def effect(self, block: int, direction: float, duration: float) -> bytes:
        """Return the report that describes a constant effect.

        Parameters
        ----------
        block : int
            Block of the effect.
        direction : float
            Direction that the force comes from [rad].
        duration : float
            Duration [s]; may be infinite.
        """
        report = self._effect
        lasting, circle = _field(report, use.DURATION), _field(report, use.ORDINAL_1, use.DIRECTION)
        exponent = lasting.unit_exponent if lasting.unit in _TIME_UNITS else -3
        endless = math.isinf(duration)  # all bits set
        counts = Raw(-1) if endless else min(max(round(duration * 10.0**-exponent), 1), lasting.logical_max)
        angle = circle.logical_min + round(direction / math.tau * (circle.logical_max - circle.logical_min))
        values: dict[Any, int] = {
            use.EFFECT_BLOCK_INDEX: block,
            use.EFFECT_TYPE: use.CONSTANT_FORCE,
            use.DURATION: counts,
            use.GAIN: _field(report, use.GAIN).logical_max,
            use.DIRECTION_ENABLE: 1,
            (use.DIRECTION, use.ORDINAL_1): angle,
        }
        if report.field(use.TRIGGER_BUTTON) is not None:
            values[use.TRIGGER_BUTTON] = Raw(self._family.no_trigger)
        return encode(report, values)


def _field(report: Report, usage: int, within: int | None = None) -> Field:
    field = report.field(usage, within)
    if field is None:
        raise ReportError(f"its {report} has no usage {usage:#010x}.")
    return field


def _unsuitable(reason: str) -> DeviceOpenError:
    return DeviceOpenError(f"the stick cannot play forces that a program streams: {reason}")
