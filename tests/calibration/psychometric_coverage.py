"""Coverage of the intervals of psychometric fits in simulated sessions with fixed seeds.

``python -m tests.calibration.psychometric_coverage`` prints the table of docs/experiments/analysis.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from calibration.psychometric import fit_psychometric

Array = NDArray[np.float64]

W75, LAPSE = 0.2, 0.02
RUNS, SEED = 500, 97

USUAL, HIGH_END, LOW_END = (0.35, 3.0), (0.12, 1.1), (0.9, 6.0)
"""Lowest and highest level over the true threshold at 75 %: well chosen, and the threshold near one end."""


@dataclass(frozen=True)
class Case:
    """One way to run sessions.

    Attributes
    ----------
    method : str
        ``constant``: six levels evenly on a log scale; ``quest+``: the most informative of 30 levels; ``staircase``:
        3 down, 1 up on the same levels, steps of 2 up and 1 down.
    trials : int
    shape, scale : str
        Of the fit. The observer is always ``dprime`` with exponent 1.
    ends : (2,) floats
        Lowest and highest level of the constant stimuli over the threshold.
    proportion : float
        Proportion correct at the threshold; near the convergence point of the staircase.
    runs : int
        Number of simulated sessions.
    """

    method: str
    trials: int
    shape: str = "dprime"
    scale: str = "log"
    ends: tuple[float, float] = USUAL
    proportion: float = 0.75
    runs: int = RUNS

    @property
    def truth(self):
        """The level at which the observer answers this proportion right, without lapses."""
        return W75 * float(ndtri(self.proportion) / ndtri(0.75))


CASES = (
    *(Case("constant", trials) for trials in (30, 60, 120)),
    *(Case("quest+", trials) for trials in (30, 60)),
    *(Case("staircase", trials, proportion=0.85, runs=3 * RUNS) for trials in (60, 120)),
    Case("constant", 60, "weibull"),
    Case("constant", 60, "logistic"),
    Case("constant", 60, "phi"),
    Case("quest+", 60, "weibull"),
    Case("constant", 60, ends=HIGH_END),
    Case("constant", 60, ends=LOW_END),
)


@dataclass(frozen=True)
class Covered:
    """Result: shares of the runs, and the median of the estimates over the truth."""

    wide: float
    narrow: float
    bounds: float
    ratio: float


def probability(levels):
    """Return P of the observer: 1/2 at 0, 75 % of answers without lapses right at `W75`."""
    return np.asarray(0.5 + (0.5 - LAPSE) * (2.0 * ndtr(0.6744897501960817 * levels / W75) - 1.0))


def cover(case, runs=None, seed=SEED):
    """Return the coverage of the 95 and 68 % intervals of the threshold."""
    fits = _fits(case, runs or case.runs, seed)
    wide, narrow = ([fit.threshold(case.proportion, probability) for fit in fits] for probability in (0.95, 0.68))
    held = [np.mean([one.low <= case.truth <= one.high for one in found]) for found in (wide, narrow)]
    ratio = np.median([one.value for one in wide]) / case.truth
    return Covered(float(held[0]), float(held[1]), float(np.mean([bool(one.bound) for one in wide])), float(ratio))


def _fits(case, runs, seed):
    rng = np.random.default_rng(seed)
    if case.method == "constant":
        levels = W75 * np.geomspace(*case.ends, 6)
        total = np.tile(np.full(6, case.trials // 6), (runs, 1))
        correct = rng.binomial(total, probability(levels))
    else:
        levels, correct, total = (_quest if case.method == "quest+" else _staircase)(case.trials, runs, rng)
    return [
        fit_psychometric(levels, right, count, guess=0.5, shape=case.shape, scale=case.scale)
        for right, count in zip(correct, total, strict=True)
    ]


def _quest(trials, runs, rng):
    """Return levels (30,), and right and all answers (runs, 30) of QUEST+ (Watson 2017), all runs at once."""
    levels = W75 * np.geomspace(0.1, 6.0, 30)
    thresholds, slopes = np.meshgrid(W75 * np.geomspace(0.1, 6.0, 40), np.geomspace(0.5, 4.0, 8), indexing="ij")
    p = 0.5 + 0.48 * -np.expm1(-np.log(2.0) * (levels / thresholds.ravel()[:, None]) ** slopes.ravel()[:, None])
    own = -(p * np.log(p) + (1.0 - p) * np.log1p(-p))
    mass = np.full((runs, len(p)), 1.0 / len(p))
    correct, total = np.zeros((runs, len(levels))), np.zeros((runs, len(levels)))
    row, truth = np.arange(runs), probability(levels)
    for _ in range(trials):
        right = mass @ p
        gain = -(right * np.log(right) + (1.0 - right) * np.log1p(-right)) - mass @ own
        chosen = gain.argmax(axis=1)
        is_right = rng.random(runs) < truth[chosen]
        correct[row, chosen] += is_right
        total[row, chosen] += 1.0
        mass *= np.where(is_right[:, None], p[:, chosen].T, 1.0 - p[:, chosen].T)
        mass /= mass.sum(axis=1, keepdims=True)
    return levels, correct, total


def _staircase(trials, runs, rng):
    """Return levels (30,), and right and all answers (runs, 30) of 3 down, 1 up, all runs at once."""
    levels = W75 * np.geomspace(0.1, 6.0, 30)
    correct, total = np.zeros((runs, len(levels))), np.zeros((runs, len(levels)))
    row, truth = np.arange(runs), probability(levels)
    at, in_a_row, needed = np.full(runs, 24), np.zeros(runs, dtype=int), np.ones(runs, dtype=int)
    for _ in range(trials):
        is_right = rng.random(runs) < truth[at]
        correct[row, at] += is_right
        total[row, at] += 1.0
        in_a_row = np.where(is_right, in_a_row + 1, 0)
        needed[~is_right] = 3  # one right answer is enough for a step down until the first wrong one
        down = in_a_row >= needed
        in_a_row[down] = 0
        at = np.clip(at + np.where(is_right, -1 * down, 2), 0, len(levels) - 1)
    return levels, correct, total


def table():
    """Return the table in Markdown."""
    lines = [
        "| method | trials | levels/threshold | correct | fitted | 95 % holds | 68 % holds | bounds | median/truth |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for case in CASES:
        got = cover(case)
        ends = "{} to {}".format(*(case.ends if case.method == "constant" else (0.1, 6.0)))
        lines.append(
            f"| {case.method} | {case.trials} | {ends} | {case.proportion:.0%} | {case.shape} | {got.wide:.1%} "
            f"| {got.narrow:.1%} | {got.bounds:.1%} | {got.ratio:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    import sys

    sys.stdout.write(table() + "\n")
