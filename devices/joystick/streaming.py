"""Forces out, positions in, and a watch, each by a thread of its own, so that the tick never waits for the bus.

Between the tick and the threads lie two latches (`devices.common.latch`), which hold the latest value only. A new force
replaces one that was not sent yet: what goes out is never older than it must be, and there is no queue that could fill
up. The tick needs no Python to look at them (`devices.joystick.kernels`), nor to see what troubles the threads: two
plain numbers.

*Writing.* What is sent, and when, `devices.joystick.forces` decides: a tick that has died, with the threads still
alive, leaves no force on (zero is sent after ``keep_alive``), and of a process that has died the device's own duration
takes the force away. A stick that does not take two reports in time, one after the other, has failed.

*Reading.* Every input report is stamped when it arrives. A stick may be silent while nothing moves. A read that ends by
its timeout says that the device was asked in every frame and had nothing new: the last position is as good then as a
new report. A read that fails says nothing of the kind, nor does silence after a report that was cut short: what it had
to say is lost, and the last position grows old until a whole one comes.

*Watching.* That a stick has stopped to report although its handle moves, or has forgotten its effects, is found out by
asking it now and then (`devices.joystick.watching`), by a thread of its own: answers take their time.
"""

from __future__ import annotations

import errno
import math
import threading
import time
from collections.abc import Callable

import numpy as np

from devices.common.bus.transfers import TransferError, Trouble
from devices.common.latch import Latch
from devices.common.waking import Wake
from devices.joystick.forces import Forces, TurnedForces
from devices.joystick.hid import usages as use
from devices.joystick.inputs import InputLayout, Sample
from devices.joystick.session import PidSession
from devices.joystick.usb.transport import WRITE_TIMEOUT, Transport, failure
from devices.joystick.watching import PERIOD, Watch
from haptics.errors import DeviceOpenError

READ_TIMEOUT = 0.01
"""A read waits for a report for so long [s]; silence is noticed to be none of the device's death as often."""

JOIN_TIMEOUT = 0.3
"""A thread is waited for at the end for so long [s]: longer than its transfers take."""

STUCK = 2.0 * WRITE_TIMEOUT
"""A report that has been under way for so long will not be taken [s]."""

REPORT = 5
"""Numbers of a report: counts x and y, buttons, when it arrived and until when that was the present position [s]."""
HEARD = 4
"""Which of them is the last one."""

BEGUN, ENDED = 0, 1
"""What troubles the threads: when the report began that is under way [s, perf_counter], and whether one has ended."""


def _forces(session: PidSession, layout: InputLayout, keep_alive: float) -> Forces:
    """Return what is sent of a force: with one effect for two axes its direction, too."""
    if len(session.blocks) < len(layout.usages):
        return TurnedForces(session.playbook, session.blocks[0], keep_alive, session.described[0])
    return Forces(session.playbook, session.blocks, keep_alive)


class Streaming:
    """The threads, and what lies between them and the tick.

    Parameters
    ----------
    transport : Transport
        The open connection.
    session : PidSession
        Started: its effects play.
    layout : InputLayout
        Of the input reports.
    keep_alive : float
        An effect is started anew after this long; a command older than this counts as none [s].

    Attributes
    ----------
    layout : InputLayout
        The same.
    full_scale : int
        Number of steps of a level between 0 and 1.
    sample : Sample or None
        The latest input report.
    heard : float
        Until when that was the present position [s, perf_counter].
    reports : Latch
        The same for the tick: `REPORT` numbers.
    levels : Latch
        What the tick commands (`devices.joystick.forces.Forces`).
    wake : Wake
        To be called when it has.
    trouble : (2,) float array
        When the output report began that is under way, inf for none [s, perf_counter]; 1 once a thread has ended.
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

    # --- from the tick -----------------------------------------------------------------------------------------------

    @property
    def fault(self) -> Exception | None:
        """What ended one of the threads, or keeps the writer from its work."""
        return self.loss() if self.trouble[ENDED] or time.perf_counter() - self.trouble[BEGUN] > STUCK else None

    def loss(self) -> Exception:
        """Return what to say when a tick has seen that a thread has ended, or a report was not taken in time."""
        if self._fault is None:
            self._fault = failure(OSError(errno.ETIMEDOUT, "not in time"), "an output report")
        self.trouble[ENDED] = 1.0
        return self._fault

    # --- beginning and end -------------------------------------------------------------------------------------------

    def start(self, patience: float) -> None:
        """Start the threads and wait for a position that is not an old one for at most `patience` [s].

        Raises
        ------
        DeviceOpenError
            If none came.
        """
        self.sample = self._watch.begin()
        for thread in self._threads:
            thread.start()
        self._ready.wait(patience)
        if self.sample is None:
            what = self.fault or "it sends no positions; move its handle while it is being opened."
            raise DeviceOpenError(f"the stick could not be opened: {what}")

    def start_once(self, level: float) -> None:
        """Start a force along the first axis that nobody renews; for a stick that gets no commands.

        Raises
        ------
        TransferError
            If it was not taken.
        """
        book, block = self._session.playbook, self._session.blocks[0]
        report = bytearray(book.constant(block))
        book.magnitude.put(report, round(level * self.full_scale))
        self._session.write(bytes(report))
        self._session.write(book.operation(block, use.START))

    def stop(self) -> None:
        """End the threads; what they had not sent is not sent any more."""
        self._stopping.set()
        self.wake.call()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(JOIN_TIMEOUT)

    def _guarded(self, loop: Callable[[], None]) -> None:
        """Run a thread's loop; what ends it is kept for the tick."""
        try:
            loop()
        except Exception as error:
            self._fault = self._fault or error
            self.trouble[ENDED] = 1.0
            self._ready.set()

    # --- the reader --------------------------------------------------------------------------------------------------

    def _read_on(self) -> None:
        read, whole = self._transport.read, True
        while not self._stopping.is_set():
            data = read(READ_TIMEOUT)
            now = time.perf_counter()
            if data is not None:
                whole = self._take(data, now, whole)
            if whole:
                self._hear(now)
            if data is None and self.sample is not None:
                self._ready.set()

    def _hear(self, now: float) -> None:
        """Tell the tick that the latest report is the present position until `now` [s]."""
        self.heard = now
        if self.sample is not None:
            self.reports.publish(*self.sample, now)

    def _take(self, data: bytes, now: float, whole: bool) -> bool:
        """Take an input report; return whether the last one with a position was whole."""
        if self.layout.is_state(data):
            self._watch.hear(data)
        elif self.layout.is_position(data):
            whole = len(data) >= self.layout.report.length
            if whole:
                self.sample = self.layout.sample(data, now)
                self._positions += 1
                if self._positions > 1:  # the first one may have waited in the device for long
                    self._ready.set()
        return whole

    # --- the writer --------------------------------------------------------------------------------------------------

    def _write_on(self) -> None:
        while not self._stopping.is_set():
            self.wake.wait(self._forces.idle())
            self._exchange()

    def _exchange(self) -> None:
        """Send what there is to send; nothing any more once the end has begun."""
        reports = self._forces.reports()
        report = next(reports, None)
        while report is not None and not self._stopping.is_set():
            try:
                report = reports.send(self._write(report))
            except StopIteration:
                return

    def _write(self, report: bytes) -> bool:
        """Send a report; one that is not taken in time may be followed by another, by then with a newer value."""
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

    # --- the watch ---------------------------------------------------------------------------------------------------

    def _watch_on(self) -> None:
        while not self._stopping.wait(PERIOD):
            if self.sample is not None:
                self._watch.look(self.sample, self._forces.on)
