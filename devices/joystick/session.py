"""The conversation with a force-feedback stick: set it up, make two constant effects, end it orderly.

Device Class Definition for Physical Interface Devices 1.0. A force in the plane is played by two effects, one along
each axis, whose signed magnitudes are streamed: two short reports, each of them complete by itself. An effect has a
finite duration and is started again and again: of a host that has died the force does not stay.
"""

from __future__ import annotations

import math
import time
from typing import Any

from devices.joystick import usages as use
from devices.joystick.descriptor import Field, Report, ReportDescriptor, ReportType
from devices.joystick.families import Family
from devices.joystick.report import Raw, ReportError, Value, decode, encode
from devices.joystick.transport import TransferError, Transport, Trouble
from haptics.errors import DeviceOpenError

DIRECTIONS = (1.5 * math.pi, 0.0)
"""From where the effects push, clockwise from away from the person: from the left (along +x), from away (along +y)."""

POLLS = 60
"""A device that is making room for an effect is asked this often."""
POLL_PAUSE = 1e-3
"""Between two such questions [s]."""
TRIES = 5
"""A report of the set-up that is not taken in time is sent this often."""

_TIME_UNITS = (0x1001, 0x1003)
_OUTPUT, _FEATURE = ReportType.OUTPUT, ReportType.FEATURE


class Playbook:
    """The reports of a device that playing constant forces takes, found by what they are for.

    Parameters
    ----------
    descriptor : ReportDescriptor
        What the device says of itself.
    family : Family
        Its peculiarities.

    Raises
    ------
    DeviceOpenError
        If it cannot play constant forces; says what is missing.
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
            self.constant(1)
            self.effect(1, 0.0, 0.2)
            self.operation(1, use.START)
            self.create()
        except ReportError as error:
            raise DeviceOpenError(f"the stick cannot play forces that a program streams: {error}") from error

    @property
    def full_scale(self) -> int:
        """Count of a magnitude of 1; there is one for -1, too."""
        field = self.magnitude.field
        return min(field.logical_max, -field.logical_min) if field.signed else 0

    def control(self, command: int) -> bytes:
        """Return the report of a device control: reset, enable ..."""
        return encode(self._control, {use.DEVICE_CONTROL: command})

    def gain(self) -> bytes | None:
        """Return the report that sets the device's gain to its maximum, None if it has no gain."""
        if self._gain is None:
            return None
        return encode(self._gain, {use.DEVICE_GAIN: _largest(self._gain, use.DEVICE_GAIN)})

    def create(self) -> bytes:
        """Return the report that asks for a new constant effect."""
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
        """Return the report that gives an effect's block back, None if the device has none."""
        return encode(self._free, {use.EFFECT_BLOCK_INDEX: block}) if self._free is not None else None

    def effect(self, block: int, direction: float, duration: float) -> bytes:
        """Return the report that describes a constant effect.

        Parameters
        ----------
        block : int
            Where it is.
        direction : float
            Where the force comes from [rad].
        duration : float
            How long it lasts [s]; for ever if infinite.
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
    """Return a duration in the field's counts; all bits set last for ever."""
    if math.isinf(duration):
        return Raw(-1)
    exponent = field.unit_exponent if field.unit in _TIME_UNITS else -3
    return min(max(round(duration * 10.0**-exponent), 1), field.logical_max)


def _angle(field: Field, direction: float) -> int:
    """Return a direction in the field's counts: its range is the full circle."""
    return field.logical_min + round(direction / math.tau * (field.logical_max - field.logical_min))


