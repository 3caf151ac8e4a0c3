"""How well a fitted function describes the answers: its deviance, against that of answers which it draws itself.

Answers are too few a level for the chi-squared distribution, so the p value is that of a simulation in which every
drawn set is fitted anew (Wichmann and Hill 2001, Percept. Psychophys. 63, 1293-1313).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibration.psychometric.data import Answers
from calibration.psychometric.kernels import best_log_likelihoods, sigmoid
from calibration.psychometric.posterior import Posterior
from calibration.psychometric.tables import make_tables

Array = NDArray[np.float64]

SIMULATED = 1000
SEED = 20061
"""Drawn sets, and the seed of the draws: the same answers have the same p value."""

_RATES = 6
"""How many lapses are tried."""

_LEAST = 1e-6
"""Thresholds and widths that are less likely than this are not tried: the best one of a drawn set is near."""


def deviance_of(posterior: Posterior, answers: Answers) -> float:
    """Return the deviance of gathered answers from the best function of the grid on which p values are found."""
    gathered = answers.gathered()
    return float(_deviances(posterior, gathered, gathered.correct[None])[0])


def deviance_p_of(posterior: Posterior, answers: Answers) -> float:
    """Return how often drawn answers deviate at least as much: (1 + that many)/(1 + drawn sets)."""
    gathered = answers.gathered()
    threshold, width, (lapse, guess, _) = posterior.best
    positions = posterior.shape.position(gathered.levels)
    core = np.array([sigmoid(posterior.shape.code, (u - threshold) / width) for u in positions])
    p = guess + (1.0 - guess - lapse) * core
    drawn = np.random.default_rng(SEED).binomial(gathered.total.astype(int), p, (SIMULATED, len(p)))
    own, others = deviance_of(posterior, answers), _deviances(posterior, gathered, drawn.astype(float))
    return float((1 + np.count_nonzero(others >= own - 1e-9)) / (1 + SIMULATED))


def _deviances(posterior: Posterior, answers: Answers, correct: Array) -> Array:
    """Return the deviances of several sets of right answers (sets, levels) at the same levels."""
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
