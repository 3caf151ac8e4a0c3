"""QUEST+: adaptive procedure with maximum expected information (Watson 2017, J. Vision 17(3):10)."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.experiment.procedures.quest_kernels import entropies, information, probabilities, update
from apps.experiment.procedures.settings import QuestSettings, possible_levels
from calibration.psychometric.shapes import make_shape

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


@lru_cache(maxsize=8)
def _tables(settings: QuestSettings, guess: float) -> _Tables:
    return _Tables(settings, guess)


class QuestPlus:
    """A run of QUEST+ with two possible answers.

    The prior is uniform. A level is presented at most ``max_repeats`` times in a row. The level with the next most
    information replaces it, so that the computation time is constant.

    Parameters
    ----------
    settings : QuestSettings
        Grids, psychometric function and termination.
    guess : float
        Probability of a correct answer without a stimulus.
    """

    def __init__(self, settings: QuestSettings, guess: float) -> None:
        self.settings = settings
        self.trials = 0
        self._guess = guess
        self._tables = tables = _tables(settings, guess)
        self._posterior = np.full(len(tables.parameters), 1.0 / len(tables.parameters))
        self._gain, self._mean = np.empty((2, settings.count))
        self._last, self._in_a_row = -1, 0
        self._choice = self._chosen()

    @property
    def finished(self) -> bool:
        """Whether there were enough trials, or the threshold is known precisely enough."""
        if self.trials >= self.settings.trials:
            return True
        wanted = self.settings.posterior_sd
        return wanted > 0.0 and self.trials >= self.settings.least_trials and self._threshold()[1] <= wanted

    @property
    def right(self) -> Array:
        """Probability of a correct answer for each combination of parameters and level, shape (cells, levels)."""
        return self._tables.right

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

    def _threshold(self) -> tuple[float, float]:
        """Return the posterior mean and standard deviation of ln(threshold)."""
        return _moments(self._tables.parameters[:, 0], self._posterior)

    def report(self) -> dict[str, Any]:
        """Return the posterior: geometric mean and 95 % interval of the threshold, slope, lapses, guesses.

        ``target_percent`` is the percentage correct at the threshold without lapses.
        """
        mean, sd = self._threshold()
        tables, posterior = self._tables, self._posterior
        low, high = self._interval()
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

    def _interval(self) -> tuple[float, float]:
        """Return the equal-tailed 95 % interval of ln(threshold), interpolated on the grid of thresholds."""
        values = np.unique(self._tables.parameters[:, 0])
        mass = self._posterior.reshape(len(values), -1).sum(axis=1)
        below = np.cumsum(mass) - 0.5 * mass
        low, high = np.interp((0.025, 0.975), below, values)
        return float(low), float(high)


def _moments(values: Array, mass: Array) -> tuple[float, float]:
    """Return the mean and standard deviation of weighted values."""
    mean = float(mass @ values)
    return mean, math.sqrt(max(float(mass @ (values - mean) ** 2), 0.0))
