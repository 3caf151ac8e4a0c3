"""One session from before the first tick to the summary: recorder, servo process and, where wanted, the view."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

import devices
from apps.session.background import Background, FrozenWatch
from apps.session.config import SessionConfig
from apps.session.counsel import Counsel
from apps.session.progress import Progress
from apps.session.record import new_recorder
from apps.session.summary import NOT_PRINTED, certificate, felt, flags_seen
from devices.faults import Fault, FaultyDevice, describe, parse_fault
from haptics.errors import DeviceFault, HapticError, RecordingError, ServoLost
from haptics.job import SILENCE, Job, Paths
from haptics.process import ServoProcess
from haptics.recording import EVENTS, append_line
from haptics.rendering import parameters_of
from haptics.servo import End
from haptics.trace import Reader

HEARTBEAT_EVERY = 0.01
"""The session gives the servo a sign of life at least this often [s]."""

DEVICE_LOG = "device_log.npy"
INTERRUPTED = "interrupted"
FAULT = "fault"


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
    warn : callable, optional
        Takes a line about parameters that do not suit the device; as a rule `tell`.
    progress : Progress, optional
        Shows how far the run is; a line on the terminal by default.
    """

    def __init__(
        self,
        config: SessionConfig,
        tell: Callable[[str], None],
        warn: Callable[[str], None] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.config = config
        self._spec = config.make_device().spec
        self._faults = tuple(parse_fault(text) for text in config.session.faults)
        self._tell = tell
        self._warn = warn or tell
        self._counsel = Counsel(self._spec)
        self._counsel.consider(config.make_element(), 0)
        self._interrupted = False
        self._stopping = False
        self._progress = progress or Progress(config.session.duration)
        self._recorder = new_recorder(config, self._spec, self._counsel.record)
        self._folder = self._recorder.folder
        self._recorder.journal_settings(0, _journal_entry(config))
        self._servo = ServoProcess(self._job())
        self._recorder.follow(Reader(self._servo.trace))

    @property
    def started(self) -> dict[str, Any]:
        """What a view must know of this run: the fields of `messages.SessionStarted` that the run itself decides."""
        spec, session = self._spec, self.config.session
        limits = self.config.make_limits(spec)
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
            "max_energy": limits.max_energy,
            "dead_man": limits.dead_man,
        }

    def interrupt(self) -> None:
        """End the run as Ctrl-C does."""
        self._interrupted = True
        self.stop()

    def hold_key(self, held: bool) -> None:
        """Take note that the person holds the dead-man's key, or has let it go."""
        self._servo.hold_key(held)

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
        element, version = config.make_element(), self._servo.next_version
        self._recorder.journal_settings(version, _journal_entry(config))
        self._servo.publish(parameters_of(element))
        self.config = config
        warning = self._counsel.consider(element, version)
        if warning:
            self._progress.clear()
            self._warn(warning)
            with contextlib.suppress(OSError):  # a full disk ends the run elsewhere
                self._recorder.note(advice=self._counsel.record)

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
        if self._faults:
            self._tell(f"faults on demand: {describe(self._faults)}")
        if self._counsel.warnings:
            self._warn(" ".join(self._counsel.warnings))
        background = Background(self._recorder, on_error=self.stop)
        background.start()
        reason = FAULT
        fault: HapticError | None = None
        try:
            self._servo.start()
            reason = self._until_the_end(attend, listen)
        except ServoLost as error:
            fault = ServoLost(f"{self.config.device} lost its servo: {error}", error.rows)
        except HapticError as error:
            fault = error
        finally:
            self._progress.clear()
            background.finish()
            self._servo.close()
        if not background.error:
            background.drain()
        if fault is not None and "real_time" not in self._recorder.metadata:
            self._close({"reason": FAULT, "error": str(fault)}, complete=False)
            raise fault
        return self._outcome(reason if fault is None and background.error is None else FAULT, background.error or fault)

    def _until_the_end(self, attend: Callable[[], None], listen: Listen) -> str:
        watch = FrozenWatch()
        while True:
            self._servo.beat()
            wait([self._servo.connection, *listen()], HEARTBEAT_EVERY)
            message = self._servo.next_message()
            match message:
                case "ready", granted:
                    self._recorder.note(real_time=granted)
                case "ended", end:
                    return self._reason(End(end))
            self._progress.show(self._servo.trace)
            attend()
            watch.look(self._servo, started="real_time" in self._recorder.metadata)

    def _reason(self, end: End) -> str:
        if end is End.STOPPED and not self._stopping:
            raise DeviceFault(
                f"{self.config.device} was brought to its safe output after tick {self._servo.newest_tick}: somebody "
                "else asked the servo process to terminate."
            )
        if end is End.APPLICATION_LOST:
            raise DeviceFault(
                f"{self.config.device} was brought to its safe output after tick {self._servo.newest_tick}: the "
                f"session was stopped, or gave the servo no sign of life for {SILENCE:g} s. Start again."
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
        unfit = self.config.fitness.judge(timing)
        timing |= {"fit": not unfit, "unfit_because": unfit, **self._servo.used}
        real_time = self._recorder.metadata.get("real_time", {})
        result = {
            "reason": reason,
            "error": str(fault) if fault else None,
            "certificate": {**timing, **real_time},
            "flags": flags_seen(rows),
            **forces,
        }
        self._close(result, complete=not isinstance(fault, ServoLost))
        timing = {name: value for name, value in timing.items() if name not in NOT_PRINTED}
        summary = {
            "recording": str(self._folder),
            "picture": None,
            "device": self.config.device,
            "model": self.config.session.model,
            "rate_hz": rate,
            **timing,
            "realtime": real_time.get("scheduling", "other"),
            "processors": real_time.get("processors", "unknown"),
            **forces,
            "reason": reason,
            "advice": self._counsel.warnings,
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
            factory=functools.partial(
                _make_device, self.config.device, settings, self._faults, self.config.session.seed
            ),
            element=self.config.make_element(),
            limits=self.config.make_limits(self._spec),
            duration=self.config.session.duration,
            recording=self._folder,
            paths=Paths.unique(),
            real_time=self.config.servo,
        )


def _make_device(name: str, settings: dict[str, Any], faults: Sequence[Fault], seed: int, clock: Any) -> Any:
    """Build the device inside the servo process, with its faults on demand around it."""
    device = devices.create_device(name, settings, clock=clock)
    return FaultyDevice(device, faults, clock, seed) if faults else device


def _journal_entry(config: SessionConfig) -> dict[str, Any]:
    return {"model": config.session.model, "law": config.law, "element": config.element}
