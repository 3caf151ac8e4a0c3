"""One session from preparation to summary: with a servo process and front ends, or offline in this process.

The progress of a run, and its report, are text for the terminal.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import devices
from apps.session.record import KeyJournal, ParameterAdvice, journal_entry, new_recorder
from apps.settings.config import SessionConfig
from apps.settings.models import Table
from apps.shared.display import certificate, durations, microseconds, verdict
from apps.shared.terminal import Line, wrapped
from devices.common.log import DEVICE_LOG
from devices.faults import create_faulty, describe, parse_fault
from haptics.clock import Clock
from haptics.errors import ConfigurationError, HapticError
from haptics.recording.certificate import NOT_PRINTED, real_time_factor
from haptics.recording.recorder import RunCloser, not_written
from haptics.recording.recording import Recording
from haptics.records import UNUSABLE
from haptics.servo.control import Job, SharedFiles
from haptics.servo.kernels import CONTROL
from haptics.servo.run import INTERRUPTED, ExtraConnections, Run
from haptics.servo.servo import MAX_TICKS_PER_CALL, EndReason, Servo
from haptics.servo.standby import Standby
from haptics.shared import Mailbox, SharedFile
from haptics.trace import Reader, Ring, Trace

# --- progress and report of a run -------------------------------------------------------------------------------------

_EVERY, _PREPARATION_EVERY = 0.2, 0.5
"""Intervals between updates during a run, and before it [s]."""

_COLUMN = 18
_PLAIN = str.maketrans({"\u00a0": " ", "\u2009": "", "µ": "u"})
"""Replacements for terminals that support ASCII only."""


class Progress:
    """Progress line of a run: compilation of kernels and opening of the device, then time and state of the contact.

    Parameters
    ----------
    device : str
        Name of the device.
    duration : float or None
        Planned duration of the run [s].
    notify : callable
        Receives lines for the user that are printed once.
    show : callable
        Receives the present activity before the first tick; empty when the preparation is complete.
    quiet : bool
        Whether nothing is written to the terminal, for runs whose progress is shown elsewhere.
    """

    def __init__(
        self,
        device: str,
        duration: float | None,
        notify: Callable[[str], None],
        show: Callable[[str], None],
        quiet: bool = False,
    ) -> None:
        self._device, self._duration, self._notify, self._show, self._quiet = device, duration, notify, show, quiet
        self._line, self._preparing = Line(), "preparing"
        self._began = time.monotonic()
        self._next = self._next_preparation = 0.0
        self._kernels: tuple[int, int] | None = None
        self._opening, self._instruction = False, ""

    def handle_message(self, stage: str, facts: Any) -> None:
        """Handle a progress message: ``compiling``, ``compiled``, ``opening``, ``instruction`` or ``ready``."""
        if stage == "ready":
            self._next_preparation = float("inf")
            self._show("")
            return
        if stage == "compiling":
            if self._kernels is None:
                self._line.clear()
                self._notify("compiling kernels, which takes a minute or two; the next run reuses them")
            self._kernels = facts
        elif stage == "opening":
            self._opening = True
        elif stage == "instruction":
            self._instruction = facts
            if facts:
                self._line.clear()
                self._notify(facts)
        self._next_preparation = 0.0
        self.show_preparation()

    def show_preparation(self) -> None:
        """Show the present activity before the first tick, at most twice per second."""
        now = time.monotonic()
        if now < self._next_preparation:
            return
        self._next_preparation = now + _PREPARATION_EVERY
        words, seconds = "", now - self._began
        if self._instruction:
            words = self._instruction
        elif self._opening:
            words = f"opening {self._device} ({seconds:.0f} s)"
        elif self._kernels is not None:
            number, about = self._kernels
            words = f"compiling kernel {number} of about {about} ({seconds:.0f} s; only the first time)"
        if words:
            self._preparing = words
            if not self._quiet:
                self._line.show(words)
            self._show(words)

    def show_run(self, trace: Ring) -> None:
        """Show the progress of the run, at most five times per second."""
        now = time.monotonic()
        if now < self._next or self._quiet:
            return
        self._next = now + _EVERY
        newest = trace.since(trace.count - 1)
        if not len(newest):
            self._line.show(self._preparing)
            return
        row, duration = newest[-1], self._duration
        done = f"{row['time']:.1f} s" + (f" of {duration:g} s" if duration else " (Ctrl-C ends the run)")
        friction, state = float(np.hypot(*row["friction_force"])), "sticking" if row["sticking"] else "slipping"
        self._line.show(f"{done}   friction {friction:5.2f} N   {state}")

    def clear(self) -> None:
        """Remove the line."""
        self._line.clear()


def describe_run(summary: dict[str, Any]) -> str:
    """Return the report of a run, advice last; `summary` has the keys of the JSON output."""
    lines = []
    found = verdict(summary)
    if found is not None:
        lines += [("verdict", found.word), *(("because", reason) for reason in found.reasons)]
    lines += [
        ("recording", str(summary["recording"])),
        ("picture", str(summary["picture"] or "none")),
        *certificate({name: value for name, value in summary.items() if name != "rate_hz"}),
    ]
    for name, values in durations(summary).items():
        lines.append((name, ", ".join(f"{word} {microseconds(value)}" for word, value in values.items())))
    lines += [("advice", sentence) for sentence in summary.get("advice", ())]
    head = f"{summary['device']}, model {summary['model']}, {summary['rate_hz']:g} Hz: {summary['reason']}"
    body = "\n".join(f"  {name:<{_COLUMN}}{value}".translate(_PLAIN) for name, value in lines)
    return wrapped(f"{head}\n{body}", indent=2 + _COLUMN)


# --- sessions ---------------------------------------------------------------------------------------------------------

_REVIEW_TICKS = 200
"""Number of ticks between two reviews by the device (`haptics.device.Device`)."""

_CAPACITY = 4 * MAX_TICKS_PER_CALL
"""Capacity of the trace of an offline session."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a session.

    Attributes
    ----------
    summary : dict
        Summary with the keys of the command's JSON output.
    reason : str
        ``completed``, ``stopped``, ``interrupted`` or ``fault``.
    fault : HapticError or None
        Error that ended the run, if any; the recording is kept.
    """

    summary: dict[str, Any]
    reason: str
    fault: HapticError | None = None


class Session(Run):
    """One run of one configuration.

    Parameters
    ----------
    config : SessionConfig
        Complete and validated configuration.
    notify : callable
        Receives lines for the user.
    warn : callable, optional
        Receives warnings about parameters that do not suit the device; `notify` by default.
    prepare : callable, optional
        Receives the activity before the first tick; empty when the preparation is complete.
    folder : Path, optional
        Folder of the recording; a new folder in the session's folder for recordings by default.
    standby : Standby, optional
        Servo process that waits for its job.
    quiet : bool
        Whether no progress is shown on the terminal.
    steps : bool
        Whether a run in simulated time executes its first tick only, and further ticks on request (`advance`).

    Attributes
    ----------
    keys : KeyJournal
        Journal of the key events, which accepts listeners.
    version : int
        Version of the settings in force; the rows computed with them have this ``settings_version``.
    """

    def __init__(
        self,
        config: SessionConfig,
        notify: Callable[[str], None],
        warn: Callable[[str], None] | None = None,
        prepare: Callable[[str], None] = lambda words: None,
        folder: Path | None = None,
        standby: Standby | None = None,
        quiet: bool = False,
        steps: bool = False,
    ) -> None:
        self.config = config
        self._spec, self._limits = config.spec, config.limits
        self._faults = tuple(parse_fault(text) for text in config.session.faults)
        self._notify = notify
        self._warn = warn or notify
        self._advice = ParameterAdvice(config.known_spec)
        self._advice.consider(config.strongest_element, 0, config.scene)
        self._program = self.version = self._reviewed = 0
        self._review = getattr(config.made[0], "review", None)
        self._interrupted = False
        self._first_advice = ""
        self._attend: Callable[[], None] = lambda: None
        self._progress = Progress(config.device, config.session.duration, notify, prepare, quiet)
        recorder = new_recorder(config, self._advice.record, folder)
        self.folder = recorder.folder
        live = config.session.clock == "wall"
        settings = dict(config.device_settings)
        if live and devices.has_simulated_hand(config.device, settings):
            settings.setdefault("log", str(self.folder / DEVICE_LOG))
        job = Job(
            factory=functools.partial(create_faulty, config.device, settings, self._faults, config.session.seed),
            element=config.program,
            limits=config.limits,
            duration=config.session.duration,
            recording=self.folder,
            paths=SharedFiles.unique(),
            real_time=config.servo,
            live=live,
            steps=steps and not live,
        )
        super().__init__(recorder, job, config.device, notify, standby)
        self._key_ns = Mailbox(self.servo.job.paths.control.path, CONTROL).record["key_ns"]
        self.keys = KeyJournal(recorder, self.servo.trace, config.session.rate if live else None)
        if job.steps:
            self.servo.grant(1)

    @property
    def started(self) -> dict[str, Any]:
        """Fields of `messages.SessionStarted` that the run itself determines."""
        spec, limits, session = self._spec, self._limits, self.config.session
        return {
            "trace": str(self.servo.trace.path),
            "recording": str(self.folder),
            "device": self.config.device,
            "model": session.model,
            "causality": str(spec.causality),
            "rate_hz": session.rate,
            "hand": self.config.hand,
            "workspace": (spec.workspace_min, spec.workspace_max),
            "mouse": self.config.hand == "mouse",
            "force_scale": self.config.strongest_element.law.breakaway_force or 1.0,
            "duration": session.duration,
            "max_energy": limits.max_energy,
            "dead_man": limits.dead_man,
        }

    # --- requests -----------------------------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """End the run as Ctrl-C does."""
        self._interrupted = True
        self.stop()

    def hold_key(self, at: float | None) -> None:
        """Pass the instant `at` [s, monotonic] at which the dead-man's key was held to the servo; None releases it.

        The servo releases the output `haptics.servo.kernels.KEY_TIMEOUT` after that instant. A late message can
        therefore only shorten the hold, and a lost message ends it. Future instants are clipped to the present.
        """
        self._key_ns[0] = 0 if at is None else min(round(at * 1e9), time.monotonic_ns())

    def handle_key(self, name: str, down: bool, at: float) -> None:
        """Write a key event at the instant `at` [s, monotonic] to the recording and notify the listeners.

        If the event cannot be written, the run is ended.
        """
        try:
            event = self.keys.write(name, down, at)
        except OSError as error:
            self.not_written(error)
        else:
            self.keys.announce(event)

    def change(self, key: str, value: float) -> None:
        """Change one parameter at the next tick, after writing it to the recording.

        If it cannot be written, the run is ended.

        Raises
        ------
        ConfigurationError
            If the value is not allowed; nothing is changed.
        """
        self._switch_to(self.run_with_heartbeats(lambda: self.config.with_parameter(key, value)))

    def configure(self, tables: Mapping[str, Table]) -> None:
        """Change the law, the model (of the same causality), or other parameters, all in one tick.

        The element keeps its state if the model is unchanged, and starts from its initial state otherwise; the force is
        blended from the old element to the new one. The change is first written to the recording; if that fails, the
        run is ended.

        Parameters
        ----------
        tables : mapping
            See `apps.settings.config.SessionConfig.with_tables`.

        Raises
        ------
        ConfigurationError
            If a setting is not allowed or cannot be changed during a run; nothing is changed.
        """
        self._switch_to(self.run_with_heartbeats(lambda: self.config.with_tables(tables)))

    def gate(self, closed: bool) -> None:
        """Fade the output out, as between two trials, or in again.

        The fade takes `haptics.servo.kernels.GATE_TIME`.
        """
        self.servo.gate(closed)

    def mark(self, marker: int) -> None:
        """Set the marker of all rows from the next tick on: the trial or stage to which they belong."""
        self.servo.mark(marker)

    def advance(self, ticks: int) -> None:
        """Execute a number of further ticks of a run in steps; returns before they are executed.

        Raises
        ------
        ConfigurationError
            If the run follows the wall clock, or the number is not positive.
        """
        if not self.servo.job.steps:
            raise ConfigurationError("advance: a session that follows the wall clock cannot be advanced; wait instead.")
        if ticks < 1:
            raise ConfigurationError(f"advance: {ticks} ticks; must be at least 1.")
        self.servo.grant(ticks)

    def _switch_to(self, config: SessionConfig) -> None:
        """Put the program of `config` in force at the next tick, or once its functions are compiled."""
        element, version = config.strongest_element, self.servo.next_version
        self._program += config.session.model != self.config.session.model
        with self.writing():
            entry = {**journal_entry(config), "program": self._program}
            self.recorder.journal_settings(version, entry)
            self.servo.switch_program(config.program, {"version": version, **entry})
            if self.servo.job.steps:  # the change holds from the next tick on, not from some later one
                self.run_with_heartbeats(self.servo.await_program)
            self.config, self.version = config, version
            warning = self._advice.consider(element, version, config.scene)
            if warning:
                self._progress.clear()
                self._warn(warning)
                self.recorder.update_metadata(advice=self._advice.record)

    # --- course of the run --------------------------------------------------------------------------------------------

    def run(self, attend: Callable[[], None] = lambda: None, listen: ExtraConnections = tuple) -> Outcome:
        """Run the session to its end and complete the recording.

        Parameters
        ----------
        attend : callable
            Called between heartbeats and whenever a connection of `listen` is ready; serves the front ends.
        listen : callable
            Returns the connections to wait for, in addition to the servo's.

        Returns
        -------
        Outcome
            Its ``fault`` is set if an error occurred after the device was opened.

        Raises
        ------
        HapticError
            If the device could not be opened.
        StartCancelled
            If the run was cancelled before the device was opened. In both cases the recording is removed.
        """
        self._notify(f"recording to {self.folder}")
        if self._faults:
            self._notify(f"faults on demand: {describe(self._faults)}")
        self._first_advice = " ".join(self._advice.warnings)
        self._attend = attend
        reason = self.follow(listen)
        rate, duration = self.config.session.rate, self.config.session.duration
        planned = round(duration * rate) if duration is not None and reason == EndReason.COMPLETED else None
        found = self.ending.certify(
            self._spec.causality,
            fitness=self.config.fitness,
            planned=planned,
            used=self.servo.used,
            granted=self.granted,
        )
        reason = self.ending.end_reason(reason)
        summary = {
            "recording": str(self.folder),
            "picture": None,
            "device": self.config.device,
            "model": self.config.session.model,
            "rate_hz": rate,
            **{name: value for name, value in found.items() if name not in NOT_PRINTED},
            "realtime": self.granted.get("scheduling", "other"),
            "processors": self.granted.get("processors", "unknown"),
            "reason": reason,
            "advice": self._advice.warnings,
        }
        if self.config.session.clock == "off":
            summary["real_time_factor"] = real_time_factor(self.recorder.count / rate, self.servo.used)
        return Outcome(summary, reason, self.ending.fault)

    def prepared(self, stage: str, facts: Any) -> None:
        """Report the progress of the preparation, and the advice on the parameters once the device is open."""
        if stage == "ready" and self._first_advice:
            self._progress.clear()
            self._warn(self._first_advice)
        self._progress.handle_message(stage, facts)

    def run_periodic_tasks(self) -> None:
        """Update the progress display and serve the front ends."""
        if not self.opened:
            self._progress.show_preparation()
        self._progress.show_run(self.servo.trace)
        if self._review is not None and self.servo.trace.count - self._reviewed >= _REVIEW_TICKS:
            self._review_channels(self._review)
        self._attend()

    def _review_channels(self, review: Callable[[Any], str]) -> None:
        """Show the first warning of the device about the rows since the last review."""
        rows, self._reviewed = self.servo.trace.since(self._reviewed), self.servo.trace.count
        words = review(rows["channels"][(rows["status"] & UNUSABLE) == 0])
        if words:
            self._review = None
            self._progress.clear()
            self._warn(words)
            self._advice.warnings.append(words)

    def reason(self, end: EndReason) -> str:
        """Return the reason for the end of the run; an interrupt takes precedence."""
        return INTERRUPTED if self._interrupted else str(end)

    def on_end(self) -> None:
        """Remove the line on the terminal."""
        self._progress.clear()


def record_offline(config: SessionConfig, folder: Path) -> Recording:
    """Run a session as fast as possible in this process and record it.

    Parameters
    ----------
    config : SessionConfig
        Configuration with ``session.clock = "off"`` and a duration.
    folder : Path
        Folder of the recording; a number is appended if it exists.

    Raises
    ------
    ConfigurationError
        If the session runs in real time, or the recording cannot be written.
    HapticError
        If the session failed; the recording is closed and contains the error.
    """
    session = config.session
    if session.clock != "off" or session.duration is None:
        raise ConfigurationError("session.clock: must be 'off', with session.duration, for a session in this process.")
    advice = ParameterAdvice(config.spec)
    advice.consider(config.strongest_element, 0, config.scene)
    clock, file = Clock(1.0 / session.rate), SharedFile("trace")
    try:
        trace = Trace.create(file.path, capacity=_CAPACITY)
        faults = tuple(parse_fault(text) for text in session.faults)
        device = create_faulty(config.device, config.device_settings, faults, session.seed, clock)
        servo = Servo(device, config.program, trace, clock=clock, limits=config.limits)
        recorder = new_recorder(config, advice.record, folder)
        recorder.attach(Reader(trace))
        ending = RunCloser(recorder, trace, lambda words: None)

        def drain() -> None:
            try:
                recorder.drain()
            except OSError as error:
                raise not_written(error, "the session was stopped") from error

        try:
            try:
                servo.run(session.duration, between=drain)
            finally:
                drain()  # the remaining rows, also after an error
        except HapticError as error:
            ending.fail(error)
        ending.close("completed", complete=True)
        planned = round(session.duration * session.rate)
        ending.certify(config.causality, fitness=config.fitness, planned=planned)
    finally:
        file.close()
    if ending.fault is not None:
        raise ending.fault
    return Recording(recorder.folder)
