"""The servo process from the inside: build everything, run it, and leave nothing undone if the application is gone.

If the application dies, is stopped, or is silent for longer than `haptics.servo.job.SILENCE`, the device is brought to
its safe output; of an application that has died this process completes the recording from the trace.
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
"""A run without a clock looks so often whether its recorder has kept up [s]."""


def serve(job: Job, connection: Connection, programs: Connection) -> None:
    """Run `job` in the servo process. Everything that happens is reported through `connection`.

    What comes through `programs` takes over in mid-run (`haptics.servo.arrivals`). After the run the process stays
    until the application has all of it; if that dies first, this one completes the recording.
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
        with contextlib.suppress(OSError, RecordingError):  # there is nobody left to tell
            salvage(job.recording, Reader(trace) if trace is not None else None)


def _run(job: Job, trace: Trace, connection: Connection, programs: Connection) -> None:
    """Build everything and run it to its end; an application that dies before the device is open spares it that."""
    parent = multiprocessing.parent_process()
    application = parent.pid if parent is not None and parent.pid is not None else os.getppid()
    COMPILATION.watcher = lambda number, about: send(connection, ("compiling", (number, about)))
    servo = _build(job, trace, application)
    servo.warm_up()
    send(connection, ("compiled", None))
    Arrivals(programs, job, servo).start()
    signal.signal(signal.SIGTERM, lambda *_: servo.stop())
    # Not in this thread: in a loop without Python it could not hear signals.
    with ThreadPoolExecutor(1, "haptics loop") as threads:
        threads.submit(_serve_device, job, servo, application, connection).result()


def _serve_device(job: Job, servo: Servo, application: int, connection: Connection) -> None:
    """Run the servo in this thread, as punctually as it may be where there is a clock to follow."""
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
    """Lets a run without a clock wait for the application, which records it; without one the run ends."""

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
    """Wait for the application's word that it has the whole run; false if it has died, with all its threads."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        connection.recv()
    except (EOFError, OSError):
        return False
    return True


def _journal_end(folder: Path, servo: Servo, event: str, details: str | None = None) -> None:
    """Write down when the end was noticed and when the device had its safe output."""
    line = {
        "event": str(event),
        "ticks": servo.trace.count,
        "noticed_monotonic_ns": servo.noticed_ns,
        "safe_output_monotonic_ns": servo.safe_output_ns,
        "details": details,
    }
    with contextlib.suppress(OSError):  # a folder that is gone must not hide how the run went
        append_line(folder / EVENTS, line)


def _build(job: Job, trace: Trace, application: int) -> Servo:
    period = job.element.period
    clock = WallClock(period, job.real_time.spin) if job.live else Clock(period)
    control, settings = Lane(job.paths.control.path, CONTROL), Lane(job.paths.settings.path, SETTINGS)
    supervision = Supervision(control, settings, application if job.live else 0)
    return Servo(job.factory(clock), job.element, trace, clock=clock, limits=job.limits, supervision=supervision)


def send(connection: Connection, message: Any) -> None:
    """Say something to the other side; one that is gone hears nothing."""
    with contextlib.suppress(OSError):  # an application that is gone reads nothing
        connection.send(message)
