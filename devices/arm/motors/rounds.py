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
from devices.arm.motors.native import Drive, wait_all
from devices.arm.motors.settings import OdriveSettings
from devices.arm.motors.stage import AXES, IDLE, Answer, Command, Rounds
from devices.arm.motors.usb import Pipes
from devices.common.bus import TransferError, Trouble
from haptics.errors import DeviceOpenError

_ECHO = "test_property"  # property for free use of every drive with firmware 0.5; it stores the number of a round

LONGEST = 4096
"""Maximum length of a line; longer data are discarded [byte]."""

_COMMAND = struct.Struct("<6f")
_FEEDS_AFTER = 0.1  # interval between feeds of a watchdog as a fraction of its timeout

# First round number, and the count of numbers from it on. No state or error has such a value, and the drive prints at
# most 9 characters.
_ROUNDS = 400_000_000


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
        return self._round(self._timeout, command, alive=alive)

    def poll(self, timeout: float) -> Answer:
        """See `Rounds.poll`."""
        return self._round(timeout)

    def _round(self, timeout: float, command: Command | None = None, *, alive: bool = False) -> Answer:
        """Send a command, if there is one, with the requests of a round, and return the replies."""
        line = self._line
        self._count += command is not None
        endpoints = (*self._estimates, self._states[self._count % len(self._states)])
        with line.batch():
            if command is not None:
                self.send(command, alive=alive)
            requested = time.perf_counter()
            tickets = [line.request(endpoint.number, b"", endpoint.form.size) for endpoint in endpoints]
        data = wait_all(line, tickets, timeout)
        one, two, one_speed, two_speed, state = (
            e.form.unpack(part)[0] for e, part in zip(endpoints, data, strict=True)
        )
        return Answer(requested, (one, two, one_speed, two_speed), endpoints[-1].name, state)

    def send(self, command: Command, *, alive: bool) -> None:
        """Send a command and feed the watchdogs at intervals; if not `alive`, command a stop instead."""
        drive = self._drive
        for axis in AXES:
            drive.post(self._speeds[axis], command[2 + axis] if alive else 0.0)
            drive.post(self._positions[axis], command[axis])
            torque = command[4 + axis] if alive else 0.0
            if torque != self._sent_torques[axis]:
                drive.post(self._torques[axis], torque)
                self._sent_torques[axis] = torque
        now = time.perf_counter()
        if alive and now >= self._next_feed:
            for feed in self._feeds:
                self._line.post(feed)
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
                state = self._drive.property(f"axis{axis}.requested_state")
                self._drive.post(self._speeds[axis], 0.0)
                self._drive.post(state, IDLE)


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

    def _round(self, timeout: float, command: Command | None = None, *, alive: bool = False) -> Answer:
        """Send lines and read the replies, identified by the round number, which is written and read back.

        Other replies than numbers mean that a line was lost.
        """
        lines: list[str] = []
        if command is not None and alive:
            single = _COMMAND.unpack(_COMMAND.pack(*command))  # single precision is exact in 9 digits
            lines = [f"p {axis} {single[axis]:.9g} {single[2 + axis]:.9g} {single[4 + axis]:.9g}" for axis in AXES]
        elif command is not None:
            self.invalidate()  # the text commands have changed its cached values
            self.send(command, alive=False)
        self._count = (self._count + 1) % _ROUNDS
        state, number = self._states[self._count % len(self._states)], _ROUNDS + self._count
        requested = time.perf_counter()
        lines += [*(f"f {axis}" for axis in AXES), f"r {state.name}", f"w {_ECHO} {number}", f"r {_ECHO}"]
        *estimates, value = self._text.exchange(lines, str(number), 3, timeout)
        numbers: list[float] = []
        for answer in estimates:
            try:
                position, speed = map(float, answer.split())
            except ValueError:
                raise TransferError(f"the drive answered {answer!r} in place of 2 numbers.", Trouble.TIMEOUT) from None
            numbers += position, speed
        if not value.isdecimal():
            raise TransferError(f"the drive answered {value!r} in place of a state.", Trouble.TIMEOUT)
        one, one_speed, two, two_speed = numbers
        return Answer(requested, (one, two, one_speed, two_speed), state.name, int(value))
