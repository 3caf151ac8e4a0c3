"""Velocities without delay, and the noise that is stated with them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import butter, sosfiltfilt

from calibration.data.signals import best_cutoff, motion, smooth, white_noise
from haptics import ConfigurationError

TIME = np.arange(0.0, 30.0, 0.01)


def hand(time: np.ndarray, order: int = 0) -> np.ndarray:
    """Return a slow motion or one of its derivatives."""
    rates, turns, sizes = (
        2.0 * np.pi * np.array((0.3, 0.13, 0.71)),
        np.array((0.0, 1.0, 2.0)),
        np.array((0.5, 0.4, 0.1)),
    )
    return np.sum(sizes * rates**order * np.sin(np.multiply.outer(time, rates) + turns + 0.5 * np.pi * order), axis=-1)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_slow_motion_passes_unharmed(order: int) -> None:
    found = smooth(TIME, hand(TIME), 15.0, order)
    inner = slice(30, -30)
    assert np.abs(found - hand(TIME, order))[inner].max() < 1e-4 * np.abs(hand(TIME, order)).max()


@given(frequency=st.floats(0.5, 20.0), turn=st.floats(0.0, 6.0))
def test_a_tone_is_damped_and_not_delayed(frequency: float, turn: float) -> None:
    tone = np.sin(2.0 * np.pi * frequency * TIME + turn)
    inner = slice(300, -300)
    expected = tone / (1.0 + (frequency / 4.0) ** 4)
    assert np.abs(smooth(TIME, tone, 4.0) - expected)[inner].max() < 1e-3


def test_it_is_the_filter_of_butterworth_run_both_ways() -> None:
    noise = np.random.default_rng(0).standard_normal(len(TIME))
    other = sosfiltfilt(butter(2, 3.0, fs=100.0, output="sos"), noise)
    inner = slice(200, -200)
    assert np.abs(smooth(TIME, noise, 3.0) - other)[inner].max() < 0.02 * other.std()


@pytest.mark.parametrize("cutoff", [2.0, 6.0, None])
def test_the_noise_stated_is_the_noise_there_is(cutoff: float | None) -> None:
    errors, stated = [], []
    for seed in range(8):
        position = hand(TIME) + 1e-3 * np.random.default_rng(seed).standard_normal(len(TIME))
        found = motion(TIME, position, cutoff)
        inner = slice(found.edge, -found.edge)
        clean = motion(TIME, hand(TIME), found.cutoff)
        pairs = ((found.velocity, clean.velocity), (found.acceleration, clean.acceleration))
        errors.append([np.sqrt(np.mean((one - other)[inner] ** 2)) for one, other in pairs])
        stated.append((found.velocity_noise, found.acceleration_noise))
        assert found.position_noise == pytest.approx(1e-3, rel=0.1)
    np.testing.assert_allclose(np.mean(errors, axis=0), np.mean(stated, axis=0), rtol=0.1)


@pytest.mark.parametrize("noise", [1e-5, 1e-4, 1e-3])
def test_the_best_cutoff_leaves_little_more_error_than_any_other(noise: float) -> None:
    position = hand(TIME) + noise * np.random.default_rng(1).standard_normal(len(TIME))
    inner = slice(50, -50)

    def error(cutoff: float) -> float:
        return float(np.abs(smooth(TIME, position, cutoff) - hand(TIME))[inner].std())

    assert error(best_cutoff(TIME, position)) < 1.4 * min(map(error, np.geomspace(0.5, 40.0, 30)))


def test_uneven_times_do_not_matter() -> None:
    rng = np.random.default_rng(2)
    uneven = np.sort(TIME + 0.003 * rng.uniform(-1.0, 1.0, len(TIME)))
    found = smooth(uneven, hand(uneven), 10.0, 1)
    assert np.abs(found - hand(uneven, 1))[50:-50].max() < 5e-3


def test_columns_are_smoothed_alike() -> None:
    both = smooth(TIME, np.column_stack((hand(TIME), np.cos(TIME))), 5.0, 1)
    np.testing.assert_array_equal(both[:, 0], smooth(TIME, hand(TIME), 5.0, 1))


@given(noise=st.floats(1e-6, 1.0), seed=st.integers(0, 100))
def test_white_noise_is_seen_beneath_a_motion_with_jumps(noise: float, seed: int) -> None:
    values = hand(TIME) + noise * np.random.default_rng(seed).standard_normal(len(TIME))
    values[1000:] += 1.0
    assert white_noise(values) == pytest.approx(noise, rel=0.15)
    assert white_noise(hand(TIME)) < 1e-6


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: smooth(TIME, hand(TIME), 60.0), "cut-off 60 Hz"),
        (lambda: smooth(TIME[::-1], hand(TIME), 5.0), "must increase"),
        (lambda: smooth(TIME, np.full(len(TIME), np.nan), 5.0), "not finite"),
        (lambda: smooth(TIME[:5], hand(TIME)[:5], 5.0), "at least 16"),
    ],
)
def test_what_is_wrong_is_said(call: object, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        call()  # type: ignore[operator]
