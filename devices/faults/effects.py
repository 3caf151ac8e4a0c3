"""Effects of faults on samples and commands.

An effect receives every sample from the opening of the device on, so that it knows the samples before it becomes
active. It never modifies a sample, but returns another one.
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
from haptics.device import Causality, DeviceSpec, State, Vector

_FIELDS = tuple(field.name for field in fields(State))


def copied(state: State) -> State:
    """Return `state` with copies of its arrays."""
    return State(**{name: _copied(getattr(state, name)) for name in _FIELDS})


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


@dataclass(frozen=True, slots=True)
class Situation:
    """Time and device of an effect.

    Attributes
    ----------
    start, length : float
        Start on the clock of the run, and duration [s].
    spec : DeviceSpec
        Data sheet of the device.
    seed : int
        Seed of the random numbers.
    """

    start: float
    length: float
    spec: DeviceSpec
    seed: int

    def covers(self, now: float) -> bool:
        """Return True if the effect is active at the nominal time `now` [s]."""
        return -ROUNDING <= now - self.start < self.length - ROUNDING


class Effect:
    """Base class of effects; it changes nothing."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation

    def read(self, state: State, now: float) -> State:
        """Return the modified sample for the sample at the nominal time `now` [s]."""
        self.remember(state, now)
        return self.spoil(state, now) if self.situation.covers(now) else state

    def write(self, command: Vector, now: float) -> Vector:
        """Return the modified command for a command, (2,)."""
        return self.cut(command) if self.situation.covers(now) else command

    def remember(self, state: State, now: float) -> None:
        """Store a sample, also while the effect is not active."""

    def spoil(self, state: State, now: float) -> State:
        """Return the modified sample of an active effect."""
        return state

    def cut(self, command: Vector) -> Vector:
        """Return the modified command of an active effect."""
        return command


# --- effects without history ----------------------------------------------------------------------------------------


class Overwrite(Effect):
    """Replace both components of some vectors of the sample by `value`."""

    def __init__(self, situation: Situation, names: tuple[str, ...], value: float) -> None:
        super().__init__(situation)
        self._names, self._value = names, value

    def spoil(self, state: State, now: float) -> State:
        """Return a sample with the vectors replaced and the time unchanged."""
        vectors: Mapping[str, Vector] = {name: np.full(2, self._value) for name in self._names}
        return replace(state, **vectors)  # type: ignore[arg-type]


class Failure(Effect):
    """Raise the operating system's error `number` in reads, writes or both."""

    def __init__(self, situation: Situation, number: int, reads: bool = False, writes: bool = False) -> None:
        super().__init__(situation)
        self._number, self._reads, self._writes = number, reads, writes

    def spoil(self, state: State, now: float) -> State:
        """Raise the error if reads fail."""
        if self._reads:
            self._fail("read")
        return state

    def cut(self, command: Vector) -> Vector:
        """Raise the error if writes fail."""
        if self._writes:
            self._fail("write")
        return command

    def _fail(self, what: str) -> NoReturn:
        raise OSError(self._number, f"{os.strerror(self._number)} ({what}, fault on demand)")


class Hang(Effect):
    """Block one read for the duration of the fault in real time."""

    _over = False

    def spoil(self, state: State, now: float) -> State:
        """Block the first read."""
        if not self._over:
            self._over = True
            time.sleep(self.situation.length)
        return state


class Quantisation(Effect):
    """Simulate an encoder with steps of `step` [m], and a velocity from its backward difference."""

    def __init__(self, situation: Situation, step: float) -> None:
        super().__init__(situation)
        self._step = step
        self._time = math.nan
        self._position = self._velocity = np.zeros(2)

    def remember(self, state: State, now: float) -> None:
        """Quantise the position and compute the difference to the sample before."""
        position = np.round(state.position / self._step) * self._step
        elapsed = state.time - self._time
        if elapsed > 0.0:
            self._velocity = (position - self._position) / elapsed
        self._time, self._position = state.time, position

    def spoil(self, state: State, now: float) -> State:
        """Return the sample with quantised position and its velocity."""
        return replace(state, position=self._position, velocity=self._velocity)


# --- effects with history -------------------------------------------------------------------------------------------


