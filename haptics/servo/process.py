"""Handle of the application for a servo in a separate process, which executes `haptics.servo.serving`.

The application detects the death of the servo by the closing of the pipe, and kills a servo that was stopped.
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
    """Handle of the application for a servo process.

    Parameters
    ----------
    job : Job
        Job to run. This class initialises its connecting files and removes them in `close`.
    standby : Standby, optional
        Process that waits for a job; by default a new one is started with the servo.

    Attributes
    ----------
    used : dict
        Resource usage at the end of a run (`haptics.servo.realtime.Usage`).
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
        """Start the process and send the job; the servo reports ``ready`` when its device is open."""
        self.beat()
        self._standby.start()
        self._standby.send(self.job)
        self._started = True

    def beat(self) -> None:
        """Send a heartbeat to the servo's watchdog."""
        self._control.record["heartbeat_ns"][0] = time.monotonic_ns()

    @property
    def halted(self) -> bool:
        """Whether the process was stopped from outside and can no longer be used."""
        self._state = self._state or ProcessState(self.pid)
        return self._state.halted

    @property
    def newest_tick(self) -> int:
        """Number of the last executed tick; -1 before the first."""
        rows = self.trace.since(self.trace.count - 1)
        return int(rows["tick"][-1]) if len(rows) else -1

    @property
    def whereabouts(self) -> str:
        """Progress of the run when the process was lost, as a phrase for messages."""
        if self.newest_tick < 0:
            return "before its first tick"
        return f"after tick {self.newest_tick}; only the device's own watchdog is left"

    def kill(self) -> None:
        """Kill a process that does not respond."""
        self._process.kill()

    def stop(self) -> None:
        """Request the end of the run; the output fades out within a few periods."""
        self._control.record["stop"][0] = 1

    def mark(self, marker: int) -> None:
        """Set the marker of the rows from the next tick on."""
        self._control.record["marker"][0] = marker

    def gate(self, closed: bool) -> None:
        """Fade the output out or in within `haptics.servo.loop_kernels.GATE_TIME`, for example between trials."""
        self._control.record["gate_closed"][0] = closed

    def recorded(self, count: int) -> None:
        """Report the number of rows on disk, for which a run in simulated time waits."""
        self._control.record["recorded"][0] = count

    def publish(self, element: Element) -> int:
        """Send the parameters of `element`, which apply from the next tick on, and return their version.

        Only numbers are sent: function addresses differ between processes and remain unchanged in the servo.

        Raises
        ------
        ConfigurationError
            If the model or the functions of the law differ from the running element.
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
        """Switch to another program as soon as the servo has loaded it, between two ticks.

        Parameters
        ----------
        line : dict
            Journal entry of the program, including its version (`haptics.rendering.programs`).
        """
        self._version, self._by_pipe = int(line["version"]), True
        send(self._standby.programs, line)

    def take(self, program: Element | OnScene, line: dict[str, Any]) -> None:
        """Switch to an element, with or without a scene, as soon as possible.

        An element that differs from the initial one in numbers only applies from the next tick on. Other programs are
        sent through the pipe and loaded first. After the first of them, all programs use the pipe, so that their order
        is kept.

        Parameters
        ----------
        program : Element or OnScene
            Program with the causality and period of the run.
        line : dict
            Journal entry of the program, with `next_version`.
        """
        if isinstance(program, Element) and not self._by_pipe and self._is_like_the_first(program):
            self.publish(program)
        else:
            self.go_on_with(line)

    def _is_like_the_first(self, element: Element) -> bool:
        """Return True if an element differs from the initial one in numbers only."""
        first = self.job.element
        return isinstance(first, Element) and functions_of(element) == functions_of(first)

    @property
    def next_version(self) -> int:
        """Version of the next settings."""
        return self._version + 1

    @property
    def connection(self) -> Connection:
        """Connection to wait for: it becomes readable with a message of the servo and when the process ends."""
        return self._connection

    def next_message(self) -> tuple[str, Any] | None:
        """Return the next message of the servo, or None without a message.

        Returns
        -------
        ("compiling", (number, about)), ("compiled", None), ("opening", None), ("device", dict), ("ready", dict) or
        ("ended", str); None without a message

        Raises
        ------
        HapticError
            Any error in the servo.
        ServoLost
            If the process died without an error message.
        """
        try:
            if not self._connection.poll():
                return None
            kind, content = self._connection.recv()
        except (EOFError, OSError):  # closed, reset, or truncated within a message
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
        """Ensure that the process has ended, and remove the connecting files.

        Until this call a servo whose run has ended waits to complete the recording if the application dies. Record the
        end of the trace before.
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
