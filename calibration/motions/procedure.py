"""Motions that identify a device: the device, procedures that move it, their execution and recording.

In real time the device runs in a servo process; a virtual device can also run as fast as possible in this process. In
real time the procedure runs in a separate thread, so that it may compute or wait for user input while the servo
receives its heartbeats. Until the procedure yields the next motion, the present motion holds its final position.

`Measurement` is the common frame of the procedures that identify a device without a hand on it.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import itertools
import math
import shutil
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from calibration.data.joint_recording import Source
from devices import has_simulated_hand, is_virtual
from devices.common.log import DEVICE_LOG
from devices.faults import Fault, create_faulty
from haptics.clock import Clock
from haptics.device import Causality, Device, DeviceSpec, Vector
from haptics.errors import ConfigurationError, DeviceFault, HapticError
from haptics.recording.recorder import Recorder, RunCloser
from haptics.recording.recording import Recording
from haptics.recording.tick_file import digest_of
from haptics.records import Permission, Rows
from haptics.rendering.envelope import UNUSABLE, Limits
from haptics.rendering.programs import Motion, save_motion
from haptics.rendering.rendering import Rendering
from haptics.servo.control import Job, SharedFiles
from haptics.servo.kernels import HEARTBEAT_TIMEOUT
from haptics.servo.realtime import RealTimeSettings
from haptics.servo.run import HEARTBEAT_INTERVAL, ExtraConnections, Run, ServoWatchdog
from haptics.servo.servo import EndReason, Servo
from haptics.shared import SharedFile
from haptics.trace import Reader, Trace

RATE = 1000.0
"""Default tick rate of a calibration [Hz]."""


@dataclass(frozen=True)
class Mover:
    """Device to be moved, not yet created.

    Attributes
    ----------
    factory : callable
        Creates the device from settings that depend on the recording (``log``) and a clock; picklable.
    live : bool
        Whether to run in real time in a servo process, or as fast as possible in this process.
    rate : float
        Ticks per second [Hz].
    device : dict
        Name and settings of the device, for the recording.
    logs : bool
        Whether it can write a log of its commands.
    real_time : RealTimeSettings
        Requests to the operating system.
    clock_of : callable or None
        Returns the clock of a device that has a separate one, such as a device emulated in this process.
    """

    factory: Callable[[Mapping[str, Any], Clock], Device]
    live: bool
    rate: float = RATE
    device: Mapping[str, Any] = field(default_factory=dict)
    logs: bool = False
    real_time: RealTimeSettings = field(default_factory=RealTimeSettings)
    clock_of: Callable[[Any], Clock] | None = None

    @classmethod
    def of(
        cls, name: str, settings: Mapping[str, Any], faults: Sequence[Fault] = (), *, live: bool | None = None
    ) -> Mover:
        """Return the mover of the device `name` with its `settings`; in real time unless it is virtual."""
        return cls(
            functools.partial(_make, name, dict(settings), tuple(faults)),
            live=not is_virtual(name) if live is None else live,
            device={  # without objects, such as a hand, which a file cannot contain
                "name": name,
                **{
                    key: value
                    for key, value in settings.items()
                    if isinstance(value, Mapping | Sequence | bool | int | float | None)
                },
            },
            logs=has_simulated_hand(name, settings),
        )

    @property
    def period(self) -> float:
        """Time between two ticks [s]."""
        return 1.0 / self.rate

    def make(self) -> Device:
        """Return a new device for inspection, not open, and separate from the device that will be moved."""
        return self.factory({}, Clock(self.period))

    @property
    def spec(self) -> DeviceSpec:
        """Data sheet of the device, without opening it."""
        return self.make().spec


def _make(
    name: str, settings: dict[str, Any], faults: tuple[Fault, ...], more: Mapping[str, Any], clock: Clock
) -> Device:
    own = {**settings, **more}
    return create_faulty(name, own, faults, int(own.get("seed", 0)), clock)


class Present:
    """Observer of a run.

    Attributes
    ----------
    trace : Trace or None
        Trace of the present or latest run.
    """

    def __init__(self) -> None:
        self.trace: Trace | None = None

    @property
    def position(self) -> Vector:
        """Position of the end effector at the latest tick, (2,) [m]; nan before the first."""
        if self.trace is None or not self.trace.count:
            return np.full(2, np.nan)
        return np.array(self.trace.since(self.trace.count - 1)["position"][-1])


Procedure = Generator[Motion, Rows, None]
"""Generator that yields motions and receives, for each of them, the rows recorded during it, in order."""


def usable_rows(rows: Rows) -> Rows:
    """Return the rows with valid samples; others may hold arbitrary values including nan."""
    usable: Rows = rows[(rows["status"] & UNUSABLE) == 0]
    return usable


def known_rows(rows: Rows) -> Rows:
    """Return `usable_rows`.

    Raises
    ------
    DeviceFault
        If there are no valid rows.
    """
    known = usable_rows(rows)
    if not len(known):
        raise DeviceFault(
            f"none of {len(rows)} samples could be used, so the position of the handle is unknown: check the flags "
            "of the recording, and the cable of the device."
        )
    return known


def source_of(recording: Recording) -> Source:
    """Return the source of measurements in a recording."""
    device = recording.metadata.get("device", {})
    name = f"{device.get('name', '')} {device.get('identity', '')}".strip()
    return Source(str(recording.folder), digest_of(recording.ticks), name)


def rows_of(recording: Recording) -> Iterator[tuple[str, Rows]]:
    """Yield the label and the rows of every motion in a recording.

    Rows of other programs are skipped. The last row of a finished motion has ``sticking`` set.
    """
    ranges: dict[int, tuple[int, int]] = {}  # of rows, by the version of the settings
    place = 0
    for rows in recording.chunks(("settings_version",)):
        versions = rows["settings_version"]
        edges = [0, *(np.flatnonzero(np.diff(versions)) + 1).tolist(), len(versions)]
        for begin, end in itertools.pairwise(edges):
            version = int(versions[begin])
            ranges[version] = ranges.get(version, (place + begin, 0))[0], place + end
        place += len(versions)
    for entry in recording.settings:
        motion = entry.get("motion")
        if entry.get("model") == Motion.model and isinstance(motion, dict):
            yield str(motion.get("label", "")), recording.read(*ranges.get(int(entry["version"]), (0, 0)))


def complete_rounds(recording: Recording, names: Sequence[str]) -> list[list[Rows]]:
    """Return the rows of every finished motion by the first word of its label, in the order of `names`."""
    found: list[list[Rows]] = [[] for _ in names]
    for label, rows in rows_of(recording):
        name = label.partition(" ")[0]
        if name in names and len(rows) and rows["sticking"][-1]:
            found[names.index(name)].append(rows)
    return found


# --- execution --------------------------------------------------------------------------------------------------------

Progress = Callable[[float], None]
"""Callback with the elapsed time [s]."""

Result = TypeVar("Result")

COMPLETED, STOPPED, INTERRUPTED = "completed", "stopped", "interrupted"

PROCEDURE = "haptics procedure"
"""Name of the thread in which a procedure runs."""

PATIENCE = 10.0
"""Time beyond its duration after which an unfinished motion raises an error, with the dead-man's switch held [s]."""

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
    with contextlib.closing(_Execution(mover, spec, limits, procedure, progress, present or Present())) as execution:
        configuration = {
            "session": {"model": Motion.model, "rate": mover.rate},
            "device": dict(mover.device),
            **more.get("configuration", {}),
            **{name: asdict(table) for name, table in (settings or {}).items()},
        }
        metadata = {
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            "device": {name: None if value == math.inf else value for name, value in asdict(spec).items()},
            "model": Motion.model,
            "rate_hz": mover.rate,
            "limits": asdict(limits),
        }
        execution.recorder = Recorder(folder, {**metadata, **more, "configuration": configuration})
        execution.save_motion()
        if mover.live:
            _Live(execution).run()
        else:
            _run_offline(execution)
    return Recording(folder)


