"""One session from before the first tick to the summary: recorder, servo process and, where wanted, the view."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.connection import wait
from typing import Any

from apps.session.config import SessionConfig
from apps.session.counsel import Counsel
from apps.session.held_key import HeldKey
from apps.session.job import make_job
from apps.session.models import Table
from apps.session.outcome import Outcome
from apps.session.preparation import NeverStarted, Preparation
from apps.session.progress import Progress
from apps.session.record import journal_entry, new_recorder
from devices.faults import describe, parse_fault
from haptics.background import RECORD_AT_ONCE, RECORD_EVERY, Background, FrozenWatch
from haptics.certificate import NOT_PRINTED, certificate, felt, flags_seen, real_time_factor
from haptics.elements import Element
from haptics.ending import FAULT, Ending, not_written
from haptics.errors import DeviceFault, HapticError, ServoLost
from haptics.job import SILENCE
from haptics.loop import End
from haptics.process import ServoProcess
from haptics.trace import Reader, Rows

HEARTBEAT_EVERY = 0.01
"""The session gives the servo a sign of life at least this often [s]."""

INTERRUPTED = "interrupted"

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
    prepare : callable, optional
        Takes what is done before the first tick, in words; empty when that is over.
    """

    def __init__(
        self,
        config: SessionConfig,
        tell: Callable[[str], None],
        warn: Callable[[str], None] | None = None,
        progress: Progress | None = None,
        prepare: Callable[[str], None] = lambda words: None,
    ) -> None:
        self.config = config
        self._spec = config.make_device().spec
        self._faults = tuple(parse_fault(text) for text in config.session.faults)
        self._tell = tell
        self._warn = warn or tell
        self._counsel = Counsel(self._spec)
        self._counsel.consider(config.make_element(), 0)
        self._program = 0
        self._interrupted = False
        self._stopping = False
        self._progress = progress or Progress(config.session.duration)
        self._preparation = Preparation(config.device, self._progress, tell, prepare)
        self._recorder = new_recorder(config, self._spec, self._counsel.record)
        self._folder = self._recorder.folder
        self._servo = ServoProcess(make_job(config, self._spec, self._faults, self._folder))
        self._recorder.follow(Reader(self._servo.trace))
        self._key = HeldKey(self._servo.job.paths.control.path)
        self._ending = Ending(self._recorder, self._servo.trace, tell)

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

    def hold_key(self, at: float | None) -> None:
        """Take note that the person held the dead-man's key at the instant `at` [s, monotonic], or has let it go."""
        if at is None:
            self._key.let_go()
        else:
            self._key.held(at)

    def stop(self) -> None:
        """End the run in order."""
        self._stopping = True
        self._servo.stop()

    def fail(self, fault: HapticError) -> None:
        """End the run in order because of a fault beside it; the outcome has the first one."""
        self._ending.fail(fault)
        self.stop()

    @property
    def _started(self) -> bool:
        """Whether the device has been opened."""
        return "real_time" in self._recorder.metadata

    def change(self, key: str, value: float) -> None:
        """Change one parameter from the next tick on, writing it down first; what cannot be written ends the run.

        Raises
        ------
        ConfigurationError
            If the value is not allowed; nothing changes.
        """
        self._go_on_with(self.config.with_parameter(key, value))

    def configure(self, tables: Mapping[str, Table]) -> None:
        """Go on with another law, another model of the same causality, or other parameters, all at one tick.

        An element keeps its state where the model stays, and begins at its beginning where it does not; the force
        eases from the old one. It is written down first; what cannot be written ends the run.

        Parameters
        ----------
        tables : mapping
            See `apps.session.config.SessionConfig.with_tables`.

        Raises
        ------
        ConfigurationError
            If something cannot be changed in mid-run, or is not allowed; nothing changes.
        """
        self._go_on_with(self.config.with_tables(tables))

    def gate(self, closed: bool) -> None:
        """Let the output down, as between two trials, or up again (`haptics.loop_kernels.GATE_TIME`)."""
        self._servo.gate(closed)

    def mark(self, marker: int) -> None:
        """Let the rows from the next tick on carry `marker`: the trial or stage that they belong to."""
        self._servo.mark(marker)

    def _go_on_with(self, config: SessionConfig) -> None:
        """Put the program of `config` in force, at the next tick or as soon as its functions are compiled."""
        element, version = config.make_element(), self._servo.next_version
        self._program += config.session.model != self.config.session.model
        with self._writing():
            entry = {**journal_entry(config), "program": self._program}
            self._recorder.journal_settings(version, entry)
            self._servo.take(element, {"version": version, **entry})
            self.config = config
            self._advise(element, version)

    def _advise(self, element: Element, version: int) -> None:
        """Say which bounds `element` exceeds that were not exceeded before, and write it down."""
        warning = self._counsel.consider(element, version)
        if warning:
            self._progress.clear()
            self._warn(warning)
            self._recorder.note(advice=self._counsel.record)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """End the run in order if its recording cannot be written: nobody may miss data without knowing it."""
        try:
            yield
        except OSError as error:
            self._not_written(error)

    def _not_written(self, error: OSError) -> None:
        self.fail(not_written(error, "the run was stopped"))

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
        NeverStarted
            If the run was called off before that. In both cases no recording is left behind.
        """
        try:
            return self._run(attend, listen)
        except BaseException:
            if not self._started and not self._ending.servo_lost:
                shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def _run(self, attend: Callable[[], None], listen: Listen) -> Outcome:
        self._announce()
        live = self.config.session.clock == "wall"
        every = RECORD_EVERY if live else RECORD_AT_ONCE
        background = Background(self._recorder, self._not_written, self._servo.recorded, every)
        background.start()
        with contextlib.ExitStack() as servo:
            servo.callback(self._servo.close)
            try:
                reason = self._serve(attend, listen)
                if self._ending.servo_lost:
                    servo.close()  # while it was being killed it may have come to another tick
                background.finish()
                # Only then is the servo dismissed: until its recording is closed it stands by to do that itself.
                rows = self._ending.settle(reason, complete=self._started)
            except BaseException:
                servo.close()
                background.finish()
                self._ending.settle(INTERRUPTED, complete=False)
                raise
        if self._ending.fault is not None and not self._started:
            raise self._ending.fault
        return self._outcome(reason, rows)

    def _announce(self) -> None:
        self._tell(f"recording to {self._folder}")
        if self._faults:
            self._tell(f"faults on demand: {describe(self._faults)}")
        if self._counsel.warnings:
            self._warn(" ".join(self._counsel.warnings))

    def _serve(self, attend: Callable[[], None], listen: Listen) -> str:
        """Run the servo to its end; return why it ended, if not by a fault."""
        try:
            self._servo.start()
            return self._until_the_end(attend, listen)
        except ServoLost as error:
            self._ending.fail(ServoLost(f"{self.config.device} lost its servo: {error}", error.rows))
        except HapticError as error:
            self._ending.fail(error)
        finally:
            self._progress.clear()
        return FAULT

    def _until_the_end(self, attend: Callable[[], None], listen: Listen) -> str:
        watch = FrozenWatch()
        while True:
            stopping = self._stopping
            self._servo.beat()
            wait([self._servo.connection, *listen()], HEARTBEAT_EVERY)
            message = self._servo.next_message()
            match message:
                case ("compiling" | "opening") as stage, facts:
                    self._preparation.take(stage, facts)
                case "ready", granted:
                    self._preparation.take("ready", None)
                    with self._writing():
                        self._recorder.note(real_time=granted)
                case "ended", end:
                    reason = self._reason(End(end))
                    if not self._started:
                        raise NeverStarted
                    return reason
                case None if stopping and not (self._started or self._preparation.opening):
                    self._servo.kill()  # it only compiles; it asks whether to stop before it touches the device
                    raise NeverStarted
            if not self._started:
                self._preparation.refresh()
            self._progress.show(self._servo.trace)
            attend()
            watch.look(self._servo, started=self._started)

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

    def _judged(self, timing: dict[str, Any]) -> dict[str, Any]:
        """Return the verdict on a run with this timing certificate."""
        fault = self._ending.fault
        unfit = self.config.fitness.judge(timing, str(fault) if fault is not None else None)
        return {"fit": not unfit, "unfit_because": unfit}

    def _outcome(self, reason: str, rows: Rows) -> Outcome:
        rate, duration = self.config.session.rate, self.config.session.duration
        planned = round(duration * rate) if duration is not None and reason == End.COMPLETED else None
        timing = certificate(rows, self._servo.trace.count, planned, 1.0 / rate)
        forces = felt(rows, self._spec.causality)
        timing |= {**self._judged(timing), **self._servo.used}
        real_time = self._recorder.metadata["real_time"]
        self._ending.certify(certificate={**timing, **real_time}, flags=flags_seen(rows), **forces)
        timing |= self._judged(timing)  # what could not be written makes it unfit
        reason = self._ending.reason(reason)
        summary = {
            "recording": str(self._folder),
            "picture": None,
            "device": self.config.device,
            "model": self.config.session.model,
            "rate_hz": rate,
            **{name: value for name, value in timing.items() if name not in NOT_PRINTED},
            "realtime": real_time.get("scheduling", "other"),
            "processors": real_time.get("processors", "unknown"),
            **forces,
            "reason": reason,
            "advice": self._counsel.warnings,
        }
        if self.config.session.clock == "off":
            summary["real_time_factor"] = real_time_factor(len(rows) / rate, self._servo.used)
        return Outcome(summary, reason, self._ending.fault)
