"""Pushes: how a handle that nobody holds is moved, first by as little as it answers to, then as the fit needs it.

A push is a force forwards, twice as long backwards, and forwards again: without friction the handle is then at rest
where it began. Strengths and lengths differ, so that the handle goes fast and slow: that tells damping from dry
friction. Where it drifts all the same, soft gains bring it back between the rounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.autotune.answers import Plant, Push
from calibration.autotune.plant import LONGEST_DELAY, PlantFit, fit_plant, whole
from calibration.autotune.settings import AXES, Autotune
from calibration.motions.course import known_rows, usable_rows
from calibration.motions.excitation import approach
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.records import Rows
from haptics.rendering.motion import Motion, holding, reference

Array = NDArray[np.float64]
Found = Generator[Motion, Rows, "Identified"]

_TINY, _GROWTH = 0.004, 1.5
"""The first push of all, in parts of the largest force, and how much stronger the next one is."""
_FIRST_TIME, _REST = 0.025, 0.06
"""How long it pushes to either side, and how long the handle is left alone after any push [s]."""
_ENOUGH, _COUNTS = 1.5e-3, 30.0
"""The handle answers when it moved so far [m], and by so many counts of the encoder."""
_SHORTEST, _LONGEST = 0.015, 0.06
_SLOWEST = 0.08
"""Lengths of the pieces of a push [s], and the slowest push in parts of the fastest."""
_ROUNDS, _FEWEST = 4, 8
"""Parts in which they are given, and how many there must be at least: of fewer no interval can be told."""
_QUICKNESS, _CAREFUL = 0.2, 2e-3
"""Natural frequency of the soft gains times the delay, to which something is added in case it was found too short."""
_BRAKE, _SURE = 0.3, 5e-4
"""A damper that is late stops a mass soonest with about so much of the mass over its delay; added to the delay [s]."""
_BUZZ = 0.08
"""What a count of the encoder may make of the soft gains' force, in parts of the largest force."""
_SHORTLY = 3.0
"""The brake may buzz so much more, for it is soon over."""
EASED = 0.15
"""Time in which a change of motions eases in, with a margin: a push that is not given whole leaves a velocity [s]."""
_SHORTEST_WAYS, _LATTICE, _FINEST = 0.02, 0.05, 1e-9
"""Quantile of the ways between samples that is a step; misfit of places to multiples of it [steps]; none at all [m]."""
_ASTRAY = 0.5


@dataclass(frozen=True)
class Gains:
    """A soft controller that a delay does not make swing: stiffness [N/m], damping [N s/m].

    ``brake`` is the damping that stops a handle soonest [N s/m], ``load`` the constant force that holds it [N].
    """

    stiffness: float
    damping: float
    brake: float
    load: float

    @classmethod
    def of(cls, plant: Plant, resolution: float, spec: DeviceSpec, period: float) -> Gains:
        """Return gains for what is known so far."""
        late = plant.delay + spec.velocity_lag + 1.5 * period
        frequency = _QUICKNESS / (late + plant.delay + _CAREFUL)
        most = _BUZZ * spec.max_force * period / max(resolution, 1e-12)
        frequency = min(frequency, most / (1.4 * plant.mass))
        stiffness, damping = plant.mass * frequency**2, 1.4 * plant.mass * frequency
        brake = max(damping, min(_BRAKE * plant.mass / (late + _SURE), _SHORTLY * most))
        return cls(stiffness, damping, brake, plant.offset)


@dataclass(frozen=True)
class Identified:
    """What was found of an axis: the fit, the step of the encoder [m] and by how much it may be another."""

    axis: str
    fit: PlantFit
    resolution: float
    resolution_error: float


