r"""Identification of a handle from pushes: mass, damping, dry friction, constant force and delay.

Between two ticks :math:`m \dot v = F(t - d) - g - b v - c\,\mathrm{sgn}(v)`; F is the command, which is held from tick
to tick. The response is simulated from the commands alone and compared with the positions (output error method), so
that the quantization of the encoder affects the positions only. Each push has a separate initial position and velocity.

Intervals are based on the differences between pushes: the covariance is cluster-robust with one push per cluster,
within which errors may be correlated arbitrarily (Liang and Zeger 1986), with quantiles of Student's t for the
corresponding degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.autotune.answers import NAMES, Plant, Push, PushSimulator
from calibration.fitting.intervals import quantile
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

CONFIDENCE = 0.95
LONGEST_DELAY = 0.02
"""Maximum delay [s]."""

_TRIED = (0.0, 1e-3, 2e-3, 4e-3, 7e-3, 11e-3, 16e-3)
"""Initial values of the delay [s]."""
_ROUNDS, _CONVERGED = 40, 1e-7
_RELATIVE = {"mass": 3e-3, "damping": 0.01, "friction": 0.02, "delay": 0.01}
_ABSOLUTE = {"damping": 0.01, "friction": 2e-3, "offset": 1e-3, "delay": 1e-5}
"""Minimum half widths of the intervals for model errors, as fractions of the value and in its unit."""
_SEEN = 8
"""Minimum number of known samples of a push."""
_DRIFT = 1e-3
"""Prior standard deviation of the initial velocity [m/s], for pushes that friction blocks."""


@dataclass(frozen=True)
class PlantFit:
    """Identified handle.

    Attributes
    ----------
    plant : Plant
        Parameters.
    errors : mapping of str to float
        Half width of the 95 % interval of each parameter.
    residual : float
        Root mean square of the position residuals [m].
    """

    plant: Plant
    errors: dict[str, float]
    residual: float

    def interval(self, name: str) -> tuple[float, float]:
        """Return the 95 % interval; only the constant force may be negative."""
        value, error = getattr(self.plant, name), self.errors[name]
        low = value - error
        return (low if name == "offset" else max(low, 0.0)), value + error


def whole(pushes: Sequence[Push], least: int = 1) -> list[Push]:
    """Return the pushes with enough known samples; raise `ConfigurationError` if fewer than `least`."""
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
    """Fit the parameters of the handle to recorded pushes.

    Parameters
    ----------
    pushes : sequence of Push
        Recorded pushes. The intervals are meaningful from six pushes on.
    period : float
        Time between two ticks [s].
    mass : float
        Initial value of the mass [kg], correct within a small factor.
    noise : float
        Noise of the positions, the step of the encoder [m].
    tried : sequence of float
        Initial values of the delay [s].
    """
    answers = PushSimulator(whole(pushes), period)
    weight = max(noise, 1e-7) / _DRIFT
    starts = [_Search(answers, Plant(mass, damping=0.5 * mass, delay=delay), weight) for delay in tried]
    for start in starts:
        start.iterate(4 if len(starts) > 1 else 0)
    best = min(starts, key=lambda start: start.cost)
    best.iterate(_ROUNDS)
    return best.result()


class _Search:
    """Levenberg-Marquardt search; initial positions and velocities of the pushes are eliminated."""

    def __init__(self, answers: PushSimulator, plant: Plant, weight: float) -> None:
        self._answers, self._plant, self._weight = answers, plant, weight
        self._velocity = np.zeros(len(answers.position))
        self._slowness = 1e-3
        self.cost = math.inf
        self._linearise()

    def _linearise(self) -> None:
        """Compute the residuals and their derivatives with respect to the parameters."""
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

    def iterate(self, rounds: int) -> None:
        """Iterate at most `rounds` times."""
        for _ in range(rounds):
            slopes = np.concatenate([one.slopes for one in self._clusters])
            left = np.concatenate([one.left for one in self._clusters])
            scale = np.maximum(np.linalg.norm(slopes, axis=0), 1e-300)
            normal, side = (slopes / scale).T @ (slopes / scale), (slopes / scale).T @ left
            step = np.linalg.solve(normal + self._slowness * np.eye(len(scale)), side) / scale
            plant = _allowed(self._plant.numbers + step, self._plant)
            velocity = self._velocity + [one.velocity(step) for one in self._clusters]
            with np.errstate(over="ignore", invalid="ignore"):  # too long a step has the cost nan and is rejected
                ways = self._answers.simulate([plant], velocity[None])[0]
                cost, before = self._cost_of(self._answers.position - ways, velocity), self.cost
            if not cost < before * (1.0 + 1e-9):
                self._slowness *= 10.0
                if self._slowness > 1e6:
                    return
                continue
            self._plant, self._velocity, self._slowness = plant, velocity, max(0.2 * self._slowness, 1e-9)
            self._linearise()
            if before - self.cost < _CONVERGED * before:
                return

    def result(self) -> PlantFit:
        """Return the fit with intervals."""
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
    """Residuals and derivatives of one push after elimination of initial position and velocity."""

    left: Array
    slopes: Array
    own: Array
    shares: Array

    def velocity(self, step: Array) -> float:
        """Return the change of the initial velocity that belongs to a step of the parameters."""
        return float(self.own[1] - self.shares[1] @ step)


def _eliminated(left: Array, slopes: Array, weight: float, drift: float) -> _Cluster:
    """Eliminate initial position and velocity.

    The prior on the velocity adds a row with the coefficient `weight` and the residual ``-drift``.
    """
    own = np.column_stack((np.append(np.ones(len(left)), 0.0), np.append(slopes[:, -1], weight)))
    left = np.append(left, -drift)
    rest = np.vstack((slopes[:, :-1], np.zeros(slopes.shape[1] - 1)))
    inverse = np.linalg.pinv(own)
    value, shares = inverse @ left, inverse @ rest
    return _Cluster(left - own @ value, rest - own @ shares, value, shares)


def _allowed(numbers: Array, before: Plant) -> Plant:
    """Return the plant with these parameters, limited to valid values near the previous plant."""
    mass = float(np.clip(numbers[0], 0.3 * before.mass, 3.0 * before.mass))
    delay = float(np.clip(numbers[4], 0.0, LONGEST_DELAY))
    return Plant(mass, float(max(numbers[1], 0.0)), float(max(numbers[2], 0.0)), float(numbers[3]), delay)
