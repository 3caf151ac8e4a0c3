"""The servo process: its handle in the application, and its main function.

The process creates the servo and runs it. If the application dies, is stopped, or sends no heartbeat for
`haptics.servo.kernels.HEARTBEAT_TIMEOUT`, the device is brought to its safe output. If it has died, this process
completes the recording from the trace. The application detects the death of the servo by the closing of the pipe, and
kills a servo that was stopped.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from haptics.clock import Clock, WallClock, instructed_by
from haptics.elements.models import Element, functions_of, write_parameters
from haptics.errors import ConfigurationError, DeviceFault, HapticError, RecordingError, ServoLost
from haptics.files import append_line
from haptics.kernel_cache import COMPILATION
from haptics.recording.recorder import complete_recording
from haptics.recording.recording import EVENTS
from haptics.rendering.programs import SceneElement, read_program
from haptics.servo.control import DISMISSED, ControlMessages, Job, Supervision
from haptics.servo.kernels import APPLICATION_ENDED, CONTROL, HEARTBEAT_TIMEOUT, LOSSES, SETTINGS
from haptics.servo.realtime import request_real_time, usage, usage_since, without_requests
from haptics.servo.servo import MAX_TICKS_PER_CALL, EndReason, Servo
from haptics.servo.standby import TERMINAL_SIGNALS, Standby
from haptics.shared import Mailbox
from haptics.trace import Reader, Trace

_CHECK_INTERVAL = 1e-4
SIMULATED_TIMEOUT = 10.0
"""Timeout of the watchdog for the heartbeat in simulated time [s].