class Pusher:
    """Moves the handle of a device by forces and finds out how it answers.

    Parameters
    ----------
    spec : DeviceSpec
        The data sheet. What it says of mass, damping, delay and resolution is not looked at.
    wish : Autotune
        How far and how hard.
    period : float
        Time between two ticks [s].
    """

    def __init__(self, spec: DeviceSpec, wish: Autotune, period: float) -> None:
        self.spec, self.wish, self.period = spec, wish, period
        self.middle = 0.5 * (np.array(spec.workspace_min) + np.array(spec.workspace_max))
        self.move = functools.partial(
            Motion,
            Causality.IMPEDANCE,
            bound=min(2.0 * wish.strength, 0.9) * spec.max_force,
            max_error=max(_ASTRAY * wish.travel, 0.01) + wish.travel,
            max_speed=3.0 * wish.speed,
            period=period,
        )

    def identify(self, axis: str) -> Found:
        """Move along an axis and return what was found of it.

        Raises
        ------
        ConfigurationError
            If the handle does not answer.
        """
        number = AXES.index(axis)
        held = yield self.move(holding(_REST, self.period), relative=True, label=f"rest {axis}")
        pushes, rows = yield from self._first(number, axis)
        resolution, _ = step_of([held, rows], number)
        rough = fit_plant(pushes, self.period, self._guess(pushes), resolution).plant
        pushes, every = [], [rows]
        rng = np.random.default_rng(number)
        for part in range(_ROUNDS):
            gains = Gains.of(rough, resolution, self.spec, self.period)
            yield from self.centre(gains, number, every[-1])
            table, starts = self._round(rough, number, rng)
            rows = yield self.move(
                table,
                relative=True,
                label=f"push {axis} {part + 1}",
                max_error=self.wish.travel,
                rest=_REST,
                rest_stiffness=gains.stiffness,
                rest_damping=gains.brake,
            )
            pushes += cut(rows, starts, len(table), number, self.period)
            every.append(rows)
            if part == 0:
                rough = fit_plant(pushes, self.period, rough.mass, resolution, (rough.delay,)).plant
        fit = fit_plant(whole(pushes, _FEWEST), self.period, rough.mass, resolution, (rough.delay,))
        yield from self.centre(Gains.of(fit.plant, resolution, self.spec, self.period), number, every[-1])
        return Identified(axis, fit, *step_of(every, number))

    def centre(self, gains: Gains, number: int, before: Rows) -> Generator[Motion, Rows, None]:
        """Bring the handle to the middle, softly; of axis `number` the constant force is known."""
        way = approach(known_rows(before)["position"][-1], self.middle, self.period)
        rest = reference(np.tile(self.middle, (math.ceil(0.3 / self.period), 1)))
        table = np.concatenate((reference(*way), rest)) if len(way[0]) else rest
        table[:, 4 + number] = gains.load
        yield self.move(
            table,
            label="centre",
            max_error=2.0 * self.wish.travel,
            stiffness=gains.stiffness,
            damping=gains.damping,
        )

    def _first(self, number: int, axis: str) -> Generator[Motion, Rows, tuple[list[Push], Rows]]:
        """Push harder and harder, to and fro, until the handle answers."""
        pushes: list[Push] = []
        force, most = _TINY * self.spec.max_force, self.wish.strength * self.spec.max_force
        seen: list[Rows] = []
        for attempt in range(40):
            push = _doublet(_ticks(_FIRST_TIME, self.period), force * (-1) ** attempt)
            table = self._table([np.zeros(_ticks(EASED, self.period)), push], number)
            rows = yield self.move(table, relative=True, label=f"first {axis} {attempt + 1}")
            seen.append(rows)
            pushes += cut(rows, [0], len(table), number, self.period)
            step, _ = step_of(seen, number)
            if span(rows, number) > max(_ENOUGH, _COUNTS * step) or force >= most:
                break
            force = min(force * _GROWTH, most)
        every = np.concatenate(seen)
        if span(every, number) < 4.0 * step_of(seen, number)[0]:
            raise ConfigurationError(
                f"{self.spec.name} does not answer to {most:g} N along {axis}: make sure that its motors are on and "
                "nothing blocks it, or raise autotune.strength."
            )
        return whole(pushes)[-8:], every

    def _guess(self, pushes: list[Push]) -> float:
        """Return the mass by what the last push moved."""
        last = pushes[-1]
        moved = max(float(np.nanmax(last.position) - np.nanmin(last.position)), 1e-6)
        return float(np.clip(np.abs(last.command).max() * _FIRST_TIME**2 / moved, 1e-3, 50.0))

    def _round(self, plant: Plant, number: int, rng: np.random.Generator) -> tuple[Array, list[int]]:
        """Return the table of a round of pushes and the ticks at which they begin."""
        pieces, starts, count = [np.zeros(_ticks(EASED, self.period))], [], math.ceil(self.wish.pushes / _ROUNDS)
        for fastest in rng.permutation(np.geomspace(_SLOWEST, 1.0, count)) * self.wish.speed:
            starts.append(sum(map(len, pieces)))
            ticks = _ticks(rng.uniform(_SHORTEST, _LONGEST), self.period)
            time = ticks * self.period
            speed = min(fastest, 0.5 * self.wish.travel / time)
            force = min(plant.mass * speed / time + plant.friction, self.wish.strength * self.spec.max_force)
            force *= rng.choice((-1.0, 1.0))
            rest = np.zeros(_ticks(rng.uniform(0.5, 1.5) * _REST + plant.delay, self.period))
            pieces.append(np.concatenate((np.repeat((force, -force, -force, force), ticks), rest)))
        return self._table(pieces, number, plant.offset), starts

    def _table(self, pieces: list[Array], number: int, load: float = 0.0) -> Array:
        along = np.concatenate([*pieces, np.zeros(_ticks(_REST, self.period))])
        force = np.zeros((len(along), 2))
        force[:, number] = along + load
        return reference(np.zeros_like(force), force=force)


