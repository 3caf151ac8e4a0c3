"""A block by the wall's clock: a session of the servo in its own process, followed by its trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from apps.experiment.engine.presenting import rows_of
from apps.experiment.engine.stage import Script, rendered
from apps.session.application import tell_stderr
from apps.session.events import KeyEvent
from apps.session.progress import Quiet
from apps.session.run import Session
from apps.settings.config import SessionConfig
from apps.settings.scenes import scene_table
from haptics.errors import HapticError
from haptics.records import Rows


class LiveStage:
    """A session of the servo in real time.

    Parameters
    ----------
    config : SessionConfig
        What it begins with.
    folder : Path
        Where its recording is made.
    journal : callable
        Writes a record of the journal.
    follow : Followers, optional
        Who looks on.

    Attributes
    ----------
    folder : Path
        Where the recording is: beside `folder`, where there was one.
    session : Session
        The session.
    """

    def __init__(self, config: SessionConfig, folder: Path, journal: Callable[..., Any], follow: Followers) -> None:
        self.period = 1.0 / config.session.rate
        self.session = Session(config, tell_stderr, progress=Quiet(), folder=folder)
        self.folder = self.session.folder
        self._journal, self._follow = journal, follow
        self._present = rendered(config)
        self._due = 0
        self._error: Exception | None = None
        self.session.keys.listen(follow.key)

    # --- the stage ------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Rows of the trace so far."""
        return self.session.servo.trace.count

    @property
    def slots(self) -> Rows:
        """The ring of the trace."""
        return self.session.servo.trace.slots

    def take(self, config: SessionConfig) -> None:
        """Put other parameters in force at the next tick."""
        if rendered(config) != self._present:
            self._present = rendered(config)
            law = {"law": config.law} if config.scene is None else {"scene": scene_table(config.scene)}
            self.session.configure({**law, "element": config.element})

    def gate(self, closed: bool) -> None:
        """Let the output down, or up again."""
        self.session.gate(closed)

    def mark(self, marker: int) -> None:
        """Let the rows from the next tick on carry `marker`."""
        self.session.mark(marker)

    def rows(self, first: int, marker: int) -> Rows:
        """Return the rows with this marker from number `first` on."""
        return rows_of(self.session.servo.trace.since(first), marker)

    def note(self, kind: str, /, **fields: Any) -> None:
        """Write a record of the journal."""
        self._journal(kind, **fields)

    # --- its course -----------------------------------------------------------------------------------------------

    def run(self, script: Script[None]) -> None:
        """Run a script to its end.

        Raises
        ------
        HapticError
            What the script, the device or the disk raised. The recording is closed all the same.
        """
        self.gate(True)
        self._follow.begin(self.session)
        try:
            outcome = self.session.run(lambda: self._step(script), self._follow.connections)
        finally:
            script.close()
            self._follow.end()
        if self._error is not None:
            raise self._error
        if outcome.fault is not None:
            raise outcome.fault

    def _step(self, script: Script[None]) -> None:
        """Hear those who look on, and go on with the script where it is time.

        It goes on in a thread: kernels that are compiled, and a disk that takes its time, keep no sign of life back.
        """
        try:
            self._follow.attend()
            if self._error is None and self.session.opened and self.count > self._due:
                ticks = self.session.meanwhile(lambda: next(script))
                self._due = self.count + ticks - 1
        except StopIteration:
            self._due = 2**62
            self.session.stop()
        except (HapticError, OSError) as error:
            self._error = error
            self.session.stop()


class Followers:
    """Nobody looks on."""

    def begin(self, session: Session) -> None:
        """Take note of a session that is about to begin."""

    def attend(self) -> None:
        """Hear what they say; called every 10 ms."""

    def end(self) -> None:
        """Take note that the session is over."""

    def connections(self) -> Iterable[Any]:
        """Return what to wait for."""
        return ()

    def key(self, event: KeyEvent) -> None:
        """Take note of a key."""
