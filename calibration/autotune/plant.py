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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.intervals import quantile
from haptics.errors import ConfigurationError

# --- simulation -------------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]

_STEP = 0.25e-3
"""Maximum time step of the simulation [s]."""


@dataclass(frozen=True)
class Push:
    """Recording of one push along one axis.

    Attributes
    ----------
    command : (h + n,) float array
        Commands at the ticks of the push, preceded by the commands at the `history` ticks before it [N].
    position : (n,) float array
        Position of the handle at the ticks of the push [m]; nan if unknown.
    history : int
        Number of ticks before the push that `command` includes.
    """

    command: Array
    position: Array
    history: int


class Plant(NamedTuple):
    """Parameters of the handle [kg, N s/m, N, N, s]."""

    mass: float
    damping: float = 0.0
    friction: float = 0.0
    offset: float = 0.0
    delay: float = 0.0


NAMES = Plant._fields


class PushSimulator:
    """Simulator of several pushes at once.

    Parameters
    ----------
    pushes : sequence of Push
        At least one push.
    period : float
        Time between two ticks [s].
    """

    def __init__(self, pushes: Sequence[Push], period: float) -> None:
        self.period = period
        self.parts = math.ceil(period / _STEP - 1e-9)
        length = max(len(push.position) for push in pushes)
        self.position = np.full((len(pushes), length), np.nan)
        before = max(push.history for push in pushes)
        command = np.zeros((len(pushes), before + length))
        for row, push in enumerate(pushes):
            count = len(push.position)
            self.position[row, :count] = push.position
            command[row, : before + count] = np.pad(push.command, (before - push.history, 0), "edge")
        self.known = np.isfinite(self.position)
        self._impulse = np.concatenate((np.zeros((len(pushes), 1)), np.cumsum(command, axis=1)), axis=1) * period
        self._before = before

    def forces(self, delay: float) -> Array:
        """Return the mean force over each step of the simulation, (steps, pushes) [N]."""
        count, step = (self.position.shape[1] - 1) * self.parts, self.period / self.parts
        time = self._before * self.period + step * np.arange(count + 1) - delay
        place = np.clip(time / self.period, 0.0, self._impulse.shape[1] - 1.001)
        whole = place.astype(np.int64)
        impulse = self._impulse[:, whole]
        impulse = impulse + (place - whole) * (self._impulse[:, whole + 1] - impulse)
        return np.asarray(np.diff(impulse, axis=1).T / step)

    def simulate(self, plants: Sequence[Plant], velocity: Array) -> Array:
        """Return the displacement of the handle (plants, pushes, ticks) [m].

        The initial `velocity` is (plants, pushes) [m/s]. The result is exact for a force that is constant over a step,
        except for the damping in a step with a reversal.
        """
        m, b, c, g, _ = (column[:, None] for column in np.array(plants).T)
        delays = [plant.delay for plant in plants]
        forces = {delay: self.forces(delay) for delay in set(delays)}
        force = np.stack([forces[delay] for delay in delays], axis=1) - g[None]
        h = self.period / self.parts
        z = b * h / m
        first, second = 1.0 - z / 2.0 + z**2 / 6.0 - z**3 / 24.0, 0.5 - z / 6.0 + z**2 / 24.0 - z**3 / 120.0
        kept, gain, way, push = 1.0 - z * first, h / m * first, h * first, h * h / m * second
        v, x = velocity.copy(), np.zeros_like(velocity)
        out = np.zeros((*velocity.shape, self.position.shape[1]))
        for k in range(len(force)):
            pull = force[k]
            driven = pull - np.clip(pull, -c, c)  # for a handle that dry friction may hold
            net = np.where(v == 0.0, driven, pull - c * np.sign(v))
            after = kept * v + gain * net
            moved = way * v + push * net
            turned = v * after < 0.0
            if turned.any():  # dry friction reverses with the motion, within the step
                part = np.where(turned, v / np.where(turned, v - after, 1.0), 0.0)
                again = gain * (1.0 - part) * driven
                moved = np.where(turned, 0.5 * h * (part * v + (1.0 - part) * again), moved)
                after = np.where(turned, again, after)
            x += moved
            v = after
            if (k + 1) % self.parts == 0:
                out[..., (k + 1) // self.parts] = x
        return out


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
    for start in starts if len(starts) > 1 else ():
        start.iterate(4)
    best = min(starts, key=lambda start: start.cost)
    best.iterate(_ROUNDS)
    return best.result()


class _Cluster(NamedTuple):
    """Residuals and derivatives of one push after elimination of initial position and velocity.

    The change of the initial velocity that belongs to a step of the parameters is ``own - shares @ step``.
    """

    left: Array
    slopes: Array
    own: float
    shares: Array


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
        steps = np.array([1e-4 * plant.mass, 1e-3 * plant.mass, 1e-3, 1e-3, 1e-5])
        plants = [plant, *(Plant(*np.add(plant, step).tolist()) for step in np.diag(steps)), plant]
        velocity = np.tile(self._velocity, (len(plants), 1))
        velocity[-1] += 1e-4
        ways = answers.simulate(plants, velocity)
        slopes = (ways[1:] - ways[0]) / np.append(steps, 1e-4)[:, None, None]
        left = answers.position - ways[0]
        weight = self._weight
        self._clusters = [
            _eliminated(left[k][on], slopes[:, k][:, on].T, weight, weight * float(self._velocity[k]))
            for k, on in enumerate(answers.known)
        ]
        self.cost = self._cost_of(left, self._velocity)

    def _cost_of(self, left: Array, velocity: Array) -> float:
        pairs = zip(left, self._answers.known, strict=True)
        squares = sum(float(np.sum((one[on] - one[on].mean()) ** 2)) for one, on in pairs)
        return squares + float(np.sum((self._weight * velocity) ** 2))

    def iterate(self, rounds: int) -> None:
        """Iterate at most `rounds` times."""
        for _ in range(rounds):
            slopes = np.concatenate([one.slopes for one in self._clusters])
            left = np.concatenate([one.left for one in self._clusters])
            scale = np.maximum(np.linalg.norm(slopes, axis=0), 1e-300)
            normal, side = (slopes / scale).T @ (slopes / scale), (slopes / scale).T @ left
            step = np.linalg.solve(normal + self._slowness * np.eye(len(scale)), side) / scale
            numbers = np.add(self._plant, step)
            mass = float(np.clip(numbers[0], 0.3 * self._plant.mass, 3.0 * self._plant.mass))
            delay = float(np.clip(numbers[4], 0.0, LONGEST_DELAY))
            plant = Plant(mass, float(max(numbers[1], 0.0)), float(max(numbers[2], 0.0)), float(numbers[3]), delay)
            velocity = self._velocity + [float(one.own - one.shares @ step) for one in self._clusters]
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
            for name, error, value in zip(NAMES, errors.tolist(), self._plant, strict=True)
        }
        drift = float(np.sum((self._weight * self._velocity) ** 2))
        return PlantFit(self._plant, known, math.sqrt(max(self.cost - drift, 0.0) / self._answers.known.sum()))


def _eliminated(left: Array, slopes: Array, weight: float, drift: float) -> _Cluster:
    """Eliminate initial position and velocity.

    The prior on the velocity adds a row with the coefficient `weight` and the residual ``-drift``.
    """
    own = np.column_stack((np.append(np.ones(len(left)), 0.0), np.append(slopes[:, -1], weight)))
    left = np.append(left, -drift)
    rest = np.vstack((slopes[:, :-1], np.zeros(slopes.shape[1] - 1)))
    inverse = np.linalg.pinv(own)
    value, shares = inverse @ left, inverse @ rest
    return _Cluster(left - own @ value, rest - own @ shares, value[1], shares[1])
