"""Pushes for the identification of a free handle, from minimal forces up to those that the fit needs.

A push is a force forwards, twice as long backwards, and forwards again, so that without friction the handle returns to
rest at its initial position. Strengths and durations vary, so that speeds vary, which separates damping from dry
friction. Soft gains return a drifting handle to the middle between the rounds.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.autotune.plant import LONGEST_DELAY, Plant, PlantFit, Push, fit_plant, whole
from calibration.motions.excitation import approach
from calibration.motions.procedure import known_rows, usable_rows
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.records import Rows
from haptics.rendering.programs import Motion, constant_reference, reference
from haptics.settings import bounded, check, choice, documented, flag

AXES = ("x", "y")
TABLE = "autotune"
"""Name of the settings table."""


@documented
@dataclass(frozen=True)
class Autotune:
    """Settings of the tuning."""

    force: float = bounded(
        4.0, minimum=0.01, maximum=100.0, unit="N", doc="friction force for which parameters are suggested"
    )
    axes: str = choice("both", ("both", *AXES), doc="axes to measure")
    travel: float = bounded(
        0.02, minimum=0.002, maximum=0.2, unit="m", doc="largest travel of a push; half of it to either side"
    )
    speed: float = bounded(0.2, minimum=0.01, maximum=1.0, unit="m/s", doc="fastest motion of a push")
    strength: float = bounded(
        0.4, minimum=0.05, maximum=0.6, doc="fraction of the device's largest force that pushes use"
    )
    pushes: int = bounded(40, minimum=16, maximum=400, doc="pushes for the identification of an axis")
    rise: float = bounded(1.25, minimum=1.05, maximum=2.0, doc="factor between successive stiffnesses")
    bracket: float = bounded(
        0.05,
        minimum=0.01,
        maximum=0.3,
        doc="relative distance of a stable and an unstable stiffness at which the search ends",
    )
    boundary: bool = flag(True, doc="measure the stability boundary in addition to the parameters")

    def __post_init__(self) -> None:
        check(self, TABLE)

    @property
    def measured_axes(self) -> tuple[str, ...]:
        """Names of the measured axes."""
        return AXES if self.axes == "both" else (self.axes,)


Array = NDArray[np.float64]
Found = Generator[Motion, Rows, "IdentifiedPlant"]

_TINY, _GROWTH = 0.004, 1.5
"""First push as a fraction of the maximum force, and growth factor of the following pushes."""
_FIRST_TIME, _REST = 0.025, 0.06
"""Duration of each half of the first pushes, and pause after every push [s]."""
_ENOUGH, _COUNTS = 1.5e-3, 30.0
"""Minimum response of the handle in m and in encoder counts."""
_SHORTEST, _LONGEST = 0.015, 0.06
_SLOWEST = 0.08
"""Range of the duration of a push segment [s], and speed of the slowest push relative to the fastest."""
_ROUNDS, _FEWEST = 4, 8
"""Number of rounds, and minimum number of pushes for an interval."""
_QUICKNESS, _CAREFUL = 0.2, 2e-3
"""Product of the natural frequency of the soft gains and the delay, and margin added to the delay [s]."""
_BRAKE, _SURE = 0.3, 5e-4
"""Optimal brake damping as a fraction of mass over delay, and margin added to the delay [s]."""
_BUZZ = 0.08
"""Maximum force per encoder count through the soft gains, as a fraction of the maximum force."""
_SHORTLY = 3.0
"""Factor by which the brake may exceed that limit, because it acts only briefly."""
EASED = 0.15
"""Pause before a push [s], longer than the fade-in, because a partly applied push leaves a velocity."""
_SHORTEST_WAYS, _LATTICE, _FINEST = 0.02, 0.05, 1e-9
"""Criteria for the encoder step.

