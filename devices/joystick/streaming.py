"""Threads for force output, position input and monitoring, so that the tick never waits for the bus.

The tick and the threads share two latches (`devices.common.latch`), which hold only the latest value. A new force
replaces one that was not sent yet, so that no queue builds up and the output is as recent as possible. The tick reads
the latches without Python (`devices.joystick.kernels`), as well as two numbers that report failures of the threads.

*Writer.* `Forces` selects the reports to send. If the tick has died while the threads are alive, zero is sent after
``keep_alive``. If the process has died, the device ends the force after its effect duration. A stick that does not
accept two consecutive reports in time has failed.

*Reader.* Every input report is stamped on arrival. A stick may send nothing while nothing moves. A read that times out
shows that the device was polled in every frame and had no news: the last position is then as current as a new report.
After a failed read or a truncated report this does not hold, because its content is lost: the age of the last position
grows until a complete report arrives.

*Watch.* A separate thread polls the stick occasionally (`Watch`), because answers take time. It
detects a stick that has stopped reporting although its handle moves, or has lost its effects.
"""

from __future__ import annotations

import contextlib
import errno
import math
import threading
import time
from collections.abc import Callable, Generator

import numpy as np

from devices.common.bus import TransferError, Trouble
from devices.common.latch import Latch, Wake
from devices.joystick.hid import usages as use
from devices.joystick.hid.descriptor import Report
from devices.joystick.hid.report import ReportError, decode
from devices.joystick.reports import InputLayout, Playbook, Sample
from devices.joystick.session import PidSession
from devices.joystick.usb.finding import Transport
from devices.joystick.usb.transport import AGAIN, WRITE_TIMEOUT, failure
from haptics.errors import DeviceFault, DeviceOpenError

# --- selection of the reports to send ---------------------------------------------------------------------------------

_UNKNOWN = 1 << 40  # count of an effect whose last report may or may not have arrived; counts as the largest error


class Forces:
    """Latest commanded force, and the part of it that the stick has received.

    Only magnitudes whose count changed are sent, the one with the larger error first. Each value is read at the moment
    of sending, so that no queue builds up and the output is as recent as possible. Each effect is restarted within
    `keep_alive` as long as commands arrive.

    Parameters
    ----------
    playbook : Playbook
        Output reports of the stick.
    blocks : list of int
        Blocks of the running effects: two, or one for a wheel.
    keep_alive : float
        Interval of the restarts of an effect, and age at which a command expires [s].

    Attributes
    ----------
    levels : Latch
        Latest command: levels along both axes, -1 to 1, and its time [s, perf_counter].
    """

    def __init__(self, playbook: Playbook, blocks: list[int], keep_alive: float) -> None:
        self._full_scale = playbook.full_scale
        # number, report, and lowest count of each streamed quantity
        self._outputs = [(playbook.magnitude, bytearray(playbook.constant(block)), 0) for block in blocks]
        self._starts = [playbook.operation(block, use.START) for block in blocks]
        self._keep_alive = keep_alive
        self.levels = Latch(3)
        self._sent = [0] * len(blocks)
        now = time.perf_counter()
        self._due = [now + axis * 0.5 * keep_alive for axis in range(len(blocks))]

    @property
    def on(self) -> bool:
        """Whether the stick has, or may have, a nonzero force to play."""
        return any(self._sent[: len(self._starts)])

    def idle(self) -> float:
        """Return the time until the next report is due if no new command arrives [s]."""
        if _UNKNOWN in self._sent:
            return 0.0
        now = time.perf_counter()
        if now - self.levels.read()[2] > self._keep_alive:
            return 0.5 * self._keep_alive
        return max(min(self._due) - now, 0.0)

    def reports(self) -> Generator[bytes, bool, None]:
        """Yield changed magnitudes, largest error first, and restarts that are due.

        The caller sends back whether the device accepted the report.
        """
        targets, _ = self._target_counts()
        for part in sorted(range(len(self._sent)), key=lambda part: -self._error(part, targets)):
            targets, fresh = self._target_counts()
            if targets[part] != self._sent[part]:
                number, report, lowest = self._outputs[part]
                number.put(report, lowest + targets[part])
                accepted = yield bytes(report)
                self._sent[part] = targets[part] if accepted else _UNKNOWN
            if part < len(self._due) and fresh and time.perf_counter() >= self._due[part]:
                accepted = yield self._starts[part]
                if accepted:  # schedule the next restart, apart from the restart of the other effect
                    due, apart = time.perf_counter() + self._keep_alive, 0.25 * self._keep_alive
                    close = any(abs(due - other) < apart for k, other in enumerate(self._due) if k != part)
                    self._due[part] = due - apart if close else due

    def _target_counts(self) -> tuple[tuple[int, int], bool]:
        """Return the counts to send, and whether the command that they come from is still valid."""
        level_x, level_y, stamp = self.levels.read()
        fresh = time.perf_counter() - stamp <= self._keep_alive
        return self._counts(level_x, level_y) if fresh else self._counts(0.0, 0.0), fresh

    def _counts(self, level_x: float, level_y: float) -> tuple[int, int]:
        """Return the magnitudes of the effects [counts] for the given levels."""
        return round(level_x * self._full_scale), round(level_y * self._full_scale)

    def _error(self, part: int, targets: tuple[int, int]) -> float:
        """Return the difference between the target count and the sent count."""
        return abs(targets[part] - self._sent[part])


