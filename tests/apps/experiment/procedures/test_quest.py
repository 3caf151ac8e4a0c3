"""QUEST+ against a formulation of its own kind: whole arrays, entropies of posteriors as Watson (2017) writes them."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from apps.experiment.procedures.quest import QuestPlus
from apps.experiment.procedures.settings import QuestSettings
from haptics.errors import ConfigurationError

SETTINGS = QuestSettings(minimum=0.02, maximum=2.0, count=21, thresholds=25, trials=40)
YES_NO = replace(SETTINGS, guesses=(0.0, 0.1, 0.2))


def shape_of(name: str, ratio: NDArray[np.float64], slope: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return F of level/threshold, by the formulas of the textbooks."""
    log = slope * np.log(ratio)
    if name == "weibull":
        return 1.0 - np.exp(-math.log(2.0) * ratio**slope)
    if name == "logistic":
        return 1.0 / (1.0 + np.exp(-log))
    cdf = np.vectorize(NormalDist().cdf)
    return cdf(log) if name == "phi" else 2.0 * cdf(NormalDist().inv_cdf(0.75) * ratio**slope) - 1.0


class Plain:
    """QUEST+ in five dimensions (level, threshold, slope, lapse, guess), by the entropy of every possible posterior."""

    def __init__(self, settings: QuestSettings, guess: float) -> None:
        self.settings = settings
        self.levels = np.logspace(math.log10(settings.minimum), math.log10(settings.maximum), settings.count)
        self.thresholds = np.logspace(math.log10(settings.minimum), math.log10(settings.maximum), settings.thresholds)
        lapses, guesses = np.array(settings.lapses), np.array(settings.guesses or (guess,))
        ratio = self.levels[:, None, None] / self.thresholds[None, :, None]
        f = shape_of(settings.shape, ratio, np.array(settings.slopes)[None, None, :])[:, :, :, None, None]
        right = guesses + (1.0 - guesses - lapses[:, None]) * f
        self.right = np.clip(right, 1e-12, 1.0 - 1e-12)
        self.posterior = np.ones(self.right.shape[1:]) / self.right[0].size
        self.shown: list[int] = []

    def choose(self) -> tuple[int, float]:
        """Return the number of the best level, and by how much it is better than the next [nat]."""
        expected = np.zeros(len(self.levels))
        for likelihood in (self.right, 1.0 - self.right):
            joint = likelihood * self.posterior
            share = joint.sum(axis=(1, 2, 3, 4))
            after = joint / share[:, None, None, None, None]
            expected -= share * (after * np.log(np.maximum(after, 1e-300))).sum(axis=(1, 2, 3, 4))
        repeats = self.settings.max_repeats
        if len(self.shown) >= repeats and len(set(self.shown[-repeats:])) == 1:
            expected[self.shown[-1]] = np.inf
        best, second = np.sort(expected)[:2]
        return int(np.argmin(expected)), float(second - best)

    def take(self, place: int, correct: bool) -> None:
        self.shown.append(place)
        self.posterior = self.posterior * (self.right[place] if correct else 1.0 - self.right[place])
        self.posterior /= self.posterior.sum()

    def threshold(self) -> tuple[float, float]:
        mass, values = self.posterior.sum(axis=(1, 2, 3)), np.log(self.thresholds)
        mean = float((mass * values).sum())
        return math.exp(mean), math.sqrt(float((mass * (values - mean) ** 2).sum()))


@pytest.mark.parametrize(
    ("settings", "guess"),
    [
        (SETTINGS, 0.5),
        (replace(SETTINGS, shape="dprime", slopes=(0.7, 1.0, 1.4)), 0.5),
        (replace(SETTINGS, shape="logistic", slopes=(2.0, 4.0)), 0.25),
        (replace(SETTINGS, shape="phi", slopes=(1.0, 3.0), max_repeats=1), 0.0),
        (YES_NO, 0.0),
    ],
    ids=["weibull", "dprime", "logistic-4AFC", "phi-yes-no", "guesses"],
)
def test_choices_and_posterior_equal_those_of_plain_arrays(settings: QuestSettings, guess: float) -> None:
    rng = np.random.default_rng(17)
    quest, plain = QuestPlus(settings, guess), Plain(settings, guess)
    for _ in range(settings.trials):
        best, margin = plain.choose()
        chosen = int(np.argmin(np.abs(plain.levels - quest.level())))
        assert chosen == best or margin < 1e-9
        assert quest.level() == pytest.approx(plain.levels[chosen], rel=1e-12)
        correct = bool(rng.random() < guess + (0.98 - guess) * (1.0 - 0.5 ** ((plain.levels[chosen] / 0.2) ** 1.3)))
        quest.take(quest.level(), correct)
        plain.take(chosen, correct)
    report = quest.report()
    assert (report["estimate"], report["log_sd"]) == pytest.approx(plain.threshold(), rel=1e-9)
    assert report["trials"] == settings.trials and quest.finished


