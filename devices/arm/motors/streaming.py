"""Commands out and samples in, round after round, by a thread of its own, so that the tick never waits for the bus.

Between the tick and the thread lie two latches that hold the latest value only. A round (`devices.arm.motors.rounds`)
sends position, speed and torque of both motors, and asks for both positions and speeds and, in turn, for one of the
states that tell whether the motors are still driven. A round begins when there is a new command, when motors that speak
by themselves have said where they are, and at a pause without either, so that samples stay fresh.

The watchdogs are fed for as long as commands come. When they stay out the motors are told to stand still at once, and
nothing feeds their watchdogs any more.
"""

from __future__ import annotations

import math
import threading
import time
from typing import NamedTuple

import numpy as np

from devices.arm.motors.checks import CLOSED_LOOP
from devices.arm.motors.motor_kernels import COMMAND, SAMPLE
from devices.arm.motors.native.line import PATIENCE
from devices.arm.motors.rounds import Answer, Command, Rounds
from devices.common.bus.transfers import TransferError, Trouble
from devices.common.latch import Latch
from devices.common.waking import Wake
from haptics.errors import DeviceFault

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
    """The thread and the latches between it and the tick.

    Parameters
    ----------
    rounds : Rounds
        How the drive is talked to, both of its axes in closed loop; nobody else may do so from `start` to `stop`.
    fastest : float
        No motor turns faster [turn/s].

    Attributes
    ----------
    sample : Sample
        The latest.
    samples : Latch
        The same for the tick.
    commands : Latch
        What the tick commands: positions [turn], speeds [turn/s] and torques [N m] of both motors, and when that was
        [s, perf_counter].
    wake : Wake
        To be called when it has.
    failure : str
        Why there will be no more samples; empty while there will.
    lost : (1,) float array
        The same for the tick: 1 once there is a failure.
    played : int
        How many rounds there were.
    """

    def __init__(self, rounds: Rounds, fastest: float) -> None:
        self._rounds = rounds
        self._fastest = fastest
        self.failure = ""
        self.played = 0
        self._lost_in_a_row = 0
        self.samples, self.commands, self.wake = Latch(SAMPLE), Latch(COMMAND), Wake()
        self.lost = np.zeros(1)
        self.sample = Sample(-math.inf, math.nan, math.nan, math.nan, math.nan)
        self._told: tuple[float, ...] = ()
        self._command: Command = (math.nan,) * 6
        self._swiftest = [0.0, 0.0]  # of the commands since the latest sample
        self._latest_use = math.inf
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="odrive writer", daemon=True)

    # --- beginning and end -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin: hold the motors where they are until the first command; raises `TransferError`."""
        first = self._rounds.look(PATIENCE)
        self._publish(first)
        now = time.perf_counter()
        self.commands.publish(*first.estimates[:2], 0.0, 0.0, 0.0, 0.0, now)
        self._look()
        self._latest_use = now + FIRST_COMMAND
        self._rounds.attend(self.wake.call)
        self._thread.start()

    def stop(self) -> None:
        """End after the round that is going on; the drive is the caller's again."""
        self._stopping = True
        self.wake.call()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_TIMEOUT)

    # --- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                self.wake.wait(PAUSE)
                if not self._stopping:
                    self._look()
                    self._round()
        except Exception as error:  # of whatever kind: the tick must hear of it
            self.failure = str(error) or type(error).__name__
            self.lost[0] = 1.0
            self._rounds.let_go()

    def _look(self) -> None:
        """Take the latest command, if it is a new one."""
        told = self.commands.read()
        if told == self._told:
            return
        self._told, self._command = told, told[:6]
        self._latest_use = told[6] + SILENCE
        self._swiftest = [max(swift, abs(speed)) for swift, speed in zip(self._swiftest, told[2:4], strict=True)]

    def _round(self) -> None:
        self.played += 1
        try:
            answer = self._rounds.play(self._command, alive=time.perf_counter() < self._latest_use)
        except TransferError as error:
            self._rounds.forget()  # nobody knows what has arrived
            self._lost_in_a_row += 1
            if error.trouble is not Trouble.TIMEOUT or self._lost_in_a_row >= LOST_ROUNDS:
                raise
            return
        self._lost_in_a_row = 0
        self._require_driven(answer.name, answer.value)
        self._take(answer)

    def _require_driven(self, name: str, value: int) -> None:
        """Make sure that an axis is still in closed loop and has no error."""
        if value == (CLOSED_LOOP if name.endswith("state") else 0):
            return
        raise DeviceFault(f"the motors are not driven any more: {self._rounds.trouble() or f'{name} is {value}'}.")

    def _take(self, answer: Answer) -> None:
        last = self.sample
        before, speeds = (last.first, last.second), (last.first_speed, last.second_speed)
        told, self._swiftest = self._swiftest, [0.0, 0.0]
        duration = time.perf_counter() - last.time  # an answer may have been on its way for long
        for axis, now in enumerate(answer.estimates[:2]):
            swift = min(_HASTE * max(abs(speeds[axis]), told[axis]) + duration / _SPURT * self._fastest, self._fastest)
            jump = now - before[axis]
            if not abs(jump) <= swift * duration + _JUMP:
                raise DeviceFault(
                    f"the encoder of axis {axis} jumped by {jump:+.4g} turns: check its cable and coupling, home the "
                    "arm and start again."
                )
        self._publish(answer)

    def _publish(self, answer: Answer) -> None:
        self.sample = Sample(answer.asked, *answer.estimates)
        self.samples.publish(*self.sample)
