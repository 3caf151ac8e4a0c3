"""Commands out and samples in, round after round, by a thread of its own, so that the tick never waits for the bus.

Between the tick and the thread lie two slots that hold the latest value only. A round sends position, speed and, where
they have changed, torques of both motors, and asks for both positions and speeds and, in turn, for one of the things
that tell whether the motors are still driven; all of that is under way at once. A round begins when there is a new
command, and at a pause without one, so that samples stay fresh.

The watchdogs are fed, a few times before they expire, for as long as commands come. When they stay out the motors are
told to stand still at once, and soon nothing feeds their watchdogs any more.
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
from devices.arm.motors.settings import OdriveSettings
from devices.common.bus.transfers import TransferError, Trouble
from haptics.errors import DeviceFault, DeviceOpenError

PAUSE = 2e-3
"""Without a new command a round begins after so long [s]."""

SILENCE = 0.02
"""Commands that stay out for so long have ended [s]."""

FIRST_COMMAND = 10.0
"""The first command may take so long [s]: a program may have a lot to prepare, and a person to say."""

LOST_ROUNDS = 3
"""So many rounds in a row may lack an answer before the drive counts as dead."""

Command = tuple[float, ...]
"""Positions [turn], speeds [turn/s] and torques [N m] of the first and the second motor, in this order."""

_JOIN_TIMEOUT = 2.0
"""Longer than any round [s]: each of its transfers has a time limit."""

_FEEDS_AFTER = 0.1
"""A watchdog is fed again after this part of the time that it waits."""

_HASTE = 1.5
"""A motor may turn faster by this factor than it did and was told ..."""

_SPURT = 0.04
"""... may reach its highest speed in this time [s] ..."""

_JUMP = 0.05
"""... and its encoder may be out by so much besides [turn]."""


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
    settings : OdriveSettings
        How long to wait for the answers of a round, and how long the watchdogs wait.
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

    def __init__(self, drive: Drive, settings: OdriveSettings, fastest: float) -> None:
        self._drive, self._line = drive, drive.line
        self._timeout, self._watchdog, self._fastest = settings.reply_timeout, settings.watchdog, fastest
        self._next_feed = -math.inf
        axes = [f"axis{axis}" for axis in AXES]
        self._positions = [drive.property(f"{axis}.controller.input_pos") for axis in axes]
        self._speeds = [drive.property(f"{axis}.controller.input_vel") for axis in axes]
        self._torques = [drive.property(f"{axis}.controller.input_torque") for axis in axes]
        self._feeds = [drive.function(f"{axis}.watchdog_feed").number for axis in axes]
        self._estimates = [
            drive.property(f"{axis}.encoder.{what}") for what in ("pos_estimate", "vel_estimate") for axis in axes
        ]
        self._states = [drive.property(f"{axis}.{what}") for what in ("current_state", "error") for axis in axes]
        self.failure = ""
        self.rounds = self.lost = 0
        self._lost_in_a_row = 0
        self.sample = Sample(-math.inf, math.nan, math.nan, math.nan, math.nan)
        self._command: Command = (math.nan,) * 6
        self._told = [0.0, 0.0]  # torques; the motors were armed with none
        self._swiftest = [0.0, 0.0]  # of the commands since the latest sample
        self._latest_use = math.inf
        self._stopping = False
        self._wake = _thread.allocate_lock()  # held: nothing new
        self._wake.acquire()
        self._thread = threading.Thread(target=self._run, name="odrive writer", daemon=True)

    # --- from the tick -----------------------------------------------------------------------------------------------

    def command(self, command: Command) -> None:
        """Leave positions [turn], speeds [turn/s] and torques [N m] of both motors for the thread."""
        self._command = command
        self._swiftest = [max(swift, abs(speed)) for swift, speed in zip(self._swiftest, command[2:4], strict=True)]
        self._latest_use = time.perf_counter() + SILENCE
        with contextlib.suppress(RuntimeError):  # awake already
            self._wake.release()

    # --- beginning and end -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin: hold the motors where they are until the first command; raises `TransferError`."""
        asked = time.perf_counter()
        found = self._estimated(wait_all(self._line, [self._ask(endpoint) for endpoint in self._estimates], PATIENCE))
        self.sample = Sample(asked, *found)
        self._command = found[0], found[1], 0.0, 0.0, 0.0, 0.0
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
        state = self._states[self.rounds % len(self._states)]
        try:
            self._send(alive=time.perf_counter() < self._latest_use)
            asked = time.perf_counter()
            tickets = [self._ask(endpoint) for endpoint in (*self._estimates, state)]
            answers = wait_all(self._line, tickets, self._timeout)
        except TransferError as error:
            self._told = [math.nan, math.nan]  # nobody knows whether they have arrived
            self._next_feed = -math.inf
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
            torque = command[4 + axis] if alive else 0.0
            if torque != self._told[axis]:
                post(self._torques[axis].number, self._torques[axis].pack(torque))
                self._told[axis] = torque
        now = time.perf_counter()
        if alive and now >= self._next_feed:
            for feed in self._feeds:
                post(feed)
            self._next_feed = now + _FEEDS_AFTER * self._watchdog

    def _require_driven(self, name: str, value: int) -> None:
        """Make sure that an axis is still in closed loop and has no error."""
        if value == (CLOSED_LOOP if name.endswith("state") else 0):
            return
        raise DeviceFault(f"the motors are not driven any more: {trouble(self._drive) or f'{name} is {value}'}.")

    def _take(self, asked: float, found: list[float]) -> None:
        last = self.sample
        before, speeds = (last.first, last.second), (last.first_speed, last.second_speed)
        told, self._swiftest = self._swiftest, [0.0, 0.0]
        duration = asked - last.time
        for axis, now in enumerate(found[:2]):
            swift = min(_HASTE * max(abs(speeds[axis]), told[axis]) + duration / _SPURT * self._fastest, self._fastest)
            jump = now - before[axis]
            if not abs(jump) <= swift * duration + _JUMP:
                raise DeviceFault(
                    f"the encoder of axis {axis} jumped by {jump:+.4g} turns: check its cable and coupling, home the "
                    "arm and start again."
                )
        self.sample = Sample(asked, *found)

    def _let_go(self) -> None:
        """Say once more that the motors are to be let go, to a drive that may not hear it any more."""
        with contextlib.suppress(TransferError, DeviceOpenError):
            for axis in AXES:
                speed, state = self._speeds[axis], self._drive.property(f"axis{axis}.requested_state")
                self._line.post(speed.number, speed.pack(0.0))
                self._line.post(state.number, state.pack(IDLE))
