"""One session from before the first tick to the summary: recorder, servo process and, where wanted, the view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from apps.session.counsel import Counsel
from apps.session.events import KeyJournal
from apps.session.held_key import HeldKey
from apps.session.job import make_job
from apps.session.outcome import Outcome
from apps.session.preparation import Preparation
from apps.session.progress import Progress
from apps.session.record import journal_entry, new_recorder
from apps.settings.config import SessionConfig
from apps.settings.models import Table
from devices.faults import describe, parse_fault
from haptics.elements.models import Element
from haptics.recording.certificate import NOT_PRINTED, real_time_factor
from haptics.servo.loop import End
from haptics.servo.run import INTERRUPTED, Listen, Run
from haptics.servo.standby import Standby


class Session(Run):
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
    folder : Path, optional
        Where the recording is to be; by default a new folder in the one for recordings.
    standby : Standby, optional
        A servo process that waits for its job.

    Attributes
    ----------
    keys : KeyJournal
        Knows of the keys that were pressed; let it know who listens.
    version : int
        Of the settings that were put in force last: rows that are under them have it as ``settings_version``.
    """

    me = "the session"

    def __init__(
        self,
        config: SessionConfig,
        tell: Callable[[str], None],
        warn: Callable[[str], None] | None = None,
        progress: Progress | None = None,
        prepare: Callable[[str], None] = lambda words: None,
        folder: Path | None = None,
        standby: Standby | None = None,
    ) -> None:
        self.config = config
        self._spec, self._limits = config.spec, config.limits
        self._faults = tuple(parse_fault(text) for text in config.session.faults)
        self._tell = tell
        self._warn = warn or tell
        self._counsel = Counsel(config.known_spec)
        self._counsel.consider(config.strongest_element, 0, config.scene)
        self._program = self.version = 0
        self._interrupted = False
        self._attend: Callable[[], None] = lambda: None
        self._progress = progress or Progress(config.session.duration)
        self._preparation = Preparation(config.device, self._progress, tell, prepare)
        recorder = new_recorder(config, self._counsel.record, folder)
        self.folder = recorder.folder
        super().__init__(recorder, make_job(config, self._faults, self.folder), config.device, tell, standby)
        self._key = HeldKey(self.servo.job.paths.control.path)
        live = config.session.clock == "wall"
        self.keys = KeyJournal(recorder, self.servo.trace, config.session.rate if live else None)

    @property
    def started(self) -> dict[str, Any]:
        """What a view must know of this run: the fields of `messages.SessionStarted` that the run itself decides."""
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

    def take_key(self, name: str, down: bool, at: float) -> None:
        """Write down that a key went down or up at the instant `at` [s, monotonic], and let those who listen know.

        What cannot be written ends the run.
        """
        try:
            event = self.keys.write(name, down, at)
        except OSError as error:
            self.not_written(error)
        else:
            self.keys.announce(event)

    def change(self, key: str, value: float) -> None:
        """Change one parameter from the next tick on, writing it down first; what cannot be written ends the run.

        Raises
        ------
        ConfigurationError
            If the value is not allowed; nothing changes.
        """
        self._go_on_with(self.meanwhile(lambda: self.config.with_parameter(key, value)))

    def configure(self, tables: Mapping[str, Table]) -> None:
        """Go on with another law, another model of the same causality, or other parameters, all at one tick.

        An element keeps its state where the model stays, and begins at its beginning where it does not; the force
        eases from the old one. It is written down first; what cannot be written ends the run.

        Parameters
        ----------
        tables : mapping
            See `apps.settings.config.SessionConfig.with_tables`.

        Raises
        ------
        ConfigurationError
            If something cannot be changed in mid-run, or is not allowed; nothing changes.
        """
        self._go_on_with(self.meanwhile(lambda: self.config.with_tables(tables)))

    def gate(self, closed: bool) -> None:
        """Let the output down, as between two trials, or up again (`haptics.servo.loop_kernels.GATE_TIME`)."""
        self.servo.gate(closed)

    def mark(self, marker: int) -> None:
        """Let the rows from the next tick on carry `marker`: the trial or stage that they belong to."""
        self.servo.mark(marker)

    def _go_on_with(self, config: SessionConfig) -> None:
        """Put the program of `config` in force, at the next tick or as soon as its functions are compiled."""
        element, version = config.strongest_element, self.servo.next_version
        self._program += config.session.model != self.config.session.model
        with self.writing():
            entry = {**journal_entry(config), "program": self._program}
            self.recorder.journal_settings(version, entry)
            self.servo.take(config.program, {"version": version, **entry})
            self.config, self.version = config, version
            self._advise(element, version)

    def _advise(self, element: Element, version: int) -> None:
        """Say which bounds `element` exceeds that were not exceeded before, and write it down."""
        warning = self._counsel.consider(element, version, self.config.scene)
        if warning:
            self._progress.clear()
            self._warn(warning)
            self.recorder.note(advice=self._counsel.record)

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
            If the run was cancelled before that. In both cases no recording is left behind.
        """
        self._announce()
        self._attend = attend
        return self._outcome(self.follow(listen))

    def _announce(self) -> None:
        self._tell(f"recording to {self.folder}")
        if self._faults:
            self._tell(f"faults on demand: {describe(self._faults)}")
        if self._counsel.warnings:
            self._warn(" ".join(self._counsel.warnings))

    def prepared(self, stage: str, facts: Any) -> None:
        """Say how far the preparation is."""
        self._preparation.take(stage, facts)

    def attend(self) -> None:
        """Show how far the run is, and serve the view."""
        if not self.opened:
            self._preparation.refresh()
        self._progress.show(self.servo.trace)
        self._attend()

    def reason(self, end: End) -> str:
        """Return why the run ended: an interrupt goes first."""
        return INTERRUPTED if self._interrupted else str(end)

    def quieten(self) -> None:
        """Remove the line on the terminal."""
        self._progress.clear()

    def _outcome(self, reason: str) -> Outcome:
        rate, duration = self.config.session.rate, self.config.session.duration
        planned = round(duration * rate) if duration is not None and reason == End.COMPLETED else None
        found = self.ending.certify(
            self._spec.causality,
            fitness=self.config.fitness,
            planned=planned,
            used=self.servo.used,
            granted=self.granted,
        )
        reason = self.ending.reason(reason)
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
            "advice": self._counsel.warnings,
        }
        if self.config.session.clock == "off":
            summary["real_time_factor"] = real_time_factor(self.recorder.count / rate, self.servo.used)
        return Outcome(summary, reason, self.ending.fault)
