"""Keys in a recording: each with the tick in which it went down or up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from haptics.recording.recorder import Recorder
from haptics.trace import Ring

BEFORE = -1
"""The tick of what happened before tick 0."""


@dataclass(frozen=True)
class KeyEvent:
    """A key went down or up, in a front end of the session.

    Attributes
    ----------
    name : str
        The key, as in `apps.front_ends.messages.Key`.
    down : bool
        Whether it went down.
    tick : int
        The tick in which it did: the latest that was due by then, whether it was executed or skipped; `BEFORE` before
        tick 0. Without a clock it is the tick that had been executed last when the word came.
    monotonic_ns : int
        When it did, on the monotonic clock [ns].
    """

    name: str
    down: bool
    tick: int
    monotonic_ns: int


Listener = Callable[[KeyEvent], None]
"""Takes a key event. It is called where the servo's heartbeat is given, and must return within milliseconds."""


class KeyJournal:
    """Gives each key its tick, writes it into ``events.jsonl`` of the recording and tells who listens.

    Parameters
    ----------
    recorder : Recorder
        The recording.
    trace : Ring
        Its trace, which knows when tick 0 was.
    rate : float or None
        Ticks per second; None for a run without a clock.
    """

    def __init__(self, recorder: Recorder, trace: Ring, rate: float | None) -> None:
        self._recorder, self._trace, self._rate = recorder, trace, rate
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Let `listener` know of every key from now on, once it has been written down."""
        self._listeners.append(listener)

    def write(self, name: str, down: bool, at: float) -> KeyEvent:
        """Write down that the key `name` went `down`, or up, at the instant `at` [s, monotonic]; return the event.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        instant = min(round(at * 1e9), time.monotonic_ns())
        event = KeyEvent(name, down, self._tick_at(instant), instant)
        self._recorder.journal_event("key", **asdict(event))
        return event

    def announce(self, event: KeyEvent) -> None:
        """Tell who listens."""
        for listener in self._listeners:
            listener(event)

    def _tick_at(self, instant: int) -> int:
        origin = int(self._trace.origin[0])
        if self._rate is None:
            newest = self._trace.since(self._trace.count - 1)
            return int(newest["tick"][-1]) if len(newest) else BEFORE
        return tick_at(instant - origin, self._rate) if origin else BEFORE


def tick_at(elapsed: int, rate: float) -> int:
    """Return the latest tick that is due `elapsed` [ns] after tick 0 at `rate` [Hz]; `BEFORE` where that is negative.

    Tick k is due after k/rate, rounded to a nanosecond, as the servo has it.
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
