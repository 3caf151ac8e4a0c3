"""Signals of a joint: smoothing and derivatives, the noise of an encoder, and limits of sensors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.data.joint_recording import JointRecording, Source, find_saturation
from calibration.data.signals import best_cutoff, motion, smooth, white_noise
from calibration.friction import MODELS
from calibration.identification import IdentificationOptions, identify, samples_of
from haptics.errors import ConfigurationError
from tests.calibration import joints
from tests.calibration.joints import KNEE, hand, joint, recorded

TIME = np.arange(0.0, 30.0, 0.01)


def slow_motion(time, order=0):
    """Return a slow motion or one of its derivatives."""
    rates, phases, sizes = 2.0 * np.pi * np.array((0.3, 0.13, 0.71)), np.array((0.0, 1.0, 2.0)), (0.5, 0.4, 0.1)
    return np.sum(sizes * rates**order * np.sin(np.multiply.outer(time, rates) + phases + 0.5 * np.pi * order), axis=-1)


SLOW = slow_motion(TIME)


# --- smoothing and derivatives ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_slow_motion_passes_unchanged(order):
    found, exact = smooth(TIME, SLOW, 15.0, order), slow_motion(TIME, order)
    assert np.abs(found - exact)[30:-30].max() < 1e-4 * np.abs(exact).max()


@given(frequency=st.floats(0.5, 20.0), phase=st.floats(0.0, 6.0))
def test_a_tone_is_damped_and_not_delayed(frequency, phase):
    tone = np.sin(2.0 * np.pi * frequency * TIME + phase)
    expected = tone / (1.0 + (frequency / 4.0) ** 4)
    assert np.abs(smooth(TIME, tone, 4.0) - expected)[300:-300].max() < 1e-3


@pytest.mark.parametrize("cutoff", [2.0, 6.0, None])
def test_the_stated_noise_is_the_error_of_the_derivatives(cutoff):
    errors, stated = [], []
    for seed in range(8):
        position = SLOW + 1e-3 * np.random.default_rng(seed).standard_normal(len(TIME))
        found = motion(TIME, position, cutoff)
        inner = slice(found.edge, -found.edge)
        clean = motion(TIME, SLOW, found.cutoff)
        pairs = ((found.velocity, clean.velocity), (found.acceleration, clean.acceleration))
        errors.append([np.sqrt(np.mean((one - other)[inner] ** 2)) for one, other in pairs])
        stated.append((found.velocity_noise, found.acceleration_noise))
        assert found.position_noise == pytest.approx(1e-3, rel=0.1)
    np.testing.assert_allclose(np.mean(errors, axis=0), np.mean(stated, axis=0), rtol=0.1)


@pytest.mark.parametrize("noise", [1e-5, 1e-4, 1e-3])
def test_the_best_cutoff_leaves_little_more_error_than_any_other(noise):
    position = SLOW + noise * np.random.default_rng(1).standard_normal(len(TIME))

    def error(cutoff):
        return float(np.abs(smooth(TIME, position, cutoff) - SLOW)[50:-50].std())

    assert error(best_cutoff(TIME, position)) < 1.4 * min(map(error, np.geomspace(0.5, 40.0, 30)))


def test_uneven_times_do_not_distort_the_velocity():
    uneven = np.sort(TIME + 0.003 * np.random.default_rng(2).uniform(-1.0, 1.0, len(TIME)))
    found = smooth(uneven, slow_motion(uneven), 10.0, 1)
    assert np.abs(found - slow_motion(uneven, 1))[50:-50].max() < 5e-3


@given(noise=st.floats(1e-6, 1.0), seed=st.integers(0, 100))
def test_white_noise_is_estimated_beneath_a_motion_with_jumps(noise, seed):
    values = SLOW + noise * np.random.default_rng(seed).standard_normal(len(TIME))
    values[1000:] += 1.0
    assert white_noise(values) == pytest.approx(noise, rel=0.15)
    assert white_noise(SLOW) < 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TIME, SLOW, 60.0), "cut-off 60 Hz"),
        ((TIME[::-1], SLOW, 5.0), "must increase"),
        ((TIME, np.full(len(TIME), np.nan), 5.0), "not finite"),
        ((TIME[:5], SLOW[:5], 5.0), "at least 16"),
    ],
)
def test_unusable_signals_are_refused(arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        smooth(*arguments)


# --- recordings of a joint --------------------------------------------------------------------------------------------


def test_position_and_acceleration_follow_from_the_velocity():
    time, position, velocity, acceleration = joints.motion()
    recording = recorded(time, velocity, velocity)
    assert np.abs(recording.path - position)[50:-50].max() < 2e-4 * np.ptp(position)
    assert np.abs(recording.known_acceleration - acceleration)[50:-50].max() < 0.02 * np.abs(acceleration).max()


def test_smooth_velocity_and_ripple_add_up_to_the_measured_velocity():
    time, _, velocity, _ = joints.motion()
    ripple = 0.01 * np.sin(2.0 * np.pi * 80.0 * time)
    recording = recorded(time, velocity + ripple, velocity)
    assert np.allclose(recording.smooth_velocity + recording.ripple, velocity + ripple, atol=1e-14)
    assert np.abs(recording.ripple - ripple)[100:-100].max() < 0.1 * 0.01


def test_travel_counts_both_directions():
    time = joints.PERIOD * np.arange(1000)
    recording = recorded(time, np.cos(np.pi * time), np.cos(np.pi * time), position=np.sin(np.pi * time) / np.pi)
    assert recording.travel[-1] == pytest.approx(8.0 / np.pi, rel=0.01)  # four half turns, each 2/pi long
    assert np.all(np.diff(recording.travel) >= 0.0)


def test_a_start_at_rest_has_the_direction_of_the_motion_to_come():
    recording = joint()
    assert recording.starts_at_rest
    assert not recording.part(0.5, 1.0).starts_at_rest
    first = np.sign(recording.velocity[np.argmax(np.abs(recording.velocity) > 0.05)])
    assert np.all(recording.direction_from_rest(0.01)[:100] == first)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"velocity": np.ones(500)}, "the velocity never changes"),
        ({"velocity": np.full(500, np.nan)}, "velocity is not a finite number in sample 0"),
        ({"position": np.zeros(499)}, r"position has the shape \(499,\)"),
        ({"time": np.zeros(500)}, "times of a recording must increase"),
        ({"time": np.arange(50.0), "velocity": np.sin(np.arange(50.0)), "friction": np.ones(50)}, "50 samples are too"),
    ],
)
def test_recordings_that_cannot_be_used_are_refused(change, message):
    given = {"time": 0.01 * np.arange(500), "velocity": np.sin(np.arange(500)), "friction": np.ones(500), **change}
    with pytest.raises(ConfigurationError, match=message):
        recorded(**given).require_terms()


# --- limits of sensors ------------------------------------------------------------------------------------------------


def torque(noise=0.1, law=KNEE, model="stribeck", seed=0):
    _, _, velocity = hand(seed, 60.0)
    return -MODELS[model].evaluate(law, velocity) + noise * np.random.default_rng(seed).standard_normal(len(velocity))


def clipped(seed, low, high):
    time, _, velocity = hand(seed, 60.0)
    source = Source("knee.csv", "0" * 64)
    return JointRecording("knee", True, time, velocity, np.clip(torque(seed=seed), low, high), source)


@pytest.mark.parametrize("limit", [1.5, 2.5, 4.0])
def test_a_clipped_torque_is_found_with_its_limits_and_share(limit):
    exact = torque()
    found = find_saturation(np.clip(exact, -limit, limit))
    assert found is not None
    assert (found.low, found.high) == (-limit, limit)
    assert found.share == np.mean(np.abs(exact) >= limit)


def test_a_limit_on_one_side_is_found():
    found = find_saturation(np.minimum(torque(), 2.0))
    assert found is not None and found.high == 2.0 and found.low == -np.inf
    assert found.values == "2"


COULOMB = ({"coulomb": 0.85, "viscosity": 0.0}, "coulomb-viscous")
STEPS = [0.01, 0.1, 0.5, 1.0]
OTHERS = {
    "noise": torque(),
    "no noise": torque(0.0),
    "Coulomb friction without noise": torque(0.0, *COULOMB),
    "a torque that jumps at rest": np.where(np.arange(6000) % 700 < 80, 50.0, torque()),
    **{f"steps of {step}": step * np.round(torque() / step) for step in STEPS},
    **{f"Coulomb friction, steps of {step}": step * np.round(torque(0.1, *COULOMB) / step) for step in STEPS},
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_signals_have_no_limit(name):
    assert find_saturation(OTHERS[name]) is None


@pytest.mark.parametrize("seed", range(3))
def test_clipped_samples_do_not_lower_the_fitted_levels(seed):
    """Fitted without regard to the limits, the levels are far too low, and the recording seems to drift."""
    recording = clipped(seed, -2.2, 2.2)
    found = identify([recording], IdentificationOptions("stribeck"))
    for name in ("coulomb", "static_forward", "static_backward"):
        low, high = found.fit.intervals[name]
        assert abs(found.fit.values[name] - KNEE[name]) < high - low
    (warning,) = found.parameters().known_friction().warnings
    share = np.mean(np.abs(recording.effort) == 2.2)
    assert f"clipped at -2.2 and 2.2 ({100.0 * share:.1f} % of the samples are exactly there)" in warning
    assert found.fit.excluded["saturated"] > share * len(recording)


def test_a_torque_that_is_clipped_nearly_always_is_refused():
    with pytest.raises(ConfigurationError, match=r"knee\.csv, joint knee: the torque .* clipped at -1.3 and 1.3"):
        samples_of(clipped(0, -1.3, 1.3), IdentificationOptions())
