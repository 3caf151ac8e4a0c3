"""Motor stage: two motors that track angles, driven by a thread; the interface of every drive to the arm.

A thread exchanges commands and samples cyclically, so that the tick never waits for the bus. Two latches between the
tick and the thread hold the latest values only. A round (`Rounds`) sends position, speed and torque of both motors, and
requests both positions and speeds and, alternately, one of the states that show whether the motors are still armed. A
round starts on a new command, on new estimates from motors that send cyclically, and after a pause without either, so
that samples stay fresh.

The watchdogs are fed as long as commands arrive. When commands stop, the motors are stopped at once, and their
watchdogs are not fed any longer.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from devices.arm.motors.settings import Demands, OdriveSettings
from devices.common.bus import TransferError, Trouble
from devices.common.latch import Latch, Wake, copy_latest, publish_to
from haptics.device import Managed, Vector
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.jit import kernel
from haptics.records import fields

AXES = (0, 1)
"""Axes of a drive."""

IDLE, CLOSED_LOOP = 1, 8
"""States of an axis."""

POSITION_CONTROL, PASS_THROUGH = 3, 1
"""Control mode and input mode in which positions are followed without a trajectory."""

PATIENCE = 0.1
"""Timeout of a reply outside the tick [s]."""

ATTEMPTS = 3
"""Number of attempts for such a request."""

STILL = 0.05
"""Maximum speed of a motor at rest [turn/s]."""

PAUSE = 2e-3
"""Time without a new command after which a round starts [s]."""

SILENCE = 0.02
"""Time without a command after which the motors are commanded to stop [s]."""

_FIRST_COMMAND = 10.0  # timeout of the first command [s]; program and participant may need time to prepare

_LOST_ROUNDS = 3  # number of consecutive rounds without a reply after which the drive is considered dead

_JOIN_TIMEOUT = 2.0  # longer than any round [s]: each of its transfers has a timeout

# Plausibility of encoder readings: factor by which a motor may be faster than last measured and commanded.
_SPEED_FACTOR = 1.5

# Plausibility of encoder readings: minimum time in which a motor reaches its maximum speed [s].
_ACCELERATION_TIME = 0.04

_POSITION_TOLERANCE = 0.05  # plausibility of encoder readings: additional tolerance of the position [turn]


# --- kernels of a tick ------------------------------------------------------------------------------------------------


SAMPLE, COMMAND = 5, 7
"""Number of values in a latched `Sample` and in a latched command: positions [turn], speeds [turn/s] and torques [N m]
of both motors, and its time [s, perf_counter].
"""

MOTORS = np.dtype(
    [
        *fields("<i8", "samples commands lost"),
        *fields("<f8", "offsets per_radian ratios", 2),
        ("sample", "<f8", (SAMPLE,)),
        ("sampled", "<f8"),
        *fields("<f8", "angles speeds", 2),
        ("command", "<f8", (COMMAND,)),
    ]
)
"""Kernel record of two motors behind gears. ``samples`` and ``commands`` are the addresses of the latches, ``lost`` is
the address of a float that becomes 1 when the samples have ended. ``offsets`` is the arm's zero in the drive's counting
[turn], ``per_radian`` the motor turns per radian of the joint, ``ratios`` the gear ratios. ``sampled`` is the time at
which the latest sample was requested [s, perf_counter], ``angles`` and ``speeds`` are the joint angles and speeds at
that time [rad], [rad/s]; ``command`` is the latest command.
"""

# Bound of positions [turn] and speeds [turn/s]: beyond it the drive's floats have no precision for fractions.
_FARTHEST = 1e5


@kernel
def take_motors(m: Any) -> None:
    """Update angles and speeds of the joints from the latest sample."""
    if not copy_latest(m.samples, m.sample):
        return
    m.sampled = m.sample[0]
    for i in range(2):
        m.angles[i] = (m.sample[1 + i] - m.offsets[i]) / m.per_radian[i]
        m.speeds[i] = m.sample[3 + i] / m.per_radian[i]


@kernel
def give_motors(m: Any, instant: float) -> bool:
    """Convert ``command`` and pass it to the drive's thread; return False if it is out of range.

    On entry ``command`` is in terms of the joints: angles [rad], speeds [rad/s], torques [N m]. It is converted in
    place to the motors, with the time `instant` [s, perf_counter].
    """
    far = 0.0
    for i in range(2):
        m.command[i] = m.command[i] * m.per_radian[i] + m.offsets[i]
        m.command[2 + i] *= m.per_radian[i]
        m.command[4 + i] /= m.ratios[i]
        far += math.fabs(m.command[i]) + math.fabs(m.command[2 + i]) + math.fabs(m.command[4 + i])
    if not far < _FARTHEST:
        return False
    m.command[6] = instant
    publish_to(m.commands, m.command)
    return True


@kernel
def read_motors(motors: Any) -> None:
    """Update angles and speeds from the latest sample, for the (1,) array `motors`."""
    take_motors(motors[0])


# --- thread -----------------------------------------------------------------------------------------------------------


Command = tuple[float, ...]
"""Positions [turn], speeds [turn/s] and torques [N m] of the first and the second motor, in this order."""


class Answer(NamedTuple):
    """Result of a round.

    Time of the request, or of the arrival if unrequested [s, perf_counter]; positions [turn] and speeds [turn/s] of
    both motors; the name of a property that shows whether a motor is still armed, and its value.
    """

    requested: float
    estimates: tuple[float, float, float, float]
    name: str
    value: int


class Rounds(ABC):
    """Exchange of commands and samples with a drive."""

    @abstractmethod
    def exchange(self, command: Command | None, *, alive: bool = False, timeout: float = 0.0) -> Answer:
        """Send a command and return the drive's reply; raise `TransferError` if none arrives.

        Parameters
        ----------
        command : tuple of 6 floats or None
            Command, None only to read positions and speeds of the motors and one of their states.
        alive : bool
            False to command a stop, without feeding the watchdogs.
        timeout : float
            Timeout of the reply [s]; 0 for the timeout of the settings.
        """

    @abstractmethod
    def invalidate(self) -> None:
        """Mark the cached command state as unknown after a lost round."""

    @abstractmethod
    def trouble(self) -> str:
        """Request and return a description of the drive's errors; empty if none."""

    @abstractmethod
    def disable_motors(self) -> None:
        """Send the disable command again, ignoring transfer errors."""

    def set_wake_callback(self, wake: Callable[[], object]) -> None:  # noqa: B027 (most drives send nothing unrequested)
        """Register `wake`, which is called when the drive has sent data unrequested, if it does."""


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
    answer : Answer
        Latest reply of the drive.
    samples : Latch
        Its time, positions and speeds, for the tick.
    commands : Latch
        Commands of the tick: positions [turn], speeds [turn/s] and torques [N m] of both motors, and the time
        [s, perf_counter].
    wake : Wake
        To be called after a command was published.
    failure : str
        Reason why the thread has ended; empty while it runs.
    lost : (1,) float array
        Failure flag for the tick: 1 after a failure.
    """

    def __init__(self, rounds: Rounds, fastest: float) -> None:
        self._rounds = rounds
        self._fastest = fastest
        self.failure = ""
        self._lost_rounds = 0
        self.samples, self.commands, self.wake = Latch(SAMPLE), Latch(COMMAND), Wake()
        self.lost = np.zeros(1)
        self.answer = Answer(-math.inf, (math.nan,) * 4, "", 0)
        self._published: tuple[float, ...] = ()
        self._command: Command = (math.nan,) * 6
        self._max_speeds = [0.0, 0.0]  # maximum speeds of the commands since the latest sample
        self._command_end = math.inf
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="odrive writer", daemon=True)

    def start(self) -> None:
        """Start the thread; the motors hold their positions until the first command. Raises `TransferError`."""
        first = self._rounds.exchange(None, timeout=PATIENCE)
        self._publish(first)
        now = time.perf_counter()
        self.commands.publish(*first.estimates[:2], 0.0, 0.0, 0.0, 0.0, now)
        self._read_command()
        self._command_end = now + _FIRST_COMMAND
        self._rounds.set_wake_callback(self.wake.call)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the current round; the drive is available to the caller again."""
        self._stopping = True
        self.wake.call()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_TIMEOUT)

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
        command = self.commands.read()
        if command == self._published:
            return
        self._published, self._command = command, command[:6]
        self._command_end = command[6] + SILENCE
        self._max_speeds = [max(limit, abs(speed)) for limit, speed in zip(self._max_speeds, command[2:4], strict=True)]

    def _round(self) -> None:
        """Exchange command and sample.

        Raises `DeviceFault` if an axis is not in closed loop or has an error, or if a position is implausible.
        """
        try:
            answer = self._rounds.exchange(self._command, alive=time.perf_counter() < self._command_end)
        except TransferError as error:
            self._rounds.invalidate()  # the drive's state is unknown
            self._lost_rounds += 1
            if error.trouble is not Trouble.TIMEOUT or self._lost_rounds >= _LOST_ROUNDS:
                raise
            return
        self._lost_rounds = 0
        if answer.value != (CLOSED_LOOP if answer.name.endswith("state") else 0):
            reason = self._rounds.trouble() or f"{answer.name} is {answer.value}"
            raise DeviceFault(f"the motors were disabled: {reason}.")
        last, fastest = self.answer, self._fastest
        commanded, self._max_speeds = self._max_speeds, [0.0, 0.0]
        duration = time.perf_counter() - last.requested  # includes the transfer time of the reply
        for axis in AXES:
            speed = _SPEED_FACTOR * max(abs(last.estimates[2 + axis]), commanded[axis])
            limit = min(speed + duration / _ACCELERATION_TIME * fastest, fastest)
            jump = answer.estimates[axis] - last.estimates[axis]
            if not abs(jump) <= limit * duration + _POSITION_TOLERANCE:
                raise DeviceFault(
                    f"the encoder of axis {axis} jumped by {jump:+.4g} turns: check its cable and coupling, home the "
                    "arm and start again."
                )
        self._publish(answer)

    def _publish(self, answer: Answer) -> None:
        self.answer = answer
        self.samples.publish(answer.requested, *answer.estimates)


