"""The servo process from the inside: build everything, run it, and leave nothing undone if the application is gone.

If the application dies, is stopped, or is silent for longer than `haptics.job.SILENCE`, the device is brought to its
safe output; of an application that has died this process completes the recording from the trace.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from haptics.clock import WallClock
from haptics.element_kernels import PARAMETERS
from haptics.errors import DeviceFault, HapticError, RecordingError
from haptics.job import CONTROL, FOR_THE_APPLICATION, KEY_LASTS, LOOK_EVERY, SILENCE, Job
from haptics.kernel_cache import COMPILATION
from haptics.lane import Lane
from haptics.realtime import ProcessState, Usage, enter
from haptics.recording import EVENTS, append_line, salvage
from haptics.rendering import Rendering
from haptics.servo import End, Servo
from haptics.trace import Reader, Trace


class _Watch:
    """Notices a stop request and an application that is dead, stopped or silent; mostly a fraction of a microsecond."""

    def __init__(self, control: Lane, application: int, period: float) -> None:
        self._state = ProcessState(application)
        self._patience = self._every = max(int(LOOK_EVERY / period), 1)
        self._heartbeat = control.record["heartbeat_ns"]
        self._stop = control.record["stop"]
        self._parent = application
        self._last_heartbeat, self._silent_ticks = 0, 0
        self._silent_at = math.ceil(SILENCE / period)

    def __call__(self) -> End | None:
        if self._stop[0]:
            return End.STOPPED
        lost = self._silent() or os.getppid() != self._parent or self._look()
        return End.APPLICATION_LOST if lost else None

    def _silent(self) -> bool:
        """Count ticks, not time: what this process slept through, with the whole machine, is nobody's silence."""
        heartbeat = self._heartbeat[0]
        if heartbeat != self._last_heartbeat:
            self._last_heartbeat, self._silent_ticks = heartbeat, 0
            return False
        self._silent_ticks += 1
        return self._silent_ticks > self._silent_at

    def _look(self) -> bool:
        """Ask the kernel, now and then, whether the application still lives."""
        self._patience -= 1
        if self._patience > 0:
            return False
        self._patience = self._every
        return self._state.lost


class _Key:
    """Tells whether the person holds the dead-man's key."""

    def __init__(self, control: Lane) -> None:
        self._pressed = control.record["key_ns"]
        self._lasts_ns = int(KEY_LASTS * 1e9)

    def __call__(self) -> bool:
        return bool(time.monotonic_ns() - self._pressed[0] < self._lasts_ns)


class _NewSettings:
    """Takes over new parameters at the top of a tick; otherwise compares one number."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    def __call__(self, rendering: Rendering) -> None:
        if self._lane.version != rendering.version:
            latest = self._lane.read()
            if latest is not None:
                version, parameters = latest
                rendering.configure(parameters, version)


def serve(job: Job, connection: Connection) -> None:
    """Run `job`; the target of the servo process. Everything that happens is reported through `connection`.

    After the run the process stays until the application has all of it; if that dies first, this one completes the
    recording.
    """
    for number in FOR_THE_APPLICATION:
        signal.signal(number, signal.SIG_IGN)
    trace: Trace | None = None
    try:
        trace = Trace.attach(job.paths.trace.path)
        _run(job, trace, connection)
    except HapticError as error:
        send(connection, ("error", error))
    if not _dismissed(connection):
        job.paths.remove_for_the_dead()
        with contextlib.suppress(OSError, RecordingError):  # there is nobody left to tell
            salvage(job.recording, Reader(trace) if trace is not None else None)


def _run(job: Job, trace: Trace, connection: Connection) -> None:
    """Build everything and run it to its end; an application that dies before the device is open spares it that."""
    parent = multiprocessing.parent_process()
    application = parent.pid if parent is not None and parent.pid is not None else os.getppid()
    COMPILATION.watcher = lambda number, about: send(connection, ("compiling", (number, about)))
    servo = _build(job, trace, application)
    servo.warm_up()
    signal.signal(signal.SIGTERM, lambda *_: servo.stop())
    real_time = enter(job.real_time)
    if os.getppid() != application:
        return
    send(connection, ("opening", None))
    used = Usage.now()
    try:
        end = servo.run(job.duration, lambda: send(connection, ("ready", real_time.as_dict())))
    except DeviceFault as error:
        error.used = used.until_now()
        _journal_end(job.recording, servo, "fault", "".join(traceback.format_exception(error)))
        raise
    _journal_end(job.recording, servo, end)
    send(connection, ("ended", (str(end), used.until_now())))


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
    clock = WallClock(period, job.real_time.spin)
    lane = Lane(job.paths.settings.path, PARAMETERS)
    control = Lane(job.paths.control.path, CONTROL)
    return Servo(
        job.factory(clock),
        job.element,
        trace,
        clock=clock,
        limits=job.limits,
        supervisor=_Watch(control, application, period),
        before_tick=_NewSettings(lane),
        key_held=_Key(control),
        marker=control.record["marker"],
    )


def send(connection: Connection, message: tuple[str, Any]) -> None:
    """Say something to the other side; one that is gone hears nothing."""
    with contextlib.suppress(OSError):  # an application that is gone reads nothing
        connection.send(message)
