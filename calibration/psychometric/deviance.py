"""Goodness of fit of a psychometric function: deviance compared with simulated responses.

The number of responses per level is too small for the chi-squared distribution. The p value is therefore based on a
simulation in which every simulated data set is fitted again (Wichmann and Hill 2001, Percept. Psychophys. 63,
1293-1313).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibration.psychometric.data import Responses
from calibration.psychometric.kernels import best_log_likelihoods, sigmoid
from calibration.psychometric.posterior import Posterior
from calibration.psychometric.tables import make_tables

Array = NDArray[np.float64]

SIMULATED = 1000
SEED = 20061
"""Number of simulated data sets, and seed of the simulation, which makes p values reproducible."""

_RATES = 6
"""Number of lapse rates in the grid."""

_LEAST = 1e-6
"""Relative density below which thresholds and widths are not tried.

Fits of simulated data are close to the original one.
"""


def deviance_of(posterior: Posterior, answers: Responses) -> float:
    """Return the deviance of the responses from the best function on the grid used for p values."""
    gathered = answers.gathered()
    return float(_deviances(posterior, gathered, gathered.correct[None])[0])


def deviance_p_of(posterior: Posterior, answers: Responses) -> float:
    """Return the p value of the deviance, (1 + number of larger deviances)/(1 + number of simulations)."""
    gathered = answers.gathered()
    threshold, width, (lapse, guess, _) = posterior.best
    positions = posterior.shape.position(gathered.levels)
    core = np.array([sigmoid(posterior.shape.code, (u - threshold) / width) for u in positions])
    p = guess + (1.0 - guess - lapse) * core
    drawn = np.random.default_rng(SEED).binomial(gathered.total.astype(int), p, (SIMULATED, len(p)))
    own, others = deviance_of(posterior, answers), _deviances(posterior, gathered, drawn.astype(float))
    return float((1 + np.count_nonzero(others >= own - 1e-9)) / (1 + SIMULATED))


def _deviances(posterior: Posterior, answers: Responses, correct: Array) -> Array:
    """Return the deviances of several sets of correct responses (sets, levels) at the same levels."""
    shape, prior, box = posterior.shape, posterior.prior, posterior.box
    tables = make_tables(shape, answers.levels, prior, box, posterior.thresholds, posterior.widths, _RATES)
    likely = posterior.plane > _LEAST * posterior.plane.max()
    cells = np.repeat(likely.ravel(), tables.log_right.shape[1] // likely.size)
    wrong = answers.total - correct
    right_table, wrong_table = (np.ascontiguousarray(one[:, cells]) for one in (tables.log_right, tables.log_wrong))
    fitted = best_log_likelihoods(right_table, wrong_table, correct, wrong)
    with np.errstate(divide="ignore", invalid="ignore"):
        saturated = np.where(correct > 0, correct * np.log(correct / answers.total), 0.0)
        saturated += np.where(wrong > 0, wrong * np.log(wrong / answers.total), 0.0)
    return np.asarray(np.maximum(2.0 * (saturated.sum(axis=1) - fitted), 0.0))
