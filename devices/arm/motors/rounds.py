"""Exchange with a drive on USB: commands out; positions, speeds and one state in.

With the native protocol a round takes about ten transfers out and five in; with a queue (`devices.arm.motors.usb`) they
are in flight at once. Lines of text, which firmware 0.5 accepts at an additional serial port, need one transfer in each
direction.
"""

from __future__ import annotations

import contextlib
import struct
import time

from devices.arm.motors.errors import PARTS, SYSTEM, explain, in_words
from devices.arm.motors.native import Drive, Endpoint, Ticket, wait_all
from devices.arm.motors.settings import OdriveSettings
from devices.arm.motors.stage import AXES, IDLE, Answer, Command, Rounds
from devices.arm.motors.usb import Pipes
from devices.common.bus import TransferError, Trouble
from haptics.errors import DeviceOpenError

ECHO = "test_property"
"""Property for free use of every drive with firmware 0.5; it stores the number of a round."""

LONGEST = 4096
"""Maximum length of a line; longer data are discarded [byte]."""

_COMMAND = struct.Struct("<6f")
_FEEDS_AFTER = 0.1
"""Interval between feeds of a watchdog as a fraction of its timeout."""

_ROUNDS = 400_000_000
"""First round number, and the count of numbers from it on. No state or error has such a value, and the drive prints at
most 9 characters.
"""


def axis_errors(drive: Drive, axis: int) -> dict[str, int]:
    """Return the error bits of an axis by part."""
    return {part: drive.get(f"axis{axis}.{part}.error" if part else f"axis{axis}.error") for part in PARTS}


def trouble(drive: Drive) -> str:
    """Return a description of the errors of drive and axes, in one line; empty if none."""
    axes = [explain(axis, axis_errors(drive, axis)) for axis in AXES]
    system = in_words(drive.get("error"), SYSTEM)
    return "; ".join([*filter(None, axes), *([f"the drive: {', '.join(system)}"] if system else [])])


class NativeRounds(Rounds):
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
            drive.property(f"{axis}.encoder.{name}") for name in ("pos_estimate", "vel_estimate") for axis in axes
        ]
        # properties that show whether the motors are armed; each round reads one of them
        self._states = [drive.property(f"{axis}.{name}") for name in ("current_state", "error") for axis in axes]
        self._sent_torques: list[float | None] = [0.0, 0.0]  # the motors were armed with 0
        self._next_feed = 0.0
        self._count = 0

    def exchange(self, command: Command, *, alive: bool) -> Answer:
        """See `Rounds.exchange`."""
        self._count += 1
        with self._line.batch():
            self.send(command, alive=alive)
            requested, tickets = self._send_request()
        return self._read_reply(requested, tickets, self._timeout)

    def poll(self, timeout: float) -> Answer:
        """See `Rounds.poll`."""
        with self._line.batch():
            requested, tickets = self._send_request()
        return self._read_reply(requested, tickets, timeout)

    def _state(self) -> Endpoint:
        """Return the state property of this round."""
        return self._states[self._count % len(self._states)]

    def _send_request(self) -> tuple[float, list[Ticket]]:
        requested = time.perf_counter()
        endpoints = (*self._estimates, self._state())
        return requested, [self._line.request(endpoint.number, b"", endpoint.form.size) for endpoint in endpoints]

    def _read_reply(self, requested: float, tickets: list[Ticket], timeout: float) -> Answer:
        state, answers = self._state(), wait_all(self._line, tickets, timeout)
        found = [endpoint.unpack(data) for endpoint, data in zip(self._estimates, answers[:-1], strict=True)]
        return Answer(requested, (found[0], found[1], found[2], found[3]), state.name, state.unpack(answers[-1]))

    def send(self, command: Command, *, alive: bool) -> None:
        """Send a command and feed the watchdogs at intervals; if not `alive`, command a stop instead."""
        post = self._line.post
        for axis in AXES:
            speed, position = self._speeds[axis], self._positions[axis]
            post(speed.number, speed.pack(command[2 + axis] if alive else 0.0))
            post(position.number, position.pack(command[axis]))
            torque = command[4 + axis] if alive else 0.0
            if torque != self._sent_torques[axis]:
                post(self._torques[axis].number, self._torques[axis].pack(torque))
                self._sent_torques[axis] = torque
        now = time.perf_counter()
        if alive and now >= self._next_feed:
            for feed in self._feeds:
                post(feed)
            self._next_feed = now + _FEEDS_AFTER * self._watchdog

    def invalidate(self) -> None:
        """See `Rounds.invalidate`."""
        self._sent_torques = [None, None]
        self._next_feed = 0.0

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


