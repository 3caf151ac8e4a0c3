"""Staircases against one of another structure, and where they settle."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from apps.experiment.procedures.settings import BALANCED, StaircaseSettings
from apps.experiment.procedures.staircase import Staircase
from haptics.errors import ConfigurationError

PLAIN = StaircaseSettings(start=1.0, minimum=0.01, maximum=10.0)


def answered(settings: StaircaseSettings, answers: list[bool]) -> tuple[list[float], Staircase]:
    staircase = Staircase(settings)
    levels = []
    for answer in answers:
        levels.append(staircase.level())
        staircase.take(levels[-1], answer)
    return levels, staircase


def independent(
    settings: StaircaseSettings, answers: list[bool]
) -> tuple[list[float], list[tuple[int, float]], list[int]]:
    """Return levels, reversals (trial, level) and clamped trials, from all answers at once: a text cut into moves.

    As PsychoPy's StairHandler: until the first reversal every answer is a move; later a move is n right answers, or a
    wrong one with the right ones before it; the step is that of the number of reversals, this move's own with it.
    """
    text = "".join("-+"[answer] for answer in answers)
    turn = re.match(r"\++-|-+\+", text) if len(set(text)) > 1 else None
    start = (len(text) if turn is None else turn.end()) if settings.initial_rule else 0
    moves = [(place, text[place]) for place in range(start)]
    for found in re.finditer(rf"\+{{{settings.down}}}|\+{{0,{settings.down - 1}}}-", text[start:]):
        moves.append((start + found.end() - 1, found[0][-1]))
    turned = [place for (_, before), (place, sign) in pairwise(moves) if sign != before]
    unit = {"linear": 0.0, "log": 10.0, "dB": 10.0**0.05}[settings.scale]
    now, levels, clamped = settings.start, [], []
    for place in range(len(text)):
        levels.append(now)
        for sign in (sign for end, sign in moves if end == place):
            size = settings.steps[min(sum(each <= place for each in turned), len(settings.steps) - 1)]
            size *= 1.0 if sign == "-" else -(settings.ratio or BALANCED[settings.down])
            wanted = now * unit**size if unit else now + size
            now = min(max(wanted, settings.minimum), settings.maximum)
            clamped += [place + 1] * (abs(wanted - now) > 1e-9)
    return levels, [(place + 1, levels[place]) for place in turned], clamped


def random_settings(rng: np.random.Generator) -> StaircaseSettings:
    scale = str(rng.choice(["linear", "log", "dB"]))
    size = {"linear": 0.3, "log": 0.2, "dB": 4.0}[scale]
    low, start, high = np.sort(rng.uniform(0.05, 6.0, 3)) * (0.3, 1.0, 2.0)
    return StaircaseSettings(
        start=float(start),
        minimum=float(low),
        maximum=float(high),
        down=int(rng.integers(1, 5)),
        scale=scale,
        steps=tuple(rng.uniform(0.2, 1.0, rng.integers(1, 5)) * size),
        ratio=float(rng.choice([0.0, 1.0, rng.uniform(0.2, 3.0)])),
        initial_rule=bool(rng.integers(2)),
        reversals=200,
    )


def test_300_random_runs_equal_an_independent_staircase() -> None:
    rng = np.random.default_rng(1998)
    clamped = reversed_at_an_end = 0
    for _ in range(300):
        settings = random_settings(rng)
        answers = [bool(each) for each in rng.random(80) < rng.uniform(0.3, 0.95)]
        levels, staircase = answered(settings, answers)
        expected, reversals, beyond = independent(settings, answers)
        assert levels == pytest.approx(expected, rel=1e-9)
        assert [each["trial"] for each in staircase.reversals] == [trial for trial, _ in reversals]
        assert [each["level"] for each in staircase.reversals] == pytest.approx([level for _, level in reversals])
        assert staircase.report()["clamped"] == beyond
        clamped += len(beyond)
        reversed_at_an_end += sum(math.isclose(level, settings.maximum) for _, level in reversals)
    assert clamped > 100 and reversed_at_an_end > 20  # both were met


def test_weighted_steps_equal_those_of_sweetspot() -> None:
    sweetspot = pytest.importorskip(
        "SweetSpot", reason="SweetSpot (CC0) is not installed: pip install SweetSpot==1.15.1"
    )
    rng = np.random.default_rng(5)
    for _ in range(20):
        ratio, up = float(rng.uniform(0.2, 1.0)), float(rng.uniform(1.0, 4.0))
        settings = replace(PLAIN, down=1, ratio=ratio, steps=(up,), minimum=1e-6, maximum=1e6)
        other = sweetspot.AdaptiveProcedures.WUD(
            start=1.0,
            hitEffect=10.0 ** (-up * ratio / 20.0),
            target=1.0 / (1.0 + ratio),
            multiplicative=True,
            reversals=99,
        )
        answers = [bool(each) for each in rng.random(40) < 0.7]
        levels, staircase = answered(settings, answers)
        for level, answer in zip(levels, answers, strict=True):
            assert other.PendingValue() == pytest.approx(level, rel=1e-9)
            other.Observe(answer)
        assert [each["trial"] - 1 for each in staircase.reversals] == list(other.Reversals())


def test_a_run_by_hand() -> None:
    """Two down, one up; 20 % steps until the first reversal, 10 % later."""
    settings = StaircaseSettings(
        start=1.0, minimum=0.1, maximum=2.0, down=2, scale="linear", steps=(0.2, 0.1), ratio=1.0, reversals=4, dropped=1
    )
    answers = [True, True, False, True, True, False, True, False]
    levels, staircase = answered(settings, answers)
    assert levels == pytest.approx([1.0, 0.8, 0.6, 0.7, 0.7, 0.6, 0.7, 0.7])
    assert [(each["trial"], each["direction"]) for each in staircase.reversals] == [(3, "up"), (5, "down"), (6, "up")]
    report = staircase.report()
    assert report["estimate"] == pytest.approx(math.sqrt(0.7 * 0.6))
    assert report["target_percent"] == pytest.approx(70.71, abs=0.01)
    assert not staircase.finished


def test_at_an_end_of_the_scale_it_stays_says_so_and_still_turns() -> None:
    settings = replace(PLAIN, start=9.0, steps=(6.0,), down=1, ratio=1.0)
    levels, staircase = answered(settings, [False, False, True, False])
    assert levels == pytest.approx([9.0, 10.0, 10.0, 10.0 * 10**-0.3])
    assert staircase.report()["clamped"] == [1, 2]
    assert [each["trial"] for each in staircase.reversals] == [3, 4]


def test_it_ends_with_enough_reversals_and_trials_or_with_too_many_trials() -> None:
    answers = [True, False] * 10
    settings = replace(PLAIN, down=1, ratio=1.0, reversals=5, dropped=2)
    assert not answered(settings, answers[:5])[1].finished
    assert answered(settings, answers[:6])[1].finished
    assert not answered(replace(settings, trials=8), answers[:7])[1].finished
    assert answered(replace(settings, trials=8), answers[:8])[1].finished
    assert answered(replace(settings, most_trials=4), [True] * 4)[1].finished


def test_asking_for_the_level_changes_nothing() -> None:
    staircase = Staircase(PLAIN)
    assert staircase.level() == staircase.level() == pytest.approx(1.0)


def test_what_was_shown_is_what_a_reversal_is_at() -> None:
    staircase = Staircase(replace(PLAIN, down=1))
    staircase.take(1.0, True)
    staircase.take(0.777, False)
    assert staircase.reversals == [{"trial": 2, "level": 0.777, "direction": "up"}]


@pytest.mark.parametrize(("down", "percent"), [(1, 77.85), (2, 80.35), (3, 83.15), (4, 85.84)], ids=str)
def test_the_balanced_ratios_have_the_printed_targets(down: int, percent: float) -> None:
    """Garcia-Perez 1998, table of asymptotic performance."""
    assert 100.0 * replace(PLAIN, down=down).target == pytest.approx(percent, abs=0.01)


def settled(down: int, ratio: float, reversals: int, runs: int = 600) -> tuple[float, float, float]:
    """Return percent correct at the mean estimate of an observer with w75 = 0.18, its CV in %, and trials."""
    settings = StaircaseSettings(
        start=1.0, minimum=0.01, maximum=1.0, down=down, ratio=ratio, steps=(2.0,), reversals=reversals, dropped=4
    )
    rng = np.random.default_rng(7)
    estimates, trials = [], 0
    for _ in range(runs):
        staircase = Staircase(settings)
        while not staircase.finished:
            level = staircase.level()
            staircase.take(level, bool(rng.random() < proportion(level)))
        estimates.append(staircase.report()["estimate"])
        trials += staircase.trials
    mean = float(np.mean(estimates))
    return 100.0 * proportion(mean), 100.0 * float(np.std(estimates)) / mean, trials / runs


def proportion(level: float) -> float:
    """Return the observer's proportion correct in two intervals, w75 = 0.18, lapse 1 %."""
    return 0.01 + 0.98 * 0.5 * math.erfc(-0.6745 * level / 0.18 / math.sqrt(2.0))