GOLDEN: list[int] = [
    12,
    11,
    9,
    8,
    13,
    12,
    12,
    11,
    10,
    10,
    9,
    8,
    11,
    11,
    10,
    10,
    10,
    9,
    9,
    7,
    10,
    10,
    10,
    9,
    10,
    9,
    9,
    9,
    7,
    10,
    9,
    9,
    9,
    10,
    9,
    9,
    9,
    8,
    9,
    9,
]
"""Numbers of the levels chosen with `SETTINGS`, where an answer is correct from level number 9 on."""


def test_choices_stay_what_they_were() -> None:
    quest = QuestPlus(SETTINGS, 0.5)
    grid = np.geomspace(SETTINGS.minimum, SETTINGS.maximum, SETTINGS.count)
    chosen = []
    while not quest.finished:
        chosen.append(int(np.argmin(np.abs(grid - quest.level()))))
        quest.take(quest.level(), chosen[-1] >= 9)
    assert chosen == GOLDEN


def test_no_level_comes_more_often_in_a_row_than_allowed() -> None:
    for most in (1, 2):
        quest = QuestPlus(replace(SETTINGS, max_repeats=most), 0.5)
        levels = []
        for _ in range(40):
            levels.append(quest.level())
            quest.take(levels[-1], True)  # the lowest level is the best for ever
        runs = [len(set(levels[k : k + most + 1])) for k in range(40 - most)]
        assert min(runs) > 1


def test_it_ends_when_the_threshold_is_known() -> None:
    settings = replace(SETTINGS, trials=500, least_trials=25, posterior_sd=0.3)
    quest = QuestPlus(settings, 0.5)
    rng = np.random.default_rng(3)
    while not quest.finished:
        quest.take(quest.level(), bool(rng.random() < 0.5 + 0.49 * (1.0 - 0.5 ** ((quest.level() / 0.2) ** 1.3))))
    assert 25 <= quest.trials < 200 and quest.report()["log_sd"] <= 0.3


def test_an_answer_at_another_level_than_asked_counts_there() -> None:
    asked, shown = QuestPlus(SETTINGS, 0.5), QuestPlus(SETTINGS, 0.5)
    for _ in range(20):
        asked.take(asked.level(), True)
        shown.take(0.9 * asked.level(), True)
    assert shown.report()["estimate"] < asked.report()["estimate"]


def test_impossible_answers_leave_numbers() -> None:
    quest = QuestPlus(replace(SETTINGS, lapses=(0.0,)), 0.0)
    for _ in range(40):
        quest.take(2.0, False)
        quest.take(0.02, True)
    report = quest.report()
    assert all(math.isfinite(report[name]) for name in ("estimate", "log_sd")) and math.isfinite(quest.level())


def test_estimates_have_no_bias_and_intervals_hold_the_truth() -> None:
    """w75 = 0.18, lapse 1 %, 56 trials: by another program 0.97 of the truth, 24 % of spread, 95 to 98 % held."""
    settings = QuestSettings(
        minimum=0.01, maximum=1.0, count=25, thresholds=31, shape="dprime", slopes=(0.7, 1.0, 1.4), trials=56
    )
    rng = np.random.default_rng(21)
    ratios, held = [], 0
    for _ in range(200):
        quest = QuestPlus(settings, 0.5)
        while not quest.finished:
            level = quest.level()
            quest.take(level, bool(rng.random() < 0.01 + 0.98 * NormalDist().cdf(0.6745 * level / 0.18)))
        report = quest.report()
        ratios.append(report["estimate"] / 0.18)
        held += report["interval"][0] <= 0.18 <= report["interval"][1]
    assert 0.9 < np.mean(ratios) < 1.03 and 0.17 < np.std(ratios) / np.mean(ratios) < 0.28
    assert 184 <= held <= 199


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"maximum": 0.01}, r"procedure\.maximum = 0\.01: must be greater than procedure\.minimum"),
        ({"lapses": (0.6,)}, r"procedure\.lapses = \(0\.6,\): must be a list of numbers from 0 to less than 0\.5"),
        ({"slopes": ()}, r"procedure\.slopes"),
        ({"count": 500, "thresholds": 500}, "must be at most 2000000"),
    ],
)
def test_grids_that_cannot_be_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        replace(SETTINGS, **change)