def _ticks(time: float, period: float) -> int:
    return max(round(time / period), 3)


def _doublet(ticks: int, force: float) -> Array:
    return np.repeat((force, -force), ticks)


def cut(rows: Rows, starts: list[int], length: int, number: int, period: float) -> list[Push]:
    """Return the pushes of a motion that began at these rows of its table, (length).

    Ticks that were missed, or whose sample could not be used, have no position.
    """
    first = int(rows["tick"][np.argmax(rows["sticking"] != 0)]) - length + 1
    tick, known = rows["tick"] - rows["tick"][0], usable_rows(rows)
    command, position = np.zeros(int(tick[-1]) + 1), np.full(int(tick[-1]) + 1, np.nan)
    held = np.searchsorted(tick, np.arange(len(command)), side="right") - 1
    command[:] = rows["command"][held, number]
    position[known["tick"] - rows["tick"][0]] = known["position"][:, number]
    offset = first - int(rows["tick"][0])
    ends = [*starts[1:], length]
    history = math.ceil(LONGEST_DELAY / period) + 1
    pushes = []
    for start, end in zip(starts, ends, strict=True):
        begin = max(offset + start, 0)
        before = min(history, begin)
        pushes.append(Push(command[begin - before : offset + end], position[begin : offset + end], before))
    return pushes


def span(rows: Rows, number: int) -> float:
    """Return how far apart the places along an axis are that were seen [m]."""
    places = usable_rows(rows)["position"][:, number]
    return float(np.ptp(places)) if len(places) else 0.0


def step_of(rows: list[Rows], number: int) -> tuple[float, float]:
    """Return the step of the encoder [m] and by how much it may be another.

    It is the shortest way between two samples. Where all places along the axis are multiples of about that, these tell
    it exactly; behind a linkage or turned axes they are not, and it may be half as much or twice. (0, 0) where there is
    no shortest way.
    """
    known = [usable_rows(one)["position"] for one in rows]
    ways = np.concatenate([np.hypot(*np.diff(one, axis=0).T) for one in known])
    ways = ways[ways > 0.0]
    if len(ways) < 3:
        return (float(ways.min()) if len(ways) else 0.0), math.inf
    step = float(np.quantile(ways, _SHORTEST_WAYS))
    if step < _FINEST:
        return 0.0, 0.0
    places = np.unique(np.concatenate([one[:, number] for one in known]))
    along, exact = places - places[0], step
    for _ in range(3):
        counts = np.round(along / exact)
        exact = float(along @ counts) / max(float(counts @ counts), 1e-300)
    left = float(np.std(along - exact * np.round(along / exact)))
    if not left < _LATTICE * exact:
        return step, step
    return exact, max(3.0 * left / max(float(np.round(along[-1] / exact)), 1.0), 1e-6 * exact)
