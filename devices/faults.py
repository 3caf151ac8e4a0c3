"""Fault injection: simulated faults in any device, for demonstrations and tests (option ``--fault NAME@SECONDS``).

`FAULTS` contains their names and descriptions, `parse_fault` parses ``nan@2`` or ``nan@2+0.05``, and `FaultyDevice`
wraps a device.
"""

from __future__ import annotations

import copy
import errno
import math
import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from devices import create_device
from devices.common.settings import ROUNDING, Timed, parts_of, plain
from haptics.clock import Clock
from haptics.device import Causality, Device, DeviceSpec, Managed, State, Vector
from haptics.errors import ConfigurationError
from haptics.settings import unknown_name

_VECTORS = ("position", "velocity", "force")


# --- effects of faults on samples and commands ------------------------------------------------------------------------


class Effect:
    """Effect of a fault, which receives every sample from the opening of the device on.

    An effect never modifies a sample, but returns another one. It keeps the samples of the last `span` [s], and at
    least the last three.

    Parameters
    ----------
    fault : Fault
        Time of the effect on the clock of the run.
    spec : DeviceSpec
        Data sheet of the device.
    seed : int
        Seed of the random numbers.
    sample : callable
        Returns the modified sample, given this effect, the sample and its nominal time [s]; unchanged by default.
    command : callable
        Returns the modified command, (2,), given this effect and the command; unchanged by default.
    span : callable
        Returns the span [s], given the data sheet.
    """

    def __init__(
        self,
        fault: Fault,
        spec: DeviceSpec,
        seed: int,
        *,
        sample: Callable[[Effect, State, float], State] = lambda effect, state, now: state,
        command: Callable[[Effect, Vector], Vector] = lambda effect, command: command,
        span: Callable[[DeviceSpec], float] = lambda _: 0.0,
    ) -> None:
        self.fault, self.spec = fault, spec
        self.random = random.Random(seed)
        self.held: State | None = None
        self.count = self.lag = 0
        self._past: deque[tuple[float, State]] = deque()
        self._sample, self._command, self._span = sample, command, span(spec)

    def covers(self, now: float) -> bool:
        """Return True if the effect is active at the nominal time `now` [s]."""
        return -ROUNDING <= now - self.fault.start < self.fault.length - ROUNDING

    def read(self, state: State, now: float) -> State:
        """Return the modified sample for the sample at the nominal time `now` [s]."""
        past = self._past
        past.append((now, state))
        while len(past) > 4 and past[1][0] <= now - self._span - ROUNDING:
            past.popleft()
        if not self.covers(now):
            return state
        self.count += 1
        return self._sample(self, state, now)

    def write(self, command: Vector, now: float) -> Vector:
        """Return the modified command for a command, (2,)."""
        return self._command(self, command) if self.covers(now) else command

    def at(self, instant: float) -> State:
        """Return the newest sample that had arrived at `instant` [s], or the oldest sample."""
        return next(
            (state for arrived, state in reversed(self._past) if arrived <= instant + ROUNDING), self._past[0][1]
        )

    def earlier(self, count: int) -> State:
        """Return the sample `count` readings before the newest (at most three), or the oldest."""
        return self._past[max(len(self._past) - 1 - count, 0)][1]


def _hang(effect: Effect, state: State, now: float) -> State:
    """Block the first read for the duration of the fault in real time."""
    if effect.count == 1:
        time.sleep(effect.fault.length)
    return state


def _repeat_stale(effect: Effect, state: State, now: float) -> State:
    """Repeat one sample, whose age is at first twice the maximum; early in a run its time is before the run."""
    if effect.held is None:
        instant = now - 2.0 * effect.spec.max_sample_age
        last = effect.at(instant)
        effect.held = replace(last, time=min(last.time, instant))
    return effect.held


def _repeat_last(effect: Effect, state: State, now: float) -> State:
    """Repeat the last sample before the fault, with its original time."""
    effect.held = effect.held or effect.earlier(1)
    return effect.held


def _freeze(effect: Effect, state: State, now: float) -> State:
    """Return the first sample of the fault with the time of this sample."""
    effect.held = effect.held or state
    return replace(effect.held, time=state.time)


def _delay_randomly(effect: Effect, state: State, now: float) -> State:
    """Delay samples by up to three readings, in order."""
    effect.lag = min(effect.random.randint(0, 3), effect.lag + 1)
    return effect.earlier(effect.lag)


def _overwritten(value: float, names: Sequence[str] = _VECTORS) -> Callable[..., Effect]:
    """Return the effect that replaces both components of some vectors of the sample by `value`."""

    def change(effect: Effect, state: State, now: float) -> State:
        vectors: Mapping[str, Vector] = {name: np.full(2, value) for name in names}
        return replace(state, **vectors)  # type: ignore[arg-type]

    return partial(Effect, sample=change)


