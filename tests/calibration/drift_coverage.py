"""Coverage of the intervals for thresholds that change within a session, in simulated sessions with fixed seeds.

``python -m tests.calibration.drift_coverage`` prints the tables of docs/experiments/drift.md in about ten minutes. A
number as an argument replaces the number of sessions in a row.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from calibration.psychometric import fit_drift
from calibration.psychometric.drift import _SIZE_MASS, SIZES, TIMES
from calibration.psychometric.posterior import LAPSES, make_box
from calibration.psychometric.shapes import make_shape
from tests.calibration.psychometric_coverage import USUAL, W75, Case, probability

SIZE, RUNS, SEED = 0.35, 200, 41
"""Size of the drift in the logarithm of the level, number of sessions, and seed."""

CASES = (
    Case("constant", 60),
    Case("quest+", 60),
    Case("staircase", 60, proportion=0.85),
    Case("staircase", 120, proportion=0.85),
)
DRIFTS = ("none", "line", "sine", "random walk", "serial")
"""Courses of the log threshold: none; a line over 2 x `SIZE`; a sine of amplitude `SIZE`; a random walk with standard
deviation `SIZE` at the end; serial dependence with standard deviation `SIZE` and a time of a quarter of the session."""


@dataclass(frozen=True)
class Covered:
    """Shares of the sessions whose 95 % interval contains the usual threshold: constant fit and average of both fits.

    `session_mean` is the share whose interval of the average contains the mean threshold of the session; `changes` is
    the share with evidence for a change.
    """

    constant: float
    averaged: float
    session_mean: float
    changes: float


def make_drift(kind, trials, runs, rng):
    """Return the deviations of the log threshold from the usual one (runs, trials)."""
    time = (np.arange(trials) + 0.5) / trials
    if kind == "none":
        return np.zeros((runs, trials))
    if kind == "line":
        return np.outer(rng.choice([-1.0, 1.0], runs), 2.0 * SIZE * (time - 0.5))
    if kind == "sine":
        return SIZE * np.sin(2.0 * np.pi * (time + rng.random((runs, 1))))
    steps = rng.standard_normal((runs, trials))
    if kind == "random walk":
        return SIZE / math.sqrt(trials) * np.cumsum(steps, axis=1)
    kept, serial = math.exp(-4.0 / trials), SIZE * steps
    for k in range(1, trials):
        serial[:, k] = kept * serial[:, k - 1] + math.sqrt(1.0 - kept**2) * serial[:, k]
    return serial


def simulate(case, drift, rng):
    """Return levels and correct answers (runs, trials) of sessions with a drift."""
    runs, trials = drift.shape
    levels, correct = np.empty((runs, trials)), np.empty((runs, trials), dtype=bool)
    if case.method == "constant":
        block = np.tile(W75 * np.geomspace(*case.ends, 6), (runs, 1))
        for first in range(0, trials, 6):
            levels[:, first : first + 6] = rng.permuted(block, axis=1)[:, : trials - first]
        return levels, rng.random((runs, trials)) < probability(levels / np.exp(drift))
    grid, row = W75 * np.geomspace(0.1, 6.0, 30), np.arange(runs)
    thresholds, slopes = np.meshgrid(W75 * np.geomspace(0.1, 6.0, 40), np.geomspace(0.5, 4.0, 8), indexing="ij")
    p = 0.5 + 0.48 * -np.expm1(-np.log(2.0) * (grid / thresholds.ravel()[:, None]) ** slopes.ravel()[:, None])
    own, mass = -(p * np.log(p) + (1.0 - p) * np.log1p(-p)), np.full((runs, len(p)), 1.0 / len(p))
    at, in_a_row, needed = np.full(runs, 24), np.zeros(runs, dtype=int), np.ones(runs, dtype=int)
    for k in range(trials):
        if case.method == "quest+":
            right = mass @ p
            at = (-(right * np.log(right) + (1.0 - right) * np.log1p(-right)) - mass @ own).argmax(axis=1)
        levels[:, k] = grid[at]
        good = correct[:, k] = rng.random(runs) < probability(grid[at] / np.exp(drift[row, k]))
        if case.method == "quest+":
            mass *= np.where(good[:, None], p[:, at].T, 1.0 - p[:, at].T)
            mass /= mass.sum(axis=1, keepdims=True)
        else:
            in_a_row = np.where(good, in_a_row + 1, 0)
            needed[~good] = 3
            down = in_a_row >= needed
            in_a_row[down] = 0
            at = np.clip(at + np.where(good, -1 * down, 2), 0, len(grid) - 1)
    return levels, correct


def cover(case, kind, runs=RUNS, seed=SEED):
    """Return the coverage of one way to run sessions under one kind of drift."""
    rng = np.random.default_rng([seed, DRIFTS.index(kind)])
    drift = make_drift(kind, case.trials, runs, rng)
    levels, correct = simulate(case, drift, rng)
    rows = []
    for own, right, moved in zip(levels, correct, drift, strict=True):
        fit = fit_drift(own, right, guess=0.5, shape=case.shape)
        constant, averaged = (one.threshold(case.proportion) for one in (fit.constant, fit.averaged))
        session = case.truth * math.exp(moved.mean())
        held = [one.low <= case.truth <= one.high for one in (constant, averaged)]
        rows.append([*held, averaged.low <= session <= averaged.high, fit.changes])
    return Covered(*np.mean(rows, axis=0).tolist())


def draw_process(rng, trials):
    """Return deviations of the log threshold (trials,) drawn from the prior of a change."""
    size, time = rng.choice(SIZES, p=_SIZE_MASS), rng.choice(TIMES)
    kept, steps = math.exp(-1.0 / (time * (trials - 1))), rng.standard_normal(trials)
    for k in range(1, trials):
        steps[k] = kept * steps[k - 1] + math.sqrt(1.0 - kept**2) * steps[k]
    return size * steps


def cover_prior(trials, runs, seed=SEED):
    """Return coverages like `Covered` of sessions whose parameters are drawn from the prior: all, and those inside.

    In sessions inside, the usual threshold is within the tested levels. Half of the sessions have a change.
    """
    rng, block = np.random.default_rng([seed, trials]), W75 * np.geomspace(*USUAL, 6)
    box = make_box(make_shape("phi", "log"), np.log(block), None)
    rows = []
    while len(rows) < runs:
        usual, width = rng.uniform(*box.thresholds), box.width.median * math.exp(box.width.spread * rng.normal())
        lapse = rng.beta(LAPSES.a, LAPSES.b)
        density = math.exp(box.log_prior(np.array([usual]), np.array([box.width.median]))[0, 0])
        if rng.random() > density or lapse > LAPSES.limit:
            continue
        drift = draw_process(rng, trials) if rng.random() < 0.5 else np.zeros(trials)
        levels = np.concatenate([rng.permutation(block) for _ in range(-(-trials // len(block)))])[:trials]
        rise = ndtr(2.0 * ndtri(0.95) * (np.log(levels) - usual - drift) / width)
        fit = fit_drift(levels, rng.random(trials) < 0.5 + (0.5 - lapse) * rise, guess=0.5, shape="phi")
        constant, averaged = (one.threshold(0.75) for one in (fit.constant, fit.averaged))
        truth, session = math.exp(usual), math.exp(usual + drift.mean())
        held = [one.low <= truth <= one.high for one in (constant, averaged)]
        inside = block[0] <= truth <= block[-1]
        rows.append([*held, averaged.low <= session <= averaged.high, fit.changes, inside])
    found = np.array(rows, dtype=float)
    return [Covered(*own[:, :-1].mean(axis=0).tolist()) for own in (found, found[found[:, -1] == 1.0])]


def main(runs):
    """Print the tables in Markdown, row by row."""
    sys.stdout.write(
        "| method | trials | drift | constant fit | drift = auto | session's mean | change reported |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    for case in CASES:
        for kind in DRIFTS:
            got = cover(case, kind, runs)
            sys.stdout.write(
                f"| {case.method} | {case.trials} | {kind} | {got.constant:.1%} | {got.averaged:.1%} "
                f"| {got.session_mean:.1%} | {got.changes:.1%} |\n"
            )
            sys.stdout.flush()
    sys.stdout.write(
        "\n| trials | usual threshold | constant fit | drift = auto | session's mean | change reported |\n"
        "|---|---|---|---|---|---|\n"
    )
    for trials in (60, 240):
        for place, got in zip(("anywhere", "within the levels"), cover_prior(trials, 5 * runs), strict=True):
            sys.stdout.write(
                f"| {trials} | {place} | {got.constant:.1%} | {got.averaged:.1%} | {got.session_mean:.1%} "
                f"| {got.changes:.1%} |\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
