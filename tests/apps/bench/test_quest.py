from __future__ import annotations

import math

import numpy as np
import pytest

from apps.bench import quest
from apps.experiment.procedures.quest import QuestPlus


def _nothing(done: float, words: str) -> None:
    pass


def test_the_reference_chooses_the_same_levels() -> None:
    own = QuestPlus(quest.SETTINGS, 0.5)
    trial = quest.array_trial(own.right)
    levels = np.geomspace(quest.SETTINGS.minimum, quest.SETTINGS.maximum, quest.SETTINGS.count)
    middle = levels[len(levels) // 2]
    for _ in range(12):
        level = own.level()
        assert math.isclose(levels[trial()], level)
        own.take(level, level >= middle)


def test_a_trial_takes_less_than_with_whole_arrays(few_rounds: None) -> None:
    (row,) = quest.run(_nothing).result["rows"]
    assert (row["levels"], row["cells"]) == (50, 2400)
    assert row["ratio"] == pytest.approx(row["us_per_trial"] / row["reference_us_per_trial"], rel=0.5)
    assert row["ratio"] < 0.5
