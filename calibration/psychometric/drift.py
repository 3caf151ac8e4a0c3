"""Fit of a psychometric function whose threshold changes slowly within a session.

The logarithm of the threshold in block t is u + s x(t). u is the usual threshold of the participant, s the size of the
change, and x a stationary Gaussian process of variance 1 with correlation exp(-dt/tau), which restarts in every
session. x has the states and transitions of Rouwenhorst (1995), which have exactly the mean, variance and correlation
of the process, so that the likelihood of all paths is a forward recursion over the blocks (a hidden Markov model).

Without a change (s = 0) the model is the usual fit. Both are equally probable before the data; the estimates are
averages over both, weighted by their evidence (Hoeting, Madigan, Raftery and Volinsky 1999, Statistical Science 14).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.psychometric.estimate import (
    USUAL_PROBABILITY,
    Estimate,
    Responses,
    checked_probability,
    interval_of,
    make_answers,
    weighted_quantiles,
)
from calibration.psychometric.fit import PsychometricFit, fit_psychometric
from calibration.psychometric.posterior import LAPSES, Guess, Posterior, Prior, RatePrior, WidthPrior, span_of
from calibration.psychometric.shapes import add_log_likelihood, make_shape
from haptics.errors import ConfigurationError
from haptics.jit import kernel

Array = NDArray[np.float64]

LEAST_EVIDENCE = 2.0
"""Bayes factor above which the threshold is reported to change; less than 5 % of constant thresholds exceed it."""

SIZES = (0.15, 0.3, 0.6)
_SIZE_MASS = (0.3, 0.45, 0.25)
"""Standard deviations of the logarithm of the threshold, and their prior."""

TIMES = (0.25, 1.0)
"""Correlation times, in lengths of the session, with equal prior."""

BLOCKS, _LEAST_BLOCK = 10, 5
"""Maximum number of blocks of a session, and minimum number of trials in a block."""

_STATES = 9
_WIDTHS, _RATES, _STEPS = 17, 5, 60
"""Numbers of states, of widths and rates in the grid, and of steps over the range of thresholds."""

_MARGIN = 0.8
"""Distance of the ends of the grid from the posterior without a change, in units of the log level."""

_HEAVY = 1e-4
"""Mass, relative to the largest, of the cells that contribute to the course of the threshold."""


@dataclass(frozen=True)
class TimeCourse:
    """Threshold over the trials of a session.

    Attributes
    ----------
    session : int
        Number of the session.
    times, middle, low, high : (n,) float arrays
        Mean trial number of each block; median of the threshold, and ends of its equal-tailed interval.
    """

    session: int
    times: Array
    middle: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class _Blocks:
    """Blocks of consecutive trials: their session, time, and correlations with the block before for each of `TIMES`."""

    sessions: NDArray[np.int64]
    times: Array
    correlations: Array
    answers: tuple[Responses, ...]


@dataclass(frozen=True)
class DriftFit:
    """Fits with a constant threshold, with a slowly changing one, and their average.

    Attributes
    ----------
    constant : PsychometricFit
        Fit with a constant threshold. Its threshold is the average over the trials of these sessions.
    drifting : PsychometricFit
        Fit with a changing threshold. Its threshold is the usual one of the participant, about which the threshold
        changes; its interval includes that sessions differ.
    averaged : PsychometricFit
        Average of both over their evidence, for reports.
    bayes_factor : float
        Evidence for a change: ratio of the marginal likelihoods of `drifting` and `constant`.
    size : Estimate
        Standard deviation of the natural logarithm of the threshold.
    """

    constant: PsychometricFit
    drifting: PsychometricFit
    averaged: PsychometricFit
    bayes_factor: float
    size: Estimate
    _blocks: _Blocks = field(repr=False)
    _likelihood: Array = field(repr=False)
    _mass: Array = field(repr=False)
    _first: float = field(repr=False)
    _below: int = field(repr=False)

    @property
    def changes(self) -> bool:
        """Whether there is evidence for a change: the Bayes factor exceeds `LEAST_EVIDENCE`."""
        return self.bayes_factor > LEAST_EVIDENCE

    def time_courses(self, proportion: float, probability: float = USUAL_PROBABILITY) -> tuple[TimeCourse, ...]:
        """Return the threshold at a proportion over the trials, for each session.

        Parameters
        ----------
        proportion, probability
            As in `PsychometricFit.threshold`.
        """
        posterior, blocks = self.drifting.posterior, self._blocks
        floor, step = posterior.prior.floor, float(posterior.thresholds[1] - posterior.thresholds[0])
        reach = posterior.shape.reach((proportion - floor) / (1.0 - floor)) * posterior.widths
        shifts = np.floor((reach - reach.min()) / step).astype(np.int64)
        density = np.zeros((len(blocks.times), self._likelihood.shape[-1] + int(shifts.max()) + 1))
        cells = np.argwhere(self._mass > _HEAVY * self._mass.max())
        masses = self._mass[tuple(cells.T)]
        _add_time_courses(density, self._likelihood, cells, masses, *_chain(blocks, step), self._below, shifts)
        # a shift is rounded down: on average by half a step
        positions = self._first + reach.min() + step * (np.arange(density.shape[1]) + 0.5 * (shifts.max() > 0))
        tail = 0.5 * (1.0 - checked_probability(probability))
        found = np.array([weighted_quantiles(positions, one, (tail, 0.5, 1.0 - tail)) for one in density])
        low, middle, high = np.exp(found).T
        rows = ((int(number), blocks.sessions == number) for number in np.unique(blocks.sessions))
        return tuple(TimeCourse(number, blocks.times[own], middle[own], low[own], high[own]) for number, own in rows)


def fit_drift(
    levels: ArrayLike,
    correct: ArrayLike,
    *,
    guess: Guess,
    sessions: ArrayLike | None = None,
    times: ArrayLike | None = None,
    shape: str = "phi",
    lapse_prior: RatePrior | float = LAPSES,
    width_prior: WidthPrior | None = None,
) -> DriftFit:
    """Fit a psychometric function of the logarithm of the level with and without a slow change of its threshold.

    Parameters
    ----------
    levels, correct : (n,) array-likes
        Level of each trial, and whether the answer was correct (or "yes"), in the order of the trials.
    guess, shape, lapse_prior, width_prior
        As in `fit_psychometric`, with scale ``log``.
    sessions : (n,) array-like of int, optional
        Number of the session of each trial.
    times : (n,) array-like, optional
        Number of the trial in its session, where other trials lie between; must not decrease within a session.

    Raises
    ------
    ConfigurationError
        If the responses are invalid, or an option is unknown.
    """
    right = np.atleast_1d(np.asarray(correct, dtype=float))
    constant = fit_psychometric(
        levels,
        right,
        np.ones_like(right),
        guess=guess,
        shape=shape,
        scale="log",
        lapse_prior=lapse_prior,
        width_prior=width_prior,
    )
    level = np.atleast_1d(np.asarray(levels, dtype=float))
    numbers = np.zeros(len(level), dtype=np.int64) if sessions is None else np.asarray(sessions, dtype=np.int64)
    time = np.arange(len(level), dtype=float) if times is None else np.asarray(times, dtype=float)
    if not len(numbers) == len(time) == len(level):
        raise ConfigurationError(
            f"levels, sessions and times have {len(level)}, {len(numbers)} and {len(time)} rows; give each a value for "
            "every trial."
        )
    blocks = _make_blocks(level, right, numbers, time)
    box, prior, sigmoid = constant.posterior.box, Prior(guess, lapse_prior, width_prior), make_shape(shape, "log")
    low, high = span_of(constant.posterior.thresholds, constant.posterior.plane.sum(axis=1))
    low, high = max(low - _MARGIN, box.thresholds[0]), min(high + _MARGIN, box.thresholds[1])
    step = (high - low) / _STEPS
    thresholds = low + step * np.arange(_STEPS + 1, dtype=np.float64)
    below = math.ceil(SIZES[-1] * math.sqrt(_STATES - 1) / step) + 1
    positions = low + step * np.arange(-below, _STEPS + 1 + below + 1, dtype=np.float64)
    widths = np.asarray(np.exp(np.linspace(*box.log_widths, _WIDTHS)), dtype=np.float64)
    nuisances, log_mass = prior.nuisances(_RATES)
    likelihood = np.zeros((len(blocks.times), len(widths), len(nuisances), len(positions)))
    scale = np.zeros((len(widths), len(nuisances)))
    for block, answers in enumerate(blocks.answers):
        total = np.zeros((len(positions), len(widths), len(nuisances)))
        at = sigmoid.position(answers.levels)
        add_log_likelihood(total, sigmoid.code, at, answers.correct, answers.wrong, positions, widths, nuisances)
        most = total.max(axis=0)
        likelihood[block] = np.exp(total - most).transpose(1, 2, 0)
        scale += most
    log_prior = box.log_prior(thresholds, widths)[:, :, None] + log_mass + scale
    evidence = np.empty((1 + len(SIZES) * len(TIMES), len(thresholds), len(widths), len(nuisances)))
    _forward(evidence, likelihood, *_chain(blocks, step), below)
    masses = np.concatenate(([1.0], np.repeat(np.array(_SIZE_MASS) / len(TIMES), len(TIMES))))
    evidence += log_prior + np.log(masses)[:, None, None, None]
    mass = np.exp(evidence - evidence.max())
    drifting = mass[1:].sum(axis=0)
    factor = float(drifting.sum() / mass[0].sum()) if mass[0].sum() > 0.0 else math.inf
    posterior = Posterior(sigmoid, prior, box, thresholds, widths, nuisances, drifting / drifting.sum())
    both = mass.sum(axis=0)
    averaged = Posterior(sigmoid, prior, box, thresholds, widths, nuisances, both / both.sum())
    by_size = mass[1:].sum(axis=(1, 2, 3)).reshape(len(SIZES), len(TIMES)).sum(axis=1)
    return DriftFit(
        constant,
        PsychometricFit(constant.answers, posterior, constant.notes),
        PsychometricFit(constant.answers, averaged, constant.notes),
        factor,
        interval_of(np.array(SIZES), by_size, USUAL_PROBABILITY),
        blocks,
        likelihood,
        mass[1:],
        float(positions[0]),
        below,
    )


def _make_blocks(level: Array, right: Array, numbers: NDArray[np.int64], time: Array) -> _Blocks:
    """Divide the trials of every session into blocks of about equal size."""
    sessions, times, correlations, answers = [], [], [], []
    for number in np.unique(numbers):
        own = np.flatnonzero(numbers == number)
        if not np.isfinite(time[own]).all() or (np.diff(time[own]) < 0.0).any():
            raise ConfigurationError(f"times: must be finite and not decrease within a session; see session {number}.")
        length = max(float(np.ptp(time[own])), 1.0)
        before = -math.inf
        for rows in np.array_split(own, min(BLOCKS, max(len(own) // _LEAST_BLOCK, 1))):
            at = float(time[rows].mean())
            sessions.append(number)
            times.append(at)
            correlations.append([math.exp((before - at) / (tau * length)) for tau in TIMES])
            answers.append(make_answers(level[rows], right[rows], np.ones(len(rows))).gathered())
            before = at
    return _Blocks(np.array(sessions), np.array(times), np.array(correlations), tuple(answers))


def _chain(blocks: _Blocks, step: float) -> tuple[Array, Array, Array]:
    """Return the states in steps of the grid (sizes, states), their mass, and the transitions by block and time."""
    states = np.linspace(-1.0, 1.0, _STATES) * math.sqrt(_STATES - 1)
    mass = np.array([math.comb(_STATES - 1, k) for k in range(_STATES)]) / 2.0 ** (_STATES - 1)
    transitions = np.array([[_rouwenhorst(one) for one in row] for row in blocks.correlations])
    return np.outer(SIZES, states) / step, mass, transitions


def _rouwenhorst(correlation: float) -> Array:
    """Return the transition matrix of a chain with a correlation (Rouwenhorst 1995; Kopecky and Suen 2010)."""
    p = 0.5 * (1.0 + correlation)
    matrix = np.ones((1, 1))
    for count in range(1, _STATES):
        larger = np.zeros((count + 1, count + 1))
        larger[:-1, :-1] += p * matrix
        larger[:-1, 1:] += (1.0 - p) * matrix
        larger[1:, :-1] += (1.0 - p) * matrix
        larger[1:, 1:] += p * matrix
        larger[1:-1] *= 0.5
        matrix = larger
    return matrix


# --- kernels ----------------------------------------------------------------------------------------------------------


@kernel
def _weigh(likelihood: Array, states: Array, at: int, alpha: Array) -> float:
    """Multiply the masses of the states by the likelihood of a block, interpolated, and return their sum."""
    total = 0.0
    for k in range(len(states)):
        place = at + states[k]
        low = math.floor(place)
        share = place - low
        alpha[k] *= (1.0 - share) * likelihood[low] + share * likelihood[low + 1]
        total += alpha[k]
    return total


@kernel
def _forward(evidence: Array, likelihood: Array, states: Array, mass: Array, transitions: Array, below: int) -> None:
    """Compute the log likelihood without a change and for each size and time (models, thresholds, widths, rates).

    `likelihood` (blocks, widths, rates, positions) is relative to its largest value, `states` (sizes, states) are in
    steps of the positions, the first threshold is position `below`.
    """
    blocks, times, count = transitions.shape[0], transitions.shape[1], len(mass)
    alpha, moved = np.empty(count), np.empty(count)
    for i in range(evidence.shape[1]):
        for j in range(evidence.shape[2]):
            for k in range(evidence.shape[3]):
                total = 0.0
                for block in range(blocks):
                    total += math.log(max(likelihood[block, j, k, below + i], 1e-300))
                evidence[0, i, j, k] = total
                for size in range(len(states)):
                    for time in range(times):
                        total = 0.0
                        alpha[:] = mass
                        for block in range(blocks):
                            if block > 0:
                                moved[:] = 0.0
                                for first in range(count):
                                    for then in range(count):
                                        moved[then] += alpha[first] * transitions[block, time, first, then]
                                alpha[:] = moved
                            share = _weigh(likelihood[block, j, k], states[size], below + i, alpha)
                            total += math.log(max(share, 1e-300))
                            alpha /= max(share, 1e-300)
                        evidence[1 + size * times + time, i, j, k] = total


@kernel
def _add_time_courses(
    density: Array,
    likelihood: Array,
    cells: NDArray[np.int64],
    masses: Array,
    states: Array,
    mass: Array,
    transitions: Array,
    below: int,
    shifts: NDArray[np.int64],
) -> None:
    """Add the posterior of the position in every block, moved by the shift of its width, to `density`.

    `cells` (n, 4) are the indices of model, threshold, width and rate, with `masses` (n,).
    """
    blocks, times, count = transitions.shape[0], transitions.shape[1], len(mass)
    forward, backward = np.empty((blocks, count)), np.empty(count)
    for cell in range(len(cells)):
        i, j, k = cells[cell, 1], cells[cell, 2], cells[cell, 3]
        size, time = cells[cell, 0] // times, cells[cell, 0] % times
        for block in range(blocks):
            if block == 0:
                forward[block] = mass
            else:
                forward[block] = 0.0
                for first in range(count):
                    forward[block] += forward[block - 1, first] * transitions[block, time, first]
            forward[block] /= _weigh(likelihood[block, j, k], states[size], below + i, forward[block])
        backward[:] = 1.0
        for block in range(blocks - 1, -1, -1):
            parts = forward[block] * backward
            parts *= masses[cell] / parts.sum()
            for state in range(count):
                place = below + i + states[size, state]
                low = math.floor(place)
                density[block, low + shifts[j]] += (1.0 - place + low) * parts[state]
                density[block, low + 1 + shifts[j]] += (place - low) * parts[state]
            backward /= _weigh(likelihood[block, j, k], states[size], below + i, backward)
            parts[:] = backward
            for first in range(count):
                backward[first] = (transitions[block, time, first] * parts).sum()
