"""Process that follows the ticks of a session, finds events, and writes their codes to an output.

It reads the trace like a window, so that it delays neither ticks nor the experiment. Every code that was sent is a line
of a log file at once, which survives a kill of any process.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from apps.experiment.triggers.ports import TriggerSettings, open_port
from apps.front_ends.front_end import ProcessFrontEnd
from apps.front_ends.messages import Quit, SessionEnded, SessionStarted
from haptics.errors import ConfigurationError, DeviceFault, HapticError
from haptics.records import Rows
from haptics.trace import Reader, Ring

_IDLE = 0.02
"""Polling interval between two runs [s]."""

_PUBLISHED = 80e-6
"""Usual time from the start of a tick until its row can be read [s]."""

_RETRY = 100e-6
"""Polling interval while a row is awaited [s]."""

_PRIORITY = 10
"""FIFO priority, far below the servo's."""

MOST_WAITING = 30
"""Maximum number of codes that wait for the end of earlier ones, about those of three trials."""


@dataclass(frozen=True)
class Event:
    """Event that the experiment reports, because rows do not contain it.

    Attributes
    ----------
    name : str
        Key of `ports.EVENTS`.
    code : int
        Code to send, not 0.
    tick : int
        Tick of the present run.
    marker : int
        Marker of the rows between the intervals of the trial.
    """

    name: str
    code: int
    tick: int
    marker: int


@dataclass(frozen=True)
class Due:
    """Code that is due.

    Attributes
    ----------
    event : str
        Name of the event.
    code : int
        Its code.
    tick : int
        Tick of the event.
    marker : int
        Marker that identifies the interval or the trial.
    due_ns : int
        Start of this tick on the monotonic clock [ns].
    """

    event: str
    code: int
    tick: int
    marker: int
    due_ns: int


class Detector:
    """Finds the events of a run in its rows: the first tick, intervals, and openings of the gate.

    Parameters
    ----------
    settings : TriggerSettings
        Codes.
    period : float
        Sampling period [s].
    """

    def __init__(self, settings: TriggerSettings, period: float) -> None:
        self._settings, self.period = settings, period
        self._marker, self._trial, self._ended = 0, 0, 0
        self._gate = 0.0
        self._begun = False

    def events(self, rows: Rows, origin: int) -> list[Due]:
        """Return the codes of the next rows, whose tick 0 has the monotonic time `origin` [ns]."""
        markers, gates = rows["marker"].tolist(), rows["gate"].tolist()
        found: list[Due] = []

        def add(event: str, k: int, marker: int, interval: int = 1) -> None:
            code = self._settings.code(event, interval)
            if code:
                tick = int(rows["tick"][k])
                due = origin + round(1e9 * (tick * self.period + float(rows["period_error"][k])))
                found.append(Due(event, code, tick, marker, due))

        for k, (marker, gate) in enumerate(zip(markers, gates, strict=True)):
            if not self._begun:
                self._begun, self._gate = True, gate  # a run may begin with the gate open
                add("block", k, marker)
            if marker != self._marker:
                if self._marker % 10:
                    self._ended = self._marker % 10
                    add("interval_end", k, self._marker, self._ended)
                if marker // 10 != self._trial:
                    self._trial, self._ended = marker // 10, 0
                if marker % 10:
                    add("interval_begin", k, marker, marker % 10)
                self._marker = marker
            if self._gate == 0.0 and gate > 0.0:
                add("stimulus", k, marker, marker % 10 or self._ended + 1)
            self._gate = gate
        return found


