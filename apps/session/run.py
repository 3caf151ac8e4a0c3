"""One session from before the first tick to the summary: recorder, servo process and, where wanted, the view."""

from __future__ import annotations

import contextlib
import datetime
import functools
import itertools
import platform
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import devices
from apps.session.config import SessionConfig
from apps.session.progress import Progress
from apps.session.summary import certificate, felt, flags_seen
from haptics.errors import ConfigurationError, DeviceFault, HapticError, RecordingError, ServoLost
from haptics.process import SILENCE, Job, Paths, ServoProcess
from haptics.recording import EVENTS, Recorder, append_line
from haptics.rendering import parameters_of
from haptics.servo import End
from haptics.trace import Reader

RECORD_EVERY = 0.02
"""The recorder writes the trace to disk this often [s]: what a killed application can lose from its file."""

HEARTBEAT_EVERY = 0.02
"""The session gives the servo a sign of life at least this often [s]."""

FROZEN = 3.0
"""A servo that has not executed a tick for this long [s] counts as lost."""

DEVICE_LOG = "device_log.npy"
INTERRUPTED = "interrupted"
FAULT = "fault"

_PACKAGES = ("haptics", "numpy", "numba", "pyqtgraph", "PySide6-Essentials", "matplotlib")


@dataclass(frozen=True)
class Outcome:
    """How a session went.

    Attributes
    ----------
    summary : dict
        The keys of the command's JSON output.
    reason : str
        ``completed``, ``stopped``, ``interrupted`` or ``fault``.
    fault : HapticError or None
        What went wrong, if anything did; the recording was kept.
    """

    summary: dict[str, Any]
    reason: str
    fault: HapticError | None = None


Listen = Callable[[], Iterable[Any]]