@pytest.mark.parametrize(
    ("down", "ratio", "reversals", "percent", "spread", "trials"),
    [
        (2, 1.0, 10, 73.4, 40, 39),
        (3, 1.0, 10, 79.5, 32, 50),
        (2, 0.5488, 10, 82.1, 28, 47),
        (3, 0.7393, 10, 83.1, 27, 54),
        (3, 0.7393, 14, 83.0, 23, 74),
    ],
)
def test_rules_settle_where_they_were_found_to_settle(
    down: int, ratio: float, reversals: int, percent: float, spread: float, trials: float
) -> None:
    """Percent correct, spread and trials in 20 000 runs of another program; steps of 2 dB, from 5.6 w75."""
    found = settled(down, ratio, reversals)
    assert found[0] == pytest.approx(percent, abs=1.0)
    assert found[1] == pytest.approx(spread, abs=5.0)
    assert found[2] == pytest.approx(trials, abs=3.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"start": 20.0}, r"procedure\.start = 20: must be from"),
        ({"steps": ()}, r"procedure\.steps = \(\): must be a list of numbers greater than 0"),
        ({"steps": (1.0, -2.0)}, r"procedure\.steps"),
        ({"steps": [1.0, True]}, r"procedure\.steps"),
        ({"down": 5}, r"procedure\.down = 5: must be a whole number"),
        ({"dropped": 12}, r"procedure\.dropped = 12: must be less than"),
        ({"trials": 200}, r"procedure\.most_trials = 150: must be at least"),
    ],
)
def test_settings_that_cannot_be_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        replace(PLAIN, **change)
