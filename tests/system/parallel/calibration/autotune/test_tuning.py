"""Long computations for the topic of tests/calibration/autotune/test_tuning.py."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from scipy.stats import binom

from calibration.autotune import Autotune, tune
from haptics.design import Handle, stiffness_limit
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from tests.calibration.autotune.device_figures import HALF_WIDTH, NEAR, outcomes
from tests.calibration.autotune.hidden import Truth, mover, tuned


def test_the_truth_of_these_tests_is_that_of_the_eigenvalues() -> None:
    for seed in range(20):
        truth = Truth.of(seed)
        handle = Handle(truth.mass, truth.damping, truth.numbers["delay"])
        assert truth.boundary(3.0) == pytest.approx(stiffness_limit(handle, 3.0, 1.0 / truth.rate), rel=0.01)


def test_an_encoder_that_is_too_coarse_is_told_in_words() -> None:
    truth = Truth(mass=1.0, damping=3.0, friction=0.0, delay_steps=0, resolution=4e-4, rate=1000.0)
    found = tuned(truth, force=40.0, pushes=16)  # asks for more than the encoder and the motors show
    boundary = found.tuned.axes[0].boundary
    assert boundary is not None
    assert math.isnan(found.ratio)
    assert "counts of the encoder" in boundary.doubt


def test_what_was_done_replays_bit_for_bit(tmp_path: Path) -> None:
    truth = Truth(mass=0.3, damping=2.0, friction=0.0, delay_steps=10, resolution=2e-5, rate=500.0)
    tune(mover(truth), Autotune(axes="x", pushes=16, bracket=0.3, rise=2.0), tmp_path / "run")
    recording = Recording(tmp_path / "run")
    assert verify(recording).mismatches == 0
    labels = [str(entry["motion"]["label"]) for entry in recording.settings]
    assert sum(label.startswith("contact x") for label in labels) >= 3


@pytest.mark.parametrize(("kind", "first", "count"), [("virtual", 47, 3), ("emulated", 0, 1)])
def test_what_is_drawn_at_random_is_tuned(kind: str, first: int, count: int) -> None:
    every = list(outcomes(kind, range(first, first + count)))
    for name in every[0].held:  # of intervals of 95 % fewer hold by chance alone once in 40 blocks
        assert sum(one.held[name] for one in every) >= binom.ppf(0.025, count, 0.95), name
    near = [one for one in every if abs(one.ratio - 1.0) <= NEAR]
    unseen = [one for one in every if math.isnan(one.ratio)]
    assert len(near) + len(unseen) >= count - 1
    assert len(near) >= count - 2
    assert max(one.farthest for one in every) < HALF_WIDTH