class _Past(Effect):
    """Base class that stores the samples of the last `span` [s], and at least the last three."""

    def __init__(self, situation: Situation, span: float = 0.0) -> None:
        super().__init__(situation)
        self._span = span
        self._past: deque[tuple[float, State]] = deque()

    def remember(self, state: State, now: float) -> None:
        """Store the sample."""
        past = self._past
        past.append((now, state))
        while len(past) > 4 and past[1][0] <= now - self._span - ROUNDING:
            past.popleft()

    def _of(self, instant: float) -> State:
        """Return the newest sample that had arrived at `instant` [s], or the oldest sample."""
        for arrived, state in reversed(self._past):
            if arrived <= instant + ROUNDING:
                return state
        return self._past[0][1]

    def _back(self, count: int) -> State:
        """Return the sample `count` readings before the newest (at most three), or the oldest."""
        return self._past[max(len(self._past) - 1 - count, 0)][1]


class Delay(_Past):
    """Delay every sample by `delay` [s], with its original time."""

    def __init__(self, situation: Situation, delay: float) -> None:
        super().__init__(situation, delay)
        self._delay = delay

    def spoil(self, state: State, now: float) -> State:
        """Return the sample of that time."""
        return self._of(now - self._delay)


class Stale(_Past):
    """Repeat one sample, whose age is at first twice the maximum of the data sheet."""

    def __init__(self, situation: Situation) -> None:
        self._age = 2.0 * situation.spec.max_sample_age
        super().__init__(situation, self._age)
        self._last: State | None = None

    def spoil(self, state: State, now: float) -> State:
        """Return the stale sample; early in a run its time is before the start of the run."""
        if self._last is None:
            last = self._of(now - self._age)
            self._last = replace(last, time=min(last.time, now - self._age))
        return self._last


class Dropout(_Past):
    """Repeat the last sample before the fault, with its original time."""

    def __init__(self, situation: Situation) -> None:
        super().__init__(situation)
        self._last: State | None = None

    def spoil(self, state: State, now: float) -> State:
        """Return the sample before the fault."""
        if self._last is None:
            self._last = self._back(1)
        return self._last


class Stuck(Effect):
    """Freeze the values of the samples; their times continue."""

    _first: State | None = None

    def spoil(self, state: State, now: float) -> State:
        """Return the first sample of the fault with the time of this sample."""
        if self._first is None:
            self._first = state
        return replace(self._first, time=state.time)


class Duplicate(_Past):
    """Replace every second sample by the one before, with its original time."""

    _again = False

    def spoil(self, state: State, now: float) -> State:
        """Return the sample before and this sample alternately."""
        self._again = not self._again
        return self._back(1) if self._again else state


class Late(_Past):
    """Delay samples randomly by up to three readings, in order."""

    def __init__(self, situation: Situation) -> None:
        super().__init__(situation)
        self._random = random.Random(situation.seed)
        self._lag = 0

    def spoil(self, state: State, now: float) -> State:
        """Return a sample that is not older than the last returned one."""
        self._lag = min(self._random.randint(0, 3), self._lag + 1)
        return self._back(self._lag)


class OutOfOrder(_Past):
    """Swap the order of samples: every second one is older than the one before."""

    _older = False

    def spoil(self, state: State, now: float) -> State:
        """Return this sample and the sample two readings before alternately."""
        self._older = not self._older
        return self._back(2) if self._older else state


# --- faults of commands -----------------------------------------------------------------------------------------------


class Saturation(Effect):
    """Clip commands, or readings of a force sensor, to a `part` of the largest force, per axis."""

    def __init__(self, situation: Situation, part: float) -> None:
        super().__init__(situation)
        self._limit = part * situation.spec.max_force
        self._senses = situation.spec.causality is Causality.ADMITTANCE

    def spoil(self, state: State, now: float) -> State:
        """Return the sample with the clipped force of the sensor."""
        return replace(state, force=self._clipped(state.force)) if self._senses else state

    def cut(self, command: Vector) -> Vector:
        """Return the clipped motor force."""
        return command if self._senses else self._clipped(command)

    def _clipped(self, vector: Vector) -> Vector:
        return np.clip(vector, -self._limit, self._limit)


class Ignored(Effect):
    """Ignore commands: the device keeps the last command before the fault."""

    _last: Vector | None = None

    def write(self, command: Vector, now: float) -> Vector:
        """Return the last command before the fault, or the first of all."""
        if self._last is None or not self.situation.covers(now):
            self._last = command.copy()
        return self._last