Quantile of the distances between samples that estimates the step; maximum deviation from its multiples [steps]; minimum
step [m].
"""
_ASTRAY = 0.5


@dataclass(frozen=True)
class Gains:
    """Soft controller that is stable despite a delay: stiffness [N/m], damping [N s/m].

    ``brake`` is the damping that stops a handle soonest [N s/m], ``load`` the constant force that holds it [N].
    """

    stiffness: float
    damping: float
    brake: float
    load: float

    @classmethod
    def of(cls, plant: Plant, resolution: float, spec: DeviceSpec, period: float) -> Gains:
        """Return the gains for the parameters identified at this point."""
        late = plant.delay + spec.velocity_lag + 1.5 * period
        frequency = _QUICKNESS / (late + plant.delay + _CAREFUL)
        most = _BUZZ * spec.max_force * period / max(resolution, 1e-12)
        frequency = min(frequency, most / (1.4 * plant.mass))
        stiffness, damping = plant.mass * frequency**2, 1.4 * plant.mass * frequency
        brake = max(damping, min(_BRAKE * plant.mass / (late + _SURE), _SHORTLY * most))
        return cls(stiffness, damping, brake, plant.offset)


@dataclass(frozen=True)
class IdentifiedPlant:
    """Result for one axis: fit, encoder step [m] and its uncertainty [m]."""

    axis: str
    fit: PlantFit
    resolution: float
    resolution_error: float


class Pusher:
    """Generator of motions that identify a handle by forces.

    Parameters
    ----------
    spec : DeviceSpec
        Data sheet. Its mass, damping, delay and resolution are ignored.
    settings : Autotune
        Limits of the motions.
    period : float
        Time between two ticks [s].
    """

    def __init__(self, spec: DeviceSpec, settings: Autotune, period: float) -> None:
        self.spec, self.settings, self.period = spec, settings, period
        self.middle = 0.5 * (np.array(spec.workspace_min) + np.array(spec.workspace_max))
        self.move = functools.partial(
            Motion,
            Causality.IMPEDANCE,
            bound=min(2.0 * settings.strength, 0.9) * spec.max_force,
            max_error=max(_ASTRAY * settings.travel, 0.01) + settings.travel,
            max_speed=3.0 * settings.speed,
            period=period,
        )

    def identify(self, axis: str) -> Found:
        """Identify one axis; yields the motions and returns the result.

        Raises
        ------
        ConfigurationError
            If the handle does not respond.
        """
        number = AXES.index(axis)
        held = yield self.move(constant_reference(_REST, self.period), relative=True, label=f"rest {axis}")
        pushes, rows = yield from self._first(number, axis)
        resolution, _ = step_of([held, rows], number)
        last = pushes[-1]  # its displacement gives an estimate of the mass
        moved = max(float(np.nanmax(last.position) - np.nanmin(last.position)), 1e-6)
        guess = float(np.clip(np.abs(last.command).max() * _FIRST_TIME**2 / moved, 1e-3, 50.0))
        rough = fit_plant(pushes, self.period, guess, resolution).plant
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
                max_error=self.settings.travel,
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
        return IdentifiedPlant(axis, fit, *step_of(every, number))

    def centre(self, gains: Gains, number: int, before: Rows) -> Generator[Motion, Rows, None]:
        """Move the handle softly to the middle; the constant force of axis `number` is compensated."""
        way = approach(known_rows(before)["position"][-1], self.middle, self.period)
        rest = reference(np.tile(self.middle, (math.ceil(0.3 / self.period), 1)))
        table = np.concatenate((reference(*way), rest)) if len(way[0]) else rest
        table[:, 4 + number] = gains.load
        yield self.move(
            table,
            label="centre",
            max_error=2.0 * self.settings.travel,
            stiffness=gains.stiffness,
            damping=gains.damping,
        )

    def _first(self, number: int, axis: str) -> Generator[Motion, Rows, tuple[list[Push], Rows]]:
        """Push with increasing force in alternating directions until the handle responds."""
        pushes: list[Push] = []
        seen: list[Rows] = []
        force, most = _TINY * self.spec.max_force, self.settings.strength * self.spec.max_force
        for attempt in range(40):
            push = np.repeat((1.0, -1.0), _ticks(_FIRST_TIME, self.period)) * (force * (-1) ** attempt)
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

    def _round(self, plant: Plant, number: int, rng: np.random.Generator) -> tuple[Array, list[int]]:
        """Return the table of a round of pushes and the ticks at which they begin."""
        pieces, starts, count = [np.zeros(_ticks(EASED, self.period))], [], math.ceil(self.settings.pushes / _ROUNDS)
        for fastest in rng.permutation(np.geomspace(_SLOWEST, 1.0, count)) * self.settings.speed:
            starts.append(sum(map(len, pieces)))
            ticks = _ticks(rng.uniform(_SHORTEST, _LONGEST), self.period)
            time = ticks * self.period
            speed = min(fastest, 0.5 * self.settings.travel / time)
            force = min(plant.mass * speed / time + plant.friction, self.settings.strength * self.spec.max_force)
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


def cut(rows: Rows, starts: list[int], length: int, number: int, period: float) -> list[Push]:
    """Return the pushes of a motion that began at the rows `starts` of its table, which has `length` rows.

    Missed ticks and ticks with an invalid sample have the position nan.
    """
    first = int(rows["tick"][np.argmax(rows["sticking"] != 0)]) - length + 1
    tick, known = rows["tick"] - rows["tick"][0], usable_rows(rows)
    command, position = np.zeros(int(tick[-1]) + 1), np.full(int(tick[-1]) + 1, np.nan)
    held = np.searchsorted(tick, np.arange(len(command)), side="right") - 1
    command[:] = rows["command"][held, number]
    position[known["tick"] - rows["tick"][0]] = known["position"][:, number]
    offset = first - int(rows["tick"][0])
    history, pushes = math.ceil(LONGEST_DELAY / period) + 1, []
    for start, end in itertools.pairwise([*starts, length]):
        begin = max(offset + start, 0)
        before = min(history, begin)
        pushes.append(Push(command[begin - before : offset + end], position[begin : offset + end], before))
    return pushes


def span(rows: Rows, number: int) -> float:
    """Return the range of the positions along an axis [m]."""
    places = usable_rows(rows)["position"][:, number]
    return float(np.ptp(places)) if len(places) else 0.0


def step_of(rows: list[Rows], number: int) -> tuple[float, float]:
    """Return the step of the encoder and its uncertainty [m].

    The step is the shortest distance between two samples. If all positions along the axis are multiples of
    approximately that distance, they determine it precisely. Behind a linkage or with rotated axes they are not, and
    the step is uncertain by a factor of two. Returns (0, 0) without a minimum distance.
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
