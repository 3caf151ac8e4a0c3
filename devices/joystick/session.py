"""The conversation with a force-feedback stick: set it up, make its constant effects, end it orderly.

Device Class Definition for Physical Interface Devices 1.0. A force in the plane is played by two effects, one along
each axis, whose signed magnitudes are streamed: two short reports, each of them complete by itself. An effect has a
finite duration and is started again and again: of a host that has died the force does not stay. A wheel has one axis
and one effect; so has a stick that cannot add effects up, whose direction is streamed, too.
"""

from __future__ import annotations

import math
import time
from itertools import chain

from devices.common.bus.transfers import TransferError, Trouble
from devices.joystick.families import Family
from devices.joystick.hid import usages as use
from devices.joystick.hid.report import ReportError, decode
from devices.joystick.playbook import Playbook
from devices.joystick.usb.transport import Transport
from haptics.errors import DeviceOpenError

DIRECTIONS = (1.5 * math.pi, 0.0)
"""From where the effects push, clockwise from away from the person: from the left (along +x), from away (along +y)."""

POLLS = 60
"""A device that is making room for an effect is asked this often."""
POLL_PAUSE = 1e-3
"""Between two such questions [s]."""
TRIES = 5
"""A report of the set-up that is not taken in time is sent this often."""


class PidSession:
    """Constant effects on a stick, along its first and its second axis; on a wheel along its only one.

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
    count : int
        How many effects.

    Attributes
    ----------
    blocks : list of int
        The effects' blocks in the device, while there are any.
    described : list of bytes
        The reports by which they were described.
    """

    def __init__(
        self, transport: Transport, playbook: Playbook, family: Family, duration: float, count: int = len(DIRECTIONS)
    ) -> None:
        self._transport = transport
        self._family = family
        self._duration = duration
        self._directions = DIRECTIONS[:count]
        self.playbook = playbook
        self.blocks: list[int] = []
        self.described: list[bytes] = []
        self._endings: list[tuple[bytes | None, ...]] = []
        self._motors_off = playbook.control(use.DISABLE_ACTUATORS)

    def start(self) -> None:
        """Set the stick up and start all effects with no force.

        Raises
        ------
        DeviceOpenError
            If it refuses; whatever was done until then is undone.
        """
        try:
            self._prepare()
            for direction in self._directions:
                block = self._new_block()
                self._endings.append(self.playbook.ending(block))  # made before there is anything to end
                self.blocks.append(block)
                self._send(self.playbook.constant(block))
                self.described.append(self.playbook.effect(block, direction, self._duration))
                self._send(self.described[-1])
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
                self.write(report)
                return
            except TransferError as error:
                if error.trouble is not Trouble.TIMEOUT or attempt == TRIES - 1:
                    raise

    def write(self, report: bytes) -> None:
        """Send an output report, and make the pause that the family needs behind it.

        Raises
        ------
        TransferError
            If it was not taken.
        """
        self._transport.write(report)
        if self._family.report_interval:
            time.sleep(self._family.report_interval)

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
        """Make sure that the device manages its memory itself and has room for the effects."""
        if self.playbook.pool is None:
            return
        pool, needed = self.playbook.pool, len(self._directions)
        for _ in range(POLLS):  # some are not ready at once
            found = decode(pool, self._transport.get_feature(pool.id, pool.length))
            effects = found.get(use.SIMULTANEOUS_EFFECTS_MAX, needed)
            if isinstance(effects, tuple) or effects >= needed:
                break
            time.sleep(POLL_PAUSE)
        else:
            raise DeviceOpenError(f"the stick can play {effects} effects at once; its force takes {needed}.")
        if not found.get(use.DEVICE_MANAGED_POOL, 1):
            raise DeviceOpenError(
                "the stick leaves the management of its memory to the host: such sticks are not supported."
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
            time.sleep(POLL_PAUSE)  # an error, too, may be that of an earlier request
        if status == use.BLOCK_LOAD_ERROR:
            raise DeviceOpenError("the stick refused a constant effect.")
        raise DeviceOpenError(
            f"the stick did not say where it put an effect (asked {POLLS} times, status {status:#x})."
        )

    def stop(self) -> None:
        """End it orderly: no force, stop, give the blocks back, motors off; each even if another is refused.

        A stick that does not take a report in time is left alone: it ends its effects by itself.
        """
        endings = self._endings
        self.blocks, self._endings = [], []
        for report in (*filter(None, chain.from_iterable(zip(*endings, strict=True))), self._motors_off):
            try:
                self.write(report)
            except TransferError as error:
                if error.trouble in (Trouble.UNPLUGGED, Trouble.TIMEOUT):
                    break


def _first(value: int | tuple[int, ...] | None) -> int:
    if value is None:
        return 0
    return value[0] if isinstance(value, tuple) else value
