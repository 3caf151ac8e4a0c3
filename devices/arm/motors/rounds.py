"""Exchange with a drive: commands out; positions, speeds and one state in.

With the native protocol a round takes about ten transfers out and five in; with a queue
(`devices.arm.motors.usb.queued`) they are in flight at once. Lines of text, which firmware 0.5 accepts at an additional
serial port, need one transfer in each direction.
"""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from devices.arm.motors.checks import AXES, IDLE, trouble
from devices.arm.motors.native.drive import Drive
from devices.arm.motors.native.endpoints import Endpoint
from devices.arm.motors.native.line import Ticket, wait_all
from devices.arm.motors.settings import OdriveSettings
from devices.arm.motors.usb.text import TextLine
from devices.common.bus import TransferError, Trouble
from haptics.errors import DeviceOpenError

Command = tuple[float, ...]
"""Positions [turn], speeds [turn/s] and torques [N m] of the first and the second motor, in this order."""

ECHO = "test_property"
"""Property for free use of every drive with firmware 0.5; it stores the number of a round."""

_COMMAND = struct.Struct("<6f")
_FEEDS_AFTER = 0.1
"""Interval between feeds of a watchdog as a fraction of its timeout."""

_ROUNDS = 400_000_000
"""First round number, and the count of numbers from it on. No state or error has such a value, and the drive prints at
most 9 characters.
"""


class Answer(NamedTuple):
    """Result of a round.

    Time of the request, or of the arrival if unrequested [s, perf_counter]; positions [turn] and speeds [turn/s] of
    both motors; the name of a property that shows whether a motor is still armed, and its value.
    """

    asked: float
    estimates: tuple[float, float, float, float]
    name: str
    value: int


class Rounds(Protocol):
    """Exchange of commands and samples with a drive."""

    def exchange(self, command: Command, *, alive: bool) -> Answer:
        """Send the command and return the drive's reply; raise `TransferError` if none arrives.

        If not `alive`, a stop is commanded, and the watchdogs are not fed.
        """
        ...

    def poll(self, timeout: float) -> Answer:
        """Return positions and speeds of the motors and one of their states; wait for at most `timeout` [s]."""
        ...

    def invalidate(self) -> None:
        """Mark the cached command state as unknown after a lost round."""
        ...

    def set_wake_callback(self, wake: Callable[[], object]) -> None:
        """Register `wake`, which is called when the drive has sent data unrequested, if it does."""
        ...

    def trouble(self) -> str:
        """Request and return a description of the drive's errors; empty if none."""
        ...

    def disable_motors(self) -> None:
        """Send the disable command again, ignoring transfer errors."""
        ...


def states_of(drive: Drive) -> list[Endpoint]:
    """Return the properties that show whether the motors are armed; each round reads one of them."""
    return [drive.property(f"axis{axis}.{what}") for what in ("current_state", "error") for axis in AXES]


class NativeRounds:
    """Rounds with the native protocol; all requests of a round are in flight at once.

    Parameters
    ----------
    drive : Drive
        Drive with both axes in closed loop.
    settings : OdriveSettings
        Contains the timeouts of replies and of the watchdogs.
    """

    def __init__(self, drive: Drive, settings: OdriveSettings) -> None:
        self._drive, self._line = drive, drive.line
        self._timeout, self._watchdog = settings.reply_timeout, settings.watchdog
        axes = [f"axis{axis}" for axis in AXES]
        self._positions = [drive.property(f"{axis}.controller.input_pos") for axis in axes]
        self._speeds = [drive.property(f"{axis}.controller.input_vel") for axis in axes]
        self._torques = [drive.property(f"{axis}.controller.input_torque") for axis in axes]
        self._feeds = [drive.function(f"{axis}.watchdog_feed").number for axis in axes]
        self._estimates = [
            drive.property(f"{axis}.encoder.{what}") for what in ("pos_estimate", "vel_estimate") for axis in axes
        ]
        self._states = states_of(drive)
        self._told: list[float | None] = [0.0, 0.0]  # latest torque commands; the motors were armed with 0
        self._next_feed = 0.0
        self._count = 0

    def exchange(self, command: Command, *, alive: bool) -> Answer:
        """See `Rounds.exchange`."""
        self._count += 1
        with self._line.at_once():
            self.send(command, alive=alive)
            asked, tickets = self._send_request()
        return self._read_reply(asked, tickets, self._timeout)

    def poll(self, timeout: float) -> Answer:
        """Return positions and speeds of the motors and one of their states; wait for at most `timeout` [s]."""
        with self._line.at_once():
            asked, tickets = self._send_request()
        return self._read_reply(asked, tickets, timeout)

    @property
    def _state(self) -> Endpoint:
        """State property of this round."""
        return self._states[self._count % len(self._states)]

    def _send_request(self) -> tuple[float, list[Ticket]]:
        asked = time.perf_counter()
        asking = (*self._estimates, self._state)
        return asked, [self._line.request(endpoint.number, b"", endpoint.form.size) for endpoint in asking]

    def _read_reply(self, asked: float, tickets: list[Ticket], timeout: float) -> Answer:
        state, answers = self._state, wait_all(self._line, tickets, timeout)
        found = [endpoint.unpack(data) for endpoint, data in zip(self._estimates, answers[:-1], strict=True)]
        return Answer(asked, (found[0], found[1], found[2], found[3]), state.name, state.unpack(answers[-1]))

    def send(self, command: Command, *, alive: bool) -> None:
        """Send a command and feed the watchdogs at intervals; if not `alive`, command a stop instead."""
        post = self._line.post
        for axis in AXES:
            speed, position = self._speeds[axis], self._positions[axis]
            post(speed.number, speed.pack(command[2 + axis] if alive else 0.0))
            post(position.number, position.pack(command[axis]))
            torque = command[4 + axis] if alive else 0.0
            if torque != self._told[axis]:
                post(self._torques[axis].number, self._torques[axis].pack(torque))
                self._told[axis] = torque
        now = time.perf_counter()
        if alive and now >= self._next_feed:
            for feed in self._feeds:
                post(feed)
            self._next_feed = now + _FEEDS_AFTER * self._watchdog

    def invalidate(self) -> None:
        """See `Rounds.invalidate`."""
        self._told = [None, None]
        self._next_feed = 0.0

    def set_wake_callback(self, wake: Callable[[], object]) -> None:
        """See `Rounds.set_wake_callback`: the drive sends nothing unrequested."""

    def trouble(self) -> str:
        """See `Rounds.trouble`."""
        return trouble(self._drive)

    def disable_motors(self) -> None:
        """See `Rounds.disable_motors`."""
        with contextlib.suppress(TransferError, DeviceOpenError):
            for axis in AXES:
                speed = self._drive.property(f"axis{axis}.controller.input_vel")
                state = self._drive.property(f"axis{axis}.requested_state")
                self._line.post(speed.number, speed.pack(0.0))
                self._line.post(state.number, state.pack(IDLE))


