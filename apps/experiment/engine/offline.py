"""A block without a clock: the whole servo in this process, its gate, marker and parameters switched at exact ticks.

It is recorded as any session is, and replays bit for bit. Nothing in it depends on how fast the machine is.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

from apps.experiment.engine.presenting import rows_of
from apps.experiment.engine.stage import Script, rendered
from apps.session.counsel import Counsel
from apps.session.record import journal_entry, new_recorder
from apps.settings.config import SessionConfig
from devices import create_device
from haptics.clock import Clock
from haptics.errors import DeviceFault, HapticError
from haptics.recording.ending import Ending, not_written
from haptics.records import Rows
from haptics.servo.loop import AT_ONCE
from haptics.servo.servo import Servo
from haptics.shared import SharedFile
from haptics.trace import Reader, Trace

CAPACITY = 32 * AT_ONCE
"""Rows that the trace holds: what an observer gets of a trial at most."""

_DRAIN = CAPACITY // 4


def without_clock(config: SessionConfig) -> SessionConfig:
    """Return the session of a block that follows no clock and ends when its script does."""
    return dataclasses.replace(config, session=dataclasses.replace(config.session, clock="off", duration=None))


class OfflineStage:
    """A session of the servo in simulated time.

    Parameters
    ----------
    config : SessionConfig
        What it begins with, on a virtual device.
    folder : Path
        Where its recording is made.
    journal : callable
        Writes a record of the journal.

    Attributes
    ----------
    folder : Path
        Where the recording is: beside `folder`, where there was one.
    """

    def __init__(self, config: SessionConfig, folder: Path, journal: Any) -> None:
        self._config = without_clock(config)
        self.period = 1.0 / config.session.rate
        counsel = Counsel(config.known_spec)
        counsel.consider(config.strongest_element, 0, config.scene)
        self._recorder = new_recorder(self._config, counsel.record, folder)
        self.folder = self._recorder.folder
        self._journal = journal
        self._file = SharedFile("trace")
        clock = Clock(self.period)
        self._trace = Trace.create(self._file.path, capacity=CAPACITY)
        device = create_device(config.device, config.device_settings, clock=clock)
        self._servo = Servo(device, config.program, self._trace, clock=clock, limits=config.limits)
        self._recorder.follow(Reader(self._trace))
        self._ending = Ending(self._recorder, self._trace, lambda words: None)
        self._drained = self._version = self._program = 0
        self._error: Exception | None = None

    # --- the stage ------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Rows of the trace so far."""
        return self._trace.count

    @property
    def slots(self) -> Rows:
        """The ring of the trace."""
        return self._trace.slots

    def take(self, config: SessionConfig) -> None:
        """Put other parameters in force at the next tick."""
        if rendered(config) == rendered(self._config):
            return
        self._program += config.session.model != self._config.session.model
        self._version += 1
        self._recorder.journal_settings(self._version, {**journal_entry(config), "program": self._program})
        self._servo.take(config.program, self._program, self._version)
        self._config = config

    def gate(self, closed: bool) -> None:
        """Let the output down, or up again."""
        self._servo.gate(closed)

    def mark(self, marker: int) -> None:
        """Let the rows from the next tick on carry `marker`."""
        self._servo.mark(marker)

    def rows(self, first: int, marker: int) -> Rows:
        """Return the rows with this marker from number `first` on."""
        return rows_of(self._trace.since(first), marker)

    def note(self, kind: str, /, **fields: Any) -> None:
        """Write a record of the journal; what it is about is in the recording then."""
        self._drain()
        self._journal(kind, **fields)

    # --- its course -----------------------------------------------------------------------------------------------

    def run(self, script: Script[None]) -> None:
        """Run a script to its end, and close the recording.

        Raises
        ------
        HapticError
            What the script, the device or the disk raised; the recording is closed all the same.
        """
        self._servo.gate(True)
        try:
            self._servo.run(None, between=functools.partial(self._step, script, _Due()))
        except HapticError as error:
            self._error = self._error or error
        finally:
            script.close()
            self._close()
        if self._error is not None:
            raise self._error

    def _step(self, script: Script[None], due: _Due) -> int:
        """Go on with the script where it is time; return how long it takes until it is time again."""
        try:
            if self.count - self._drained >= _DRAIN:
                self._drain()
            if self._error is None and self.count >= due.count:
                due.count = self.count + next(script)
        except StopIteration:
            due.count = self.count + AT_ONCE
            self._servo.stop()
        except (HapticError, OSError) as error:
            self._error = error
            self._servo.stop()
        return max(due.count - self.count, 1)

    def _drain(self) -> None:
        try:
            self._recorder.drain()
        except OSError as error:
            raise not_written(error, "the session was stopped") from error
        self._drained = self.count

    def _close(self) -> None:
        """Close the recording, whatever happened."""
        try:
            self._drain()
        except HapticError as error:
            self._error = self._error or error
        if self._error is not None:
            self._ending.fail(self._error if isinstance(self._error, HapticError) else DeviceFault(str(self._error)))
        self._ending.settle("completed", complete=True)
        self._ending.certify(self._config.causality, fitness=self._config.fitness)
        self._file.close()


class _Due:
    """When the script goes on: at this number of rows."""

    count = 0
