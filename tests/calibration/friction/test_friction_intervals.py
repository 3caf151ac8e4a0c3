"""Whether the intervals of a friction fit hold the truth as often as they say, and what is said where they do not."""

import numpy as np
import pytest

from calibration.friction import FitSettings, FrictionFit, Samples, fit_friction
from tests.calibration.hand_moved import DEGREE, KNEE, encoded, measured

NOISE = 0.2 * DEGREE


def codes(fit: FrictionFit, spoiling: bool = False) -> set[str]:
    return {doubt.code for doubt in fit.doubts if doubt.spoils_intervals or not spoiling}


def shaken(seed: int, noise: np.ndarray, stated: float | None, duration: float = 60.0) -> Samples:
    """Return what was measured of the knee with errors of the velocity."""
    exact = measured(KNEE, seed, duration, torque_noise=0.1)
    return Samples(exact.time, exact.velocity + noise, exact.friction, velocity_noise=stated)


def white(seed: int, samples: int = 6000) -> np.ndarray:
    return NOISE * np.random.default_rng(seed + 2000).standard_normal(samples)


def variances(samples: Samples) -> list[float]:
    return [error**2 for error in fit_friction(samples, "stribeck").standard_errors.values()]


def test_noise_that_nobody_stated_is_seen_where_it_is_white() -> None:
    fit = fit_friction(shaken(0, white(0), None), "stribeck")
    assert fit.velocity_noise == pytest.approx(NOISE, rel=0.1)
    assert "velocity-noise" in codes(fit)


def test_a_band_narrower_than_the_noise_is_doubted() -> None:
    fit = fit_friction(shaken(0, white(0), NOISE), "stribeck", FitSettings(dead_band=NOISE))
    assert "velocity-noise" in codes(fit, spoiling=True)


def test_noise_beyond_remedy_is_doubted() -> None:
    for seed in range(5):
        fit = fit_friction(shaken(seed, 3.0 * white(seed), None), "stribeck")
        assert codes(fit, spoiling=True)


@pytest.mark.parametrize("seed", range(4))
def test_a_good_recording_leaves_no_doubt(seed: int) -> None:
    assert not fit_friction(encoded(seed, 60.0, 1e-3 * DEGREE, 1e-3 * DEGREE, 0.1), "stribeck").doubts


def test_errors_that_last_are_doubted() -> None:
    clean = measured(KNEE, torque_noise=0.02)
    ripple = 0.1 * np.sin(2.0 * np.pi * 1.7 * clean.time + np.cumsum(0.1 * white(0)) / DEGREE)
    fit = fit_friction(Samples(clean.time, clean.velocity, clean.friction + ripple), "stribeck")
    assert "lasting-errors" in codes(fit, spoiling=True)


def test_fast_motion_alone_does_not_tell_the_static_levels() -> None:
    samples = measured(KNEE, torque_noise=0.1)
    fast = np.abs(samples.velocity) > 4.0 * DEGREE
    part = Samples(samples.time[fast], samples.velocity[fast], samples.friction[fast], velocity_noise=0.0)
    assert codes(fit_friction(part, "stribeck"), spoiling=True)


def test_errors_grow_with_the_confidence_and_shrink_with_the_recording() -> None:
    samples = measured(KNEE, torque_noise=0.1)
    usual, sure = (fit_friction(samples, "stribeck", FitSettings(confidence=one)) for one in (0.95, 0.999))
    for name in KNEE:
        # Student's quantiles: 1.679 times as far with very many degrees of freedom, more with fewer
        assert 1.67 < np.ptp(sure.intervals[name]) / np.ptp(usual.intervals[name]) < 1.9
    errors = {
        duration: np.mean([variances(measured(KNEE, seed, duration, torque_noise=0.1)) for seed in range(8)], axis=0)
        for duration in (15.0, 60.0)
    }
    # four times as long, a quarter of the variance; the mean of five parameters in 8 motions has a small error itself
    assert np.mean(errors[15.0] / errors[60.0]) == pytest.approx(4.0, rel=0.15)
    np.testing.assert_allclose(np.sqrt(np.diag(usual.covariance)), list(usual.standard_errors.values()))
