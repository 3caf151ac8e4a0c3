"""Main function of the servo process.

The process creates the servo and runs it. If the application dies, is stopped, or sends no heartbeat for
`haptics.servo.job.SILENCE`, the device is brought to its safe output. If it has died, this process completes the
recording from the trace.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from haptics.clock import Clock, WallClock
from haptics.errors import DeviceFault, HapticError, RecordingError
from haptics.kernel_cache import COMPILATION
from haptics.recording.json_files import append_line
from haptics.recording.recorder import salvage
from haptics.recording.recording import EVENTS
from haptics.servo.arrivals import Arrivals
from haptics.servo.job import CONTROL, SILENCE, Job
from haptics.servo.lane import Lane
from haptics.servo.loop import AT_ONCE
from haptics.servo.realtime import Usage, enter, granted_nothing
from haptics.servo.servo import Servo
from haptics.servo.standby import FOR_THE_APPLICATION
from haptics.servo.supervision import SETTINGS, Supervision
from haptics.trace import Reader, Trace

_LOOK_AGAIN = 1e-4
"""Interval at which a run in simulated time checks the progress of its recorder [s]."""


def serve(job: Job, connection: Connection, programs: Connection) -> None:
    """Run `job` in the servo process and report all events through `connection`.

    Programs received through `programs` replace the present one during the run (`haptics.servo.arrivals`). After the
    run the process waits until the application has all rows; if the application dies before, this process completes the
    recording.
    """
    for number in FOR_THE_APPLICATION:
        signal.signal(number, signal.SIG_IGN)
    trace: Trace | None = None
    try:
        trace = Trace.attach(job.paths.trace.path)
        _run(job, trace, connection, programs)
    except HapticError as error:
        send(connection, ("error", error))
    if not _dismissed(connection):
        job.paths.remove_for_the_dead()
        with contextlib.suppress(OSError, RecordingError):  # no process is left to report to
            salvage(job.recording, Reader(trace) if trace is not None else None)


def _run(job: Job, trace: Trace, connection: Connection, programs: Connection) -> None:
    """Create the servo and run it to its end, or return if the application dies before the opening."""
    parent = multiprocessing.parent_process()
    application = parent.pid if parent is not None and parent.pid is not None else os.getppid()
    COMPILATION.watcher = lambda number, about: send(connection, ("compiling", (number, about)))
    servo = _build(job, trace, application)
    servo.warm_up()
    send(connection, ("compiled", None))
    Arrivals(programs, job, servo).start()
    signal.signal(signal.SIGTERM, lambda *_: servo.stop())
    # Another thread runs the loop: Python handles signals in this thread, and compiled code would block that.
    with ThreadPoolExecutor(1, "haptics loop") as threads:
        threads.submit(_serve_device, job, servo, application, connection).result()


def _serve_device(job: Job, servo: Servo, application: int, connection: Connection) -> None:
    """Run the servo in this thread, with real-time settings if it follows the wall clock."""
    real_time = enter(job.real_time) if job.live else granted_nothing()
    if os.getppid() != application:
        return
    recorder = None if job.live else _Recorder(servo, Lane(job.paths.control.path, CONTROL), application)
    send(connection, ("opening", None))
    used = Usage.now()

    def ready() -> None:
        nonlocal used
        used = Usage.now()
        if facts := getattr(servo.device, "facts", None):
            send(connection, ("device", dict(facts)))
        send(connection, ("ready", real_time.as_dict()))

    try:
        end = servo.run(job.duration, ready, recorder)
    except DeviceFault as error:
        error.used = used.until_now()
        _journal_end(job.recording, servo, "fault", "".join(traceback.format_exception(error)))
        raise
    _journal_end(job.recording, servo, end)
    send(connection, ("ended", (str(end), used.until_now())))


class _Recorder:
    """Callback that makes a run in simulated time wait for its recorder.

    It ends the run if the application is lost.
    """

    def __init__(self, servo: Servo, control: Lane, application: int) -> None:
        self._servo, self._application = servo, application
        self._recorded, self._heartbeat = control.record["recorded"], control.record["heartbeat_ns"]

    def __call__(self) -> None:
        trace = self._servo.trace
        while trace.count - self._recorded[0] > trace.capacity - 2 * AT_ONCE:
            silent = time.monotonic_ns() - self._heartbeat[0] > SILENCE * 1e9
            if silent or os.getppid() != self._application:
                self._servo.stop()
                return
            time.sleep(_LOOK_AGAIN)


def _dismissed(connection: Connection) -> bool:
    """Wait until the application has dismissed the servo; return False if the application has died."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        connection.recv()
    except (EOFError, OSError):
        return False
    return True


def _journal_end(folder: Path, servo: Servo, event: str, details: str | None = None) -> None:
    """Log when the end of the run was detected and when the device had its safe output."""
    line = {
        "event": str(event),
        "ticks": servo.trace.count,
        "noticed_monotonic_ns": servo.noticed_ns,
        "safe_output_monotonic_ns": servo.safe_output_ns,
        "details": details,
    }
    with contextlib.suppress(OSError):  # a deleted folder must not hide the result of the run
        append_line(folder / EVENTS, line)


def _build(job: Job, trace: Trace, application: int) -> Servo:
    period = job.element.period
    clock = WallClock(period, job.real_time.spin) if job.live else Clock(period)
    control, settings = Lane(job.paths.control.path, CONTROL), Lane(job.paths.settings.path, SETTINGS)
    supervision = Supervision(control, settings, application if job.live else 0)
    return Servo(job.factory(clock), job.element, trace, clock=clock, limits=job.limits, supervision=supervision)


def send(connection: Connection, message: Any) -> None:
    """Send a message to the other process, ignoring errors if that process has ended."""
    with contextlib.suppress(OSError):  # the other process has ended
        connection.send(message)
