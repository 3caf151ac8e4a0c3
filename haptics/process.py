"""The servo in a process of its own, and the two sides of the threshold between it and the application.

The application owns the files that connect them: the trace (up), the settings lane and the control record (down). Each
side watches the other. If the application dies, or is silent for longer than `SILENCE`, the servo brings the device to
its safe output, completes the recording from the trace and leaves; if the servo dies, the application notices when the
pipe between them closes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.clock import Clock, WallClock
from haptics.device import Device
from haptics.element_kernels import PARAMETERS
from haptics.elements import Element
from haptics.envelope import Limits
from haptics.errors import DeviceFault, HapticError, ServoLost
from haptics.lane import Lane
from haptics.realtime import enter
from haptics.recording import EVENTS, append_line, salvage
from haptics.rendering import Rendering
from haptics.servo import End, Servo
from haptics.trace import Reader, Trace, ring_folder

SILENCE = 1.0
"""An application that has not given a sign of life for this long [s] counts as lost."""

CONTROL = np.dtype([("heartbeat_ns", "<i8"), ("stop", "<i8")])
"""What the application tells the servo besides settings; each field is one aligned store."""

_FOR_THE_APPLICATION = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP)
"""What a terminal sends to every process in it: the application decides what it means; a frozen servo would leave its
last force on."""

DeviceFactory = Callable[[Clock], Device]
"""Builds the device inside the servo process; must be picklable, for instance a `functools.partial`."""


@dataclass(frozen=True)
class Paths:
    """The files that connect an application with its servo."""

    trace: Path
    settings: Path
    control: Path

    @classmethod
    def unique(cls) -> Paths:
        """Return names that no other run of this machine uses."""
        stem = ring_folder() / f"haptics-{os.getpid()}-{time.monotonic_ns()}"
        return cls(*(stem.with_suffix(f".{kind}") for kind in ("trace", "settings", "control")))

    def remove(self) -> None:
        """Delete the files; whoever has them mapped keeps them."""
        for path in (self.trace, self.settings, self.control):
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Job:
    """Everything the servo process needs to know.

    Attributes
    ----------
    factory : callable
        Builds the device, given the clock of the run.
    element : Element
        What to render.
    limits : Limits or None
        The envelope; the device's own limits if None.
    duration : float or None
        Length of the run [s]; until stopped if None.
    recording : Path
        Folder of the recording, for what happens when the application is gone.
    paths : Paths
        The connecting files, already made.
    """

    factory: DeviceFactory
    element: Element
    limits: Limits | None
    duration: float | None
    recording: Path
    paths: Paths


@contextlib.contextmanager
def without_signals() -> Iterator[None]:
    """Hold back what a terminal sends to every process in it; a process that is started meanwhile never gets it."""
    resource_tracker.ensure_running()  # which would let them through again if it were started meanwhile
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _FOR_THE_APPLICATION)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- in the servo process ---------------------------------------------------------------------------------------


class _Watch:
    """Notices a stop request, a dead application and a silent one; a fraction of a microsecond per tick."""

    def __init__(self, control: Lane, application: int) -> None:
        self._heartbeat = control.record["heartbeat_ns"]
        self._stop = control.record["stop"]
        self._parent = application
        self._silence_ns = int(SILENCE * 1e9)

    def __call__(self) -> End | None:
        if self._stop[0]:
            return End.STOPPED
        silent = time.monotonic_ns() - self._heartbeat[0] > self._silence_ns
        return End.APPLICATION_LOST if silent or os.getppid() != self._parent else None


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
    """Run `job`; the target of the servo process. Everything that happens is reported through `connection`."""
    for number in _FOR_THE_APPLICATION:
        signal.signal(number, signal.SIG_IGN)
    trace = Trace.attach(job.paths.trace)
    parent = multiprocessing.parent_process()
    application = parent.pid if parent is not None and parent.pid is not None else os.getppid()
    try:
        servo = _build(job, trace, application)
        servo.warm_up()
        signal.signal(signal.SIGTERM, lambda *_: servo.stop())
        real_time = enter()
        if os.getppid() != application:  # it died while we were preparing: nothing has been opened yet
            job.paths.remove()
            return
        end = servo.run(job.duration, lambda: _send(connection, ("ready", real_time.as_dict())))
    except HapticError as error:
        if isinstance(error, DeviceFault):
            _journal_end(job.recording, servo, "fault", "".join(traceback.format_exception(error)))
        _send(connection, ("error", error))
        return
    _journal_end(job.recording, servo, end)
    _send(connection, ("ended", str(end)))
    if os.getppid() != application:
        try:
            salvage(job.recording, Reader(trace))
        finally:
            job.paths.remove()


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
    clock = WallClock(job.element.period)
    lane = Lane(job.paths.settings, PARAMETERS)
    return Servo(
        job.factory(clock),
        job.element,
        trace,
        clock=clock,
        limits=job.limits,
        supervisor=_Watch(Lane(job.paths.control, CONTROL), application),
        before_tick=_NewSettings(lane),
    )


def _send(connection: Connection, message: tuple[str, Any]) -> None:
    with contextlib.suppress(OSError):  # an application that is gone reads nothing
        connection.send(message)


# --- in the application -----------------------------------------------------------------------------------------


class ServoProcess:
    """The application's handle on a servo process.

    Parameters
    ----------
    job : Job
        What to run. Its connecting files are made here and removed by `close`.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.trace = Trace.create(job.paths.trace)
        self._settings = Lane(job.paths.settings, PARAMETERS, create=True)
        self._control = Lane(job.paths.control, CONTROL, create=True)
        context = multiprocessing.get_context("spawn")  # a fork would inherit windows, threads and locks
        self._connection, self._far_end = context.Pipe()
        self._process = context.Process(target=serve, args=(job, self._far_end), name="haptics servo")

    @property
    def pid(self) -> int:
        """Process id of the servo."""
        return self._process.pid or 0

    def start(self) -> None:
        """Start the process; it answers ``ready`` when its device is open."""
        self.beat()
        with without_signals():  # from its first instruction on; see `serve`
            self._process.start()
        self._far_end.close()  # so that the pipe reports the end of the process

    def beat(self) -> None:
        """Give a sign of life."""
        self._control.record["heartbeat_ns"][0] = time.monotonic_ns()

    def stop(self) -> None:
        """Ask for the end of the run; the device gets its safe output within a period."""
        self._control.record["stop"][0] = 1

    def publish(self, parameters: NDArray[Any]) -> int:
        """Put a (1,) record of dtype `PARAMETERS` in force from the next tick on; return its version."""
        travelling = parameters.copy()
        travelling["law"]["address"] = 0  # code lies elsewhere in the servo's process, which knows where
        return self._settings.publish(travelling[0])

    @property
    def next_version(self) -> int:
        """The version that the next `publish` will get."""
        return self._settings.version + 1

    @property
    def connection(self) -> Connection:
        """What to wait for: it becomes readable when the servo has something to say, or is gone."""
        return self._connection

    def next_message(self) -> tuple[str, Any] | None:
        """Return the servo's next message, or None if there is none.

        Returns
        -------
        ("ready", dict), ("ended", str) or None

        Raises
        ------
        HapticError
            What went wrong in the servo.
        ServoLost
            If the process died without a word.
        """
        try:
            if not self._connection.poll():
                return None
            kind, content = self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join(SILENCE)
            rows = self.trace.since(max(self.trace.count - 1000, 0))
            raise ServoLost(
                f"the servo process died ({_death(self._process.exitcode)}); its device watches over itself now. "
                "The recording was kept.",
                rows,
            ) from None
        if kind == "error":
            raise content
        return kind, content

    def close(self) -> None:
        """Make sure that the process has ended, and remove the connecting files."""
        self.stop()
        self._process.join(SILENCE + 1.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._connection.close()
        self.job.paths.remove()


def _death(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    return f"exit status {exit_code}"
