"""Benchmark ``quest``: a trial of QUEST+, compared with an implementation by whole NumPy arrays.

A trial processes the last answer and chooses the next level (`apps.experiment.procedures.quest`): 50 levels, 2400
combinations of threshold, slope and lapse, in sessions of 60 trials. The reference computes the entropy of every
possible posterior, as in Watson (2017); the product computes the expected information of an answer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from apps.bench.outcome import Outcome, Progress, table
from apps.bench.slices import compare, measure
from apps.experiment.procedures.quest import QuestPlus
from apps.experiment.procedures.settings import QuestSettings

TITLE = "time of a trial of QUEST+, as a ratio to the same choice with whole arrays of NumPy"

MOST = 1e-4
"""Permitted time of a trial [s]."""

SETTINGS = QuestSettings(
    minimum=0.01,
    maximum=1.0,
    count=50,
    thresholds=50,
    slopes=(0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6),
    lapses=(0.0, 0.01, 0.02, 0.04, 0.06, 0.08),
)
_GUESS = 0.5

_TRUE_LEVEL = 0.15
"""Level from which the simulated answers are correct."""


def run(progress: Progress) -> Outcome:
    """Measure both implementations."""
    progress(0.0, f"{SETTINGS.count} levels")
    right = QuestPlus(SETTINGS, _GUESS).right
    times = measure([own_session, array_trial(right)])
    own, reference = times[:, 0] / SETTINGS.trials, times[:, 1]
    ratio = compare(own, reference)
    row = {
        "levels": SETTINGS.count,
        "cells": len(right),
        "us_per_trial": float(np.median(own)) * 1e6,
        "reference_us_per_trial": float(np.median(reference)) * 1e6,
        "ratio": ratio.median,
        "spread": ratio.spread,
    }
    heading = ("levels", "cells", "us/trial", "NumPy us/trial", "ratio", "spread")
    return Outcome({"rows": [row]}, table([heading, list(row.values())]), "")


def own_session() -> None:
    """Run a session from the first trial to the last."""
    quest = QuestPlus(SETTINGS, _GUESS)
    while not quest.finished:
        level = quest.level()
        quest.add_outcome(level, level >= _TRUE_LEVEL)


def array_trial(right: NDArray[np.float64]) -> Callable[[], int]:
    """Return a function that chooses a level and processes an answer, given probabilities (cells, levels)."""
    posterior = np.full((len(right), 1), 1.0 / len(right))

    def trial() -> int:
        entropy = np.zeros(right.shape[1])
        for likelihood in (right, 1.0 - right):
            joint = likelihood * posterior
            share = joint.sum(axis=0)
            after = joint / share
            entropy -= share * (after * np.log(np.maximum(after, 1e-300))).sum(axis=0)
        chosen = int(np.argmin(entropy))
        likelihood = (
            right[:, chosen : chosen + 1] if chosen >= right.shape[1] // 2 else 1.0 - right[:, chosen : chosen + 1]
        )
        posterior[:] = likelihood * posterior / (likelihood * posterior).sum()
        return chosen

    return trial
