"""Long computations for the topic of tests/calibration/autotune/test_starved.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from haptics.records import Rows
from tests.calibration.autotune.test_starved import answered, ending_in_nothing, pusher


def good(rows: Rows) -> Rows:
    return rows


def with_a_gap(rows: Rows) -> Rows:
    """The machine stood still for 5 ms, while the handle was pushed."""
    middle = int(np.argmax(rows["command"][:, 0] != 0.0)) + 10
    return np.delete(rows, np.arange(middle, middle + 5))


@pytest.mark.parametrize("spoil", [good, with_a_gap, ending_in_nothing])
def test_first_pushes_are_understood_whatever_samples_they_lack(spoil: Callable[[Rows], Rows]) -> None:
    labels: list[str] = []
    found = pusher().identify("x")
    motion = next(found)
    while not motion.label.startswith("push"):
        labels.append(motion.label)
        motion = found.send(answered(motion, spoil))
    assert labels[0] == "rest x" and labels[1] == "first x 1" and labels[-1] == "centre"
    assert np.abs(motion.table).max() < 100.0
