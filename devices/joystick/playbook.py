"""Output reports for constant forces, located in the report descriptor of a force-feedback stick."""

from __future__ import annotations

import math
from typing import Any

from devices.joystick.families import Family
from devices.joystick.hid import usages as use
from devices.joystick.hid.descriptor import Field, Report, ReportDescriptor, ReportType
from devices.joystick.hid.report import Raw, ReportError, Value, encode
from haptics.errors import DeviceOpenError

_COMMANDS = {
    use.DEVICE_RESET: "reset it (Device Reset)",
    use.STOP_ALL_EFFECTS: "stop all effects (Stop All Effects)",
    use.ENABLE_ACTUATORS: "switch its motors on (Enable Actuators)",
    use.DISABLE_ACTUATORS: "switch its motors off (Disable Actuators)",
}
"""Required device control commands, with their descriptions for messages."""
_OPERATIONS = {use.START: "start an effect (Start)", use.STOP: "stop an effect (Stop)"}
"""Required effect operations, with their descriptions for messages."""

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

    Raises
    ------
    DeviceOpenError
        If the device cannot play constant forces; names the missing part.
    """

    def __init__(self, descriptor: ReportDescriptor, family: Family) -> None:
        def find(kind: ReportType, usage: int, what: str) -> Report:
            report = descriptor.of(kind, usage)
            if report is None:
                raise DeviceOpenError(f"the stick cannot play forces that a program streams: it has no report {what}.")
            return report

        self._family = family
        self._effect = find(_OUTPUT, use.SET_EFFECT, "Set Effect")
        self._constant = find(_OUTPUT, use.SET_CONSTANT_FORCE, "Set Constant Force")
        self._operation = find(_OUTPUT, use.EFFECT_OPERATION_REPORT, "Effect Operation")
        self._control = find(_OUTPUT, use.DEVICE_CONTROL, "Device Control")
        self._create = find(_FEATURE, use.CREATE_NEW_EFFECT, "Create New Effect")
        self.block_load = find(_FEATURE, use.BLOCK_LOAD_REPORT, "Block Load")
        self.pool = descriptor.of(_FEATURE, use.POOL_REPORT)
        self._gain = descriptor.of(_OUTPUT, use.DEVICE_GAIN_REPORT)
        self._free = descriptor.of(_OUTPUT, use.BLOCK_FREE_REPORT)
        try:
            self.magnitude = Value(self._constant, use.MAGNITUDE)
            self.angle = Value(self._effect, use.ORDINAL_1, within=use.DIRECTION)
            self._try()
        except ReportError as error:
            raise DeviceOpenError(f"the stick cannot play forces that a program streams: {error}") from error
        if self.full_scale < 1:
            low, high = self.magnitude.field.logical_min, self.magnitude.field.logical_max
            raise DeviceOpenError(
                f"the stick cannot play forces that a program streams: its magnitudes, {low} to {high}, have no sign."
            )

    def _try(self) -> None:
        """Encode every report once, so that a missing usage is found before a force is on."""
        self._require_commands()
        for command in _COMMANDS:
            self.control(command)
        self.create()
        self.effect(1, 0.0, 0.2)
        self.operation(1, use.START)
        self.ending(1)

    def _require_commands(self) -> None:
        """Raise `DeviceOpenError` if the stick lacks required commands; names them."""
        lists = ((self._control, _COMMANDS), (self._operation, _OPERATIONS))
        missing = [words for report, known in lists for usage, words in known.items() if report.field(usage) is None]
        if missing:
            what = ", nor to ".join(missing)
            raise DeviceOpenError(f"the stick cannot play forces that a program streams: it has no command to {what}.")

    @property
    def full_scale(self) -> int:
        """Count of magnitude 1. The negated count is valid, too."""
        field = self.magnitude.field
        return min(field.logical_max, -field.logical_min)

    def control(self, command: int) -> bytes:
        """Return the report of a device control command: reset, enable ...

        In a list, the first command is number 1 even if the range in the descriptor begins at 0: the kernel's driver,
        with which manufacturers test, sends this number.
        """
        place = self._control.field(command)
        number = Raw(1 + place.usages.index(command)) if place is not None and place.array else command
        return encode(self._control, {use.DEVICE_CONTROL: number})

    def gain(self) -> bytes | None:
        """Return the report that sets the device gain to its maximum, None if the device has no gain."""
        if self._gain is None:
            return None
        return encode(self._gain, {use.DEVICE_GAIN: _largest(self._gain, use.DEVICE_GAIN)})

    def create(self) -> bytes:
        """Return the report that requests a new constant effect."""
        return encode(self._create, {use.EFFECT_TYPE: use.CONSTANT_FORCE})

    def constant(self, block: int) -> bytes:
        """Return the report that sets the magnitude of an effect to zero."""
        return encode(self._constant, {use.EFFECT_BLOCK_INDEX: block, use.MAGNITUDE: 0})

    def operation(self, block: int, what: int) -> bytes:
        """Return the report that starts (once) or stops an effect."""
        values: dict[Any, int] = {use.EFFECT_BLOCK_INDEX: block, use.EFFECT_OPERATION: what}
        if self._operation.field(use.LOOP_COUNT) is not None:
            values[use.LOOP_COUNT] = int(what == use.START)
        return encode(self._operation, values)

    def free(self, block: int) -> bytes | None:
        """Return the report that frees the block of an effect, None if the device has no such report."""
        return encode(self._free, {use.EFFECT_BLOCK_INDEX: block}) if self._free is not None else None

    def ending(self, block: int) -> tuple[bytes | None, ...]:
        """Return the reports that end an effect: zero force, stop, free the block."""
        return self.constant(block), self.operation(block, use.STOP), self.free(block)

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
        report, values = self._effect, dict[Any, Any]()
        values[use.EFFECT_BLOCK_INDEX] = block
        values[use.EFFECT_TYPE] = use.CONSTANT_FORCE
        values[use.DURATION] = _lasting(_known(report, use.DURATION), duration)
        values[use.GAIN] = _largest(report, use.GAIN)
        values[use.DIRECTION_ENABLE] = 1
        angle = (use.DIRECTION, use.ORDINAL_1)
        values[angle] = _angle(_known(report, use.ORDINAL_1, use.DIRECTION), direction)
        if report.field(use.TRIGGER_BUTTON) is not None:
            values[use.TRIGGER_BUTTON] = Raw(self._family.no_trigger)
        return encode(report, values)


def _known(report: Report, usage: int, within: int | None = None) -> Field:
    field = report.field(usage, within)
    if field is None:
        raise ReportError(f"its {report.type} report {report.id} has no usage {usage:#010x}.")
    return field


def _largest(report: Report, usage: int) -> int:
    return _known(report, usage).logical_max


def _lasting(field: Field, duration: float) -> int:
    """Convert a duration [s] to counts of the field; all bits set mean infinite."""
    if math.isinf(duration):
        return Raw(-1)
    exponent = field.unit_exponent if field.unit in _TIME_UNITS else -3
    return min(max(round(duration * 10.0**-exponent), 1), field.logical_max)


def _angle(field: Field, direction: float) -> int:
    """Convert a direction [rad] to counts of the field, whose range is the full circle."""
    return field.logical_min + round(direction / math.tau * (field.logical_max - field.logical_min))
