"""Tables of log probabilities for many fast fits at the same levels.

One fit of 10 000 cells to seven levels takes about 0.2 ms. The grid spans the whole prior region; single sessions are
better fitted with `fit_psychometric`, whose grid adapts to the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.psychometric.estimate import USUAL_PROBABILITY, Estimate, Kind, interval_of
from calibration.psychometric.kernels import add_from_tables, fill_tables
from calibration.psychometric.priors import LAPSES, Box, Guess, Prior, RatePrior, WidthPrior, make_box
from calibration.psychometric.shapes import Shape, make_shape
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

USUAL_GRID = (81, 31, 4)
"""Numbers of thresholds, widths and lapse rates: 10 044 cells."""


@dataclass(frozen=True)
class Tables:
    """Log probabilities of right and wrong responses at fixed levels for each cell of a grid.

    Attributes
    ----------
    shape, prior, box
        Function, prior, and region of the parameters.
    levels : (n,) float array
        Levels, in the order of the responses.
    thresholds, widths : float arrays
        Grid in units of u.
    log_prior : (cells,) float array
    log_right, log_wrong : (n, cells) float arrays
    """

    shape: Shape
    prior: Prior
    box: Box
    levels: Array
    thresholds: Array
    widths: Array
    log_prior: Array
    log_right: Array
    log_wrong: Array

    def mass(self, correct: ArrayLike, total: ArrayLike) -> Array:
        """Return the posterior masses of the cells (thresholds, widths, nuisances).

        Parameters
        ----------
        correct, total : (n,) array-likes
            Number of right responses and of responses at each level; levels with a total of 0 are skipped.
        """
        right = np.asarray(correct, dtype=float)
        wrong = np.asarray(total, dtype=float) - right
        if right.shape != self.levels.shape or wrong.shape != right.shape or (wrong < 0).any() or (right < 0).any():
            raise ConfigurationError(
                f"correct and total: must be {len(self.levels)} numbers each, one a level, correct at most total."
            )
        log_mass = self.log_prior.copy()
        add_from_tables(log_mass, self.log_right, self.log_wrong, right, wrong)
        log_mass -= log_mass.max()
        mass = np.exp(log_mass)
        return np.asarray((mass / mass.sum()).reshape(len(self.thresholds), len(self.widths), -1))

    @cached_property
    def _reached(self) -> dict[float, Array]:
        return {}

    def threshold(
        self,
        correct: ArrayLike,
        total: ArrayLike,
        proportion: float,
        probability: float = USUAL_PROBABILITY,
        kind: Kind = "median",
    ) -> Estimate:
        """Return the level at which a proportion is reached, as `PsychometricFit.threshold`; never a bound."""
        if proportion not in self._reached:
            share = (proportion - self.prior.floor) / (1.0 - self.prior.floor)
            self._reached[proportion] = self.thresholds[:, None] + self.shape.reach(share) * self.widths
        plane = self.mass(correct, total).sum(axis=2)
        return interval_of(self._reached[proportion], plane, probability, kind).transformed(self.shape.level)


def make_tables(
    shape: Shape, levels: Array, prior: Prior, box: Box, thresholds: Array, widths: Array, rates: int
) -> Tables:
    """Return tables for levels on a grid of thresholds, widths and `rates` lapse rates."""
    nuisances, log_mass = prior.nuisances(rates)
    cells = len(thresholds) * len(widths) * len(nuisances)
    log_right, log_wrong = np.empty((len(levels), cells)), np.empty((len(levels), cells))
    fill_tables(log_right, log_wrong, shape.code, shape.position(levels), thresholds, widths, nuisances)
    log_prior = (box.log_prior(thresholds, widths)[:, :, None] + log_mass).ravel()
    return Tables(shape, prior, box, levels, thresholds, widths, log_prior, log_right, log_wrong)


def psychometric_tables(
    levels: ArrayLike,
    *,
    guess: Guess,
    shape: str = "phi",
    scale: str = "linear",
    lapse_prior: RatePrior | float = LAPSES,
    width_prior: WidthPrior | None = None,
) -> Tables:
    """Return tables for many fits at these levels; parameters as in `fit_psychometric`."""
    sigmoid, column = make_shape(shape, scale), np.atleast_1d(np.asarray(levels, dtype=float))
    if not np.isfinite(column).all() or (sigmoid.scale == "log" and (column < 0.0).any()):
        raise ConfigurationError("levels: must be finite numbers, and not negative on a logarithmic scale.")
    box = make_box(sigmoid, sigmoid.position(column), width_prior)
    thresholds = np.linspace(*box.thresholds, USUAL_GRID[0])
    widths = np.exp(np.linspace(*box.log_widths, USUAL_GRID[1]))
    prior = Prior(guess, lapse_prior, width_prior)
    return make_tables(sigmoid, column, prior, box, thresholds, widths, USUAL_GRID[2])
