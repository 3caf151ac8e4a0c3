"""Slices of the benchmark ``servo``: a real session, or cyclictest, for several seconds."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.bench.live import cyclictest
from apps.bench.live.lateness import SETTLING, whole_lateness
from apps.bench.live.parallel_view import Windows
from apps.bench.stop import Stop
from apps.front_ends.messages import SessionEnded
from apps.session.progress import Quiet
from apps.session.run import Outcome, Session
from apps.session.service import Service
from apps.settings.config import complete
from haptics.recording.recording import Recording
from haptics.records import Rows
from haptics.servo.realtime import stolen_time
from haptics.trace import Ring

DEVICE, MODEL = "virtual-joystick", "C"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Slice:
    """Measurement of one candidate in one slice.

    Attributes
    ----------
    lateness : (n,) float array
        Latency of every wake-up after the settling time [s].
    stolen : float or None
        Time stolen by the hypervisor during the slice [s].
    frames : float or None
        Frame rate of the view [1/s]; None without a view.
    """

    lateness: Floats
    stolen: float | None
    frames: float | None


@dataclass(frozen=True)
class ServoSlice(Slice):
    """Measurement of the servo in one slice.

    Attributes
    ----------
    tick_time : (m,) float array
        Duration of every tick [s].
    summary : dict
        Summary of the session; see the command ``run``.
    startup : float
        Time from the start of the session to its first tick [s].
    numbers : (m,) int array
        Tick numbers.
    """

    tick_time: Floats
    summary: dict[str, Any]
    startup: float
    numbers: NDArray[np.int64]


@dataclass(frozen=True)
class Trial:
    """Warm-up session, which compiles the kernels and reports the scheduling of the servo.

    Attributes
    ----------
    rows : structured array
        Its ticks.
    started : dict
        Description of the run for a view.
    real_time : dict
        Real-time properties granted by the operating system.
    startup : float
        Time from the start of the session to its first tick [s].
    """

    rows: Rows
    started: dict[str, Any]
    real_time: dict[str, Any]
    startup: float

    @property
    def priority(self) -> int:
        """FIFO priority of the servo; 0 without FIFO scheduling."""
        return int(self.real_time["priority"])


@dataclass(frozen=True)
class Condition:
    """Slices under the same condition, in pairs of servo and reference."""

    servo: list[ServoSlice] = field(default_factory=list)
    reference: list[Slice] = field(default_factory=list)


class _Window:
    """Stolen time and frames during the time in which a candidate runs."""

    def __init__(self, view: Windows | None) -> None:
        self._view = view
        self._start = time.monotonic()
        self._stolen = stolen_time()
        self._frames = view.frames if view else 0

    def close(self) -> tuple[float | None, float | None]:
        """Return the stolen time [s] and the frame rate [1/s]."""
        took, stolen = time.monotonic() - self._start, stolen_time()
        frames = round((self._view.frames - self._frames) / took, 1) if self._view else None
        return None if stolen is None or self._stolen is None else round(stolen - self._stolen, 3), frames


class _Attendant:
    """Callback of a session, which detects the first tick and a requested stop.

    It is called about fifty times per second.
    """

    def __init__(self, trace: Ring, view: Windows | None, stop: Stop) -> None:
        self._trace = trace
        self._view = view
        self._stop = stop
        self._begun = time.monotonic()
        self._ticking = False
        self.startup = 0.0
        self.window = _Window(view)

    def __call__(self) -> None:
        self._stop.check()
        if not self._ticking and self._trace.count:
            self._ticking = True
            self.startup = time.monotonic() - self._begun
            self.window = _Window(self._view)


class Candidates:
    """Runs the two candidates.

    Parameters
    ----------
    folder : Path
        Folder for recordings and the output of cyclictest, which are deleted.
    rate : float
        Wake-up rate [Hz].
    servo : dict
        Table ``servo`` of the session settings.
    stop : Stop
        Polled during the runs.
    """

    def __init__(self, folder: Path, rate: float, servo: dict[str, Any], stop: Stop) -> None:
        self._folder = folder
        self._rate = rate
        self._servo = servo
        self._stop = stop

    def trial(self, length: float) -> Trial:
        """Run a warm-up session of `length` [s]."""
        session, outcome, attendant = self._run(length, None, None)
        recording = Recording(Path(outcome["recording"]))
        return Trial(np.array(recording.rows), session.started, recording.metadata["real_time"], attendant.startup)

    def servo(self, length: float, view: Windows | None, service: Service | None = None) -> ServoSlice:
        """Run a session of `length` [s], with the front ends of a `service`."""
        _, summary, attendant = self._run(length, view, service)
        stolen, frames = attendant.window.close()
        recording = Recording(Path(summary["recording"]))
        lateness = whole_lateness(recording.rows, 1.0 / self._rate)
        tick_time, numbers = (np.array(recording.rows[name]) for name in ("tick_time", "tick"))
        shutil.rmtree(recording.folder)
        return ServoSlice(lateness, stolen, frames, tick_time, summary, attendant.startup, numbers)

    def _run(
        self, length: float, view: Windows | None, service: Service | None
    ) -> tuple[Session, dict[str, Any], _Attendant]:
        session = Session(self._config(length), _say_nothing, progress=Quiet())
        attendant = _Attendant(Ring.attach(Path(session.started["trace"])), view, self._stop)
        outcome = session.run(attendant) if service is None else _served(session, service, attendant)
        if outcome.fault is not None:
            raise outcome.fault
        return session, outcome.summary, attendant

    def _config(self, length: float) -> Any:
        session = {"model": MODEL, "rate": self._rate, "duration": length, "record": str(self._folder)}
        return complete({"session": session, "device": {"name": DEVICE}, "servo": self._servo})

    def command(self, length: float, priority: int) -> list[str]:
        """Return the cyclictest command line for `length` [s].

        `priority` is the FIFO priority of the servo, 0 for SCHED_OTHER.
        """
        return cyclictest.command(1.0 / self._rate, self._count(length), priority, self._servo["cpu"])

    def _count(self, length: float) -> int:
        return round(length * self._rate)

    def reference(self, length: float, priority: int, view: Windows | None) -> Slice:
        """Run cyclictest for `length` [s] with the FIFO `priority` of the servo, 0 for SCHED_OTHER."""
        output = self._folder / "cyclictest.txt"
        window = _Window(view)
        cyclictest.measure(self.command(length, priority), output, length, self._stop.check)
        stolen, frames = window.close()
        lateness = cyclictest.lateness(output.read_text(encoding="ascii", errors="replace"), self._count(length))
        return Slice(lateness[round(SETTLING * self._rate) :], stolen, frames)


def _served(session: Session, service: Service, attendant: _Attendant) -> Outcome:
    """Run a session with front ends in the same way as an application."""

    def attend() -> None:
        service.run_periodic_tasks()
        attendant()

    service.begin(session)
    outcome = session.run(attend, service.connections)
    service.end(SessionEnded(outcome.reason, outcome.summary, str(outcome.fault or "")))
    return outcome


def _say_nothing(line: str) -> None:
    """Ignore the messages of a session."""
