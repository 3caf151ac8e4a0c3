r"""A handle as it answers to pushes: mass, damping, dry friction, constant force and delay, fitted to its positions.

Between two ticks :math:`m \dot v = F(t - d) - g - b v - c\,\mathrm{sgn}(v)`; F is the command, which holds from tick to
tick. The answer is computed from the commands alone and compared with the positions (output error), so that the steps
of the encoder are noise of the positions and of nothing else. Each push begins with a place and a velocity of its own.

Intervals come from how the pushes differ: the covariance is that of clusters, one push each, with which errors may
resemble their neighbours as they like (Liang and Zeger 1986), and Student's t with as many degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.autotune.answers import NAMES, Answers, Plant, Push
from calibration.fitting.intervals import quantile
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

CONFIDENCE = 0.95
LONGEST_DELAY = 0.02
"""A delay that is tried [s]."""

_TRIED = (0.0, 1e-3, 2e-3, 4e-3, 7e-3, 11e-3, 16e-3)
"""Delays that a fit begins with [s]."""
_ROUNDS, _CONVERGED = 40, 1e-7
_RELATIVE = {"mass": 3e-3, "damping": 0.01, "friction": 0.02, "delay": 0.01}
_ABSOLUTE = {"damping": 0.01, "friction": 2e-3, "offset": 1e-3, "delay": 1e-5}
"""No interval reaches less far: a real handle is this picture of it no more exactly, in parts or in its unit."""
_SEEN = 8
"""A push of which fewer samples are known tells nothing: the machine stood still."""
_DRIFT = 1e-3
"""How fast a handle may still be when a push begins [m/s]: nothing else tells that of one which friction holds."""


@dataclass(frozen=True)
class PlantFit:
    """What was found.

    Attributes
    ----------
    plant : Plant
        The numbers.
    errors : mapping of str to float
        Half the width of the interval of 95 % of each.
    residual : float
        Root mean square of what is left of the positions [m].
    """

    plant: Plant
    errors: dict[str, float]
    residual: float

    def interval(self, name: str) -> tuple[float, float]:
        """Return the interval of 95 %; no quantity but the constant force is less than 0."""
        value, error = getattr(self.plant, name), self.errors[name]
        low = value - error
        return (low if name == "offset" else max(low, 0.0)), value + error


def whole(pushes: Sequence[Push], least: int = 1) -> list[Push]:
    """Return the pushes that were seen; raise `ConfigurationError` if they are fewer than `least`."""
    seen = [push for push in pushes if np.isfinite(push.position).sum() >= _SEEN]
    if len(seen) < least:
        raise ConfigurationError(
            f"{len(seen)} of {len(pushes)} pushes were recorded whole, {least} are needed: end other programs that "
            "work hard, look whether the device gives samples all the time, and try again."
        )
    return seen


def fit_plant(
    pushes: Sequence[Push], period: float, mass: float, noise: float, tried: Sequence[float] = _TRIED
) -> PlantFit:
    """Return the handle that answers like the recorded one.

    Parameters
    ----------
    pushes : sequence of Push
        From six on there are intervals that mean something.
    period : float
        Time between two ticks [s].
    mass : float
        What it may weigh, within a factor of some [kg].
    noise : float
        Of the positions, the step of the encoder [m].
    tried : sequence of float
        Delays to begin with [s].
    """
    answers = Answers(whole(pushes), period)
    weight = max(noise, 1e-7) / _DRIFT
    starts = [_Search(answers, Plant(mass, damping=0.5 * mass, delay=delay), weight) for delay in tried]
    for start in starts:
        start.go_on(4 if len(starts) > 1 else 0)
    best = min(starts, key=lambda start: start.cost)
    best.go_on(_ROUNDS)
    return best.result()


class _Search:
    """Levenberg and Marquardt's search; places and velocities at the beginning of a push are eliminated."""

    def __init__(self, answers: Answers, plant: Plant, weight: float) -> None:
        self._answers, self._plant, self._weight = answers, plant, weight
        self._velocity = np.zeros(len(answers.position))
        self._slowness = 1e-3
        self.cost = math.inf
        self._look()

    def _look(self) -> None:
        """Find the errors here and how they depend on the parameters."""
        plant, answers = self._plant, self._answers
        numbers = plant.numbers
        self._steps = np.array([1e-4 * plant.mass, 1e-3 * plant.mass, 1e-3, 1e-3, 1e-5])
        plants = [plant] + [Plant(*(numbers + step)) for step in np.diag(self._steps)] + [plant]
        velocity = np.tile(self._velocity, (len(plants), 1))
        velocity[-1] += 1e-4
        ways = answers.simulate(plants, velocity)
        slopes = (ways[1:] - ways[0]) / np.append(self._steps, 1e-4)[:, None, None]
        left = answers.position - ways[0]
        weight = self._weight
        self._clusters = [
            _eliminated(left[k][on], slopes[:, k][:, on].T, weight, weight * float(self._velocity[k]))
            for k, on in enumerate(answers.known)
        ]
        self.cost = self._cost_of(left, self._velocity)

    def _cost_of(self, left: Array, velocity: Array) -> float:
        pairs = zip(left, self._answers.known, strict=True)
        return sum(float(np.sum((one[on] - one[on].mean()) ** 2)) for one, on in pairs) + float(
            np.sum((self._weight * velocity) ** 2)
        )

    def go_on(self, rounds: int) -> None:
        """Improve it, `rounds` times at most."""
        for _ in range(rounds):
            slopes = np.concatenate([one.slopes for one in self._clusters])
            left = np.concatenate([one.left for one in self._clusters])
            scale = np.maximum(np.linalg.norm(slopes, axis=0), 1e-300)
            normal, side = (slopes / scale).T @ (slopes / scale), (slopes / scale).T @ left
            step = np.linalg.solve(normal + self._slowness * np.eye(len(scale)), side) / scale
            plant = _allowed(self._plant.numbers + step, self._plant)
            velocity = self._velocity + [one.velocity(step) for one in self._clusters]
            with np.errstate(over="ignore", invalid="ignore"):  # too long a step: its cost is no number, and refused
                ways = self._answers.simulate([plant], velocity[None])[0]
                cost, before = self._cost_of(self._answers.position - ways, velocity), self.cost
            if not cost < before * (1.0 + 1e-9):
                self._slowness *= 10.0
                if self._slowness > 1e6:
                    return
                continue
            self._plant, self._velocity, self._slowness = plant, velocity, max(0.2 * self._slowness, 1e-9)
            self._look()
            if before - self.cost < _CONVERGED * before:
                return

    def result(self) -> PlantFit:
        """Return what was found, with intervals."""
        normal = sum(one.slopes.T @ one.slopes for one in self._clusters)
        bread = np.linalg.pinv(normal, rcond=1e-14, hermitian=True)
        scores = np.array([one.slopes.T @ one.left for one in self._clusters])
        count, degrees = len(scores), len(scores) - len(NAMES)
        covariance = bread @ (scores.T @ scores) @ bread * count / max(count - 1.0, 1.0)
        factor = float(quantile(CONFIDENCE, np.array(float(max(degrees, 1)))))
        errors = factor * np.sqrt(np.maximum(np.diag(covariance), 0.0))
        known = {
            name: math.hypot(error, _RELATIVE.get(name, 0.0) * value, _ABSOLUTE.get(name, 0.0))
            for name, error, value in zip(NAMES, errors.tolist(), self._plant.numbers.tolist(), strict=True)
        }
        drift = float(np.sum((self._weight * self._velocity) ** 2))
        return PlantFit(self._plant, known, math.sqrt(max(self.cost - drift, 0.0) / self._answers.known.sum()))


