"""Forces out and positions in, each by a thread of its own, so that the tick never waits for the bus.

Between the tick and the threads lie two slots that hold the latest value only. A new force replaces one that was not
sent yet: what goes out is never older than it must be, and there is no queue that could fill up.

*Writing.* What is sent, and when, `devices.joystick.forces` decides: a tick that has died, with the threads still
alive, leaves no force on (zero is sent after ``keep_alive``), and of a process that has died the device's own duration
takes the force away. A stick that does not take two reports in time, one after the other, has failed.

*Reading.* Every input report is stamped when it arrives. A stick may be silent while nothing moves. A read that ends by
its timeout says that the device was asked in every frame and had nothing new: the last position is as good then as a
new report. A read that fails says nothing of the kind, nor does silence after a report that was cut short: what it had
to say is lost, and the last position grows old until a whole one comes. A stick that stops reporting although its
handle moves, and otherwise answers, cannot be told from one at rest; to the element it is a handle that stands still.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from devices.joystick import usages as use
from devices.joystick.descriptor import Field, ReportDescriptor, ReportType
from devices.joystick.forces import Forces
from devices.joystick.report import ReportError, Value, decode
from devices.joystick.session import PidSession
from devices.joystick.transport import WRITE_TIMEOUT, TransferError, Transport, Trouble, failure
from haptics.errors import DeviceOpenError

READ_TIMEOUT = 0.01
"""A read waits for a report for so long [s]; silence is noticed to be none of the device's death as often."""

JOIN_TIMEOUT = 0.2
"""A thread is waited for at the end for so long [s]: longer than any single transfer."""

STUCK = 2.0 * WRITE_TIMEOUT
"""A report that has been under way for so long will not be taken [s]."""

_SHOWN_BUTTONS = 31


class Sample(NamedTuple):
    """One input report: counts of the two axes, buttons (bit n is button n + 1), when it arrived [s, perf_counter]."""

    x: int
    y: int
    buttons: int
    time: float


class InputLayout:
    """Where position, buttons and the device's own state are in its input reports.

    Parameters
    ----------
    descriptor : ReportDescriptor
        What the device says of itself.
    usage_x, usage_y : int
        The two axes.

    Raises
    ------
    DeviceOpenError
        If no report has both axes.
    """

    def __init__(self, descriptor: ReportDescriptor, usage_x: int, usage_y: int) -> None:
        report = descriptor.with_usage(ReportType.INPUT, usage_x)
        if report is None or report.field(usage_y) is None:
            raise DeviceOpenError(
                f"the stick has no input report with the axes {usage_x:#010x} and {usage_y:#010x}: calibrate it anew."
            )
        self.report = report
        self.state = descriptor.of(ReportType.INPUT, use.STATE_REPORT)
        self._x, self._y = Value(report, usage_x), Value(report, usage_y)
        self._buttons = _bits(report.field(use.BUTTON_1))

    def sample(self, data: bytes, now: float) -> Sample:
        """Return what an input report says that arrived at `now` [s]."""
        start, end, shift, mask = self._buttons
        buttons = int.from_bytes(data[start:end], "little") >> shift & mask
        return Sample(self._x.get(data), self._y.get(data), buttons, now)


