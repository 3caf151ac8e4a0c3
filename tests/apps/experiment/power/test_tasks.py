"""Simulated people in tasks without a right interval: what is found is what is true of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from apps.experiment.observers.decisions import different, yes
from apps.experiment.observers.settings import Z75
from apps.experiment.power.people import Arm, Study, simulate_people
from apps.experiment.power.tasks import noticed_at

QUEST = {"kind": "quest+", "minimum": 0.02, "maximum": 2.0, "count": 20, "thresholds": 20, "trials": 60} | {
    "guesses": [0.05, 0.15, 0.3]  # of a task of one word nobody knows them beforehand
}
CONSTANT = {"kind": "constant", "levels": [0.1, 0.2, 0.4, 0.8, 1.6], "repeats": 20}
ADJUSTMENT = {"kind": "adjustment", "starts": [0.5, 2.0], "repeats": 10}
ESTIMATION = {"kind": "estimation", "levels": [0.5, 1.0, 2.0, 4.0], "repeats": 5}


def study(task: str, procedure: dict[str, Any], observer: dict[str, Any], null: float = 0.0) -> Study:
    arm = Arm("one", task, "law.force", 1.0, 1, procedure, null=null)
    return Study((arm,), {"level": 1, "weber": 0.2, "floor": 0.0, **observer}, "dprime", 0.75, 3)


@pytest.mark.parametrize(
    ("task", "procedure", "null"),
    [("detection", CONSTANT, 0.3), ("same-different", CONSTANT, 0.3), ("detection", QUEST, 0.3)],
)
def test_thresholds_of_words_are_found(task: str, procedure: dict[str, Any], null: float) -> None:
    found = simulate_people(study(task, procedure, {"spread": 0.0, "lapse": 0.0}, null), 0, 40)
    off = found[:, 0, 0] - found[:, 0, 1]
    known = off[np.isfinite(off)]
    assert len(known) > 34
    assert math.exp(float(np.median(known))) == pytest.approx(1.0, abs=0.15)
    trials = QUEST["trials"] if procedure is QUEST else 100
    assert (found[:, 0, 2] == trials + round(null * trials / (1 - null))).all(), "trials without a stimulus take time"


@pytest.mark.parametrize(("task", "rule"), [("detection", yes), ("same-different", different)])
@pytest.mark.parametrize("alarms", [0.05, 0.3])
def test_what_is_noticed_in_so_many_trials(task: str, rule: Any, alarms: float) -> None:
    """Of those trials in which nothing is guessed 75 % are noticed: the proportion, with guesses taken off."""
    said = rule(noticed_at(task, 0.75, alarms) * Z75, alarms)
    assert (said - alarms) / (1.0 - alarms) == pytest.approx(0.75, abs=1e-9)


def test_spreads_of_settings_are_found() -> None:
    found = simulate_people(study("adjustment", ADJUSTMENT, {}), 0, 400)[:, 0]
    assert (found[:, 2] == 20).all() and np.std(found[:, 1]) > 0.1, "people differ"
    assert math.exp(float(np.mean(found[:, 0] - found[:, 1]))) == pytest.approx(1.0, abs=0.03)


def test_exponents_are_found() -> None:
    found = simulate_people(study("estimation", ESTIMATION, {"exponent": 1.4}), 0, 40)[:, 0]
    assert np.exp(found[:, 1]) == pytest.approx(1.4)
    assert math.exp(float(np.mean(found[:, 0]))) == pytest.approx(1.4, rel=0.03)