Nothing moves while such a run waits, so the timeout need not be short; it must not end runs on a busy machine, but
servos whose application hangs.
"""
"""Interval at which a run in simulated time checks for the progress of the other process [s]."""

# --- side of the application ------------------------------------------------------------------------------------------


class ServoProcess(ControlMessages):
    """Handle of the application for a servo process.

    Parameters
    ----------
    job : Job
        Job to run. This class initialises its connecting files and removes them in `close`.
    standby : Standby, optional
        Process that waits for a job; by default a new one is started with the servo.

    Attributes
    ----------
    connection : Connection
        Connection to wait for: it becomes readable with a message of the servo and when the process ends.
    next_version : int
        Version of the next settings.
    used : dict
        Resource usage at the end of a run (`haptics.servo.realtime.usage`).
    loss : str
        Cause if the servo has ended because it lost this process (`Servo.loss`).
    """

    def __init__(self, job: Job, standby: Standby | None = None) -> None:
        self.job = job
        self.trace = Trace.create(job.paths.trace.path)
        self._settings = Mailbox(job.paths.settings.path, SETTINGS, create=True)
        self.control = Mailbox(job.paths.control.path, CONTROL, create=True).record
        self._standby = standby or Standby()
        self._process, self.connection = self._standby.process, self._standby.connection
        self._status_file: int | None = None
        self._started = False
        self.next_version, self._uses_pipe = 1, False
        self.used: dict[str, Any] = {}
        self.loss = ""

    @property
    def pid(self) -> int:
        """Process id of the servo."""
        return self._process.pid or 0

    def start(self) -> None:
        """Start the process and send the job; the servo reports ``ready`` when its device is open."""
        self.beat()
        self._standby.start()
        self._standby.send(self.job)
        self._started = True

    def beat(self) -> None:
        """Send a heartbeat to the servo's watchdog."""
        self.control["heartbeat_ns"] = time.monotonic_ns()

    @property
    def halted(self) -> bool:
        """Whether the process was stopped by a signal or a debugger; takes a few microseconds."""
        try:
            if self._status_file is None:
                self._status_file = os.open(f"/proc/{self.pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
            return os.pread(self._status_file, 128, 0).rpartition(b")")[2][1:2] in (b"T", b"t")
        except OSError:  # no /proc, or the process has ended: the caller must rely on other signs
            return False

    @property
    def newest_tick(self) -> int:
        """Number of the last executed tick; -1 before the first."""
        rows = self.trace.since(self.trace.count - 1)
        return int(rows["tick"][-1]) if len(rows) else -1

    @property
    def progress_phrase(self) -> str:
        """Progress of the run when the process was lost, as a phrase for messages."""
        if self.newest_tick < 0:
            return "before its first tick"
        return f"after tick {self.newest_tick}; only the device's own watchdog is left"

    def kill(self) -> None:
        """Kill a process that does not respond."""
        self._process.kill()

    def grant(self, ticks: int) -> None:
        """Allow a run in steps to execute a number of further ticks."""
        self.control["granted"] += ticks

    @property
    def pausing(self) -> bool:
        """Whether a run in steps has executed all granted ticks."""
        return self.job.steps and self.trace.count >= int(self.control["granted"][0])

    def await_program(self) -> None:
        """Wait until the servo has loaded the last program that was sent, or has ended."""
        while self._uses_pipe and self.control["loaded"][0] < self.next_version - 1 and self._process.is_alive():
            time.sleep(_CHECK_INTERVAL)

    def report_recorded(self, count: int) -> None:
        """Report the number of rows on disk, for which a run in simulated time waits."""
        self.control["recorded"] = count

    def publish(self, element: Element) -> int:
        """Send the parameters of `element`, which apply from the next tick on, and return their version.

        Only numbers are sent: function addresses differ between processes and remain unchanged in the servo.

        Raises
        ------
        ConfigurationError
            If the model or the functions of the law differ from the running element.
        """
        present = self.job.element
        if not isinstance(present, Element):
            raise ConfigurationError(
                "this run follows motions, or is on a scene: it has no element that its numbers alone could change."
            )
        if functions_of(element) != functions_of(present):
            raise ConfigurationError(
                f"model {element.model} with law {element.law.name}: a run keeps its model and law, {present.model} "
                f"with {present.law.name}; start a new run for others."
            )
        settings = np.zeros(1, SETTINGS)
        settings["version"] = version = self.next_version
        write_parameters(element, settings)
        settings["law"]["address"] = 0
        self._settings.publish(settings[0])
        self.next_version += 1
        return version

    def send_program_entry(self, line: dict[str, Any]) -> None:
        """Switch to another program as soon as the servo has loaded it, between two ticks.

        Parameters
        ----------
        line : dict
            Journal entry of the program, including its version (`haptics.rendering.programs`).
        """
        self.next_version, self._uses_pipe = int(line["version"]) + 1, True
        send(self._standby.programs, line)

    def switch_program(self, program: Element | SceneElement, line: dict[str, Any]) -> None:
        """Switch to an element, with or without a scene, as soon as possible.

        An element that differs from the initial one in numbers only applies from the next tick on. Other programs are
        sent through the pipe and loaded first. After the first of them, all programs use the pipe, so that their order
        is kept.

        Parameters
        ----------
        program : Element or SceneElement
            Program with the causality and period of the run.
        line : dict
            Journal entry of the program, with `next_version`.
        """
        first = self.job.element
        if isinstance(program, Element) and isinstance(first, Element) and not self._uses_pipe:
            if functions_of(program) == functions_of(first):
                self.publish(program)
                return
        self.send_program_entry(line)

    def next_message(self) -> tuple[str, Any] | None:
        """Return the next message of the servo, or None without a message.

        Returns
        -------
        ("compiling", (number, about)), ("compiled", None), ("opening", None), ("instruction", str), ("device", dict),
        ("ready", dict) or ("ended", str); None without a message

        Raises
        ------
        HapticError
            Any error in the servo.
        ServoLost
            If the process died without an error message.
        """
        try:
            if not self.connection.poll():
                return None
            kind, content = self.connection.recv()
        except (EOFError, OSError):  # closed, reset, or truncated within a message
            self._process.join(HEARTBEAT_TIMEOUT)
            rows, status = self.trace.since(max(self.trace.count - 1000, 0)), self._process.exitcode
            cause = f"exit status {status}"
            if status is not None and status < 0:
                cause = f"killed by {signal.Signals(-status).name}"
            raise ServoLost(
                f"the servo process died ({cause}) {self.progress_phrase}. The recording was kept.", rows
            ) from None
        if kind == "ended":
            content, self.loss, self.used = content
        elif kind == "error":
            self.used = getattr(content, "used", {})
            raise content
        return kind, content

    def close(self) -> None:
        """Ensure that the process has ended, and remove the connecting files.

        Until this call a servo whose run has ended waits to complete the recording if the application dies. Record the
        end of the trace before.
        """
        if self._started:
            self.stop()
            send(self.connection, DISMISSED)
            self._process.join(HEARTBEAT_TIMEOUT + 1.0)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
        self._standby.close()
        if self._status_file is not None:
            os.close(self._status_file)
            self._status_file = None
        self.job.paths.close()


# --- side of the servo ------------------------------------------------------------------------------------------------


def serve_job(job: Job, connection: Connection, programs: Connection) -> None:
    """Run `job` in the servo process and report all events through `connection`.

    Programs received through `programs` replace the present one during the run (`haptics.servo.process`). After the
    run the process waits until the application has all rows; if the application dies before, this process completes the
    recording.
    """
    for number in TERMINAL_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    trace: Trace | None = None
    cause = LOSSES[APPLICATION_ENDED]
    try:
        trace = Trace.attach(job.paths.trace.path)
        cause = _run(job, trace, connection, programs) or cause
    except HapticError as error:
        cause = str(error)
        send(connection, ("error", error))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        connection.recv()  # the dismissal
    except (EOFError, OSError):  # the application has died
        job.paths.remove_orphaned()
        with contextlib.suppress(OSError, RecordingError):  # no process is left to report to
            complete_recording(job.recording, Reader(trace) if trace is not None else None, cause)


def _run(job: Job, trace: Trace, connection: Connection, programs: Connection) -> str:
    """Create the servo and run it to its end, or until the application dies before the opening.

    Returns the cause if the servo lost the application, otherwise ''.
    """
    parent = multiprocessing.parent_process()
    application = parent.pid if parent is not None and parent.pid is not None else os.getppid()
    COMPILATION.watcher = lambda number, about: send(connection, ("compiling", (number, about)))
    period = job.element.period
    clock = WallClock(period, job.real_time.spin) if job.live else Clock(period)
    control, settings = Mailbox(job.paths.control.path, CONTROL), Mailbox(job.paths.settings.path, SETTINGS)
    supervision = Supervision(control, settings, application if job.live else 0)
    servo = Servo(job.factory(clock), job.element, trace, clock=clock, limits=job.limits, supervision=supervision)
    servo.warm_up()
    send(connection, ("compiled", None))
    threading.Thread(
        target=_receive_programs, args=(programs, job, servo, control), name="haptics programs", daemon=True
    ).start()
    signal.signal(signal.SIGTERM, lambda *_: servo.stop())
    # Another thread runs the loop: Python handles signals in this thread, and compiled code would block that.
    with ThreadPoolExecutor(1, "haptics loop") as threads:
        threads.submit(_serve_device, job, servo, application, connection).result()
    return servo.loss


def _receive_programs(connection: Connection, job: Job, servo: Servo, control: Mailbox) -> None:
    """Switch the servo to the programs whose journal entries arrive, until the application closes its end."""
    try:
        while True:
            line = connection.recv()
            program = read_program(job.recording, line, job.element.causality, job.element.period)
            servo.switch_program(program, int(line["program"]), int(line["version"]))
            control.record["loaded"][0] = int(line["version"])
    except (EOFError, OSError):  # the application has died or closed the pipe
        return


def _serve_device(job: Job, servo: Servo, application: int, connection: Connection) -> None:
    """Run the servo in this thread, with real-time settings if it follows the wall clock."""
    real_time = request_real_time(job.real_time) if job.live else without_requests()
    if os.getppid() != application:
        return
    control = Mailbox(job.paths.control.path, CONTROL)
    recorder = None if job.live else _RecorderWait(servo, control, application, steps=job.steps)
    send(connection, ("opening", None))
    used = usage()

    def ready() -> int | None:
        nonlocal used
        used = usage()
        if facts := getattr(servo.device, "facts", None):
            send(connection, ("device", dict(facts)))
        send(connection, ("ready", real_time))
        return recorder() if job.steps and recorder is not None else None

    try:
        with instructed_by(lambda words: send(connection, ("instruction", words))):
            end = servo.run(job.duration, ready, recorder)
    except DeviceFault as error:
        error.used = usage_since(used)
        _journal_end(job.recording, servo, "fault", "".join(traceback.format_exception(error)))
        raise
    if recorder is not None and recorder.lost:
        end, servo.loss = EndReason.APPLICATION_LOST, recorder.lost
    _journal_end(job.recording, servo, end, servo.loss or None)
    send(connection, ("ended", (str(end), servo.loss, usage_since(used))))


class _RecorderWait:
    """Callback that makes a run in simulated time wait for its recorder, and a run in steps for the next steps.

    It returns the number of ticks until the next call, at most `MAX_TICKS_PER_CALL`. It ends the run if the application
    is lost; ``lost`` is then the cause.
    """

    def __init__(self, servo: Servo, control: Mailbox, application: int, *, steps: bool = False) -> None:
        self._servo, self._steps, self._application, self.lost = servo, steps, application, ""
        self._control = control.record

    def __call__(self) -> int:
        trace, control = self._servo.trace, self._control
        while True:
            full = trace.count - control["recorded"][0] > trace.capacity - 2 * MAX_TICKS_PER_CALL
            paused = self._steps and not control["stop"][0]  # a run that ends needs ticks to fade out
            ticks = int(control["granted"][0]) - trace.count if paused else MAX_TICKS_PER_CALL
            if not full and ticks > 0:
                return min(ticks, MAX_TICKS_PER_CALL)
            silent = time.monotonic_ns() - control["heartbeat_ns"][0] > SIMULATED_TIMEOUT * 1e9
            if silent or os.getppid() != self._application:
                text = f"the application sent no heartbeat for {SIMULATED_TIMEOUT:g} s"
                self.lost = text if silent else LOSSES[APPLICATION_ENDED]
                self._servo.stop()
                return MAX_TICKS_PER_CALL
            time.sleep(_CHECK_INTERVAL)


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


def send(connection: Connection, message: Any) -> None:
    """Send a message to the other process, ignoring errors if that process has ended."""
    with contextlib.suppress(OSError):  # the other process has ended
        connection.send(message)
