"""Tuning of hidden devices: plants, pushes with missing samples, boundaries and replay."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from calibration.autotune import Autotune, Tuning
from calibration.autotune.plant import NAMES, Plant, Push, fit_plant
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from tests.calibration.test_autotune import answered, ending_in_nothing, pushed, pusher
from tests.calibration.tuned_devices import HALF_WIDTH, NEAR, Truth, mover, outcome_of, tuned


@pytest.mark.parametrize(
    ("plant", "period", "step"),
    [
        (Plant(0.2, 1.0, 0.1, 0.0, 0.5e-3), 1e-3, 1e-5),
        (Plant(0.05, 0.5, 0.0, 0.02, 4.7e-3), 1e-3, 2e-5),
        (Plant(0.8, 2.0, 0.05, 0.0, 1.3e-3), 4e-3, 1e-4),
    ],
)
def test_the_parameters_of_a_handle_are_inside_their_intervals(plant, period, step):
    fit = fit_plant(pushed(plant, period, step, 3), period, 2.0 * plant.mass, step)
    for name in NAMES:
        low, high = fit.interval(name)
        assert low <= getattr(plant, name) <= high, name
    assert fit.errors["mass"] < 0.05 * plant.mass
    assert fit.errors["delay"] < 0.5e-3
    assert fit.residual < 0.45 * step  # rounding alone gives 0.29


def test_an_unexplained_delay_shows_in_the_residual():
    plant = Plant(0.1, 1.0, 0.0, 0.0, 3e-3)
    pushes = pushed(plant, 1e-3, 1e-6, 1)
    early = [Push(np.roll(one.command, 20), one.position, one.history) for one in pushes]  # no delay explains that
    assert fit_plant(early, 1e-3, 0.1, 1e-6).residual > 20.0 * fit_plant(pushes, 1e-3, 0.1, 1e-6).residual


def with_a_gap(rows):
    """Drop 5 ms of samples of a push."""
    middle = int(np.argmax(rows["command"][:, 0] != 0.0)) + 10
    return np.delete(rows, np.arange(middle, middle + 5))


@pytest.mark.parametrize("spoil", [lambda rows: rows, with_a_gap, ending_in_nothing], ids=["complete", "gap", "end"])
def test_first_pushes_are_evaluated_with_missing_samples(spoil):
    labels: list[str] = []
    found = pusher().identify("x")
    motion = next(found)
    while not motion.label.startswith("push"):
        labels.append(motion.label)
        motion = found.send(answered(motion, spoil))
    assert labels[0] == "rest x" and labels[1] == "first x 1" and labels[-1] == "centre"
    assert np.abs(motion.table).max() < 100.0


def test_a_coarse_encoder_gives_no_boundary_but_a_reason():
    truth = Truth(mass=1.0, damping=3.0, friction=0.0, delay_steps=0, resolution=4e-4, rate=1000.0)
    found = tuned(truth, force=40.0, pushes=16)  # asks for more than the encoder and the motors show
    boundary = found.tuned.axes[0].boundary
    assert boundary is not None
    assert math.isnan(found.ratio)
    assert "counts of the encoder" in boundary.doubt


def test_a_tuning_run_is_replayed_bit_by_bit(tmp_path):
    truth = Truth(mass=0.3, damping=2.0, friction=0.0, delay_steps=10, resolution=2e-5, rate=500.0)
    Tuning(Autotune(axes="x", pushes=16, bracket=0.3, rise=2.0)).run(mover(truth), tmp_path / "run")
    recording = Recording(tmp_path / "run")
    assert verify(recording).mismatches == 0
    labels = [str(entry["motion"]["label"]) for entry in recording.settings]
    assert sum(label.startswith("contact x") for label in labels) >= 3


@pytest.mark.parametrize(("kind", "first", "count"), [("virtual", 47, 3), ("emulated", 0, 1)])
def test_random_devices_are_tuned_to_their_boundary(kind, first, count):
    every = [outcome_of(kind, seed) for seed in range(first, first + count)]
    for name in every[0].held:  # of intervals of 95 % fewer hold by chance alone once in 40 blocks
        assert sum(one.held[name] for one in every) >= binom.ppf(0.025, count, 0.95), name
    near = [one for one in every if abs(one.ratio - 1.0) <= NEAR]
    unseen = [one for one in every if math.isnan(one.ratio)]
    assert len(near) + len(unseen) >= count - 1
    assert len(near) >= count - 2
    assert max(one.farthest for one in every) < HALF_WIDTH


def test_a_hidden_device_is_identified_and_tuned_to_its_boundary():
    truth = Truth(mass=0.15, damping=1.0, friction=0.08, delay_steps=40, resolution=1e-5, rate=1000.0)
    found = tuned(truth, pushes=24)
    assert all(found.held.values()), found.held
    assert found.tuned.axes[0].doubts == ()
    assert found.ratio == pytest.approx(1.0, abs=NEAR)
    assert found.farthest < 0.3 * HALF_WIDTH
    boundary = found.tuned.axes[0].boundary
    assert boundary is not None
    assert boundary.stiffness is not None
    assert boundary.stable < truth.boundary(boundary.damping) * (1.0 + NEAR)
    assert boundary.unstable / boundary.stable <= 1.05 + 1e-9
    assert found.tuned.stiffness <= 0.5 * boundary.stiffness * (1.0 + 1e-9)
    assert "delay" in found.tuned.limited_by[0] or len(found.tuned.limited_by) > 1
