"""Long computations for the topic of tests/calibration/friction/test_friction_intervals.py."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.data.signals import smooth
from calibration.friction import FitSettings, FrictionFit, fit_friction
from tests.calibration.friction.test_friction_intervals import NOISE, codes, shaken, white
from tests.calibration.hand_moved import DEGREE, KNEE, encoded, hand


def holds(fit: FrictionFit) -> list[bool]:
    return [fit.intervals[name][0] <= value <= fit.intervals[name][1] for name, value in KNEE.items()]


def slow(seed: int) -> np.ndarray:
    """Return noise that was smoothed, so that nothing shows from sample to sample."""
    noise = smooth(hand(seed, 60.0)[0], white(seed), 4.0)
    return NOISE / noise.std() * noise


@pytest.mark.timeout(400)
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """500 recordings of 30 s, each of another motion, with encoder steps, encoder noise and torque noise."""
    held = []
    for seed in range(500):
        fit = fit_friction(encoded(seed, 30.0, 0.01 * DEGREE, 0.005 * DEGREE, 0.1), "stribeck")
        held.append(holds(fit))
    share = np.mean(held, axis=0)
    assert np.all((share >= 0.90) & (share <= 0.98)), dict(zip(KNEE, share, strict=True))


@pytest.mark.parametrize("seeds", [8])
def test_what_velocity_noise_does_is_undone(seeds: int) -> None:
    """Noise of a fifth of the Stribeck velocity, left in as it is: by hand the static levels would be far too low."""
    found, naive, held = [], [], []
    for seed in range(seeds):
        samples = shaken(seed, white(seed), NOISE)
        fit = fit_friction(samples, "stribeck")
        plain = fit_friction(samples, "stribeck", FitSettings(correct_bias=False, dead_band=0.01 * DEGREE))
        found.append([fit.values[name] - value for name, value in KNEE.items()])
        naive.append([(plain.values[name] - value) / plain.standard_errors[name] for name, value in KNEE.items()])
        held.append(holds(fit))
        assert "velocity-noise" in codes(fit) and not codes(fit, spoiling=True)
        assert "velocity-noise" in codes(plain, spoiling=True)
    static = [list(KNEE).index(name) for name in ("static_forward", "static_backward")]
    assert np.all(np.mean(naive, axis=0)[static] < -3.0)
    scatter = np.std(found, axis=0) / np.sqrt(len(found))
    assert np.all(np.abs(np.mean(found, axis=0)) < 4.0 * scatter)
    assert np.all(np.mean(held, axis=0) >= 0.85)


def test_noise_that_cannot_be_seen_betrays_itself_by_the_residuals() -> None:
    """Smoothed noise that is not stated spoils the intervals; that must not go unsaid."""
    held = []
    for seed in range(12):
        fit = fit_friction(shaken(seed, slow(seed), None), "stribeck")
        held.append(holds(fit))
        assert "velocity-noise-unmodelled" in codes(fit, spoiling=True)
        assert fit.diagnostics.implied_velocity_noise == pytest.approx(NOISE, rel=0.4)
        stated = fit_friction(shaken(seed, slow(seed), NOISE), "stribeck")
        assert "velocity-noise-unmodelled" not in codes(stated)
    assert np.mean(held, axis=0).min() < 0.9
