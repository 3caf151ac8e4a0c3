"""Execution of a procedure on a device, with envelope, dead-man's switch, certificate and recording.

In real time the device runs in a servo process; a virtual device can also run as fast as possible in this process. In
real time the procedure runs in a separate thread, so that it may compute or wait for user input while the servo
receives its heartbeats. Until the procedure yields the next motion, the present motion holds its final position.

`Measurement` is the common frame of the procedures that identify a device without a hand on it.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import math
import shutil
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from calibration.motions.procedure import Mover, Present, Procedure, ProcedureRunner
from devices.common.log import DEVICE_LOG
from haptics.clock import Clock
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError, DeviceFault, HapticError
from haptics.recording.recorder import Recorder, RunCloser
from haptics.recording.recording import Recording
from haptics.records import Rows
from haptics.rendering.envelope import Limits
from haptics.rendering.programs import Motion
from haptics.rendering.rendering import Rendering
from haptics.servo.control import Job, SharedFiles
from haptics.servo.kernels import HEARTBEAT_TIMEOUT
from haptics.servo.run import HEARTBEAT_INTERVAL, ExtraConnections, Run, ServoWatchdog
from haptics.servo.servo import EndReason, Servo
from haptics.shared import SharedFile
from haptics.trace import Reader, Trace

Progress = Callable[[float], None]
"""Callback with the elapsed time [s]."""

Result = TypeVar("Result")

COMPLETED, STOPPED, INTERRUPTED = "completed", "stopped", "interrupted"

PROCEDURE = "haptics procedure"
"""Name of the thread in which a procedure runs."""

_DRAIN = 100
"""Number of ticks after which the recorder of an offline run writes to the disk."""


class Measurement(ABC, Generic[Result]):
    """Procedure that moves a device without a hand on it, and the estimate from its recording.

    Parameters
    ----------
    settings : dataclass
        Settings of the procedure.

    Attributes
    ----------
    table : str
        Name of the settings table, also in the recording.
    """

    table: ClassVar[str]

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def require(self, mover: Mover) -> None:
        """Raise `ConfigurationError` unless the device can be measured in this way."""

    @abstractmethod
    def extent(self, mover: Mover) -> tuple[float, str]:
        """Return the expected duration [s] and the limits of the motion, in words.

        Raises
        ------
        ConfigurationError
            If the device cannot perform the motions.
        """

    @abstractmethod
    def motions(self, mover: Mover) -> Procedure:
        """Yield the motions of the device."""

    @abstractmethod
    def estimate(self, recording: Recording, mover: Mover) -> Result:
        """Return the result from the complete recording."""

    def run(
        self,
        mover: Mover,
        folder: Path,
        facts: Mapping[str, Any] | None = None,
        progress: Progress = lambda seconds: None,
    ) -> Result:
        """Move a device, record it, and return the result.

        Parameters
        ----------
        mover : Mover
            Device, with no hand on its handle.
        folder : Path
            Folder of the recording; must not exist.
        facts : mapping, optional
            Additional metadata of the recording.
        progress : callable, optional
            Callback with the elapsed time [s].

        Raises
        ------
        ConfigurationError
            If the device is not suitable, or cannot perform the motions.
        HapticError
            As in `drive`; also if the device does not follow. The recording is kept.
        """
        self.require(mover)
        settings = {self.table: self.settings}
        return self.estimate(drive(mover, self.motions(mover), folder, facts, progress, settings=settings), mover)


def require_forces(spec: DeviceSpec, otherwise: str) -> None:
    """Raise `ConfigurationError` unless the device accepts forces and operates without a hand on it.

    The message for a device that accepts positions is its name and `otherwise`.
    """
    if spec.causality is not Causality.IMPEDANCE:
        raise ConfigurationError(f"{spec.name} {otherwise}")
    if spec.dead_man != "none":
        raise ConfigurationError(
            f"{spec.name} gives force only while a {spec.dead_man} is held, but the handle must be free during "
            "the measurement."
        )


def drive(
    mover: Mover,
    procedure: Procedure,
    folder: Path,
    facts: Mapping[str, Any] | None = None,
    progress: Progress = lambda seconds: None,
    warn: Callable[[str], None] = lambda words: None,
    present: Present | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
) -> Recording:
    """Run a procedure to its end and return the recording.

    Parameters
    ----------
    mover : Mover
        Device to move.
    procedure : Procedure
        Procedure that has not been started.
    folder : Path
        Folder of the recording; must not exist.
    facts : mapping, optional
        Additional metadata of the recording; its table ``configuration`` is completed.
    progress : callable, optional
        Callback with the elapsed time [s].
    warn : callable, optional
        Callback for warnings.
    present : Present, optional
        Observer of the run.
    settings : mapping, optional
        Settings of the procedure, dataclasses by the names of their tables in ``configuration``.

    Raises
    ------
    ConfigurationError
        If the device cannot be used in this way. Exceptions of the procedure are passed through.
    DeviceNotFoundError, DeviceOpenError
        If the device cannot be opened; no recording is created.
    DeviceFault, ServoLost
        If the device fails, or a motion is not followed. The recording is kept.
    """
    spec, more = mover.spec, facts or {}
    if spec.dead_man == "key":
        raise ConfigurationError(
            f"{spec.name} gives force only while a key of the live view is held, which a calibration does not have."
        )
    limits = Limits.for_device(spec)
    with contextlib.closing(ProcedureRunner(procedure)) as runner:
        recorder = Recorder(
            folder,
            {
                "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
                "device": {name: None if value == math.inf else value for name, value in asdict(spec).items()},
                "model": Motion.model,
                "rate_hz": mover.rate,
                "limits": asdict(limits),
                **more,
                "configuration": {
                    "session": {"model": Motion.model, "rate": mover.rate},
                    "device": dict(mover.device),
                    **more.get("configuration", {}),
                    **{name: asdict(table) for name, table in (settings or {}).items()},
                },
            },
        )
        runner.save_motion(recorder)
        state = _State(mover, runner, spec, limits, recorder, progress, warn, present or Present())
        if mover.live:
            _Live(state).run()
        else:
            _run_offline(state)
    return Recording(folder)


@dataclass
class _State:
    """Procedure with its device and recording, common to both ways to run it.

    Attributes
    ----------
    error : BaseException or None
        Exception that ended the run without a device fault: from the procedure, or an interrupt.
    """

    mover: Mover
    runner: ProcedureRunner
    spec: DeviceSpec
    limits: Limits
    recorder: Recorder
    progress: Progress
    warn: Callable[[str], None]
    present: Present
    error: BaseException | None = None

    @property
    def reason(self) -> str:
        """Reason for the end of the run, if not a device fault."""
        if self.error is None:
            return COMPLETED
        return INTERRUPTED if isinstance(self.error, KeyboardInterrupt) else STOPPED

    def certify(
        self,
        ending: RunCloser,
        used: Mapping[str, Any] | None = None,
        granted: Mapping[str, Any] | None = None,
    ) -> None:
        """Add the certificate to the recording (`haptics.recording.recorder.RunCloser.certify`) and raise errors."""
        ending.certify(self.spec.causality, used=used, granted=granted)
        error = ending.fault or self.error
        if error is not None:
            raise error


def _run_offline(state: _State) -> None:
    """Run to the end as fast as possible and raise errors. The next motion begins without a gap in ticks."""
    shared = SharedFile("trace")
    try:
        trace = Trace.create(shared.path)
        state.recorder.attach(Reader(trace))
        state.present.trace = trace
        ending = RunCloser(state.recorder, trace, state.warn)
        opened = _step_to_end(state, trace, ending)
        state.recorder.drain()
        ending.close(state.reason, complete=opened)
        try:
            state.certify(ending)
        finally:
            if not opened:
                shutil.rmtree(state.recorder.folder, ignore_errors=True)
    finally:
        shared.close()


def _step_to_end(state: _State, trace: Trace, ending: RunCloser) -> bool:
    """Run all ticks; return True if the device was opened."""
    mover, runner, opened = state.mover, state.runner, threading.Event()
    clock = Clock(mover.period)
    device = mover.factory({}, clock)
    if mover.clock_of is not None:
        clock = mover.clock_of(device)

    def before_tick(rendering: Rendering) -> None:
        if clock.tick % _DRAIN == 0:
            state.recorder.drain()
            state.progress(clock.time)
            runner.require_progress(clock.tick, 0)
        if not rendering.arrived or state.error is not None:
            return
        state.recorder.drain()
        try:
            if runner.advance(state.recorder.rows()):
                runner.save_motion(state.recorder)
                rendering.switch_program(runner.motion, runner.number, runner.number)
                return
        except Exception as error:  # an error of the procedure, not of the device
            state.error = error
        servo.stop()

    servo = Servo(device, runner.motion, trace, clock=clock, limits=state.limits, before_tick=before_tick)
    try:
        servo.run(None, opened.set)
    except HapticError as error:
        ending.fail(error)
    except BaseException as error:
        state.error = error
    return opened.is_set()


class _Live(Run):
    """Procedure in a servo process."""

    def __init__(self, state: _State) -> None:
        mover, folder = state.mover, state.recorder.folder
        more = {"log": str(folder / DEVICE_LOG)} if mover.logs else {}
        job = Job(
            factory=functools.partial(mover.factory, more),
            element=state.runner.motion,
            limits=state.limits,
            duration=None,
            recording=folder,
            paths=SharedFiles.unique(),
            real_time=mover.real_time,
        )
        super().__init__(state.recorder, job, state.spec.name, state.warn)
        self._state = state
        state.present.trace = self.servo.trace
        self._thread: threading.Thread | None = None
        self._published = 0.0
        self._lock, self._over = threading.Lock(), False

    def run(self) -> None:
        """Run to the end and raise errors."""
        self.follow()
        self._state.certify(self.ending, used=self.servo.used, granted=self.granted)

    def wait_and_handle(self, watch: ServoWatchdog, listen: ExtraConnections) -> EndReason | None:
        """Poll once; Ctrl-C ends the run in order."""
        try:
            return super().wait_and_handle(watch, listen)
        except KeyboardInterrupt as interrupt:
            self._state.error = self._state.error or interrupt
            self.stop()
            return None

    def reason(self, end: EndReason) -> str:
        """Return the reason for the end of the procedure."""
        return self._state.reason

    def run_periodic_tasks(self) -> None:
        """Report the progress; when the present motion has finished, request the next one."""
        if not self.opened:
            return
        state, trace = self._state, self.servo.trace
        state.progress(max(self.servo.newest_tick, 0) * state.mover.period)
        if self.stopping or (self._thread is not None and self._thread.is_alive()) or not trace.count:
            return
        row = trace.since(trace.count - 1)[-1]
        if row["settings_version"] != state.runner.number:
            if time.monotonic() - self._published > HEARTBEAT_TIMEOUT:
                raise DeviceFault(f"{state.spec.name}: its servo did not take the next motion.")
        elif row["sticking"]:
            self._thread = threading.Thread(target=self._advance, args=(int(row["tick"]),), name=PROCEDURE, daemon=True)
            self._thread.start()
        else:
            state.runner.require_progress(int(row["tick"]), int(row["permission"]))

    def _advance(self, tick: int) -> None:
        """Send the procedure all rows up to `tick`, and the servo the resulting motion."""
        state, more = self._state, False
        error: BaseException | None = None
        try:
            more = state.runner.advance(self._rows_until(tick))
        except BaseException as raised:  # an error of the procedure, not of the device
            error = raised
        with self._lock:
            if self._over or self.stopping:  # the result is too late
                return
            if more:
                with self.writing():
                    line = state.runner.save_motion(state.recorder)
                    self._published = time.monotonic()
                    self.servo.send_program_entry(line)
                return
            state.error = state.error or error
            self.stop()

    def hide_progress(self) -> None:
        """Mark the run as over, so that a procedure that is still computing has no effect."""
        with self._lock:
            self._over = True

    def _rows_until(self, tick: int) -> Rows:
        """Return all rows as soon as they include `tick`, or the run is over."""
        while True:
            rows = self._state.recorder.rows()
            if self._over or (len(rows) and rows["tick"][-1] >= tick):
                return rows
            time.sleep(HEARTBEAT_INTERVAL)