@dataclass(frozen=True)
class _Cluster:
    """One push: what is left and its slopes, without what place and velocity at its beginning explain."""

    left: Array
    slopes: Array
    own: Array
    shares: Array

    def velocity(self, step: Array) -> float:
        """Return the change of the velocity at the beginning that goes with a step of the parameters."""
        return float(self.own[1] - self.shares[1] @ step)


def _eliminated(left: Array, slopes: Array, weight: float, drift: float) -> _Cluster:
    """Eliminate place and velocity at the beginning; a `drift` in front of the `weight` of the velocity is expected."""
    own = np.column_stack((np.append(np.ones(len(left)), 0.0), np.append(slopes[:, -1], weight)))
    left = np.append(left, -drift)
    rest = np.vstack((slopes[:, :-1], np.zeros(slopes.shape[1] - 1)))
    inverse = np.linalg.pinv(own)
    value, shares = inverse @ left, inverse @ rest
    return _Cluster(left - own @ value, rest - own @ shares, value, shares)


def _allowed(numbers: Array, before: Plant) -> Plant:
    """Return the plant of these numbers, kept where it makes sense and near the one before."""
    mass = float(np.clip(numbers[0], 0.3 * before.mass, 3.0 * before.mass))
    delay = float(np.clip(numbers[4], 0.0, LONGEST_DELAY))
    return Plant(mass, float(max(numbers[1], 0.0)), float(max(numbers[2], 0.0)), float(numbers[3]), delay)
