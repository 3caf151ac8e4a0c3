"""The application's handle on a servo in a process of its own; `haptics.servo.serving` is what goes on in there.

If the servo dies, the application notices when the pipe between them closes; one that is stopped it ends.
"""

from __future__ import annotations

import signal
import time
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from haptics.elements.models import Element, functions_of, write_parameters
from haptics.errors import ConfigurationError, ServoLost
from haptics.rendering.on_scene import OnScene
from haptics.servo.job import CONTROL, DISMISSED, SILENCE, Job
from haptics.servo.lane import Lane
from haptics.servo.realtime import ProcessState
from haptics.servo.serving import send
from haptics.servo.standby import Standby
from haptics.servo.supervision import SETTINGS
from haptics.trace import Trace


class ServoProcess:
    """The application's handle on a servo process.

    Parameters
    ----------
    job : Job
        What to run. Its connecting files are made here and removed by `close`.
    standby : Standby, optional
        A process that waits for a job; by default a new one is started with the servo.

    Attributes
    ----------
    used : dict
        At the end of a run: what it used of the machine (`haptics.servo.realtime.Usage`).
    """

    def __init__(self, job: Job, standby: Standby | None = None) -> None:
        self.job = job
        self.trace = Trace.create(job.paths.trace.path)
        self._settings = Lane(job.paths.settings.path, SETTINGS, create=True)
        self._control = Lane(job.paths.control.path, CONTROL, create=True)
        self._standby = standby or Standby()
        self._process, self._connection = self._standby.process, self._standby.connection
        self._state: ProcessState | None = None
        self._started = False
        self._version, self._by_pipe = 0, False
        self.used: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        """Process id of the servo."""
        return self._process.pid or 0

    def start(self) -> None:
        """Start the process and the job; it answers ``ready`` when its device is open."""
        self.beat()
        self._standby.start()
        self._standby.send(self.job)
        self._started = True

    def beat(self) -> None:
        """Send a heartbeat to the servo's watchdog."""
        self._control.record["heartbeat_ns"][0] = time.monotonic_ns()

    @property
    def halted(self) -> bool:
        """Whether the process was stopped from outside; it is of no use any more."""
        self._state = self._state or ProcessState(self.pid)
        return self._state.halted

    @property
    def newest_tick(self) -> int:
        """Number of the last tick executed; -1 if there was none."""
        rows = self.trace.since(self.trace.count - 1)
        return int(rows["tick"][-1]) if len(rows) else -1

    @property
    def whereabouts(self) -> str:
        """How far the run had come when the process was lost, in words, and what that means for its device."""
        if self.newest_tick < 0:
            return "before its first tick"
        return f"after tick {self.newest_tick}; only the device's own watchdog is left"

    def kill(self) -> None:
        """End the process at once, as something that does not answer must be."""
        self._process.kill()

    def stop(self) -> None:
        """Ask for the end of the run; the output fades out within a few periods."""
        self._control.record["stop"][0] = 1

    def mark(self, marker: int) -> None:
        """Let the rows from the next tick on carry `marker`, a whole number."""
        self._control.record["marker"][0] = marker

    def gate(self, closed: bool) -> None:
        """Let the output down, as between two trials, or up again, within `haptics.servo.loop_kernels.GATE_TIME`."""
        self._control.record["gate_closed"][0] = closed

    def recorded(self, count: int) -> None:
        """Say that so many rows are on the disk: a run without a clock goes on only as fast as they are."""
        self._control.record["recorded"][0] = count

    def publish(self, element: Element) -> int:
        """Put the parameters of `element` in force from the next tick on; return their version.

        Functions lie elsewhere in the servo's process, which knows where: only numbers change.

        Raises
        ------
        ConfigurationError
            If it is of another model, or has a law with other functions, than the one that runs.
        """
        present = self.job.element
        if not isinstance(present, Element):
            raise ConfigurationError(
                "this run follows motions, or is on a scene: it has no element that its numbers alone could change."
            )
        if functions_of(element) != functions_of(present):
            raise ConfigurationError(
                f"model {element.model} with law {element.law.name}: a run keeps its model and law, {present.model} "
                f"with {present.law.name}; start a new run for others."
            )
        settings = np.zeros(1, SETTINGS)
        settings["version"] = version = self.next_version
        write_parameters(element, settings)
        settings["law"]["address"] = 0
        self._settings.publish(settings[0])
        self._version = version
        return version

    def go_on_with(self, line: dict[str, Any]) -> None:
        """Put another program in force as soon as it has arrived, between two ticks.

        Parameters
        ----------
        line : dict
            What the journal of the recording says of it, its version included (`haptics.rendering.programs`).
        """
        self._version, self._by_pipe = int(line["version"]), True
        send(self._standby.programs, line)

    def take(self, program: Element | OnScene, line: dict[str, Any]) -> None:
        """Put an element in force, or one on a scene: at the next tick, or as soon as what it needs is ready.

        Once one has gone by the pipe, all do, so that none overtakes another.

        Parameters
        ----------
        program : Element or OnScene
            Of the causality and period of the run.
        line : dict
            What the journal of the recording says of it, with `next_version`.
        """
        if isinstance(program, Element) and not self._by_pipe and self._is_like_the_first(program):
            self.publish(program)
        else:
            self.go_on_with(line)

    def _is_like_the_first(self, element: Element) -> bool:
        """Tell whether an element differs from the one that the run began with in numbers only."""
        first = self.job.element
        return isinstance(first, Element) and functions_of(element) == functions_of(first)

    @property
    def next_version(self) -> int:
        """The version that the next settings will get."""
        return self._version + 1

    @property
    def connection(self) -> Connection:
        """What to wait for: it becomes readable when the servo has something to say, or is gone."""
        return self._connection

    def next_message(self) -> tuple[str, Any] | None:
        """Return the servo's next message, or None if there is none.

        Returns
        -------
        ("compiling", (number, about)), ("compiled", None), ("opening", None), ("device", dict), ("ready", dict) or
        ("ended", str); None if there is none

        Raises
        ------
        HapticError
            What went wrong in the servo.
        ServoLost
            If the process died without a word.
        """
        try:
            if not self._connection.poll():
                return None
            kind, content = self._connection.recv()
        except (EOFError, OSError):  # at its end, reset, or cut off in the middle of a message
            self._process.join(SILENCE)
            rows = self.trace.since(max(self.trace.count - 1000, 0))
            raise ServoLost(
                f"the servo process died ({_death(self._process.exitcode)}) {self.whereabouts}. The recording was "
                "kept.",
                rows,
            ) from None
        if kind == "ended":
            content, self.used = content
        elif kind == "error":
            self.used = getattr(content, "used", {})
            raise content
        return kind, content

    def close(self) -> None:
        """Make sure that the process has ended, and let go of the connecting files.

        Until then a servo whose run has ended stands by to complete the recording: record the end of the trace first.
        """
        if self._started:
            self._end()
        self._standby.close()
        if self._state is not None:
            self._state.close()
        self.job.paths.close()

    def _end(self) -> None:
        self.stop()
        send(self._connection, DISMISSED)
        self._process.join(SILENCE + 1.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _death(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    return f"exit status {exit_code}"