@dataclass
class _Execution:
    """Running procedure with its device and recording, common to both ways to run it.

    Every motion is written to the recording before it becomes active.

    Attributes
    ----------
    motion : Motion
        Present motion, active or about to be.
    number : int
        Index of the motion in the run, which equals the version of the settings, because nothing else changes them.
    error : BaseException or None
        Exception that ended the run without a device fault: from the procedure, or an interrupt.
    """

    mover: Mover
    spec: DeviceSpec
    limits: Limits
    procedure: Procedure
    progress: Progress
    present: Present
    recorder: Recorder = field(init=False)
    motion: Motion = field(init=False)
    number: int = 0
    error: BaseException | None = None
    _watched: int = -1
    _begun: int = 0

    def __post_init__(self) -> None:
        self.motion = next(self.procedure)

    def save_motion(self) -> dict[str, Any]:
        """Write the motion to the recording; return its journal entry."""
        entry = save_motion(self.recorder.folder, self.motion, self.number)
        self.recorder.journal_settings(self.number, entry)
        return {"version": self.number, **entry}

    def advance(self, rows: Rows) -> bool:
        """Send all recorded rows to the procedure; return True if it yields another motion."""
        versions = rows["settings_version"]
        first, last = (np.searchsorted(versions, self.number, side=side) for side in ("left", "right"))
        try:
            self.motion = self.procedure.send(np.array(rows[first:last]))
        except StopIteration:
            return False
        self.number += 1
        return True

    def require_progress(self, tick: int, permission: int) -> None:
        """Raise `DeviceFault` if the present motion should have finished long before `tick`."""
        if self._watched != self.number or permission & Permission.RELEASED:
            self._watched, self._begun = self.number, tick
        if (tick - self._begun) * self.motion.period > self.motion.duration + PATIENCE:
            raise DeviceFault(
                f"the motion {self.motion.label!r} did not finish by tick {tick}, because samples were rejected "
                "repeatedly: make sure that nothing blocks or pulls the device."
            )

    @property
    def reason(self) -> str:
        """Reason for the end of the run, if not a device fault."""
        if self.error is None:
            return COMPLETED
        return INTERRUPTED if isinstance(self.error, KeyboardInterrupt) else STOPPED

    def certify(self, ending: RunCloser, **facts: Any) -> None:
        """Add the certificate to the recording (`haptics.recording.recorder.RunCloser.certify`) and raise errors."""
        ending.certify(self.spec.causality, **facts)
        error = ending.fault or self.error
        if error is not None:
            raise error

    def close(self) -> None:
        """Close the procedure, unless a thread is still executing it."""
        with contextlib.suppress(ValueError):
            self.procedure.close()


