"""Key events in a recording, each with the tick in which the key was pressed or released."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from haptics.recording.recorder import Recorder
from haptics.trace import Ring

BEFORE = -1
"""Tick of an event before tick 0."""


@dataclass(frozen=True)
class KeyEvent:
    """A press or release of a key in a front end of the session.

    Attributes
    ----------
    name : str
        The key, as in `apps.front_ends.messages.Key`.
    down : bool
        True for a press, False for a release.
    tick : int
        Tick of the event: the latest tick due by then, whether executed or skipped; `BEFORE` before tick 0. Without a
        clock, it is the last tick executed when the message arrived.
    monotonic_ns : int
        Time of the event on the monotonic clock [ns].
    """

    name: str
    down: bool
    tick: int
    monotonic_ns: int


Listener = Callable[[KeyEvent], None]
"""Receives a key event.

It is called between heartbeats of the servo and must return within milliseconds.
"""


class KeyJournal:
    """Assigns ticks to key events, writes them to ``events.jsonl``, and notifies listeners.

    Parameters
    ----------
    recorder : Recorder
        The recording.
    trace : Ring
        Trace of the run, which holds the time of tick 0.
    rate : float or None
        Ticks per second; None for a run without a clock.
    """

    def __init__(self, recorder: Recorder, trace: Ring, rate: float | None) -> None:
        self._recorder, self._trace, self._rate = recorder, trace, rate
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Call `listener` for every key event from now on, after the event was written."""
        self._listeners.append(listener)

    def write(self, name: str, down: bool, at: float) -> KeyEvent:
        """Write a press or release of the key `name` at the instant `at` [s, monotonic]; return the event.

        Raises
        ------
        OSError
            If the event cannot be written.
        """
        instant = min(round(at * 1e9), time.monotonic_ns())
        event = KeyEvent(name, down, self._tick_at(instant), instant)
        self._recorder.journal_event("key", **asdict(event))
        return event

    def announce(self, event: KeyEvent) -> None:
        """Call all listeners with `event`."""
        for listener in self._listeners:
            listener(event)

    def _tick_at(self, instant: int) -> int:
        origin = int(self._trace.origin[0])
        if self._rate is None:
            newest = self._trace.since(self._trace.count - 1)
            return int(newest["tick"][-1]) if len(newest) else BEFORE
        return tick_at(instant - origin, self._rate) if origin else BEFORE


def tick_at(elapsed: int, rate: float) -> int:
    """Return the latest tick due `elapsed` [ns] after tick 0 at `rate` [Hz]; `BEFORE` if negative.

    Tick k is due after k/rate, rounded to a nanosecond, as in the servo.
    """
    if elapsed < 0:
        return BEFORE
    tick = int(elapsed * 1e-9 * rate)
    while _due(tick + 1, rate) <= elapsed:
        tick += 1
    while _due(tick, rate) > elapsed:
        tick -= 1
    return tick


def _due(tick: int, rate: float) -> int:
    return int(tick * (1.0 / rate) * 1e9 + 0.5)
