"""Session with a force-feedback stick: set-up, creation of constant effects, and shutdown.

Device Class Definition for Physical Interface Devices 1.0. Two effects, one along each axis, play a force in the plane.
Their signed magnitudes are streamed as two short, self-contained reports. Effects have a finite duration and are
restarted periodically, so that no force persists after the host process has died. A wheel has one axis and one effect.
A stick that cannot add effects also has one effect, whose direction is streamed as well.
"""

from __future__ import annotations

import math
import time
from itertools import chain

from devices.common.bus import TransferError, Trouble
from devices.joystick.families import Family
from devices.joystick.hid import usages as use
from devices.joystick.hid.report import ReportError, decode
from devices.joystick.reports import Playbook
from devices.joystick.usb.finding import Transport
from haptics.errors import DeviceOpenError

DIRECTIONS = (1.5 * math.pi, 0.0)
"""Directions that the effects push from, clockwise from straight ahead: left (+x), ahead (+y) [rad]."""

POLLS = 60
"""Maximum number of status requests while a device allocates an effect."""
_POLL_PAUSE = 1e-3  # pause between two status requests [s]
TRIES = 5
"""Maximum number of attempts to send a set-up report that times out."""


class PidSession:
    """Constant effects on a stick, along its first and second axis, or along the only axis of a wheel.

    Parameters
    ----------
    transport : Transport
        Open connection.
    playbook : Playbook
        Output reports of the stick.
    family : Family
        Quirks of the stick.
    duration : float
        Time without a restart after which an effect ends by itself [s].
    count : int
        Number of effects.

    Attributes
    ----------
    blocks : list of int
        Blocks of the existing effects in the device.
    described : list of bytes
        Reports that described the effects.
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
        """Set up the stick and start all effects with zero force.

        Raises
        ------
        DeviceOpenError
            If the stick rejects a request; completed steps are undone.
        """
        try:
            self._prepare()
            for direction in self._directions:
                block = self._new_block()
                self._endings.append(self.playbook.ending(block))  # encoded before the effect exists
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
        """Send a set-up report with retries, because a stick may not accept reports during a reset."""
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
        """Send an output report, followed by the pause that the family needs.

        Raises
        ------
        TransferError
            If it was not accepted.
        """
        self._transport.write(report)
        if self._family.report_interval:
            time.sleep(self._family.report_interval)

    def _prepare(self) -> None:
        """Bring the stick into a known state, independent of the effects that were playing.

        Validate that the device manages its memory itself and has room for the effects.
        """
        book, pool, needed = self.playbook, self.playbook.pool, len(self._directions)
        for command in (use.DEVICE_RESET, use.STOP_ALL_EFFECTS):
            self._send(book.control(command))
        if self._family.stale_block:
            self._send(book.operation(self._family.stale_block, use.STOP))
        self._send(book.control(use.ENABLE_ACTUATORS))
        self._send(book.gain)
        if pool is None:
            return
        for _ in range(POLLS):  # some devices are not ready at once
            found = decode(pool, self._transport.get_report(pool))
            effects = found.get(use.SIMULTANEOUS_EFFECTS_MAX, needed)
            if isinstance(effects, tuple) or effects >= needed:
                break
            time.sleep(_POLL_PAUSE)
        else:
            raise DeviceOpenError(f"the stick can play {effects} effects at once; its force takes {needed}.")
        if not found.get(use.DEVICE_MANAGED_POOL, 1):
            raise DeviceOpenError(
                "the stick leaves the management of its memory to the host: such sticks are not supported."
            )

    def _new_block(self) -> int:
        """Request a constant effect and return its block.

        The block number is valid only if the status is success: a full device returns an old one.
        """
        book, status = self.playbook, 0
        self._transport.set_feature(book.create)
        if self._family.load_time:
            time.sleep(self._family.load_time)
        for _ in range(POLLS):
            answer = decode(book.block_load, self._transport.get_report(book.block_load))
            found = [answer.get(usage, 0) for usage in (use.BLOCK_LOAD_STATUS, use.EFFECT_BLOCK_INDEX)]
            status, block = (value[0] if isinstance(value, tuple) else value for value in found)
            if status == use.BLOCK_LOAD_SUCCESS and block and block not in self.blocks:
                return block
            if status == use.BLOCK_LOAD_FULL:
                raise DeviceOpenError(
                    "the stick has no room for another effect, though it was just reset: unplug it, plug it in and "
                    "start again."
                )
            time.sleep(_POLL_PAUSE)  # an error status may also belong to an earlier request
        if status == use.BLOCK_LOAD_ERROR:
            raise DeviceOpenError("the stick refused a constant effect.")
        raise DeviceOpenError(
            f"the stick did not say where it put an effect (asked {POLLS} times, status {status:#x})."
        )

    def stop(self) -> None:
        """Set the force to zero, stop effects, free blocks and switch the motors off.

        A rejected report does not prevent the others. After a timeout the remaining reports are not sent: the stick
        then ends its effects by itself.
        """
        endings = self._endings
        self.blocks, self._endings = [], []
        for report in (*filter(None, chain.from_iterable(zip(*endings, strict=True))), self._motors_off):
            try:
                self.write(report)
            except TransferError as error:
                if error.trouble in (Trouble.UNPLUGGED, Trouble.TIMEOUT):
                    break
