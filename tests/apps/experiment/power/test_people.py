from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from apps.experiment.power.people import Arm, Study, simulate_people
from apps.experiment.power.pool import simulate_pool

QUEST: dict[str, Any] = {"kind": "quest+", "minimum": 0.02, "maximum": 2.0, "trials": 40, "count": 20, "thresholds": 20}
WEAK = Arm("weak", "discrimination", "law.force", 1.0, 1, QUEST)
STRONG = Arm("strong", "discrimination", "law.force", 4.0, 1, QUEST | {"minimum": 0.08, "maximum": 8.0})
STUDY = Study((WEAK, STRONG), {"spread": 0.3}, "dprime", 0.75, 5)


def test_a_person_does_the_same_whoever_else_is_simulated() -> None:
    together = simulate_people(STUDY, 0, 6)
    assert (simulate_people(STUDY, 4, 1)[0] == together[4]).all()
    assert not (together[3] == together[4]).all()
    assert not (simulate_people(replace(STUDY, seed=6), 4, 1)[0] == together[4]).all()


def test_the_results_do_not_depend_on_the_workers() -> None:
    alone = simulate_pool(STUDY, 50)
    shares: list[float] = []
    with ThreadPoolExecutor(3) as threads:
        assert (simulate_pool(STUDY, 50, executor=threads, progress=shares.append) == alone).all()
    assert len(shares) == 3 and shares[-1] == 1.0
    assert (simulate_pool(STUDY, 25) == alone[:25]).all()


@pytest.mark.parametrize(
    ("procedure", "error"),
    [
        (QUEST | {"trials": 80}, 0.35),
        ({"kind": "constant", "levels": [0.05, 0.1, 0.15, 0.2, 0.3], "repeats": 20}, 0.4),
        ({"kind": "staircase", "start": 0.5, "minimum": 0.01, "maximum": 1.0, "steps": [4.0, 2.0]}, 0.5),
    ],
    ids=["quest+", "constant", "staircase"],
)
def test_every_procedure_finds_the_thresholds_of_the_people(procedure: dict[str, Any], error: float) -> None:
    found = simulate_people(Study((replace(WEAK, procedure=procedure),), {}, "dprime", 0.75, 8), 0, 40)[:, 0]
    found = found[~np.isnan(found[:, 0])]
    off = found[:, 0] - found[:, 1]
    assert len(found) > 30 and abs(off.mean()) < 0.15 and off.std() < error
    assert np.exp(np.median(found[:, 1])) == pytest.approx(math.hypot(0.1, 0.05), rel=0.15)


def test_an_effect_is_found_as_large_as_it_was_made() -> None:
    study = replace(STUDY, arms=(WEAK, replace(WEAK, name="harder", factor=1.5, spread=0.1)))
    found = simulate_people(study, 0, 120)
    truth, estimates = (found[:, 1, k] - found[:, 0, k] for k in (1, 0))
    assert truth.mean() == pytest.approx(math.log(1.5), abs=0.04) and truth.std() == pytest.approx(0.1, abs=0.03)
    assert estimates.mean() == pytest.approx(math.log(1.5), abs=4.0 * estimates.std() / math.sqrt(120))


def test_tracks_of_a_condition_are_fitted_together() -> None:
    one, three = (simulate_people(replace(STUDY, arms=(replace(WEAK, tracks=n),)), 0, 25)[:, 0] for n in (1, 3))
    assert set(one[:, 2]) == {40.0} and set(three[:, 2]) == {120.0}
    assert (three[:, 0] - three[:, 1]).std() < 0.8 * (one[:, 0] - one[:, 1]).std()


def test_another_proportion_is_another_threshold() -> None:
    low, high = (simulate_people(replace(STUDY, proportion=p), 0, 12)[:, 0] for p in (0.71, 0.84))
    assert (high[:, 1] - low[:, 1]) == pytest.approx(math.log(0.9945 / 0.5534), abs=1e-3)
    assert (high[:, 0] > low[:, 0]).all()