# --- stage ------------------------------------------------------------------------------------------------------------


class MotorStage(Managed):
    """Two motors that hold or follow angles at the arm's joints, each behind its gear.

    The order of calls is ``open``, ``home`` (where the encoders need it), ``arm``, ``disarm``, ``close``. When open and
    not armed, the motors are free to move. While armed, the kernels `give_motors` and `take_motors` exchange commands
    and angles with the thread through ``record``. ``disarm`` and ``close`` may be called at any time, also twice;
    neither leaves a motor armed. If commands stop, the motors are brought to rest and disarmed. Subclasses implement
    the communication.

    Parameters
    ----------
    settings : OdriveSettings, optional
        Settings of the drive.
    far_end : optional
        Access to the drive instead of the real one; see the subclass.
    demands : Demands, optional
        Requirements of the arm on the motors.

    Attributes
    ----------
    settings : OdriveSettings
        Settings of the drive.
    homed : bool
        Whether the angles are relative to the arm's zero.
    facts : dict
        Facts that the drive reports when opened, such as its limits: plain values for a recording.
    record : (1,) structured array
        Kernel record of dtype `MOTORS`; it is never replaced.
    """

    def __init__(
        self, settings: OdriveSettings | None = None, *, far_end: Any = None, demands: Demands | None = None
    ) -> None:
        self.settings = settings or OdriveSettings()
        self.homed = False
        self.facts: dict[str, Any] = {}
        self._far_end, self._demands = far_end, demands or Demands()
        record = self.record = np.zeros(1, MOTORS)
        record["ratios"] = self.settings.reduction_1, self.settings.reduction_2
        record["per_radian"] = record["ratios"] / math.tau
        self._per_radian: Vector = record["per_radian"][0]
        self._offsets: Vector = record["offsets"][0]
        self._angles: Vector = record["angles"][0]
        self._streaming: Streaming | None = None
        self._line: Any = None
        # compile now: later, watchdogs would expire and samples of a sensor become too old
        samples, record = Latch(SAMPLE), record.copy()
        record["samples"] = samples.place
        read_motors(record)

    # --- for subclasses ----------------------------------------------------------------------------------------------

    @abstractmethod
    def _connect(self) -> None:
        """Set `_line`, which has the method ``close``; check the drive, disarm its motors, set `homed` and `facts`."""

    @abstractmethod
    def _set_home(self, turns: Vector) -> None:
        """Define the present positions of the disarmed motors as `turns`, (2,)."""

    @abstractmethod
    def _turns(self) -> Vector:
        """Read the positions of the disarmed motors in the drive's counting, (2,) [turn]."""

    @abstractmethod
    def _energise(self) -> tuple[Rounds, float]:
        """Arm the motors; return the rounds and the maximum speed of a motor [turn/s]."""

    @abstractmethod
    def _disarm(self) -> None:
        """Disarm both motors and verify it; raise `DeviceFault` if they may still be armed."""

    # --- opening and arming ------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect to the drive, check it and disarm its motors; do nothing if already open.

        Raises
        ------
        DeviceNotFoundError
            If the drive or its interface is not found.
        DeviceOpenError
            If it cannot be used; the message contains the remedy.
        """
        if self._line is not None:
            return
        try:
            with opening():
                self._connect()
        except BaseException:
            self._disconnect()
            raise

    def home(self, angles: Vector) -> None:
        """Define the present pose of the joints, at rest and not armed, as `angles`, (2,) [rad].

        Incremental encoders lose their zero when the power is switched off: hold the arm in a known pose.

        Raises
        ------
        DeviceOpenError
            If the motors are armed or move, or the positions differ afterwards.
        """
        if self._streaming is not None:
            raise DeviceOpenError("the motors are armed: disarm them, then home the arm by hand.")
        self._require_open()
        with opening():
            self._set_home(np.asarray(angles, np.float64) * self._per_radian)
        self.homed = True

    def arm(self) -> None:
        """Arm the motors at their present positions; do nothing if already armed.

        Raises
        ------
        DeviceOpenError
            If they cannot be armed, or the joint angles are unknown.
        """
        if self._streaming is not None:
            return
        self._require_open()
        if not self.homed:
            raise DeviceOpenError(
                "the arm was not homed, and its encoders lose their zero when the power goes: bring it to its home "
                "pose, hold it there and home it."
            )
        with opening():
            self._streaming = streaming = Streaming(*self._energise())
            record = self.record
            record["samples"], record["commands"] = streaming.samples.place, streaming.commands.place
            record["lost"] = streaming.lost.ctypes.data
            try:
                streaming.start()
            except BaseException:
                self.disarm()  # raises if the motors may still be armed
                raise

    def disarm(self) -> None:
        """Stop and disarm the motors; do nothing if already disarmed.

        Raises
        ------
        DeviceFault
            If they may still be armed.
        """
        streaming, self._streaming = self._streaming, None
        if streaming is None:
            return
        streaming.stop()
        try:
            self._disarm()
        except DeviceFault as error:
            raise DeviceFault(
                f"the motors could not be disarmed ({error}) Their own watchdog does so within "
                f"{self.settings.watchdog:g} s; if it does not, switch their supply off."
            ) from error

    def close(self) -> None:
        """Disarm the motors and disconnect; do nothing if not open."""
        if self._line is None:
            return
        try:
            self.disarm()
        finally:
            self._disconnect()

    def _disconnect(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    def _require_open(self) -> None:
        if self._line is None:
            raise DeviceOpenError("the motors are not open: call open() first.")

    # --- ticks -------------------------------------------------------------------------------------------------------

    @property
    def sampled(self) -> float:
        """Time at which the latest sample was requested, or arrived unrequested [s, perf_counter]."""
        return self._streaming.answer.requested if self._streaming is not None else -math.inf

    @property
    def wake(self) -> Wake:
        """Wake function of the drive's thread, to be called after a command was written to the record.

        Raises `DeviceOpenError` if the motors are not armed.
        """
        if self._streaming is None:
            raise DeviceOpenError("the motors are not armed: call arm() first.")
        return self._streaming.wake

    @property
    def failure(self) -> str:
        """Reason why the samples have ended; empty otherwise and if the motors are not armed."""
        return self._streaming.failure if self._streaming is not None else ""

    def read_angles(self) -> Vector:
        """Return the angles of the joints, (2,) [rad]; the array is reused.

        If the motors are armed, the latest sample is returned without waiting; otherwise the angles are requested.

        Raises
        ------
        DeviceFault
            If the samples have ended.
        """
        if self._streaming is None:
            self._require_open()
            np.divide(self._turns() - self._offsets, self._per_radian, out=self._angles)
            return self._angles
        if self._streaming.failure:
            raise DeviceFault(self._streaming.failure)
        read_motors(self.record)
        return self._angles


@contextlib.contextmanager
def opening() -> Iterator[None]:
    """Convert a `DeviceFault` before the motors move into a `DeviceOpenError`."""
    try:
        yield
    except DeviceFault as error:
        raise DeviceOpenError(str(error)) from error


def require_voltage(voltage: float, settings: OdriveSettings) -> None:
    """Raise `DeviceOpenError` unless the supply has a permitted `voltage` [V]."""
    if not settings.min_voltage <= voltage <= settings.max_voltage:
        raise DeviceOpenError(
            f"the drive's supply has {voltage:.1f} V, it must have {settings.min_voltage:g} to "
            f"{settings.max_voltage:g} V: switch it on, or check it."
        )