def _ignore(message: str) -> None:
    """Ignore a message about a later fault: the first one is raised."""


def _run_offline(execution: _Execution) -> None:
    """Run to the end as fast as possible and raise errors. The next motion begins without a gap in ticks."""
    mover, recorder, opened = execution.mover, execution.recorder, threading.Event()
    with contextlib.closing(SharedFile("trace")) as shared:
        trace = execution.present.trace = Trace.create(shared.path)
        recorder.attach(Reader(trace))
        ending = RunCloser(recorder, trace, _ignore)
        clock = Clock(mover.period)
        device = mover.factory({}, clock)
        if mover.clock_of is not None:
            clock = mover.clock_of(device)

        def before_tick(rendering: Rendering) -> None:
            if clock.tick % _DRAIN == 0:
                recorder.drain()
                execution.progress(clock.time)
                execution.require_progress(clock.tick, 0)
            if not rendering.arrived or execution.error is not None:
                return
            recorder.drain()
            try:
                if execution.advance(recorder.rows()):
                    execution.save_motion()
                    rendering.switch_program(execution.motion, execution.number, execution.number)
                    return
            except Exception as error:  # an error of the procedure, not of the device
                execution.error = error
            servo.stop()

        servo = Servo(device, execution.motion, trace, clock=clock, limits=execution.limits, before_tick=before_tick)
        try:
            servo.run(None, opened.set)
        except HapticError as error:
            ending.fail(error)
        except BaseException as error:
            execution.error = error
        recorder.drain()
        ending.close(execution.reason, complete=opened.is_set())
        try:
            execution.certify(ending)
        finally:
            if not opened.is_set():
                shutil.rmtree(recorder.folder, ignore_errors=True)