# --- lines of text ----------------------------------------------------------------------------------------------------


class TextLine:
    """Exchange of text lines with a drive. Only one thread at a time may use it.

    Parameters
    ----------
    pipes : Pipes
        The open serial port.
    """

    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes
        self._rest = b""

    def exchange(self, lines: list[str], last: str, count: int, timeout: float) -> list[str]:
        """Send lines in one transfer, and return the replies before the reply `last`.

        Late replies to earlier requests arrive before them and are skipped.

        Parameters
        ----------
        lines : list of str
            Lines to send.
        last : str
            Last reply, which must differ from all earlier replies.
        count : int
            Number of replies before it.
        timeout : float
            Timeout [s].

        Raises
        ------
        TransferError
            If a reply is missing.
        """
        self._pipes.write("".join(f"{line}\n" for line in lines).encode("ascii"))
        latest = time.perf_counter() + timeout
        answers: list[str] = []
        while not answers or answers[-1] != last:
            left = latest - time.perf_counter()
            packet = self._pipes.read(left) if left > 0.0 else None
            if packet is None:
                raise TransferError("the drive does not answer at its serial port.", Trouble.TIMEOUT)
            *whole, self._rest = (self._rest + packet).replace(b"\r", b"\n").split(b"\n")
            self._rest = self._rest[-LONGEST:]
            answers += [line.decode("ascii", "replace") for line in whole if line]
            if last in answers:
                del answers[answers.index(last) + 1 :]
        found = answers[-1 - count : -1]
        if len(found) < count:
            raise TransferError("an answer of the drive at its serial port was lost.", Trouble.TIMEOUT)
        return found

    def close(self) -> None:
        """Close the serial port."""
        self._pipes.close()


class TextRounds(NativeRounds):
    """Rounds with lines of text.

    Every text command feeds the watchdogs. A stop is therefore commanded over the native protocol.

    Parameters
    ----------
    drive : Drive
        Drive with both axes in closed loop.
    settings : OdriveSettings
        Contains the timeout of replies.
    line : TextLine
        Serial port of the drive.
    """

    def __init__(self, drive: Drive, settings: OdriveSettings, line: TextLine) -> None:
        super().__init__(drive, settings)
        self._text = line

    def exchange(self, command: Command, *, alive: bool) -> Answer:
        """See `Rounds.exchange`."""
        if not alive:
            self.invalidate()  # the text commands have changed its cached values
            self.send(command, alive=False)
        single = _COMMAND.unpack(_COMMAND.pack(*command))  # single precision is exact in 9 digits
        lines = [f"p {axis} {single[axis]:.9g} {single[2 + axis]:.9g} {single[4 + axis]:.9g}" for axis in AXES]
        return self._exchange(lines if alive else [], self._timeout)

    def poll(self, timeout: float) -> Answer:
        """See `Rounds.poll`."""
        return self._exchange([], timeout)

    def _exchange(self, lines: list[str], timeout: float) -> Answer:
        """Send lines and read the replies, identified by the round number, which is written and read back.

        Other replies than numbers mean that a line was lost.
        """
        self._count = (self._count + 1) % _ROUNDS
        state, number = self._state(), _ROUNDS + self._count
        requested = time.perf_counter()
        lines += [*(f"f {axis}" for axis in AXES), f"r {state.name}", f"w {ECHO} {number}", f"r {ECHO}"]
        *estimates, value = self._text.exchange(lines, str(number), 3, timeout)
        (one, one_speed), (two, two_speed) = map(_pair, estimates)
        if not value.isdecimal():
            raise TransferError(f"the drive answered {value!r} in place of a state.", Trouble.TIMEOUT)
        return Answer(requested, (one, two, one_speed, two_speed), state.name, int(value))


def _pair(line: str) -> tuple[float, float]:
    """Return the two numbers in a line."""
    try:
        first, second = map(float, line.split())
    except ValueError:
        raise TransferError(f"the drive answered {line!r} in place of 2 numbers.", Trouble.TIMEOUT) from None
    return first, second
