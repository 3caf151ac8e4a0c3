"""What a fault does to the samples and commands that pass through it.

An effect sees every sample from the opening of the device on, so that it knows the past when its time comes; it changes
none, but hands on another. In its time it spoils them.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn

import numpy as np

from devices.common.timed import ROUNDING
from haptics.device import DeviceSpec, State, Vector

_FIELDS = tuple(field.name for field in fields(State))


def copied(state: State) -> State:
    """Return `state` with arrays of its own."""
    return State(**{name: _copied(getattr(state, name)) for name in _FIELDS})


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


@dataclass(frozen=True, slots=True)
class Situation:
    """When and where an effect is at work.

    Attributes
    ----------
    start, length : float
        From when on it spoils what passes, on the run's clock, and for how long [s].
    spec : DeviceSpec
        The data sheet of the device.
    seed : int
        Decides everything random.
    """

    start: float
    length: float
    spec: DeviceSpec
    seed: int

    def covers(self, now: float) -> bool:
        """Tell whether the effect is at work at the nominal time `now` [s]."""
        return -ROUNDING <= now - self.start < self.length - ROUNDING


class Effect:
    """Does nothing; the base of all others."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation

    def read(self, state: State, now: float) -> State:
        """Return what becomes of the sample that arrives at the nominal time `now` [s]."""
        self.remember(state, now)
        return self.spoil(state, now) if self.situation.covers(now) else state

    def write(self, command: Vector, now: float) -> Vector:
        """Return what becomes of the command, (2,)."""
        return self.cut(command) if self.situation.covers(now) else command

    def remember(self, state: State, now: float) -> None:
        """Take note of a sample, whether the time of the effect has come or not."""

    def spoil(self, state: State, now: float) -> State:
        """Return the spoilt sample."""
        return state

    def cut(self, command: Vector) -> Vector:
        """Return the spoilt command."""
        return command


# --- without a past ---------------------------------------------------------------------------------------------


class Overwrite(Effect):
    """Vectors of the sample have another `value` in both components."""

    def __init__(self, situation: Situation, names: tuple[str, ...], value: float) -> None:
        super().__init__(situation)
        self._names, self._value = names, value

    def spoil(self, state: State, now: float) -> State:
        """Return a sample with the vectors replaced; its time is right."""
        vectors: Mapping[str, Vector] = {name: np.full(2, self._value) for name in self._names}
        return replace(state, **vectors)  # type: ignore[arg-type]


class Failure(Effect):
    """Reading, writing or both raise the operating system's error `number`."""

    def __init__(self, situation: Situation, number: int, reads: bool = False, writes: bool = False) -> None:
        super().__init__(situation)
        self._number, self._reads, self._writes = number, reads, writes

    def spoil(self, state: State, now: float) -> State:
        """Raise, if reading fails."""
        if self._reads:
            self._fail("read")
        return state

    def cut(self, command: Vector) -> Vector:
        """Raise, if writing fails."""
        if self._writes:
            self._fail("write")
        return command

    def _fail(self, what: str) -> NoReturn:
        raise OSError(self._number, f"{os.strerror(self._number)} ({what}, fault on demand)")


class Hang(Effect):
    """One reading takes as long as the fault lasts, by the wall's clock."""

    _over = False

    def spoil(self, state: State, now: float) -> State:
        """Block, the first time."""
        if not self._over:
            self._over = True
            time.sleep(self.situation.length)
        return state


class Quantisation(Effect):
    """The encoder has a step of `step` [m], and the velocity is the backward difference of its readings."""

    def __init__(self, situation: Situation, step: float) -> None:
        super().__init__(situation)
        self._step = step
        self._time = math.nan
        self._position = self._velocity = np.zeros(2)

    def remember(self, state: State, now: float) -> None:
        """Round the position and take the difference to the sample before."""
        position = np.round(state.position / self._step) * self._step
        elapsed = state.time - self._time
        if elapsed > 0.0:
            self._velocity = (position - self._position) / elapsed
        self._time, self._position = state.time, position

    def spoil(self, state: State, now: float) -> State:
        """Return the sample as such an encoder gives it."""
        return replace(state, position=self._position, velocity=self._velocity)


# --- out of the past --------------------------------------------------------------------------------------------


class _Past(Effect):
    """Keeps the samples of the last `span` [s], and the three latest in any case."""

    def __init__(self, situation: Situation, span: float = 0.0) -> None:
        super().__init__(situation)
        self._span = span
        self._past: deque[tuple[float, State]] = deque()

    def remember(self, state: State, now: float) -> None:
        """Keep the sample."""
        past = self._past
        past.append((now, state))
        while len(past) > 4 and past[1][0] <= now - self._span - ROUNDING:
            past.popleft()

    def _of(self, instant: float) -> State:
        """Return the newest sample that had arrived at `instant` [s]; the oldest if none had."""
        for arrived, state in reversed(self._past):
            if arrived <= instant + ROUNDING:
                return state
        return self._past[0][1]

    def _back(self, count: int) -> State:
        """Return the sample `count` readings before the latest (at most three), or the oldest."""
        return self._past[max(len(self._past) - 1 - count, 0)][1]


class Delay(_Past):
    """Every sample comes `delay` [s] later, with its own time."""

    def __init__(self, situation: Situation, delay: float) -> None:
        super().__init__(situation, delay)
        self._delay = delay

    def spoil(self, state: State, now: float) -> State:
        """Return the sample of that long ago."""
        return self._of(now - self._delay)


class Stale(_Past):
    """No sample comes any more; the last that did is of twice the largest age that the data sheet allows, ago."""

    def __init__(self, situation: Situation) -> None:
        self._age = 2.0 * situation.spec.max_sample_age
        super().__init__(situation, self._age)
        self._last: State | None = None

    def spoil(self, state: State, now: float) -> State:
        """Return that last sample. Where the run is younger than it, its time lies before the run."""
        if self._last is None:
            last = self._of(now - self._age)
            self._last = replace(last, time=min(last.time, now - self._age))
        return self._last


class Dropout(_Past):
    """No sample comes for a while; the last that did has its own time."""

    def __init__(self, situation: Situation) -> None:
        super().__init__(situation)
        self._last: State | None = None

    def spoil(self, state: State, now: float) -> State:
        """Return the sample before the fault."""
        if self._last is None:
            self._last = self._back(1)
        return self._last


class Stuck(Effect):
    """Samples come, each with its own time, but they all say the same."""

    _first: State | None = None

    def spoil(self, state: State, now: float) -> State:
        """Return the first sample of the fault with the time of this one."""
        if self._first is None:
            self._first = state
        return replace(self._first, time=state.time)


class Duplicate(_Past):
    """Every second sample is the one before once more, with its old time."""

    _again = False

    def spoil(self, state: State, now: float) -> State:
        """Return the one before, or this one, in turns."""
        self._again = not self._again
        return self._back(1) if self._again else state


class Late(_Past):
    """Samples come up to three readings late, by chance, but in their order."""

    def __init__(self, situation: Situation) -> None:
        super().__init__(situation)
        self._random = random.Random(situation.seed)
        self._lag = 0

    def spoil(self, state: State, now: float) -> State:
        """Return a sample that is not older than the one returned before."""
        self._lag = min(self._random.randint(0, 3), self._lag + 1)
        return self._back(self._lag)


class OutOfOrder(_Past):
    """Of every two samples the newer comes first: every second one is older than the one before."""

    _older = False

    def spoil(self, state: State, now: float) -> State:
        """Return this one, or the one two readings ago, in turns."""
        self._older = not self._older
        return self._back(2) if self._older else state