class TextRounds:
    """Rounds with lines of text.

    Every text command feeds the watchdogs. A stop is therefore commanded over the native protocol.

    Parameters
    ----------
    drive : Drive
        Drive with both axes in closed loop.
    settings : OdriveSettings
        Contains the timeout of replies.
    text : TextLine
        Serial port of the drive.
    """

    def __init__(self, drive: Drive, settings: OdriveSettings, text: TextLine) -> None:
        self._native = NativeRounds(drive, settings)
        self._text, self._timeout = text, settings.reply_timeout
        self._states = states_of(drive)
        self._count = 0

    def exchange(self, command: Command, *, alive: bool) -> Answer:
        """See `Rounds.exchange`."""
        if not alive:
            self._native.invalidate()  # the text commands have changed its cached values
            self._native.send(command, alive=False)
        told = _COMMAND.unpack(_COMMAND.pack(*command))  # single precision is exact in 9 digits
        lines = [f"p {axis} {told[axis]:.9g} {told[2 + axis]:.9g} {told[4 + axis]:.9g}" for axis in AXES]
        return self._exchange(lines if alive else [], self._timeout)

    def poll(self, timeout: float) -> Answer:
        """Return positions and speeds of the motors and one of their states; wait for at most `timeout` [s]."""
        return self._exchange([], timeout)

    def _exchange(self, lines: list[str], timeout: float) -> Answer:
        """Send lines and read the replies, identified by the round number, which is written and read back."""
        self._count = (self._count + 1) % _ROUNDS
        state, number = self._states[self._count % len(self._states)], _ROUNDS + self._count
        asked = time.perf_counter()
        lines += [*(f"f {axis}" for axis in AXES), f"r {state.name}", f"w {ECHO} {number}", f"r {ECHO}"]
        first, second, value = self._text.exchange(lines, str(number), 3, timeout)
        (one, one_speed), (two, two_speed) = _numbers(first, 2), _numbers(second, 2)
        return Answer(asked, (one, two, one_speed, two_speed), state.name, _integer(value))

    def invalidate(self) -> None:
        """See `Rounds.invalidate`; pending replies to earlier rounds are skipped."""
        self._native.invalidate()

    def set_wake_callback(self, wake: Callable[[], object]) -> None:
        """See `Rounds.set_wake_callback`: the drive sends nothing unrequested."""

    def trouble(self) -> str:
        """See `Rounds.trouble`."""
        return self._native.trouble()

    def disable_motors(self) -> None:
        """See `Rounds.disable_motors`; sent over the native protocol."""
        self._native.disable_motors()


def _integer(line: str) -> int:
    """Return the integer in a line; raise `TransferError` for another line, because a line was lost."""
    if not line.isdecimal():
        raise TransferError(f"the drive answered {line!r} in place of a state.", Trouble.TIMEOUT)
    return int(line)


def _numbers(line: str, count: int) -> list[float]:
    """Return `count` numbers in a line; raise `TransferError` for another line, because a line was lost."""
    try:
        found = [float(word) for word in line.split()]
    except ValueError:
        found = []
    if len(found) != count:
        raise TransferError(f"the drive answered {line!r} in place of {count} numbers.", Trouble.TIMEOUT)
    return found