class _Live(Run):
    """Procedure in a servo process."""

    def __init__(self, execution: _Execution) -> None:
        mover, folder = execution.mover, execution.recorder.folder
        more = {"log": str(folder / DEVICE_LOG)} if mover.logs else {}
        job = Job(
            factory=functools.partial(mover.factory, more),
            element=execution.motion,
            limits=execution.limits,
            duration=None,
            recording=folder,
            paths=SharedFiles.unique(),
            real_time=mover.real_time,
        )
        super().__init__(execution.recorder, job, execution.spec.name, _ignore)
        self._execution = execution
        execution.present.trace = self.servo.trace
        self._thread: threading.Thread | None = None
        self._published = 0.0
        self._lock, self._over = threading.Lock(), False

    def run(self) -> None:
        """Run to the end and raise errors."""
        self.follow()
        self._execution.certify(self.ending, used=self.servo.used, granted=self.granted)

    def wait_and_handle(self, watch: ServoWatchdog, listen: ExtraConnections) -> EndReason | None:
        """Poll once; Ctrl-C ends the run in order."""
        try:
            return super().wait_and_handle(watch, listen)
        except KeyboardInterrupt as interrupt:
            self._execution.error = self._execution.error or interrupt
            self.stop()
            return None

    def reason(self, end: EndReason) -> str:
        """Return the reason for the end of the procedure."""
        return self._execution.reason

    def run_periodic_tasks(self) -> None:
        """Report the progress; when the present motion has finished, request the next one."""
        if not self.opened:
            return
        execution, trace = self._execution, self.servo.trace
        execution.progress(max(self.servo.newest_tick, 0) * execution.mover.period)
        if self.stopping or (self._thread is not None and self._thread.is_alive()) or not trace.count:
            return
        row = trace.since(trace.count - 1)[-1]
        if row["settings_version"] != execution.number:
            if time.monotonic() - self._published > HEARTBEAT_TIMEOUT:
                raise DeviceFault(f"{execution.spec.name}: its servo did not take the next motion.")
        elif row["sticking"]:
            self._thread = threading.Thread(target=self._advance, args=(int(row["tick"]),), name=PROCEDURE, daemon=True)
            self._thread.start()
        else:
            execution.require_progress(int(row["tick"]), int(row["permission"]))

    def _advance(self, tick: int) -> None:
        """Send the procedure all rows up to `tick`, and the servo the resulting motion."""
        execution, more = self._execution, False
        error: BaseException | None = None
        try:
            rows = execution.recorder.rows()
            while not (self._over or (len(rows) and rows["tick"][-1] >= tick)):  # the recorder is a little late
                time.sleep(HEARTBEAT_INTERVAL)
                rows = execution.recorder.rows()
            more = execution.advance(rows)
        except BaseException as raised:  # an error of the procedure, not of the device
            error = raised
        with self._lock:
            if self._over or self.stopping:  # the result is too late
                return
            if more:
                with self.writing():
                    line = execution.save_motion()
                    self._published = time.monotonic()
                    self.servo.send_program_entry(line)
                return
            execution.error = execution.error or error
            self.stop()

    def on_end(self) -> None:
        """Mark the run as over, so that a procedure that is still computing has no effect."""
        with self._lock:
            self._over = True