class TurnedForces(Forces):
    """Force output for a stick that cannot add effects: one effect with streamed direction and magnitude.

    A force takes two reports, and between them the stick plays a mixture of the old and the new force. To keep the
    error small, a reversed force passes through zero by its magnitude, and the direction stays within a right angle of
    the previous one.

    Parameters
    ----------
    playbook : Playbook
        Output reports of the stick.
    block : int
        Block of the running effect.
    keep_alive : float
        As in `Forces`.
    effect : bytes
        Report that last described the effect.
    """

    def __init__(self, playbook: Playbook, block: int, keep_alive: float, effect: bytes) -> None:
        super().__init__(playbook, [block], keep_alive)
        angle, lowest = playbook.angle, playbook.angle.field.logical_min
        self._outputs.append((angle, bytearray(effect), lowest))
        self._turn, self._kept = angle.field.logical_max - lowest, angle.get(effect) - lowest
        self._sent = [0, self._kept]

    def _counts(self, level_x: float, level_y: float) -> tuple[int, int]:
        """Return magnitude and direction [counts].

        The direction is the one that the force comes from, or points to if the magnitude is negative.
        """
        magnitude = round(math.hypot(level_x, level_y) * self._full_scale)
        if not magnitude:
            return 0, self._kept
        turn = round(math.atan2(-level_x, level_y) / math.tau * self._turn)
        halves = round(2.0 * (turn - self._kept) / self._turn)  # half turns from the present direction
        self._kept = (turn + (halves % 2) * round(0.5 * self._turn)) % self._turn
        return (-magnitude if halves % 2 else magnitude), self._kept

    def _error(self, part: int, targets: tuple[int, int]) -> float:
        """Return the force error of a count [counts of magnitude]; for a direction, the arc length at the tip."""
        error = super()._error(part, targets)
        if part == 0 or self._sent[1] == _UNKNOWN:
            return error
        return math.tau * min(error, self._turn - error) / self._turn * abs(self._sent[0])


# --- monitoring -------------------------------------------------------------------------------------------------------

PERIOD = 0.05
"""Time between two checks [s]."""

SILENCE = 0.1
"""Silence of a stick with a nonzero force after which its position is requested [s]."""

STATE_PERIOD = 0.25
"""Interval of the requests for the device state [s]."""

SETTLED = 0.1
"""Time after set-up from which reported states are valid [s]."""

_DOUBTS = 2
_SAME = 1
_SLEPT = 0.1

# Possible faults, with the usage and the value that exclude each of them.
_CONDITIONS = {
    "has switched its motors off": (use.ACTUATORS_ENABLED, 1),
    "has no power for its motors": (use.ACTUATOR_POWER, 1),
    "has paused all forces": (use.DEVICE_PAUSED, 0),
}


