"""The observer of level 2 goes by the force in the recorded rows."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from apps.experiment.observers import SimulatedObserver, make_observer
from apps.experiment.observers.level2 import felt_force, highest
from apps.experiment.procedures import trial_seed
from apps.experiment.trial import TrialView
from haptics.errors import ConfigurationError
from haptics.records import ROW, Rows


def person(**table: Any) -> SimulatedObserver:
    return make_observer({"level": 2, "spread": 0.0, "lapse": 0.0, **table}, seed=trial_seed(1, "P", 0, 0, 1))


def strokes(force: float, *, viscosity: float = 0.0, ticks: int = 800, known: bool = True, rest: int = 0) -> Rows:
    """Return rows of strokes to and fro in a slanted direction, 2 Hz; first `rest` ticks without motion."""
    rows = np.zeros(ticks, ROW)
    rows["time"] = np.arange(ticks) * 1e-3
    speed = 0.15 * np.sin(4.0 * np.pi * rows["time"]) * (np.arange(ticks) >= rest)
    direction = np.array([0.8, -0.6])
    rows["velocity"] = speed[:, None] * direction
    friction = (force * np.sign(speed) + viscosity * speed)[:, None] * direction
    rows["hand_force"] = friction if known else math.nan
    rows["friction_force"] = friction if not known else 77.0
    rows["gate"] = np.minimum(np.arange(ticks) / 50.0, 1.0)
    return rows


def correct(
    observer: SimulatedObserver, first: Rows, second: Rows, axis: str = "law.force", reference: float = 2.0
) -> float:
    """Return the share of answers that the second is stronger."""
    trial = TrialView("discrimination", axis, reference, 1.0, (reference, 9.9), 2, (first, second))
    rng = np.random.default_rng(12)
    return sum(observer.answer(trial, rng).response == "2" for _ in range(800)) / 800


@pytest.mark.parametrize("known", [True, False], ids=["hand", "computed"])
def test_the_increment_of_level_1_is_told_as_often_by_force(known: bool) -> None:
    """Within 4 standard errors and the Weber noise of the comparison, which is the stronger of the two."""
    observer = person()
    increment = observer.truth("law.force", 2.0)["increment_75"]
    weak, strong = strokes(2.0, known=known), strokes(2.0 + increment, known=known)
    assert correct(observer, weak, strong) == pytest.approx(0.745, abs=0.06)
    assert correct(observer, strong, weak) == pytest.approx(0.255, abs=0.06)


def test_what_was_asked_does_not_matter_to_it() -> None:
    assert correct(person(), strokes(2.0), strokes(2.0)) == pytest.approx(0.5, abs=0.07)


def test_little_sliding_makes_worse_answers() -> None:
    observer = person()
    increment = observer.truth("law.force", 2.0)["increment_75"]
    short = correct(observer, strokes(2.0, ticks=110, rest=60), strokes(2.0 + increment, ticks=110, rest=60))
    assert 0.5 < short < 0.68
    assert correct(observer, strokes(2.0, ticks=40), strokes(5.0, ticks=40)) == 0.0  # gate never up: nothing is felt


def test_viscosity_is_the_force_divided_by_the_speed() -> None:
    observer = person(floor=0.0)
    weak, strong = strokes(0.0, viscosity=20.0), strokes(0.0, viscosity=20.0 * 1.23)
    assert correct(observer, weak, strong, "law.viscosity", 20.0) == pytest.approx(0.745, abs=0.06)
    rng = np.random.default_rng(1)
    trial = TrialView("estimation", "law.viscosity", 0.0, 20.0, (20.0,), None, (weak,))
    assert np.mean([observer.felt(trial, weak, rng) for _ in range(300)]) == pytest.approx(20.0, rel=0.03)


def test_stiction_is_the_highest_force() -> None:
    rows = strokes(1.0)
    peaked = rows.copy()
    peaked["hand_force"][300:340] *= 3.0
    observer = person()
    assert correct(observer, rows, peaked, "law.static_force", 1.0) > 0.97
    assert highest(np.array([1.0, 1.0, 4.0, 2.0, 1.0]), 2) == pytest.approx(3.0)


def test_force_against_the_motion_whatever_its_direction() -> None:
    force, speed, period = felt_force(strokes(2.0), 0.02)
    assert np.allclose(force, 2.0) and speed.min() > 0.02 and period == pytest.approx(1e-3)
    assert len(force) < 760  # neither the ramp of the gate nor the turns


def test_detection_has_the_false_alarms_that_were_asked_for() -> None:
    observer = person(false_alarms=0.1)
    level = observer.truth("law.force", 0.0)["increment_75"]
    rates = []
    for force in (0.0, level):
        trial = TrialView("detection", "law.force", 0.0, force, (force,), None, (strokes(force),))
        rng = np.random.default_rng(3)
        rates.append(sum(observer.answer(trial, rng).response == "yes" for _ in range(800)) / 800)
    assert rates[0] == pytest.approx(0.1, abs=0.043)
    normal = NormalDist()
    assert normal.inv_cdf(rates[1]) > normal.inv_cdf(rates[0]) + 0.5


def test_same_and_different() -> None:
    observer = person(false_alarms=0.2)
    rng = np.random.default_rng(3)

    def share(second: Rows) -> float:
        trial = TrialView("same-different", "law.force", 2.0, 0.0, (2.0, 2.0), 2, (strokes(2.0), second))
        return sum(observer.answer(trial, rng).response == "different" for _ in range(500)) / 500

    assert share(strokes(2.0)) == pytest.approx(0.2, abs=0.07)
    assert share(strokes(3.0)) > 0.9


def test_without_rows_or_a_known_feeling_it_says_why_it_cannot() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(ConfigurationError, match=r"has none; take observer\.level = 1"):
        person().answer(TrialView("discrimination", "law.force", 1.0, 0.1, (1.0, 1.1), 2), rng)
    rows = (strokes(1.0), strokes(1.0))
    with pytest.raises(ConfigurationError, match=r"does not know how element\.mass is felt"):
        person().answer(TrialView("discrimination", "element.mass", 1.0, 0.1, (1.0, 1.1), 2, rows), rng)
