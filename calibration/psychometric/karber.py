"""Spearman-Karber mean: a model-free threshold, to check the fitted one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.psychometric.data import Responses, make_answers
from calibration.psychometric.estimate import USUAL_PROBABILITY, Estimate, checked_probability
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

_DRAWN, _SEED = 1000, 1931


def spearman_karber(
    levels: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike,
    *,
    guess: float = 0.0,
    scale: str = "linear",
    probability: float = USUAL_PROBABILITY,
) -> Estimate:
    """Return the mean of the distribution that the proportions define.

    For a symmetric function, F = 1/2 there. Proportions are corrected for guessing, made monotonic (pooling adjacent
    violators) and, if they do not span 0 to 1, completed by one more level at either end (Miller and Ulrich 2001,
    Percept. Psychophys. 63, 1399-1420). The interval is based on 1000 data sets simulated from the monotonic
    proportions with a fixed seed. Lapses bias the mean upwards.

    Parameters
    ----------
    levels, correct, total
        As in `fit_psychometric`; at least two levels.
    guess : float
        Proportion without a stimulus.
    scale : str
        ``log``: the geometric mean.
    probability : float
        Probability of the interval.

    Raises
    ------
    ConfigurationError
        If the responses are invalid, or at fewer than two levels.
    """
    answers = make_answers(levels, correct, total).gathered()
    if scale == "log":
        above = answers.levels > 0.0
        answers = Responses(answers.levels[above], answers.correct[above], answers.total[above])
    if len(answers.levels) < 2:
        raise ConfigurationError(
            "A Spearman-Karber mean needs answers at two levels at least (above 0 on a log scale)."
        )
    at = np.log(answers.levels) if scale == "log" else answers.levels
    rising = _rising(answers.correct / answers.total, answers.total)
    drawn = np.random.default_rng(_SEED).binomial(answers.total.astype(int), rising, (_DRAWN, len(at)))
    means = [_mean(at, _rising(one / answers.total, answers.total), guess) for one in drawn]
    tail = 0.5 * (1.0 - checked_probability(probability))
    value = _mean(at, rising, guess)
    low, high = np.quantile(means, [tail, 1.0 - tail])
    found = Estimate(value, min(float(low), value), max(float(high), value), probability)
    return found.transformed(math.exp) if scale == "log" else found


def _mean(at: Array, rising: Array, guess: float) -> float:
    shares = np.clip((rising - guess) / (1.0 - guess), 0.0, 1.0)
    first, last = 2.0 * at[0] - at[1], 2.0 * at[-1] - at[-2]
    at = np.concatenate(([first], at, [last]))
    shares = np.concatenate(([0.0], shares, [1.0]))
    return float(np.sum(np.diff(shares) * 0.5 * (at[1:] + at[:-1])))


def _rising(proportions: Array, weights: Array) -> Array:
    """Return the nearest non-decreasing proportions (pool adjacent violators)."""
    pools: list[tuple[float, float, int]] = []
    for share, weight in zip(proportions, weights, strict=True):
        mean, total, count = float(share), float(weight), 1
        while pools and pools[-1][0] > mean:
            before, more, rows = pools.pop()
            mean = (before * more + mean * total) / (more + total)
            total, count = total + more, count + rows
        pools.append((mean, total, count))
    return np.repeat([mean for mean, _, _ in pools], [count for _, _, count in pools])