class Session:
    """One run of one configuration.

    Parameters
    ----------
    config : SessionConfig
        Complete and validated.
    tell : callable
        Takes a line for the person.
    """

    def __init__(self, config: SessionConfig, tell: Callable[[str], None]) -> None:
        self.config = config
        self._spec = config.make_device().spec
        self._tell = tell
        self._interrupted = False
        self._stopping = False
        self._progress = Progress(config.session.duration)
        self._recorder = self._new_recorder(Path(config.session.record))
        self._folder = self._recorder.folder
        self._recorder.journal_settings(0, _journal_entry(config))
        self._servo = ServoProcess(self._job())
        self._recorder.follow(Reader(self._servo.trace))

    @property
    def started(self) -> dict[str, Any]:
        """What a view must know of this run: the fields of `messages.SessionStarted` that the run itself decides."""
        spec, session = self._spec, self.config.session
        return {
            "trace": str(self._servo.trace.path),
            "recording": str(self._folder),
            "device": self.config.device,
            "model": session.model,
            "causality": str(spec.causality),
            "rate_hz": session.rate,
            "hand": self.config.hand,
            "workspace": (spec.workspace_min, spec.workspace_max),
            "mouse": self.config.hand == "mouse",
            "force_scale": self.config.make_element().law.breakaway_force or 1.0,
            "duration": session.duration,
        }

    def interrupt(self) -> None:
        """End the run as Ctrl-C does."""
        self._interrupted = True
        self.stop()

    def stop(self) -> None:
        """End the run in order."""
        self._stopping = True
        self._servo.stop()

    def change(self, key: str, value: float) -> None:
        """Change one parameter from the next tick on, writing it down first.

        Raises
        ------
        ConfigurationError
            If the value is not allowed; nothing changes.
        """
        config = self.config.with_parameter(key, value)
        self._recorder.journal_settings(self._servo.next_version, _journal_entry(config))
        self._servo.publish(parameters_of(config.make_element()))
        self.config = config

    def run(self, attend: Callable[[], None] = lambda: None, listen: Listen = tuple) -> Outcome:
        """Run to the end, whatever that is; afterwards the recording is complete.

        Parameters
        ----------
        attend : callable
            Called between heartbeats and whenever one of `listen` has something to say; serves the view.
        listen : callable
            Returns the connections to wait for besides the servo's.

        Returns
        -------
        Outcome
            Its ``fault`` is set where something failed after the device was open.

        Raises
        ------
        HapticError
            What kept the device from being opened.
        """
        self._tell(f"recording to {self._folder}")
        background = _Background(self._recorder, on_error=self.stop)
        background.start()
        reason, fault = FAULT, None
        try:
            self._servo.start()
            reason = self._until_the_end(attend, listen)
        except HapticError as error:
            fault = error
        finally:
            self._progress.clear()
            background.finish()
            self._servo.close()
        if not background.error:
            self._last_rows(background)
        if fault is not None and "real_time" not in self._recorder.metadata:
            self._close({"reason": FAULT, "error": str(fault)}, complete=False)
            raise fault
        return self._outcome(reason if fault is None and background.error is None else FAULT, background.error or fault)

    def _last_rows(self, background: _Background) -> None:
        """Record what the trace has gained since the background drained it last."""
        try:
            self._recorder.drain()
        except OSError as error:
            background.error = _not_recorded(error)

    def _until_the_end(self, attend: Callable[[], None], listen: Listen) -> str:
        count, changed = 0, time.monotonic()
        while True:
            self._servo.beat()
            wait([self._servo.connection, *listen()], HEARTBEAT_EVERY)
            message = self._servo.next_message()
            if message is not None and message[0] == "ready":
                self._recorder.note(real_time=message[1])
            elif message is not None:
                return self._reason(End(message[1]))
            self._progress.show(self._servo.trace)
            attend()
            now = time.monotonic()
            if self._servo.trace.count != count or "real_time" not in self._recorder.metadata:
                count, changed = self._servo.trace.count, now
            elif now - changed > FROZEN:
                raise ServoLost(
                    f"the servo process has not run for {FROZEN:g} s (it was stopped, or its device blocks) and was "
                    "ended: its device watches over itself now."
                )

    def _reason(self, end: End) -> str:
        if end is End.STOPPED and not self._stopping:
            raise DeviceFault("the servo process was asked to terminate by somebody else: the device is safe.")
        if end is End.APPLICATION_LOST:
            raise DeviceFault(
                f"the session gave the servo no sign of life for more than {SILENCE:g} s (it was stopped, or the "
                "machine was too busy), so the device was brought to its safe output: start again."
            )
        return INTERRUPTED if self._interrupted else str(end)

    def _outcome(self, reason: str, fault: HapticError | None) -> Outcome:
        executed = self._servo.trace.count
        rate, duration = self.config.session.rate, self.config.session.duration
        planned = round(duration * rate) if duration is not None and reason == End.COMPLETED else None
        try:
            rows = self._recorder.rows()
        except RecordingError as error:  # somebody removed it; the end of the run is still in memory
            rows = self._servo.trace.since(0)
            fault = fault or DeviceFault(f"the recording was lost in mid-run: {error}")
        if isinstance(fault, ServoLost):
            self._journal_loss()
        timing = certificate(rows, executed, planned, 1.0 / rate)
        forces = felt(rows, self._spec.causality)
        real_time = self._recorder.metadata.get("real_time", {})
        result = {
            "reason": reason,
            "error": str(fault) if fault else None,
            "certificate": {**timing, **real_time},
            "flags": flags_seen(rows),
            **forces,
        }
        self._close(result, complete=not isinstance(fault, ServoLost))
        del timing["late_ticks"]
        summary = {
            "recording": str(self._folder),
            "picture": None,
            "device": self.config.device,
            "model": self.config.session.model,
            "rate_hz": rate,
            **timing,
            "realtime": real_time.get("scheduling", "other"),
            **forces,
            "reason": reason,
        }
        return Outcome(summary, reason, fault)

    def _journal_loss(self) -> None:
        """Write down the end of a servo that could not do so itself."""
        line = {"event": "servo lost", "ticks": self._servo.trace.count, "noticed_monotonic_ns": time.monotonic_ns()}
        with contextlib.suppress(OSError):
            append_line(self._folder / EVENTS, line)

    def _close(self, result: dict[str, Any], *, complete: bool) -> None:
        """Close the recording; on a full disk what is written must do."""
        try:
            self._recorder.close(result, complete=complete)
        except OSError as error:
            self._tell(f"the end of the recording could not be written ({error.strerror}); its ticks are kept.")

    def _job(self) -> Job:
        settings = dict(self.config.device_settings)
        if devices.is_virtual(self.config.device):
            settings.setdefault("log", str(self._folder / DEVICE_LOG))
        return Job(
            factory=functools.partial(_make_device, self.config.device, settings),
            element=self.config.make_element(),
            limits=self.config.make_limits(self._spec),
            duration=self.config.session.duration,
            recording=self._folder,
            paths=Paths.unique(),
        )

    def _new_recorder(self, parent: Path) -> Recorder:
        """Begin a recording in a new folder of `parent`.

        Raises
        ------
        ConfigurationError
            If nothing can be written there.
        """
        now = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
        name = f"{now}_{self.config.device}_{self.config.session.model}"
        for number in itertools.count(1):
            try:
                return Recorder(parent / (name if number == 1 else f"{name}_{number}"), self._metadata())
            except FileExistsError:
                if not parent.is_dir():
                    raise ConfigurationError(f"session.record = {parent}: must be a folder.") from None
            except OSError as error:
                raise ConfigurationError(
                    f"session.record = {parent}: no recording can be made there ({error.strerror})."
                ) from error
        raise AssertionError  # pragma: no cover - counting does not end

    def _metadata(self) -> dict[str, Any]:
        return {
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            "device": asdict(self._spec),
            "model": self.config.session.model,
            "rate_hz": self.config.session.rate,
            "configuration": self.config.as_dict(),
            "limits": asdict(self.config.make_limits(self._spec)),
            "parameter_file_hash": self.config.parameter_file_hash,
            "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        }


def _make_device(name: str, settings: dict[str, Any], clock: Any) -> Any:
    """Build the device inside the servo process."""
    return devices.create_device(name, settings, clock=clock)


class _Background(threading.Thread):
    """Moves the trace to the disk while the session does other things.

    Parameters
    ----------
    recorder : Recorder
        What to drain.
    on_error : callable
        Called once if the disk refuses: a run that cannot be recorded must not go on.

    Attributes
    ----------
    error : DeviceFault or None
        Why recording failed.
    """

    def __init__(self, recorder: Recorder, on_error: Callable[[], None]) -> None:
        super().__init__(name="haptics recorder", daemon=True)
        self._recorder = recorder
        self._on_error = on_error
        self._finished = threading.Event()
        self.error: DeviceFault | None = None

    def run(self) -> None:
        """Drain until told to finish."""
        while not self._finished.wait(RECORD_EVERY):
            try:
                self._recorder.drain()
            except OSError as error:
                self.error = _not_recorded(error)
                self._on_error()
                return

    def finish(self) -> None:
        """Stop draining."""
        self._finished.set()
        self.join()


def _not_recorded(error: OSError) -> DeviceFault:
    return DeviceFault(f"the recording could not be written ({error.strerror or error}): the run was stopped.")


def _journal_entry(config: SessionConfig) -> dict[str, Any]:
    return {"model": config.session.model, "law": config.law, "element": config.element}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