def _delayed(delay: float) -> Callable[..., Effect]:
    """Return the effect that delays every sample by `delay` [s], with its original time."""
    return partial(Effect, sample=lambda effect, _, now: effect.at(now - delay), span=lambda _: delay)


def _failing(number: int, *transfers: str) -> Callable[..., Effect]:
    """Return the effect that raises the operating system's error `number` in these transfers (read, write)."""

    def fail(transfer: str) -> None:
        if transfer in transfers:
            raise OSError(number, f"{os.strerror(number)} ({transfer}, fault on demand)")

    def sample(effect: Effect, state: State, now: float) -> State:
        fail("read")
        return state

    def command(effect: Effect, command: Vector) -> Vector:
        fail("write")
        return command

    return partial(Effect, sample=sample, command=command)


def _saturated(effect: Effect, vector: Vector) -> Vector:
    limit = 0.25 * effect.spec.max_force
    return np.clip(vector, -limit, limit)


def _saturate_sensor(effect: Effect, state: State, now: float) -> State:
    """Clip the reading of the force sensor to a quarter of the largest force, per axis."""
    senses = effect.spec.causality is Causality.ADMITTANCE
    return replace(state, force=_saturated(effect, state.force)) if senses else state


def _saturate_motors(effect: Effect, command: Vector) -> Vector:
    """Clip the force of the motors to a quarter of the largest force, per axis."""
    return command if effect.spec.causality is Causality.ADMITTANCE else _saturated(effect, command)


class Quantisation(Effect):
    """Simulate an encoder with steps of `step` [m], and a velocity from its backward difference."""

    step = 1e-3

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._time = math.nan
        self._position = self._velocity = np.zeros(2)

    def read(self, state: State, now: float) -> State:
        """Quantise every sample, also while the effect is not active."""
        position = np.round(state.position / self.step) * self.step
        elapsed = state.time - self._time
        if elapsed > 0.0:
            self._velocity = (position - self._position) / elapsed
        self._time, self._position = state.time, position
        return replace(state, position=position, velocity=self._velocity) if self.covers(now) else state


class Ignored(Effect):
    """Ignore commands: the device keeps the last command before the fault."""

    _last: Vector | None = None

    def write(self, command: Vector, now: float) -> Vector:
        """Return the last command before the fault, or the first of all."""
        if self._last is None or not self.covers(now):
            self._last = command.copy()
        return self._last


# --- faults by name ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FaultKind:
    """Properties of a kind of fault.

    Attributes
    ----------
    description : str
        One line for the user.
    effect : callable
        Function that creates the `Effect` with its parameters.
    duration : float
        Default duration [s]; infinite for the rest of the run.
    """

    description: str
    effect: Callable[..., Effect]
    duration: float = math.inf


FAULTS: dict[str, FaultKind] = {
    "nan": FaultKind("position, velocity and force are not numbers", _overwritten(math.nan)),
    "infinite": FaultKind("the velocity is infinite", _overwritten(math.inf, ("velocity",))),
    "read-error": FaultKind("reading raises an input/output error", _failing(errno.EIO, "read")),
    "write-error": FaultKind("writing raises an input/output error, reading continues", _failing(errno.EIO, "write")),
    "unplug": FaultKind("reading and writing raise: no such device", _failing(errno.ENODEV, "read", "write")),
    "hang": FaultKind("one reading blocks for 10 s", partial(Effect, sample=_hang), duration=10.0),
    "stale": FaultKind(
        "no new samples; the last one is at first twice as old as permitted, and becomes older",
        partial(Effect, sample=_repeat_stale, span=lambda spec: 2.0 * spec.max_sample_age),
    ),
    "dropout": FaultKind("no new samples for 50 ms", partial(Effect, sample=_repeat_last), duration=0.05),
    "stuck": FaultKind("the values freeze, their times advance", partial(Effect, sample=_freeze)),
    "jump": FaultKind("position, velocity and force are zero, like a failed reading", _overwritten(0.0)),
    "delay-1ms": FaultKind("samples are 1 ms late, with their original times", _delayed(1e-3)),
    "delay-5ms": FaultKind("samples are 5 ms late, with their original times", _delayed(5e-3)),
    "delay-20ms": FaultKind("samples are 20 ms late, with their original times", _delayed(20e-3)),
    "duplicate": FaultKind(
        "every second sample repeats the one before, with its original time",
        partial(Effect, sample=lambda effect, *_: effect.earlier(effect.count % 2)),
    ),
    "late": FaultKind(
        "samples are randomly up to three readings late, in order", partial(Effect, sample=_delay_randomly)
    ),
    "out-of-order": FaultKind(
        "every second sample is older than the one before",
        partial(Effect, sample=lambda effect, *_: effect.earlier(2 * (effect.count % 2))),
    ),
    "ignored": FaultKind("commands are ignored: the device keeps the last one", Ignored),
    "quantisation": FaultKind("the encoder has steps of 1 mm, and the velocity is their difference", Quantisation),
    "saturation": FaultKind(
        "motors or force sensor are limited to a quarter of the largest force",
        partial(Effect, sample=_saturate_sensor, command=_saturate_motors),
    ),
}
"""Kinds of faults by name."""


