"""Commands out and samples in, round after round, by a thread of its own, so that the tick never waits for the bus.

Between the tick and the thread lie two slots that hold the latest value only. A round sends position and speed of both
motors, feeds both watchdogs and asks for both positions and speeds and, in turn, for one of the things that tell
whether the motors are still driven; all of that is under way at once. A round begins when there is a new command, and
at a pause without one, so that samples stay fresh.

A watchdog is fed for as long as commands come. When they stay out the motors are told to stand still at once, and soon
nothing feeds their watchdogs any more.
"""

from __future__ import annotations

import _thread
import contextlib
import math
import threading
import time
from typing import NamedTuple

from devices.arm.motors.checks import AXES, CLOSED_LOOP, IDLE, trouble
from devices.arm.motors.drive import Drive
from devices.arm.motors.endpoints import Endpoint
from devices.arm.motors.line import PATIENCE, Ticket, wait_all
from devices.joystick.transport import TransferError, Trouble
from haptics.errors import DeviceFault, DeviceOpenError

PAUSE = 2e-3
"""Without a new command a round begins after so long [s]."""

SILENCE = 0.02
"""Commands that stay out for so long have ended [s]."""

FIRST_COMMAND = 10.0
"""The first command may take so long [s]: a program may have a lot to prepare, and a person to say."""

LOST_ROUNDS = 3
"""So many rounds in a row may lack an answer before the drive counts as dead."""

_JOIN_TIMEOUT = 2.0
"""Longer than any round [s]: each of its transfers has a time limit."""

_JUMP = 0.05
"""An encoder may be out by so much beyond what the motor can have turned [turn]."""


class Sample(NamedTuple):
    """Where the motors are: when that was asked for [s, perf_counter], positions [turn], speeds [turn/s]."""

    time: float
    first: float
    second: float
    first_speed: float
    second_speed: float


class Streaming:
    """The thread and the slots between it and the tick.

    Parameters
    ----------
    drive : Drive
        Both of its axes in closed loop; nobody else may use it from `start` to `stop`.
    reply_timeout : float
        Longest time to wait for the answers of a round [s].
    fastest : float
        No motor turns faster [turn/s].

    Attributes
    ----------
    sample : Sample
        The latest.
    failure : str
        Why there will be no more; empty while there will.
    rounds, lost : int
        How many rounds there were, and how many lacked an answer.
    """

    def __init__(self, drive: Drive, reply_timeout: float, fastest: float) -> None:
        self._drive, self._line = drive, drive.line
        self._timeout, self._fastest = reply_timeout, fastest
        axes = [f"axis{axis}" for axis in AXES]
        self._positions = [drive.property(f"{axis}.controller.input_pos") for axis in axes]
        self._speeds = [drive.property(f"{axis}.controller.input_vel") for axis in axes]
        self._feeds = [drive.function(f"{axis}.watchdog_feed").number for axis in axes]
        self._estimates = [
            drive.property(f"{axis}.encoder.{what}") for what in ("pos_estimate", "vel_estimate") for axis in axes
        ]
        self._states = [drive.property(f"{axis}.{what}") for what in ("current_state", "error") for axis in axes]
        self.failure = ""
        self.rounds = self.lost = 0
        self._lost_in_a_row = 0
        self.sample = Sample(-math.inf, math.nan, math.nan, math.nan, math.nan)
        self._command = (math.nan, math.nan, math.nan, math.nan)
        self._latest_use = math.inf
        self._stopping = False
        self._wake = _thread.allocate_lock()  # held: nothing new
        self._wake.acquire()
        self._thread = threading.Thread(target=self._run, name="odrive writer", daemon=True)

    # --- from the tick -----------------------------------------------------------------------------------------------

    def command(self, first: float, second: float, first_speed: float, second_speed: float) -> None:
        """Leave positions [turn] and speeds [turn/s] for the thread."""
        self._command = first, second, first_speed, second_speed
        self._latest_use = time.perf_counter() + SILENCE
        with contextlib.suppress(RuntimeError):  # awake already
            self._wake.release()

    # --- beginning and end -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin: hold the motors where they are until the first command; raises `TransferError`."""
        asked = time.perf_counter()
        found = self._estimated(wait_all(self._line, [self._ask(endpoint) for endpoint in self._estimates], PATIENCE))
        self.sample = Sample(asked, *found)
        self._command = found[0], found[1], 0.0, 0.0
        self._latest_use = asked + FIRST_COMMAND
        self._thread.start()

    def stop(self) -> None:
        """End after the round that is going on; the drive is the caller's again."""
        self._stopping = True
        with contextlib.suppress(RuntimeError):
            self._wake.release()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_TIMEOUT)

    # --- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._wake.acquire(timeout=PAUSE)
                if not self._stopping:
                    self._round()
        except Exception as error:  # of whatever kind: the tick must hear of it
            self.failure = str(error) or type(error).__name__
            self._let_go()

    def _round(self) -> None:
        self.rounds += 1
        self._send(alive=time.perf_counter() < self._latest_use)
        asked = time.perf_counter()
        state = self._states[self.rounds % len(self._states)]
        tickets = [self._ask(endpoint) for endpoint in (*self._estimates, state)]
        try:
            answers = wait_all(self._line, tickets, self._timeout)
        except TransferError as error:
            self._lost_in_a_row += 1
            self.lost += 1
            if error.trouble is not Trouble.TIMEOUT or self._lost_in_a_row >= LOST_ROUNDS:
                raise
            return
        self._lost_in_a_row = 0
        self._require_driven(state.name, state.unpack(answers[-1]))
        self._take(asked, self._estimated(answers[:-1]))

    def _ask(self, endpoint: Endpoint) -> Ticket:
        return self._line.ask(endpoint.number, b"", endpoint.form.size)

    def _estimated(self, answers: list[bytes]) -> list[float]:
        return [endpoint.unpack(data) for endpoint, data in zip(self._estimates, answers, strict=True)]

    def _send(self, *, alive: bool) -> None:
        post, command = self._line.post, self._command
        for axis in AXES:
            speed, position = self._speeds[axis], self._positions[axis]
            post(speed.number, speed.pack(command[2 + axis] if alive else 0.0))
            post(position.number, position.pack(command[axis]))
            if alive:
                post(self._feeds[axis])

    def _require_driven(self, name: str, value: int) -> None:
        """Make sure that an axis is still in closed loop and has no error."""
        if value == (CLOSED_LOOP if name.endswith("state") else 0):
            return
        raise DeviceFault(f"the motors are not driven any more: {trouble(self._drive) or f'{name} is {value}'}.")

    def _take(self, asked: float, found: list[float]) -> None:
        last = self.sample
        reach = self._fastest * (asked - last.time) + _JUMP
        for axis, (before, now) in enumerate(((last.first, found[0]), (last.second, found[1]))):
            if not abs(now - before) <= reach:
                raise DeviceFault(
                    f"the encoder of axis {axis} jumped by {now - before:+.4g} turns: check its cable and coupling, "
                    "home the arm and start again."
                )
        self.sample = Sample(asked, *found)

    def _let_go(self) -> None:
        """Say once more that the motors are to be let go, to a drive that may not hear it any more."""
        with contextlib.suppress(TransferError, DeviceOpenError):
            for axis in AXES:
                speed, state = self._speeds[axis], self._drive.property(f"axis{axis}.requested_state")
                self._line.post(speed.number, speed.pack(0.0))
                self._line.post(state.number, state.pack(IDLE))
