"""Whether the intervals of a friction fit hold the truth as often as they say, and what is said where they do not."""

import numpy as np
import pytest

from calibration.data.signals import smooth
from calibration.friction import FitSettings, FrictionFit, Samples, fit_friction
from tests.calibration.hand_moved import DEGREE, KNEE, encoded, hand, measured

NOISE = 0.2 * DEGREE


def holds(fit: FrictionFit) -> list[bool]:
    return [fit.intervals[name][0] <= value <= fit.intervals[name][1] for name, value in KNEE.items()]


def codes(fit: FrictionFit, spoiling: bool = False) -> set[str]:
    return {doubt.code for doubt in fit.doubts if doubt.spoils_intervals or not spoiling}


def shaken(seed: int, noise: np.ndarray, stated: float | None, duration: float = 60.0) -> Samples:
    """Return what was measured of the knee with errors of the velocity."""
    exact = measured(KNEE, seed, duration, torque_noise=0.1)
    return Samples(exact.time, exact.velocity + noise, exact.friction, velocity_noise=stated)


def white(seed: int, samples: int = 6000) -> np.ndarray:
    return NOISE * np.random.default_rng(seed + 2000).standard_normal(samples)


def slow(seed: int) -> np.ndarray:
    """Return noise that was smoothed, so that nothing shows from sample to sample."""
    noise = smooth(hand(seed, 60.0)[0], white(seed), 4.0)
    return NOISE / noise.std() * noise


def variances(samples: Samples) -> list[float]:
    return [error**2 for error in fit_friction(samples, "stribeck").standard_errors.values()]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """500 recordings of 30 s, each of another motion, with encoder steps, encoder noise and torque noise."""
    held = []
    for seed in range(500):
        fit = fit_friction(encoded(seed, 30.0, 0.01 * DEGREE, 0.005 * DEGREE, 0.1), "stribeck")
        held.append(holds(fit))
    share = np.mean(held, axis=0)
    assert np.all((share >= 0.90) & (share <= 0.98)), dict(zip(KNEE, share, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [8, pytest.param(40, marks=pytest.mark.slow)])
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


def test_noise_that_nobody_stated_is_seen_where_it_is_white() -> None:
    fit = fit_friction(shaken(0, white(0), None), "stribeck")
    assert fit.velocity_noise == pytest.approx(NOISE, rel=0.1)
    assert "velocity-noise" in codes(fit)


@pytest.mark.slow
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


@pytest.mark.slow
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
