"""Stages of a block: the servo without a clock in this process, or in real time in a separate process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from apps.front_ends import messages as say
from apps.front_ends.front_end import FrontEnd
from apps.session.record import KeyEvent, ParameterAdvice, journal_entry, new_recorder
from apps.session.run import Session
from apps.session.service import Service
from apps.settings.config import SessionConfig
from apps.shared.terminal import print_status
from devices import create_device
from haptics.clock import Clock
from haptics.errors import DeviceFault, HapticError
from haptics.recording.recorder import RunCloser, not_written
from haptics.scenes import scene_table
from haptics.servo.run import INTERRUPTED
from haptics.servo.servo import MAX_TICKS_PER_CALL, Servo
from haptics.shared import SharedFile
from haptics.trace import Reader, Trace

CAPACITY = 32 * MAX_TICKS_PER_CALL
"""Capacity of the trace [rows], which limits the rows of a trial that an observer receives."""

_DRAIN = CAPACITY // 4


class OfflineStage:
    """Session of the servo in simulated time.

    The servo runs in this process, and parameters switch at exact ticks. The block is recorded like any session and
    replays bit for bit. The result does not depend on the speed of the computer.

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

    def __init__(self, config: SessionConfig, folder: Path, journal: Callable[..., Any]) -> None:
        session = dataclasses.replace(config.session, clock="off", duration=None)
        self._config = dataclasses.replace(config, session=session)
        self.period = 1.0 / config.session.rate
        advice = ParameterAdvice(config.known_spec)
        advice.consider(config.strongest_element, 0, config.scene)
        self._recorder = new_recorder(self._config, advice.record, folder)
        self.folder = self._recorder.folder
        self._journal = journal
        self._file = SharedFile("trace")
        clock = Clock(self.period)
        self.trace = Trace.create(self._file.path, capacity=CAPACITY)
        device = create_device(config.device, config.device_settings, clock=clock)
        self._servo = Servo(device, config.program, self.trace, clock=clock, limits=config.limits)
        self.gate, self.mark = self._servo.gate, self._servo.mark
        self._recorder.attach(Reader(self.trace))
        self._ending = RunCloser(self._recorder, self.trace, lambda words: None)
        self._drained = self._version = self._program = 0
        self._error: Exception | None = None

    def apply_parameters(self, config: SessionConfig) -> None:
        """Apply other parameters at the next tick."""
        if _rendered(config) == _rendered(self._config):
            return
        self._program += config.session.model != self._config.session.model
        self._version += 1
        self._recorder.journal_settings(self._version, {**journal_entry(config), "program": self._program})
        self._servo.switch_program(config.program, self._program, self._version)
        self._config = config

    def write_record(self, kind: str, /, **fields: Any) -> None:
        """Write a journal record, after all previous ticks have been written to the recording."""
        self._drain()
        self._journal(kind, **fields)

    def run(self, script: Generator[int, None, None]) -> None:
        """Run a script to completion, and close the recording.

        Raises
        ------
        HapticError
            The error of the script, the device or the disk. The recording is closed in any case.
        """
        due = 0

        def step() -> int:
            """Continue the script when its wait is over. Return the number of ticks to the next call."""
            nonlocal due
            try:
                if self.trace.count - self._drained >= _DRAIN:
                    self._drain()
                if self._error is None and self.trace.count >= due:
                    due = self.trace.count + next(script)
            except StopIteration:
                due = self.trace.count + MAX_TICKS_PER_CALL
                self._servo.stop()
            except (HapticError, OSError) as error:
                self._error = error
                self._servo.stop()
            return max(due - self.trace.count, 1)

        self.gate(True)
        reason, complete = "completed", True
        try:
            self._servo.run(None, between=step)
        except HapticError as error:
            self._error = self._error or error
        except BaseException:  # such as Ctrl-C
            reason, complete = INTERRUPTED, False
            raise
        finally:
            script.close()
            try:
                self._drain()
            except HapticError as error:
                self._error = self._error or error
            if self._error is not None:
                fault = self._error
                self._ending.fail(fault if isinstance(fault, HapticError) else DeviceFault(str(fault)))
            self._ending.close(reason, complete=complete)
            self._ending.certify(self._config.causality, fitness=self._config.fitness)
            self._file.close()
        if self._error is not None:
            raise self._error

    def _drain(self) -> None:
        try:
            self._recorder.drain()
        except OSError as error:
            raise not_written(error, "the session was stopped") from error
        self._drained = self.trace.count


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
        self.session = Session(config, print_status, quiet=True, folder=folder)
        self.folder, self.trace = self.session.folder, self.session.servo.trace
        self.gate, self.mark, self.write_record = self.session.gate, self.session.mark, journal
        self._follow = follow
        self._present = _rendered(config)
        self._due = 0
        self._error: Exception | None = None
        self.session.keys.listen(follow.key)

    def apply_parameters(self, config: SessionConfig) -> None:
        """Apply other parameters at the next tick."""
        if _rendered(config) != self._present:
            self._present = _rendered(config)
            law = {"law": config.law} if config.scene is None else {"scene": scene_table(config.scene)}
            self.session.configure({**law, "element": config.element})

    def run(self, script: Generator[int, None, None]) -> None:
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
            self._follow.end(say.SessionEnded("stopped"))
        if self._error is not None:
            raise self._error
        if outcome.fault is not None:
            raise outcome.fault

    def _step(self, script: Generator[int, None, None]) -> None:
        """Serve the followers, and continue the script when its wait is over.

        The script runs in a separate thread, so that kernel compilation or slow disks do not delay the servo's
        heartbeat.
        """
        try:
            self._follow.run_periodic_tasks()
            if self._error is None and self.session.opened and self.trace.count > self._due:
                ticks = self.session.run_with_heartbeats(lambda: next(script))
                self._due = self.trace.count + ticks - 1
        except StopIteration:
            self._due = 2**62
            self.session.stop()
        except (HapticError, OSError) as error:
            self._error = error
            self.session.stop()


class Followers(Service):
    """Followers of the blocks of a session: screens, and streams to other programs.

    Parameters
    ----------
    streams : FrontEnd
        Front ends that only receive messages.
    """

    def __init__(self, *streams: FrontEnd) -> None:
        super().__init__(print_status)
        for stream in streams:
            self.streams.add(stream)

    def key(self, event: KeyEvent) -> None:
        """Handle a key event."""


def _rendered(config: SessionConfig) -> tuple[Any, ...]:
    """Return the settings that may change between intervals: law, element, scene."""
    return config.law, config.element, config.scene
