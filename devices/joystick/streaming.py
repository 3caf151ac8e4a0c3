"""Threads for force output, position input and monitoring, so that the tick never waits for the bus.

The tick and the threads share two latches (`devices.common.latch`), which hold only the latest value. A new force
replaces one that was not sent yet, so that no queue builds up and the output is as recent as possible. The tick reads
the latches without Python (`devices.joystick.kernels`), as well as two numbers that report failures of the threads.

*Writer.* `devices.joystick.forces` selects the reports to send. If the tick has died while the threads are alive, zero
is sent after ``keep_alive``. If the process has died, the device ends the force after its effect duration. A stick that
does not accept two consecutive reports in time has failed.

*Reader.* Every input report is stamped on arrival. A stick may send nothing while nothing moves. A read that times out
shows that the device was polled in every frame and had no news: the last position is then as current as a new report.
After a failed read or a truncated report this does not hold, because its content is lost: the age of the last position
grows until a complete report arrives.

*Watch.* A separate thread polls the stick occasionally (`devices.joystick.watching`), because answers take time. It
detects a stick that has stopped reporting although its handle moves, or has lost its effects.
"""

from __future__ import annotations

import errno
import math
import threading
import time
from collections.abc import Callable

import numpy as np

from devices.common.bus import TransferError, Trouble
from devices.common.latch import Latch, Wake
from devices.joystick.forces import Forces, TurnedForces
from devices.joystick.hid import usages as use
from devices.joystick.inputs import InputLayout, Sample
from devices.joystick.session import PidSession
from devices.joystick.usb.transport import WRITE_TIMEOUT, Transport, failure
from devices.joystick.watching import PERIOD, Watch
from haptics.errors import DeviceOpenError

READ_TIMEOUT = 0.01
"""Timeout of a read [s], and interval at which silence is confirmed to come from a live device."""

JOIN_TIMEOUT = 0.3
"""Timeout for joining a thread [s], longer than its transfers take."""

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


def _forces(session: PidSession, layout: InputLayout, keep_alive: float) -> Forces:
    """Return the force output; with one effect for two axes the direction is streamed as well."""
    if len(session.blocks) < len(layout.usages):
        return TurnedForces(session.playbook, session.blocks[0], keep_alive, session.described[0])
    return Forces(session.playbook, session.blocks, keep_alive)


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
        Command of the tick (`devices.joystick.forces.Forces`).
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
        self._forces = _forces(session, layout, keep_alive)
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
            what = self.fault or "it sends no positions; move its handle while it is being opened."
            raise DeviceOpenError(f"the stick could not be opened: {what}")

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
                thread.join(JOIN_TIMEOUT)

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
            now = time.perf_counter()
            if data is not None:
                whole = self._process_report(data, now, whole)
            if whole:
                self._confirm_position(now)
            if data is None and self.sample is not None:
                self._ready.set()

    def _confirm_position(self, now: float) -> None:
        """Publish to the tick that the latest report is the current position until `now` [s]."""
        self.heard = now
        if self.sample is not None:
            self.reports.publish(*self.sample, now)

    def _process_report(self, data: bytes, now: float, whole: bool) -> bool:
        """Process an input report; return True if the last report with a position was complete."""
        if self.layout.is_state(data):
            self._watch.handle_state(data)
        elif self.layout.is_position(data):
            whole = len(data) >= self.layout.report.length
            if whole:
                self.sample = self.layout.sample(data, now)
                self._positions += 1
                if self._positions > 1:  # the first report may have waited in the device
                    self._ready.set()
        return whole

    # --- writer -------------------------------------------------------------------------------------------------------

    def _write_on(self) -> None:
        while not self._stopping.is_set():
            self.wake.wait(self._forces.idle())
            self._exchange()

    def _exchange(self) -> None:
        """Send the pending reports, unless the threads are being stopped."""
        reports = self._forces.reports()
        report = next(reports, None)
        while report is not None and not self._stopping.is_set():
            try:
                report = reports.send(self._write(report))
            except StopIteration:
                return

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
