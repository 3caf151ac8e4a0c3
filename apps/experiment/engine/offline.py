"""Stage without a clock: the servo runs in this process, and parameters switch at exact ticks.

The block is recorded like any session and replays bit for bit. The result does not depend on the speed of the computer.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

from apps.experiment.engine.presenting import rows_of
from apps.experiment.engine.stage import Script, rendered
from apps.session.advice import ParameterAdvice
from apps.session.record import journal_entry, new_recorder
from apps.settings.config import SessionConfig
from devices import create_device
from haptics.clock import Clock
from haptics.errors import DeviceFault, HapticError
from haptics.recording.recorder import RunCloser, not_written
from haptics.records import Rows
from haptics.servo.servo import MAX_TICKS_PER_CALL, Servo
from haptics.shared import SharedFile
from haptics.trace import Reader, Trace

CAPACITY = 32 * MAX_TICKS_PER_CALL
"""Capacity of the trace [rows], which limits the rows of a trial that an observer receives."""

_DRAIN = CAPACITY // 4


def without_clock(config: SessionConfig) -> SessionConfig:
    """Return the session settings of a block that follows no clock and ends with its script."""
    return dataclasses.replace(config, session=dataclasses.replace(config.session, clock="off", duration=None))


class OfflineStage:
    """Session of the servo in simulated time.

    Parameters
    ----------
    config : SessionConfig
        Initial session settings, with a virtual device.
    folder : Path
        Folder of the recording.
    journal : callable
        Function that writes a journal record.

    Attributes
    ----------
    folder : Path
        Actual folder of the recording, which differs from `folder` if that exists already.
    """

    def __init__(self, config: SessionConfig, folder: Path, journal: Any) -> None:
        self._config = without_clock(config)
        self.period = 1.0 / config.session.rate
        advice = ParameterAdvice(config.known_spec)
        advice.consider(config.strongest_element, 0, config.scene)
        self._recorder = new_recorder(self._config, advice.record, folder)
        self.folder = self._recorder.folder
        self._journal = journal
        self._file = SharedFile("trace")
        clock = Clock(self.period)
        self._trace = Trace.create(self._file.path, capacity=CAPACITY)
        device = create_device(config.device, config.device_settings, clock=clock)
        self._servo = Servo(device, config.program, self._trace, clock=clock, limits=config.limits)
        self._recorder.attach(Reader(self._trace))
        self._ending = RunCloser(self._recorder, self._trace, lambda words: None)
        self._drained = self._version = self._program = 0
        self._error: Exception | None = None

    # --- stage interface ---

    @property
    def count(self) -> int:
        """Number of rows in the trace."""
        return self._trace.count

    @property
    def slots(self) -> Rows:
        """Ring buffer of the trace."""
        return self._trace.slots

    def apply_parameters(self, config: SessionConfig) -> None:
        """Apply other parameters at the next tick."""
        if rendered(config) == rendered(self._config):
            return
        self._program += config.session.model != self._config.session.model
        self._version += 1
        self._recorder.journal_settings(self._version, {**journal_entry(config), "program": self._program})
        self._servo.switch_program(config.program, self._program, self._version)
        self._config = config

    def gate(self, closed: bool) -> None:
        """Fade the output out or in."""
        self._servo.gate(closed)

    def mark(self, marker: int) -> None:
        """Set the marker of the rows from the next tick on."""
        self._servo.mark(marker)

    def rows(self, first: int, marker: int) -> Rows:
        """Return the rows with this marker from index `first` on."""
        return rows_of(self._trace.since(first), marker)

    def write_record(self, kind: str, /, **fields: Any) -> None:
        """Write a journal record, after all previous ticks have been written to the recording."""
        self._drain()
        self._journal(kind, **fields)

    # --- execution ---

    def run(self, script: Script[None]) -> None:
        """Run a script to completion, and close the recording.

        Raises
        ------
        HapticError
            The error of the script, the device or the disk. The recording is closed in any case.
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
        """Continue the script when its wait is over.

        Return the number of ticks to the next call.
        """
        try:
            if self.count - self._drained >= _DRAIN:
                self._drain()
            if self._error is None and self.count >= due.count:
                due.count = self.count + next(script)
        except StopIteration:
            due.count = self.count + MAX_TICKS_PER_CALL
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
        """Close the recording, also after an error."""
        try:
            self._drain()
        except HapticError as error:
            self._error = self._error or error
        if self._error is not None:
            self._ending.fail(self._error if isinstance(self._error, HapticError) else DeviceFault(str(self._error)))
        self._ending.close("completed", complete=True)
        self._ending.certify(self._config.causality, fitness=self._config.fitness)
        self._file.close()


class _Due:
    """Number of rows at which the script continues."""

    count = 0
