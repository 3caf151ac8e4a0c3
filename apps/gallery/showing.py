"""Runs what a demonstration shows: one session in the window where there is one, all others without a clock."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apps.front_ends.front_end import FrontEnd
from apps.session.application import HEADLESS, Application, tell_stderr
from apps.session.offline import record_offline
from apps.settings.config import complete
from apps.settings.models import Table
from haptics.recording.recording import Recording
from haptics.servo.loop import End

Tables = dict[str, Table]


@dataclass
class Showing:
    """The runs of one demonstration.

    Attributes
    ----------
    name : str
        Of the demonstration.
    folder : Path
        Where its recordings are made, each in a folder of its own.
    caption : str
        Shown in the window.
    brief : bool
        Whether shorter runs will do, as for a test that is to be quick.
    windows, streams : sequence of callables
        See `apps.session.application.Application`; without a window everything runs without a clock.
    obstacle : str
        Why there is no window.
    repeats : bool
        Whether what is seen in the window is repeated until somebody stops it or leaves.
    tell : callable
        Takes lines for the person.
    recordings : list of Recording
        What was recorded, what is shown first.
    """

    name: str
    folder: Path
    caption: str = ""
    brief: bool = False
    windows: Sequence[Callable[[], FrontEnd]] = ()
    streams: Sequence[Callable[[], FrontEnd]] = ()
    obstacle: str = HEADLESS
    repeats: bool = False
    tell: Callable[[str], None] = tell_stderr
    recordings: list[Recording] = field(default_factory=list)

    def show(self, tables: Tables) -> Recording:
        """Run the session that is to be seen, in the window where there is one, and return its recording.

        A machine that is too busy skips ticks, and a visitor stops it or moves sliders: what was shown is then another
        motion, and the recording returned is that of the same run without a clock.

        Parameters
        ----------
        tables : dict
            See `apps.settings.config`; what concerns clock and recording is put in here.
        """
        if not self.windows and not self.streams:
            return self.beside(tables, "shown")
        with tempfile.TemporaryDirectory(prefix="haptics-demo-") as folder:
            outcome = self._application(tables, folder if self.repeats and self.windows else "").run()
        if outcome.fault is not None:
            raise outcome.fault
        if outcome.reason == "interrupted":
            raise KeyboardInterrupt
        shown = self.keep(Recording(Path(outcome.summary["recording"])))
        other = _what_was_other(outcome.summary, shown)
        if not other:
            return shown
        self.tell(f"{other}: it is measured in the same run without a clock.")
        return self.beside(tables, "again")

    def _application(self, tables: Tables, again: str) -> Application:
        session = {**tables["session"], "record": str(self.folder), "picture": False}
        return Application(
            {**tables, "session": session},
            windows=self.windows,
            streams=self.streams,
            obstacle=self.obstacle,
            tell=self.tell,
            caption=f"{self.caption} It is repeated until you stop it." if again else self.caption,
            again=again,
        )

    def beside(self, tables: Tables, words: str) -> Recording:
        """Run a session without a clock, and record it; `words` are for the name of its folder."""
        session = {**tables["session"], "clock": "off"}
        config = complete({**tables, "session": session})
        return self.keep(record_offline(config, self.folder / f"{self.name}_{words}"))

    def keep(self, recording: Recording) -> Recording:
        """Take note of a recording that belongs to the demonstration, and return it."""
        self.recordings.append(recording)
        return recording


def _what_was_other(summary: dict[str, Any], shown: Recording) -> str:
    """Say why a run that was shown is not the one that was asked for; empty if it is."""
    if summary["reason"] != End.COMPLETED:
        return "what was shown was stopped"
    if len(shown.settings) > 1:
        return "what was shown was changed on the way"
    return f"this machine skipped {summary['skipped']} ticks of what was shown" if summary["skipped"] else ""
