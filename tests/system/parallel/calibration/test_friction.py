"""Coverage of the intervals of friction fits, and the choice of a model, over many recordings."""

import numpy as np
import pytest

from calibration.data.signals import smooth
from calibration.friction import MODELS, FitSettings, Samples, choose_model, fit_friction
from calibration.trials import FRICTION_SCENARIOS, friction_coverage
from tests.calibration.joints import DEGREE, KNEE, encoded, hand, measured
from tests.calibration.test_friction import NOISE, codes, shaken, truth_of, white
from tests.sampling import sample


def holds(fit):
    return [fit.intervals[name][0] <= value <= fit.intervals[name][1] for name, value in KNEE.items()]


def slow(seed):
    """Return smoothed noise, which cannot be estimated from differences of samples."""
    noise = smooth(hand(seed, 60.0)[0], white(seed), 4.0)
    return NOISE / noise.std() * noise


@pytest.mark.timeout(400)
def test_intervals_have_their_nominal_coverage():
    """500 recordings of 30 s, each of another motion, with encoder steps, encoder noise and torque noise."""
    held = []
    for seed in range(500):
        fit = fit_friction(encoded(seed, 30.0, 0.01 * DEGREE, 0.005 * DEGREE, 0.1), "stribeck")
        held.append(holds(fit))
    share = np.mean(held, axis=0)
    assert np.all((share >= 0.90) & (share <= 0.98)), dict(zip(KNEE, share, strict=True))


def test_the_bias_by_velocity_noise_is_corrected():
    """Without correction, noise of a fifth of the Stribeck velocity makes the static levels far too low."""
    found, naive, held = [], [], []
    for seed in range(8):
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


def test_smoothed_velocity_noise_is_doubted_by_its_residuals():
    """Smoothed noise that is not stated spoils the intervals."""
    held = []
    for seed in range(12):
        fit = fit_friction(shaken(seed, slow(seed), None), "stribeck")
        held.append(holds(fit))
        assert "velocity-noise-unmodelled" in codes(fit, spoiling=True)
        assert fit.diagnostics.implied_velocity_noise == pytest.approx(NOISE, rel=0.4)
        stated = fit_friction(shaken(seed, slow(seed), NOISE), "stribeck")
        assert "velocity-noise-unmodelled" not in codes(stated)
    assert np.mean(held, axis=0).min() < 0.9


@pytest.mark.parametrize(
    "scenario", sample([one for one in FRICTION_SCENARIOS if one.model != "auto"], 4), ids=lambda one: one.name
)
def test_scenarios_with_missed_intervals_have_warnings(scenario):
    """An interval of 95 % misses now and then; a scenario in which more are missed has warnings."""
    of = friction_coverage(scenario, 20)
    silent = [held for held, doubted in zip(of.held, of.doubted, strict=True) if not doubted]
    missed = sum(not value for held in silent for value in held.values())
    assert missed <= 0.12 * max(sum(len(held) for held in silent), 1)


def test_a_motion_that_grows_and_fades_does_not_hide_the_better_model():
    """The static levels matter to few blocks only; these must not be taken as chance."""
    time = np.arange(0.0, 60.0, 0.01)
    velocity = 20.0 * DEGREE * (0.55 + 0.45 * np.cos(0.13 * time)) * np.sin(0.9 * time)
    noise = 0.1 * np.random.default_rng(1).standard_normal(len(time))
    choice = choose_model([Samples(time, velocity, MODELS["stribeck"].evaluate(KNEE, velocity) + noise)])
    assert choice.name in {"stribeck", "stribeck-plateau"}


@pytest.mark.parametrize("truth", ["coulomb-viscous", "stribeck-offset"])
def test_without_noise_rounding_errors_do_not_choose_the_model(truth):
    choice = choose_model([measured(truth_of(truth), 0, model=truth)])
    assert choice.name == truth
    assert choice.fit.values == pytest.approx(truth_of(truth), rel=1e-9)