class Watch:
    """Regular checks that a stick still reports, has power and plays its effects.

    *Position.* A stick may send nothing while nothing moves, and so does a stick that has stopped reporting. While a
    force is on and the stick is silent, its position is requested. If the handle has moved without a report, the stick
    has failed. Not every stick answers such a request; if it did not answer when it was opened, this check is disabled.

    *Device state.* The state that the stick reports, by itself or on request, must not get worse: the motors must stay
    enabled and powered, and nothing may be paused. Reports in the first moments are ignored, because they may be old.

    *Computer.* If the computer was suspended, the stick may have been suspended too, and many sticks lose their effects
    then.

    Parameters
    ----------
    transport : Transport
        Open connection.
    layout : InputLayout
        Layout of the input reports.
    """

    def __init__(self, transport: Transport, layout: InputLayout) -> None:
        self._transport = transport
        self._layout = layout
        self._reports_position = self._reports_state = False
        self._ruled_out = frozenset[str]()
        self._settled = self._state_due = math.inf
        self._doubts = 0
        self._asleep = _time_asleep()

    def begin(self) -> Sample | None:
        """Determine which requests the stick answers; return its position, None if it does not report it."""
        sample = self._position()
        self._reports_position = sample is not None
        now = time.perf_counter()
        self._settled, self._state_due = now + SETTLED, now + STATE_PERIOD
        self._reports_state = self._request_state()
        return sample

    def check(self, latest: Sample, pushing: bool) -> None:
        """Check the stick; `latest` is its last position, `pushing` is True while a force is on.

        Raises
        ------
        DeviceFault
            If a check fails.
        """
        if _time_asleep() - self._asleep > _SLEPT:
            raise DeviceFault("the computer was suspended, and the stick may have lost its effects: start again.")
        if pushing and self._reports_position and time.perf_counter() - latest.time > SILENCE:
            answer = self._position()
            same = answer is not None and max(abs(answer.x - latest.x), abs(answer.y - latest.y)) <= _SAME
            self._doubts = 0 if same else self._doubts + 1
            if self._doubts >= _DOUBTS:
                raise DeviceFault(f"the stick has stopped reporting the position of its handle: {AGAIN}.")
        else:
            self._doubts = 0
        if self._reports_state and time.perf_counter() > self._state_due:
            self._state_due = time.perf_counter() + STATE_PERIOD
            self._request_state()

    def handle_state(self, data: bytes) -> None:
        """Process a report of the device state.

        Raises
        ------
        DeviceFault
            If the stick cannot play forces any longer, though it could before.
        """
        report = self._layout.state
        if report is None:
            return
        try:
            state = decode(report, data)
        except ReportError:  # truncated
            return
        ruled_out = {fault for fault, (usage, wanted) in _CONDITIONS.items() if state.get(usage) == wanted}
        lost = [fault for fault in _CONDITIONS if fault in self._ruled_out - ruled_out]
        if lost and time.perf_counter() > self._settled:
            raise DeviceFault(
                f"the stick reports that it {' and '.join(lost)}: check its switches and its supply, and start again."
            )
        self._ruled_out |= ruled_out

    # --- requests -----------------------------------------------------------------------------------------------------

    def _position(self) -> Sample | None:
        data = self._request_report(self._layout.report)
        return None if data is None else self._layout.sample(data, time.perf_counter())

    def _request_state(self) -> bool:
        """Request the state; return True if there was an answer."""
        data = None if self._layout.state is None else self._request_report(self._layout.state)
        if data is not None:
            self.handle_state(data)
        return data is not None

    def _request_report(self, report: Report) -> bytes | None:
        """Request an input report; return None if the stick does not send it, or sends another one."""
        with contextlib.suppress(TransferError):
            data = self._transport.get_report(report)
            if len(data) >= report.length and (not report.id or data[0] == report.id):
                return data
        return None


def _time_asleep() -> float:
    """Return the time that the computer was suspended since boot [s], 0 if unknown."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


# --- threads ----------------------------------------------------------------------------------------------------------

READ_TIMEOUT = 0.01
"""Timeout of a read [s], and interval at which silence is confirmed to come from a live device."""

_JOIN_TIMEOUT = 0.3  # timeout for joining a thread [s], longer than its transfers take

STUCK = 2.0 * WRITE_TIMEOUT
"""Duration of a transfer after which a report is considered rejected [s]."""

REPORT = 5
"""Length of a published report: counts x and y, buttons, arrival time, time of validity [s].

