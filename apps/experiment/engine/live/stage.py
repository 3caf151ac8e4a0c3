"""Real-time stage of a block, with the servo in a separate process and its trace as input."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from apps.experiment.engine.presenting import rows_of
from apps.experiment.engine.stage import Script, rendered
from apps.session.application import print_status
from apps.session.events import KeyEvent
from apps.session.progress import Quiet
from apps.session.run import Session
from apps.settings.config import SessionConfig
from apps.settings.scenes import scene_table
from haptics.errors import HapticError
from haptics.records import Rows


class LiveStage:
    """Session of the servo in real time.

    Parameters
    ----------
    config : SessionConfig
        Initial session settings.
    folder : Path
        Folder of the recording.
    journal : callable
        Function that writes a journal record.
    follow : Followers
        Followers of the block.

    Attributes
    ----------
    folder : Path
        Actual folder of the recording, which differs from `folder` if that exists already.
    session : Session
        The session.
    """

    def __init__(self, config: SessionConfig, folder: Path, journal: Callable[..., Any], follow: Followers) -> None:
        self.period = 1.0 / config.session.rate
        self.session = Session(config, print_status, progress=Quiet(), folder=folder)
        self.folder = self.session.folder
        self._journal, self._follow = journal, follow
        self._present = rendered(config)
        self._due = 0
        self._error: Exception | None = None
        self.session.keys.listen(follow.key)

    # --- stage interface ---

    @property
    def count(self) -> int:
        """Number of rows in the trace."""
        return self.session.servo.trace.count

    @property
    def slots(self) -> Rows:
        """Ring buffer of the trace."""
        return self.session.servo.trace.slots

    def apply_parameters(self, config: SessionConfig) -> None:
        """Apply other parameters at the next tick."""
        if rendered(config) != self._present:
            self._present = rendered(config)
            law = {"law": config.law} if config.scene is None else {"scene": scene_table(config.scene)}
            self.session.configure({**law, "element": config.element})

    def gate(self, closed: bool) -> None:
        """Fade the output out or in."""
        self.session.gate(closed)

    def mark(self, marker: int) -> None:
        """Set the marker of the rows from the next tick on."""
        self.session.mark(marker)

    def rows(self, first: int, marker: int) -> Rows:
        """Return the rows with this marker from index `first` on."""
        return rows_of(self.session.servo.trace.since(first), marker)

    def write_record(self, kind: str, /, **fields: Any) -> None:
        """Write a journal record."""
        self._journal(kind, **fields)

    # --- execution ---

    def run(self, script: Script[None]) -> None:
        """Run a script to completion.

        Raises
        ------
        HapticError
            The error of the script, the device or the disk. The recording is closed in any case.
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
        """Serve the followers, and continue the script when its wait is over.

        The script runs in a separate thread, so that kernel compilation or slow disks do not delay the servo's
        heartbeat.
        """
        try:
            self._follow.run_periodic_tasks()
            if self._error is None and self.session.opened and self.count > self._due:
                ticks = self.session.run_with_heartbeats(lambda: next(script))
                self._due = self.count + ticks - 1
        except StopIteration:
            self._due = 2**62
            self.session.stop()
        except (HapticError, OSError) as error:
            self._error = error
            self.session.stop()


class Followers:
    """Base class of the followers of a block.

    It does nothing.
    """

    def begin(self, session: Session) -> None:
        """Handle the start of a session."""

    def run_periodic_tasks(self) -> None:
        """Handle pending messages.

        Called every 10 ms.
        """

    def end(self) -> None:
        """Handle the end of the session."""

    def connections(self) -> Iterable[Any]:
        """Return the connections to wait for."""
        return ()

    def key(self, event: KeyEvent) -> None:
        """Handle a key event."""