class PidSession:
    """Two constant effects on a stick, along its first and its second axis.

    Parameters
    ----------
    transport : Transport
        The open connection.
    playbook : Playbook
        The stick's reports.
    family : Family
        Its peculiarities.
    duration : float
        After this long without a restart an effect ends by itself [s].

    Attributes
    ----------
    blocks : list of int
        The effects' blocks in the device, while there are any.
    """

    def __init__(self, transport: Transport, playbook: Playbook, family: Family, duration: float) -> None:
        self._transport = transport
        self._family = family
        self._duration = duration
        self.playbook = playbook
        self.blocks: list[int] = []

    def start(self) -> None:
        """Set the stick up and start both effects with no force.

        Raises
        ------
        DeviceOpenError
            If it refuses; whatever was done until then is undone.
        """
        try:
            self._prepare()
            for direction in DIRECTIONS:
                block = self._new_block()
                self.blocks.append(block)
                self._send(self.playbook.constant(block))
                self._send(self.playbook.effect(block, direction, self._duration))
            for block in self.blocks:
                self._send(self.playbook.operation(block, use.START))
        except (TransferError, ReportError) as error:
            self.stop()
            raise DeviceOpenError(f"the stick could not be set up: {error}") from error
        except BaseException:
            self.stop()
            raise

    def _send(self, report: bytes | None) -> None:
        """Send a report of the set-up; a stick that is just being reset may take none for a while."""
        if report is None:
            return
        for attempt in range(TRIES):
            try:
                self._transport.write(report)
                return
            except TransferError as error:
                if error.trouble is not Trouble.TIMEOUT or attempt == TRIES - 1:
                    raise

    def _prepare(self) -> None:
        """Bring the stick into a known state, whatever was playing on it."""
        book = self.playbook
        for command in (use.DEVICE_RESET, use.STOP_ALL_EFFECTS):
            self._send(book.control(command))
        if self._family.stale_block:
            self._send(book.operation(self._family.stale_block, use.STOP))
        self._send(book.control(use.ENABLE_ACTUATORS))
        self._send(book.gain())
        self._check_pool()

    def _check_pool(self) -> None:
        """Make sure that the device manages its memory itself and has room for two effects."""
        if self.playbook.pool is None:
            return
        pool = self.playbook.pool
        for _ in range(POLLS):  # some are not ready at once
            found = decode(pool, self._transport.get_feature(pool.id, pool.length))
            effects = found.get(use.SIMULTANEOUS_EFFECTS_MAX, len(DIRECTIONS))
            if isinstance(effects, tuple) or effects >= len(DIRECTIONS):
                break
            time.sleep(POLL_PAUSE)
        else:
            raise DeviceOpenError(f"the stick can play {effects} effects at once; a force in the plane takes two.")
        if not found.get(use.DEVICE_MANAGED_POOL, 1):
            raise DeviceOpenError(
                "the stick leaves the management of its memory to the host: such sticks are not driven."
            )

    def _new_block(self) -> int:
        """Ask for a constant effect and return its block.

        The status says whether the block number counts: of a full device it is an old one.
        """
        book, status = self.playbook, 0
        self._transport.set_feature(book.create())
        if self._family.load_time:
            time.sleep(self._family.load_time)
        for _ in range(POLLS):
            answer = decode(book.block_load, self._transport.get_feature(book.block_load.id, book.block_load.length))
            status, block = _first(answer.get(use.BLOCK_LOAD_STATUS)), _first(answer.get(use.EFFECT_BLOCK_INDEX))
            if status == use.BLOCK_LOAD_SUCCESS and block and block not in self.blocks:
                return block
            if status == use.BLOCK_LOAD_FULL:
                raise DeviceOpenError(
                    "the stick has no room for another effect, though it was just reset: unplug it, plug it in and "
                    "start again."
                )
            if status == use.BLOCK_LOAD_ERROR:
                raise DeviceOpenError("the stick refused a constant effect.")
            time.sleep(POLL_PAUSE)
        raise DeviceOpenError(
            f"the stick did not say where it put an effect (asked {POLLS} times, status {status:#x})."
        )

    def stop(self) -> None:
        """End it orderly: no force, stop, give the blocks back, motors off; each even if another is refused.

        A stick that does not take a report in time is left alone: it ends its effects by itself.
        """
        book, blocks = self.playbook, self.blocks
        self.blocks = []
        reports = [book.constant(block) for block in blocks]
        reports += [book.operation(block, use.STOP) for block in blocks]
        reports += filter(None, map(book.free, blocks))
        for report in (*reports, book.control(use.DISABLE_ACTUATORS)):
            try:
                self._transport.write(report)
            except TransferError as error:
                if error.trouble in (Trouble.UNPLUGGED, Trouble.TIMEOUT):
                    break


def _first(value: int | tuple[int, ...] | None) -> int:
    if value is None:
        return 0
    return value[0] if isinstance(value, tuple) else value