The position is current until the time of validity.
"""
HEARD = 4
"""Index of the last one."""

BEGUN, ENDED = 0, 1
"""Indices of `Streaming.trouble`: start of the pending output report, and flag of an ended thread."""


class Streaming:
    """Threads of a stick, and the memory that they share with the tick.

    Parameters
    ----------
    transport : Transport
        Open connection.
    session : PidSession
        Started session, whose effects play.
    layout : InputLayout
        Layout of the input reports.
    keep_alive : float
        Interval of the restarts of an effect, and age at which a command expires [s].

    Attributes
    ----------
    layout : InputLayout
        Layout of the input reports.
    full_scale : int
        Number of steps of a level between 0 and 1.
    sample : Sample or None
        Latest input report.
    heard : float
        Time until which `sample` is the current position [s, perf_counter].
    reports : Latch
        `sample` and `heard` for the tick: `REPORT` numbers.
    levels : Latch
        Command of the tick (`devices.joystick.streaming.Forces`).
    wake : Wake
        Event that the tick sets after a new command.
    trouble : (2,) float array
        Start of the pending output report, inf if none [s, perf_counter]; 1 once a thread has ended.
    """

    def __init__(self, transport: Transport, session: PidSession, layout: InputLayout, keep_alive: float) -> None:
        self._transport = transport
        self._session = session
        self.layout = layout
        self.full_scale = session.playbook.full_scale
        if len(session.blocks) < len(layout.usages):
            self._forces: Forces = TurnedForces(session.playbook, session.blocks[0], keep_alive, session.described[0])
        else:
            self._forces = Forces(session.playbook, session.blocks, keep_alive)
        self._watch = Watch(transport, layout)
        self.sample: Sample | None = None
        self.heard = 0.0
        self.reports, self.levels, self.wake = Latch(REPORT), self._forces.levels, Wake()
        self.trouble = np.array((math.inf, 0.0))
        self._fault: Exception | None = None
        self._ready = threading.Event()
        self._positions = 0
        self._stopping = threading.Event()
        self._timed_out = False
        self._threads = [
            threading.Thread(target=self._guarded, args=(loop,), name=f"stick {name}", daemon=True)
            for name, loop in (("reader", self._read_on), ("writer", self._write_on), ("watch", self._watch_on))
        ]

    # --- interface of the tick ----------------------------------------------------------------------------------------

    @property
    def fault(self) -> Exception | None:
        """Error that ended one of the threads, or that blocks the writer; None if all is well."""
        return self.loss() if self.trouble[ENDED] or time.perf_counter() - self.trouble[BEGUN] > STUCK else None

    def loss(self) -> Exception:
        """Return the error to raise after a tick has detected an ended thread or a report that timed out."""
        if self._fault is None:
            self._fault = failure(OSError(errno.ETIMEDOUT, "not in time"), "an output report")
        self.trouble[ENDED] = 1.0
        return self._fault

    # --- start and stop -----------------------------------------------------------------------------------------------

    def start(self, patience: float) -> None:
        """Start the threads and wait for a current position for at most `patience` [s].

        Raises
        ------
        DeviceOpenError
            If no position arrived.
        """
        self.sample = self._watch.begin()
        for thread in self._threads:
            thread.start()
        self._ready.wait(patience)
        if self.sample is None:
            reason = self.fault or "it sends no positions; move its handle while it is being opened."
            raise DeviceOpenError(f"the stick could not be opened: {reason}")

    def start_once(self, level: float) -> None:
        """Start a force along the first axis without restarts, for a stick that gets no other commands.

        Raises
        ------
        TransferError
            If it was not accepted.
        """
        book, block = self._session.playbook, self._session.blocks[0]
        report = bytearray(book.constant(block))
        book.magnitude.put(report, round(level * self.full_scale))
        self._session.write(bytes(report))
        self._session.write(book.operation(block, use.START))

    def stop(self) -> None:
        """Stop the threads. Pending commands are discarded."""
        self._stopping.set()
        self.wake.call()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(_JOIN_TIMEOUT)

    def _guarded(self, loop: Callable[[], None]) -> None:
        """Run the loop of a thread and store the exception that ends it."""
        try:
            loop()
        except Exception as error:
            self._fault = self._fault or error
            self.trouble[ENDED] = 1.0
            self._ready.set()

    # --- reader -------------------------------------------------------------------------------------------------------

    def _read_on(self) -> None:
        read, whole = self._transport.read, True
        while not self._stopping.is_set():
            data = read(READ_TIMEOUT)
            whole = self._process(data, time.perf_counter(), whole)

    def _process(self, data: bytes | None, now: float, whole: bool) -> bool:
        """Process the result of a read that ended at `now` [s]; None if there was no report.

        Return True if the last report with a position was complete: it is then the current position.
        """
        if data is not None and self.layout.is_state(data):
            self._watch.handle_state(data)
        elif data is not None and self.layout.is_position(data):
            whole = len(data) >= self.layout.report.length
            if whole:
                self.sample = self.layout.sample(data, now)
                self._positions += 1
                if self._positions > 1:  # the first report may have waited in the device
                    self._ready.set()
        if whole:
            self.heard = now
            if self.sample is not None:
                self.reports.publish(*self.sample, now)
        if data is None and self.sample is not None:
            self._ready.set()
        return whole

    # --- writer -------------------------------------------------------------------------------------------------------

    def _write_on(self) -> None:
        while not self._stopping.is_set():
            self.wake.wait(self._forces.idle())
            reports = self._forces.reports()
            report = next(reports, None)
            while report is not None and not self._stopping.is_set():
                try:
                    report = reports.send(self._write(report))
                except StopIteration:
                    break

    def _write(self, report: bytes) -> bool:
        """Send a report. After one timeout, another report with a newer value may follow."""
        self.trouble[BEGUN] = time.perf_counter()
        try:
            self._session.write(report)
        except TransferError as error:
            if error.trouble is not Trouble.TIMEOUT or self._timed_out:
                raise
            self._timed_out = True
            return False
        finally:
            self.trouble[BEGUN] = math.inf
        self._timed_out = False
        return True

    # --- watch --------------------------------------------------------------------------------------------------------

    def _watch_on(self) -> None:
        while not self._stopping.wait(PERIOD):
            if self.sample is not None:
                self._watch.check(self.sample, self._forces.on)