class Pulses:
    """Queue of codes: each is written in order, and followed by the code 0 if the settings have a time for it.

    Parameters
    ----------
    write : callable
        Writes a code for an event of a monotonic time [ns].
    log : callable
        Receives every code that was written, with the time ``sent_ns`` at which the write had returned.
    reset : float
        Time after which the code 0 is written, and least time until the next code [s]; 0: never.
    clock : callable
        Returns the monotonic time [ns].
    """

    def __init__(
        self,
        write: Callable[[int, int], None],
        log: Callable[[dict[str, Any]], None],
        reset: float,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._write, self._log, self._clock = write, log, clock
        self._reset = round(1e9 * reset)
        self._queue: deque[Due] = deque()
        self._high, self._next = False, 0

    def add(self, due: Iterable[Due]) -> None:
        """Append codes."""
        self._queue.extend(due)

    def run(self) -> None:
        """Write the codes that are due."""
        while (self._high or self._queue) and self._clock() >= self._next:
            if self._high:
                self._write(0, self._next)
                self._high = False
            else:
                one = self._queue.popleft()
                self._write(one.code, one.due_ns)
                self._log({**asdict(one), "sent_ns": self._clock()})
                self._high = self._reset > 0
            self._next = self._clock() + self._reset

    @property
    def waiting(self) -> int:
        """Number of codes that have not been written yet."""
        return len(self._queue)

    @property
    def wait(self) -> float | None:
        """Time until the next write [s], None if nothing is queued."""
        return max(self._next - self._clock(), 0) * 1e-9 if self._high or self._queue else None


class _Run:
    """Run of the servo, followed row by row."""

    def __init__(self, settings: TriggerSettings, started: SessionStarted) -> None:
        self._ring = Ring.attach(Path(started.trace))
        self._reader = Reader(self._ring)
        self._detector = Detector(settings, 1.0 / started.rate_hz)
        self._count, self._last = 0, 0

    def events(self) -> list[Due]:
        """Return the codes of the new rows.

        Raises
        ------
        DeviceFault
            If rows were overwritten, so that events are lost.
        """
        if self._ring.count == self._count:
            return []
        rows = self._reader.read()
        if self._reader.lost:
            raise DeviceFault(f"triggers: {self._reader.lost} ticks were not read in time, so events may be missing.")
        self._count += len(rows)
        if len(rows):
            self._last = self.time_of(int(rows["tick"][-1]))
        return self._detector.events(rows, self._reader.origin[0])

    def time_of(self, tick: int) -> int:
        """Return the start of a tick on the monotonic clock [ns]; its deadline if its row is not in the trace."""
        row = self._ring.slots[tick % self._ring.capacity]
        late = float(row["period_error"]) if int(row["tick"]) == tick else 0.0
        return self._reader.origin[0] + round(1e9 * (tick * self._detector.period + late))

    @property
    def wait(self) -> float:
        """Time until the next row is expected [s]."""
        period = self._detector.period
        ahead = period + _PUBLISHED - 1e-9 * (time.monotonic_ns() - self._last)
        return min(max(ahead, _RETRY), period)


def main(
    connection: Connection[Any, Any], settings: TriggerSettings, log: Path, fifo: bool, shared: Path | None
) -> None:
    """Send the codes of every run until the session sends `Quit` or closes the pipe.

    Parameters
    ----------
    connection : Connection
        This end of the pipe, for messages of `apps.front_ends.messages` and `Event`.
    settings : TriggerSettings
        Output and codes.
    log : Path
        Existing empty file, to which a line is appended for every code, and for an error.
    fifo : bool
        Whether FIFO scheduling is requested.
    shared : Path or None
        Empty shared file of the output, as for `open_port`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the session handles Ctrl-C and sends Quit
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    def write(record: dict[str, Any]) -> None:
        os.write(descriptor, (json.dumps(record) + "\n").encode())

    try:
        port = open_port(settings, shared)
        write({"opened": settings.port})
        if fifo:
            with contextlib.suppress(AttributeError, OSError):
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        gc.collect()
        gc.freeze()
        with contextlib.closing(port):
            _follow(connection, settings, Pulses(port.write, write, settings.reset))
    except HapticError as error:
        write({"error": str(error)[:500]})


def _follow(connection: Connection[Any, Any], settings: TriggerSettings, pulses: Pulses) -> None:
    run: _Run | None = None
    going = True
    while going or pulses.wait is not None:
        wait = min(run.wait if run is not None else _IDLE, pulses.wait if pulses.wait is not None else 1.0)
        if going and select.select([connection], [], [], wait)[0]:
            try:
                message = connection.recv()
            except (EOFError, OSError):
                message = Quit()
            match message:
                case SessionStarted():
                    try:
                        run = _Run(settings, message)
                    except ConfigurationError:  # the run ended before this process could attach its trace
                        run = None
                case Event():  # after the events of earlier rows
                    if run is None:
                        raise DeviceFault(f"triggers: {message.name!r} came without a run, so that a code is missing.")
                    pulses.add(run.events())
                    due = run.time_of(message.tick)
                    pulses.add([Due(message.name, message.code, message.tick, message.marker, due)])
                case SessionEnded() | Quit():
                    if run is not None:
                        pulses.add(run.events())
                    run, going = None, not isinstance(message, Quit)
        elif not going:
            time.sleep(wait)
        if run is not None:
            pulses.add(run.events())
        pulses.run()
        if pulses.waiting > MOST_WAITING:
            raise DeviceFault(
                f"triggers: {pulses.waiting} codes wait for the output, each for twice triggers.reset = "
                f"{settings.reset:g} s, so that they come too late; choose a shorter time, or switch events off."
            )


def start(settings: TriggerSettings, log: Path, fifo: bool, shared: Path | None = None) -> ProcessFrontEnd:
    """Start the process as a read-only front end (`Service.streams`)."""
    return ProcessFrontEnd(main, (settings, log, fifo, shared), name="haptics triggers", holds_key=False)