@dataclass(frozen=True, slots=True)
class Fault(Timed):
    """Fault at a time; ``str()`` gives text such as ``nan@2+0.05``, which `parse_fault` parses.

    Attributes
    ----------
    name : str
        A key of `FAULTS`.
    duration : float or None
        Duration [s]; None for the default of the kind, usually the rest of the run.

    Raises
    ------
    ConfigurationError
        If the fault is unknown, or its time is invalid.
    """

    KIND: ClassVar[str] = "fault"

    def __post_init__(self) -> None:
        if self.name not in FAULTS:
            raise unknown_name("fault", self.name, FAULTS)
        Timed.__post_init__(self)  # `super()` without arguments fails here: `slots=True` creates the class twice

    @property
    def length(self) -> float:
        """Effective duration [s]; infinite for the rest of the run."""
        return FAULTS[self.name].duration if self.duration is None else self.duration


def parse_fault(text: str) -> Fault:
    """Parse ``NAME@SECONDS``, or ``NAME@SECONDS+DURATION`` with the duration in seconds.

    Raises
    ------
    ConfigurationError
        With the invalid text and the allowed form.
    """
    parts = parts_of(text)
    if parts is None:
        raise ConfigurationError(
            f"fault {text!r}: must have the form NAME@SECONDS or NAME@SECONDS+DURATION, for instance nan@2 or "
            f"nan@2+0.05. Names: {', '.join(FAULTS)}."
        )
    if parts[0] not in FAULTS:
        raise unknown_name(f"fault in {text!r}:", parts[0], FAULTS)
    return Fault(*parts)


def describe(faults: Iterable[Fault]) -> str:
    """Return a text with the names and times of faults."""
    lengths = ((fault, "on" if fault.length == math.inf else f"for {plain(fault.length)} s") for fault in faults)
    return ", ".join(f"{fault.name} from {plain(fault.start)} s {length}" for fault, length in lengths)


# --- device -----------------------------------------------------------------------------------------------------------


class FaultyDevice(Managed):
    """Device with injected faults.

    The wrapped device remains active: it is read at every ``read`` before the faults are applied, and ``close`` always
    reaches it. Other attributes of the device, such as the ``hand`` of a virtual device, remain available.

    Parameters
    ----------
    device : Device
        Wrapped device of either causality.
    faults : iterable of Fault
        Faults; a sample passes through them in this order.
    clock : Clock
        Clock of the run; its nominal time determines the start and end of a fault.
    seed : int
        Seed of the random numbers.
    """

    def __init__(self, device: Device, faults: Iterable[Fault], clock: Clock, seed: int = 0) -> None:
        self._device = device
        self._faults = tuple(faults)
        self._clock = clock
        self._seed = seed
        self._opened = False
        self._effects: list[Effect] = []
        self._reset()

    def _reset(self) -> None:
        spec = self._device.spec
        numbered = enumerate(self._faults, self._seed)
        self._effects = [FAULTS[fault.name].effect(fault, spec, seed) for seed, fault in numbered]

    @property
    def spec(self) -> DeviceSpec:
        """Data sheet of the device."""
        return self._device.spec

    def open(self) -> None:
        """Open the device and reset all faults."""
        if not self._opened:
            self._reset()
        self._device.open()
        self._opened = True

    def read(self) -> State:
        """Return the newest sample with all faults applied, or raise `OSError`.

        The true force of the hand is not modified.
        """
        state, now = copy.deepcopy(self._device.read()), self._clock.time
        hand_force = state.hand_force
        for effect in self._effects:
            state = effect.read(state, now)
        state = copy.deepcopy(state)
        state.hand_force = hand_force
        return state

    def write(self, command: Vector) -> None:
        """Write the command, (2,), with all faults applied, or raise `OSError`."""
        now = self._clock.time
        for effect in self._effects:
            command = effect.write(command, now)
        self._device.write(command)

    def close(self) -> None:
        """Close the device."""
        self._opened = False
        self._device.close()

    def explain(self) -> str:
        """Return an empty string, because the failures are intended."""
        return ""

    def __getattr__(self, name: str) -> Any:
        """Return other attributes of the wrapped device."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        return getattr(self._device, name)


def create_faulty(name: str, settings: Mapping[str, Any], faults: Sequence[Fault], seed: int, clock: Clock) -> Device:
    """Create the device `name`, wrapped if there are `faults`; see `devices.create_device`."""
    device = create_device(name, settings, clock=clock)
    return FaultyDevice(device, faults, clock, seed) if faults else device