def _bits(field: Field | None) -> tuple[int, int, int, int]:
    """Return where a row of single bits is: first byte, end, shift and mask; nothing if there is none."""
    if field is None or field.size != 1 or field.array:
        return 0, 0, 0, 0
    count = min(field.count, _SHOWN_BUTTONS)
    start, shift = divmod(field.offset, 8)
    return start, -(-(field.offset + count) // 8), shift, (1 << count) - 1


class Streaming:
    """Both threads and the slots between them and the tick.

    Parameters
    ----------
    transport : Transport
        The open connection.
    session : PidSession
        Started: its two effects play.
    layout : InputLayout
        Of the input reports.
    keep_alive : float
        An effect is started anew after this long; a command older than this counts as none [s].
    report_interval : float
        Output reports are at least this far apart [s].

    Attributes
    ----------
    sample : Sample or None
        The latest input report.
    heard : float
        Until when that was the present position [s, perf_counter].
    state : mapping
        What the device last said of itself, usage to number: whether its actuators are enabled, have power ...
    """

    def __init__(
        self,
        transport: Transport,
        session: PidSession,
        layout: InputLayout,
        keep_alive: float,
        report_interval: float = 0.0,
    ) -> None:
        self._transport = transport
        self._layout = layout
        self._forces = Forces(session.playbook, session.blocks, keep_alive)
        self._report_interval = report_interval
        self.sample: Sample | None = None
        self.heard = 0.0
        self.state: Mapping[int, int | tuple[int, ...]] = {}
        self._fault: Exception | None = None
        self._ready = threading.Event()
        self._positions = 0
        self._stopping = False
        self._wake = _thread.allocate_lock()  # held: nothing new. The tick's release costs a fraction of a microsecond
        self._wake.acquire()
        self._timed_out = False
        self._begun = math.inf
        self._threads = [
            threading.Thread(target=self._guarded, args=(loop,), name=f"stick {name}", daemon=True)
            for name, loop in (("reader", self._read_on), ("writer", self._write_on))
        ]

    # --- from the tick -----------------------------------------------------------------------------------------------

    def command(self, level_x: float, level_y: float) -> None:
        """Leave the levels of the two effects, -1 to 1, for the writer."""
        self._forces.command(level_x, level_y)
        if self._wake.locked():
            self._wake.release()

    @property
    def fault(self) -> Exception | None:
        """What ended one of the threads, or keeps the writer from its work."""
        if self._fault is None and time.perf_counter() - self._begun > STUCK:
            self._fault = failure(OSError(errno.ETIMEDOUT, "not in time"), "an output report")
        return self._fault

    # --- beginning and end -------------------------------------------------------------------------------------------

    def start(self, patience: float) -> None:
        """Start both threads and wait for a position that is not an old one for at most `patience` [s].

        Raises
        ------
        DeviceOpenError
            If none came.
        """
        self._ask()
        for thread in self._threads:
            thread.start()
        self._ready.wait(patience)
        if self.sample is None:
            what = self.fault or "it sends no positions; move its handle while it is being opened."
            raise DeviceOpenError(f"the stick could not be opened: {what}")

    def _ask(self) -> None:
        """Ask where the handle is: at rest a stick may send nothing. Not every one can be asked."""
        report = self._layout.report
        with contextlib.suppress(TransferError):
            data = self._transport.get_input(report.id, report.length)
            if len(data) >= report.length:
                self.sample = self._layout.sample(data, time.perf_counter())

    def stop(self) -> None:
        """End both threads; what they had not sent is not sent any more."""
        self._stopping = True
        with contextlib.suppress(RuntimeError):  # awake already
            self._wake.release()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(JOIN_TIMEOUT)

    def _guarded(self, loop: Callable[[], None]) -> None:
        """Run a thread's loop; what ends it is kept for the tick."""
        try:
            loop()
        except Exception as error:
            self._fault = self._fault or error
            self._ready.set()

    # --- the reader --------------------------------------------------------------------------------------------------

    def _read_on(self) -> None:
        read, whole = self._transport.read, True
        while not self._stopping:
            data = read(READ_TIMEOUT)
            now = time.perf_counter()
            if data is not None:
                whole = self._take(data, now, whole)
            elif self.sample is not None:
                self._ready.set()
            if whole:
                self.heard = now

    def _take(self, data: bytes, now: float, whole: bool) -> bool:
        """Take an input report; return whether the last one with a position was whole."""
        report, state = self._layout.report, self._layout.state
        number = data[0] if report.id and data else 0
        if state is not None and number == state.id != report.id:
            with contextlib.suppress(ReportError):
                self.state = decode(state, data)
        elif number == report.id or not data:
            whole = len(data) >= report.length
            if whole:
                self.sample = self._layout.sample(data, now)
                self._positions += 1
                if self._positions > 1:  # the first one may have waited in the device for long
                    self._ready.set()
        return whole

    # --- the writer --------------------------------------------------------------------------------------------------

    def _write_on(self) -> None:
        while not self._stopping:
            self._wake.acquire(timeout=self._forces.idle())
            if not self._stopping:
                self._exchange()

    def _exchange(self) -> None:
        """Send what there is to send."""
        reports = self._forces.reports()
        report = next(reports, None)
        while report is not None:
            try:
                report = reports.send(self._write(report))
            except StopIteration:
                return

    def _write(self, report: bytes) -> bool:
        """Send a report; one that is not taken in time may be followed by another, by then with a newer value."""
        self._begun = time.perf_counter()
        try:
            self._transport.write(report)
        except TransferError as error:
            if error.trouble is not Trouble.TIMEOUT or self._timed_out:
                raise
            self._timed_out = True
            return False
        finally:
            self._begun = math.inf
        self._timed_out = False
        if self._report_interval:
            time.sleep(self._report_interval)
        return True
