"""The servo that is found from a frequency response: exact where it is one, honest about noise, doubtful where not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lsim

from calibration.servo.response import Response, ServoFit, fit_servo, servo_response
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

LINES = 0.5 * np.array((1, 2, 3, 5, 7, 10, 14, 19, 26, 34, 44, 56, 70), dtype=np.float64)
PERIOD = 1e-3


def reference(time: Array, lines: Array = LINES) -> Array:
    """Return a sum of sines of equal speeds."""
    phases = -np.pi * np.arange(len(lines)) * (np.arange(len(lines)) + 1) / len(lines)
    return np.asarray(5e-3 * np.sin(2.0 * np.pi * np.outer(time, lines) + phases) @ (1.0 / lines))


def followed(time: Array, natural: float, ratio: float, delay: float, *, knows: bool) -> Array:
    """Return what a servo makes of it for ever: each sine times its response."""
    phases = -np.pi * np.arange(len(LINES)) * (np.arange(len(LINES)) + 1) / len(LINES)
    gain = servo_response(LINES, natural, ratio, delay, knows_velocity=knows)
    waves = np.exp(1j * (2.0 * np.pi * np.outer(time, LINES) + phases)) * gain
    return np.asarray(5e-3 * waves.imag @ (1.0 / LINES))


def found(time: Array, position: Array, sampled: Array, *, knows: bool) -> ServoFit:
    response = Response.of(LINES, (time, reference(time)), (sampled, position))
    return fit_servo([response], knows_velocity=knows)


@pytest.mark.parametrize("knows", [True, False])
@pytest.mark.parametrize(("natural", "ratio", "delay"), [(17.0, 1.4, 4e-3), (50.0, 1.0, 0.0), (6.0, 0.4, 12e-3)])
def test_a_servo_is_found_exactly(natural: float, ratio: float, delay: float, knows: bool) -> None:
    time = PERIOD * np.arange(8000)
    fit = found(time, followed(time, natural, ratio, delay, knows=knows), time, knows=knows)
    assert (fit.frequency, fit.damping_ratio) == pytest.approx((natural, ratio), rel=1e-5)
    assert fit.lag == pytest.approx(delay, abs=1e-8)
    assert fit.residual < 1e-6
    assert fit.warnings == ()


def test_it_does_not_matter_when_samples_were_taken() -> None:
    random = np.random.default_rng(0)
    time = PERIOD * np.arange(8000)
    sampled = np.sort(time - random.uniform(0.0, 6e-3, len(time)))
    kept = np.concatenate(([True], np.diff(sampled) > 0.0)) & (random.random(len(time)) > 0.1)
    fit = found(time, followed(sampled[kept], 20.0, 1.0, 5e-3, knows=True), sampled[kept], knows=True)
    assert (fit.frequency, fit.lag) == pytest.approx((20.0, 5e-3), rel=1e-5)


def test_another_simulation_of_the_servo_gives_the_same() -> None:
    w, z, delay = 2.0 * np.pi * 15.0, 0.8, 6e-3
    time = PERIOD * np.arange(12_000)
    _, position, _ = lsim(([2.0 * z * w, w * w], [1.0, 2.0 * z * w, w * w]), reference(time), time)
    steady = slice(4000, None)
    response = Response.of(LINES, (time[steady], reference(time)[steady]), (time[steady] + delay, position[steady]))
    fit = fit_servo([response], knows_velocity=True)
    # between two points lsim goes straight, which takes (pi f T)^2 / 3 off a sine: 0.4 % at 35 Hz
    assert (fit.frequency, fit.damping_ratio, fit.lag) == pytest.approx((15.0, 0.8, delay), rel=4e-3)


def test_an_arm_that_is_no_such_servo_is_doubted() -> None:
    time = PERIOD * np.arange(8000)
    fit = found(time, 0.5 * reference(time), time, knows=True)
    assert fit.residual > 0.15
    assert "no servo of second order" in fit.warnings[0]


def test_a_reference_that_does_not_move_is_said() -> None:
    time = PERIOD * np.arange(1000)
    with pytest.raises(ConfigurationError, match="does not move"):
        Response.of(LINES, (time, np.zeros(1000)), (time, reference(time)))
