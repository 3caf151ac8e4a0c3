"""Cyclic exchange of commands and samples by a thread, so that the tick never waits for the bus.

Two latches between the tick and the thread hold the latest values only. A round (`devices.arm.motors.rounds`) sends
position, speed and torque of both motors, and requests both positions and speeds and, alternately, one of the states
that show whether the motors are still armed. A round starts on a new command, on new estimates from motors that send
cyclically, and after a pause without either, so that samples stay fresh.

The watchdogs are fed as long as commands arrive. When commands stop, the motors are stopped at once, and their
watchdogs are not fed any longer.
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
from devices.common.bus import TransferError, Trouble
from devices.common.latch import Latch, Wake
from haptics.errors import DeviceFault

PAUSE = 2e-3
"""Time without a new command after which a round starts [s]."""

SILENCE = 0.02
"""Time without a command after which the motors are commanded to stop [s]."""

FIRST_COMMAND = 10.0
"""Timeout of the first command [s]; it is long because the program and the participant may need time to prepare."""

LOST_ROUNDS = 3
"""Number of consecutive rounds without a reply after which the drive is considered dead."""

_JOIN_TIMEOUT = 2.0
"""Longer than any round [s]: each of its transfers has a timeout."""

_HASTE = 1.5
"""Plausibility of encoder readings: factor by which a motor may be faster than last measured and commanded."""

_SPURT = 0.04
"""Plausibility of encoder readings: minimum time in which a motor reaches its maximum speed [s]."""

_JUMP = 0.05
"""Plausibility of encoder readings: additional tolerance of the position [turn]."""


class Sample(NamedTuple):
    """State of the motors: time of the request [s, perf_counter], positions [turn], speeds [turn/s]."""

    time: float
    first: float
    second: float
    first_speed: float
    second_speed: float


class Streaming:
    """Communication thread and the latches between it and the tick.

    Parameters
    ----------
    rounds : Rounds
        Exchange with the drive, both of whose axes are in closed loop. From `start` to `stop` only this thread may use
        it.
    fastest : float
        Maximum speed of a motor [turn/s].

    Attributes
    ----------
    sample : Sample
        Latest sample.
    samples : Latch
        Latest sample, for the tick.
    commands : Latch
        Commands of the tick: positions [turn], speeds [turn/s] and torques [N m] of both motors, and the time
        [s, perf_counter].
    wake : Wake
        To be called after a command was published.
    failure : str
        Reason why the thread has ended; empty while it runs.
    lost : (1,) float array
        Failure flag for the tick: 1 after a failure.
    played : int
        Number of rounds.
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
        self._swiftest = [0.0, 0.0]  # maximum speeds of the commands since the latest sample
        self._latest_use = math.inf
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="odrive writer", daemon=True)

    # --- start and stop ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread; the motors hold their positions until the first command. Raises `TransferError`."""
        first = self._rounds.poll(PATIENCE)
        self._publish(first)
        now = time.perf_counter()
        self.commands.publish(*first.estimates[:2], 0.0, 0.0, 0.0, 0.0, now)
        self._read_command()
        self._latest_use = now + FIRST_COMMAND
        self._rounds.set_wake_callback(self.wake.call)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the current round; the drive is available to the caller again."""
        self._stopping = True
        self.wake.call()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_TIMEOUT)

    # --- communication thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                self.wake.wait(PAUSE)
                if not self._stopping:
                    self._read_command()
                    self._round()
        except Exception as error:  # of any type: the tick must be notified
            self.failure = str(error) or type(error).__name__
            self.lost[0] = 1.0
            self._rounds.disable_motors()

    def _read_command(self) -> None:
        """Read the latest command, if it is new."""
        told = self.commands.read()
        if told == self._told:
            return
        self._told, self._command = told, told[:6]
        self._latest_use = told[6] + SILENCE
        self._swiftest = [max(swift, abs(speed)) for swift, speed in zip(self._swiftest, told[2:4], strict=True)]

    def _round(self) -> None:
        self.played += 1
        try:
            answer = self._rounds.exchange(self._command, alive=time.perf_counter() < self._latest_use)
        except TransferError as error:
            self._rounds.invalidate()  # the drive's state is unknown
            self._lost_in_a_row += 1
            if error.trouble is not Trouble.TIMEOUT or self._lost_in_a_row >= LOST_ROUNDS:
                raise
            return
        self._lost_in_a_row = 0
        self._require_driven(answer.name, answer.value)
        self._take(answer)

    def _require_driven(self, name: str, value: int) -> None:
        """Raise `DeviceFault` unless an axis is still in closed loop without errors."""
        if value == (CLOSED_LOOP if name.endswith("state") else 0):
            return
        raise DeviceFault(f"the motors are not driven any more: {self._rounds.trouble() or f'{name} is {value}'}.")

    def _take(self, answer: Answer) -> None:
        last = self.sample
        before, speeds = (last.first, last.second), (last.first_speed, last.second_speed)
        told, self._swiftest = self._swiftest, [0.0, 0.0]
        duration = time.perf_counter() - last.time  # includes the transfer time of the reply
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
