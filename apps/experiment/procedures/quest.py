"""QUEST+: adaptive procedure with maximum expected information (Watson 2017, J. Vision 17(3):10)."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.experiment.procedures.settings import Carried, QuestSettings, possible_levels
from calibration.psychometric.shapes import clamped, make_shape, sigmoid
from haptics.jit import kernel

Array = NDArray[np.float64]


class _Tables:
    """Precomputed levels, parameters and probabilities, shared by all runs with the same settings.

    Attributes
    ----------
    levels : (n,) float array
        All levels.
    parameters : (m, 4) float array
        ln(threshold), width, lapse rate and guess rate of each cell of the posterior.
    slopes : (m,) float array
        Slope of each cell.
    right, entropy_of : (m, n) float arrays
        Probability of a correct answer, and entropy of the answer.
    """

    def __init__(self, settings: QuestSettings, guess: float) -> None:
        shape = make_shape(settings.shape, "log")
        self.shape = shape.code
        self.levels = np.array(possible_levels(settings))
        thresholds = np.log(np.geomspace(settings.minimum, settings.maximum, settings.thresholds))
        widths = [shape.exponent_span / slope for slope in settings.slopes]
        cells = itertools.product(thresholds, widths, settings.lapses, settings.guesses or (guess,))
        self.parameters = np.array(list(cells))
        self.slopes = shape.exponent_span / self.parameters[:, 1]
        self.right = self.columns(self.levels)
        self.entropy_of = np.empty_like(self.right)
        entropies(self.right, self.entropy_of)

    def columns(self, levels: Array) -> Array:
        """Return the probability of a correct answer at arbitrary levels, shape (m, n)."""
        right = np.empty((len(self.parameters), len(levels)))
        probabilities(right, self.shape, np.log(levels), self.parameters)
        return right


_tables = lru_cache(maxsize=8)(_Tables)


class QuestPlus:
    """A run of QUEST+ with two possible answers.

    The prior is uniform, or for the threshold normal around the threshold of an earlier session, with a standard
    deviation of at least a sixth of the step between thresholds. A level is presented at most
    ``max_repeats`` times in a row. The level with the next most information replaces it, so that the computation time
    is constant.

    Parameters
    ----------
    settings : QuestSettings
        Grids, psychometric function and termination.
    guess : float
        Probability of a correct answer without a stimulus.
    carried : Carried, optional
        Threshold of an earlier session.

    Attributes
    ----------
    right : (cells, levels) float array
        Probability of a correct answer for each combination of parameters and level.
    """

    def __init__(self, settings: QuestSettings, guess: float, carried: Carried | None = None) -> None:
        self.settings = settings
        self.trials = 0
        self._tables = tables = _tables(settings, guess)
        self.right = tables.right
        self._posterior = np.full(len(tables.parameters), 1.0 / len(tables.parameters))
        if carried is not None:
            mean = math.log(min(max(carried.level, settings.minimum), settings.maximum))
            step = math.log(settings.maximum / settings.minimum) / (settings.thresholds - 1)
            spread = max(carried.spread, step / 6.0)  # the next thresholds keep 1e-8, so that answers can reach them
            exponents = -0.5 * ((tables.parameters[:, 0] - mean) / spread) ** 2
            prior = np.exp(exponents - exponents.max())
            self._posterior = prior / prior.sum()
        self._gain, self._mean = np.empty((2, settings.count))
        self._last, self._in_a_row = -1, 0
        self._choice = self._chosen()

    @property
    def finished(self) -> bool:
        """Whether there were enough trials, or the threshold is known precisely enough."""
        if self.trials >= self.settings.trials:
            return True
        wanted = self.settings.posterior_sd
        return (
            wanted > 0.0
            and self.trials >= self.settings.least_trials
            and _moments(self._tables.parameters[:, 0], self._posterior)[1] <= wanted
        )

    def level(self) -> float:
        """Return the level of the next trial."""
        return float(self._tables.levels[self._choice])

    def add_outcome(self, level: float, correct: bool) -> None:
        """Add an answer at `level` (> 0), which may be outside the grid."""
        tables = self._tables
        place = int(np.argmin(np.abs(tables.levels - level)))
        exact = math.isclose(tables.levels[place], level, rel_tol=1e-12)
        column = tables.right[:, place] if exact else tables.columns(np.array([level]))[:, 0]
        update(self._posterior, np.ascontiguousarray(column), bool(correct))
        self.trials += 1
        self._in_a_row = self._in_a_row + 1 if self._choice == self._last else 1
        self._last = self._choice
        self._choice = self._chosen()

    def _chosen(self) -> int:
        """Return the index of the level with the most information, the lowest one of equals."""
        information(self._gain, self._mean, self._posterior, self._tables.right, self._tables.entropy_of)
        if self._last >= 0 and self._in_a_row >= self.settings.max_repeats:
            self._gain[self._last] = -math.inf
        return int(np.argmax(self._gain))

    def report(self) -> dict[str, Any]:
        """Return the posterior: geometric mean and 95 % interval of the threshold, slope, lapses, guesses.

        ``target_percent`` is the percentage correct at the threshold without lapses.
        """
        tables, posterior = self._tables, self._posterior
        mean, sd = _moments(tables.parameters[:, 0], posterior)
        # equal-tailed interval, interpolated on the grid of thresholds
        values = np.unique(tables.parameters[:, 0])
        mass = posterior.reshape(len(values), -1).sum(axis=1)
        low, high = map(float, np.interp((0.025, 0.975), np.cumsum(mass) - 0.5 * mass, values))
        guess, guess_sd = _moments(tables.parameters[:, 3], posterior)
        lapse, lapse_sd = _moments(tables.parameters[:, 2], posterior)
        log_slope, log_slope_sd = _moments(np.log(tables.slopes), posterior)
        return {
            "kind": "quest+",
            "estimate": math.exp(mean),
            "log_sd": sd,
            "interval": [math.exp(low), math.exp(high)],
            "probability": 0.95,
            "target_percent": 50.0 * (1.0 + guess),
            "shape": self.settings.shape,
            "slope": {"mean": math.exp(log_slope), "log_sd": log_slope_sd},
            "lapse": {"mean": lapse, "sd": lapse_sd},
            "guess": {"mean": guess, "sd": guess_sd},
            "trials": self.trials,
            "finished": self.finished,
        }


def _moments(values: Array, mass: Array) -> tuple[float, float]:
    """Return the mean and standard deviation of weighted values."""
    mean = float(mass @ values)
    return mean, math.sqrt(max(float(mass @ (values - mean) ** 2), 0.0))


_NEGLIGIBLE = 1e-15
"""Probability below which cells are skipped. In total they change the information by less than 1e-9."""


@kernel
def probabilities(right: Array, shape: int, positions: Array, parameters: Array) -> None:
    """Compute the probability of a correct answer, shape (cells, levels), into `right`.

    `positions` (levels,) are ln(level); `parameters` (cells, 4) are ln(threshold), width, lapse and guess.
    """
    for cell in range(len(parameters)):
        threshold, width, lapse, guess = parameters[cell]
        for place in range(len(positions)):
            f = sigmoid(shape, (positions[place] - threshold) / width)
            right[cell, place] = clamped(guess + (1.0 - guess - lapse) * f)


@kernel
def entropy(p: float) -> float:
    """Return the entropy [nat] of an answer that is correct with probability p."""
    return -p * math.log(p) - (1.0 - p) * math.log1p(-p)


@kernel
def entropies(right: Array, entropy_of: Array) -> None:
    """Compute the entropy of an answer for each probability, both of shape (cells, levels)."""
    for cell in range(right.shape[0]):
        for place in range(right.shape[1]):
            entropy_of[cell, place] = entropy(right[cell, place])


@kernel
def information(gain: Array, mean: Array, posterior: Array, right: Array, entropy_of: Array) -> None:
    """Compute the expected information about the parameters at each level, shape (levels,) [nat].

    The mutual information H(E[p]) - E[H(p)] equals the expected decrease of the posterior entropy in Watson (2017), and
    needs no logarithm in the sum over parameters. Improbable cells are skipped. The inner loop is over levels, so that
    the order of summation over parameters does not depend on vectorization by the compiler.
    """
    gain[:] = 0.0
    mean[:] = 0.0
    for cell in range(len(posterior)):
        weight = posterior[cell]
        if weight < _NEGLIGIBLE:
            continue
        for place in range(len(gain)):
            mean[place] += weight * right[cell, place]
            gain[place] -= weight * entropy_of[cell, place]
    for place in range(len(gain)):
        gain[place] += entropy(clamped(mean[place]))


@kernel
def update(posterior: Array, column: Array, correct: bool) -> None:
    """Update the posterior (cells,) with an answer, whose probability is `column` if correct."""
    total = 0.0
    for cell in range(len(posterior)):
        posterior[cell] *= column[cell] if correct else 1.0 - column[cell]
        total += posterior[cell]
    for cell in range(len(posterior)):
        posterior[cell] /= total
