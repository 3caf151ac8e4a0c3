"""The position servo of an arm: its excitation, and its fit to a frequency response."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lsim

from calibration.motions import Mover
from calibration.motions.servo import Excitation, Response, ServoMeasurement, fit_servo, path, servo_response
from haptics.errors import ConfigurationError

# --- fit to a frequency response --------------------------------------------------------------------------------------

Array = NDArray[np.float64]

LINES = 0.5 * np.array((1, 2, 3, 5, 7, 10, 14, 19, 26, 34, 44, 56, 70), dtype=np.float64)
PERIOD = 1e-3


def reference(time, gain=1.0):
    """Return a sum of sines of equal speeds, each times its complex gain."""
    phases = -np.pi * np.arange(len(LINES)) * (np.arange(len(LINES)) + 1) / len(LINES)
    waves = np.exp(1j * (2.0 * np.pi * np.outer(time, LINES) + phases)) * gain
    return np.asarray(5e-3 * waves.imag @ (1.0 / LINES))


def followed(time, natural, ratio, delay, *, knows):
    """Return the steady response of a servo to the reference."""
    return reference(time, servo_response(LINES, natural, ratio, delay, knows_velocity=knows))


def found(time, position, sampled, *, knows):
    response = Response.of(LINES, (time, reference(time)), (sampled, position))
    return fit_servo([response], knows_velocity=knows)


@pytest.mark.parametrize("knows", [True, False])
@pytest.mark.parametrize(("natural", "ratio", "delay"), [(17.0, 1.4, 4e-3), (50.0, 1.0, 0.0), (6.0, 0.4, 12e-3)])
def test_a_servo_is_found_exactly(natural, ratio, delay, knows):
    time = PERIOD * np.arange(8000)
    fit = found(time, followed(time, natural, ratio, delay, knows=knows), time, knows=knows)
    assert (fit.frequency, fit.damping_ratio) == pytest.approx((natural, ratio), rel=1e-5)
    assert fit.lag == pytest.approx(delay, abs=1e-8)
    assert fit.residual < 1e-6
    assert fit.warnings == ()


def test_irregular_sample_times_do_not_change_the_fit():
    random = np.random.default_rng(0)
    time = PERIOD * np.arange(8000)
    sampled = np.sort(time - random.uniform(0.0, 6e-3, len(time)))
    kept = np.concatenate(([True], np.diff(sampled) > 0.0)) & (random.random(len(time)) > 0.1)
    fit = found(time, followed(sampled[kept], 20.0, 1.0, 5e-3, knows=True), sampled[kept], knows=True)
    assert (fit.frequency, fit.lag) == pytest.approx((20.0, 5e-3), rel=1e-5)


def test_an_independent_simulation_of_the_servo_is_found():
    w, z, delay = 2.0 * np.pi * 15.0, 0.8, 6e-3
    time = PERIOD * np.arange(12_000)
    _, position, _ = lsim(([2.0 * z * w, w * w], [1.0, 2.0 * z * w, w * w]), reference(time), time)
    steady = slice(4000, None)
    response = Response.of(LINES, (time[steady], reference(time)[steady]), (time[steady] + delay, position[steady]))
    fit = fit_servo([response], knows_velocity=True)
    # lsim interpolates linearly, which damps a sine by (pi f T)^2 / 3: 0.4 % at 35 Hz
    assert (fit.frequency, fit.damping_ratio, fit.lag) == pytest.approx((15.0, 0.8, delay), rel=4e-3)


def test_a_reference_that_does_not_move_is_refused():
    time = PERIOD * np.arange(1000)
    with pytest.raises(ConfigurationError, match="does not move"):
        Response.of(LINES, (time, np.zeros(1000)), (time, reference(time)))


# --- excitation -------------------------------------------------------------------------------------------------------

SHORT = Excitation(lowest=4.0, cycles=2, strokes=2)


@pytest.mark.parametrize("excitation", [SHORT, Excitation(effort=0.8), Excitation(lowest=0.5), Excitation(lowest=10.0)])
@pytest.mark.parametrize("device", ["virtual-arm", "arm"])
def test_the_excitation_of_an_arm_stays_within_its_limits(device, excitation):
    spec = Mover.of(device, {"emulated": True} if device == "arm" else {}).spec
    along = path(excitation, spec, 1e-3)
    speed = np.gradient(along, 1e-3)
    assert np.abs(speed).max() <= excitation.effort * spec.max_speed * (1.0 + 1e-9)
    assert np.abs(np.gradient(speed, 1e-3)).max() <= excitation.effort * spec.max_acceleration * 1.01
    assert np.abs(along).max() <= 0.65 * spec.workspace_max[1]


def test_the_direction_never_changes_during_a_measurement():
    spec = Mover.of("virtual-arm", {}).spec
    speed = np.gradient(path(SHORT, spec, 1e-3), 1e-3)
    stroke = len(speed) // SHORT.strokes
    for number in range(SHORT.strokes):
        inside = speed[number * stroke + 150 : (number + 1) * stroke - 150]
        assert (inside * (-1) ** number > 0.2 * np.abs(inside).max()).all()


def test_too_little_acceleration_for_the_strokes_is_refused():
    spec = replace(Mover.of("virtual-arm", {}).spec, max_acceleration=1.0)
    with pytest.raises(ConfigurationError, match=r"servo\.effort"):
        path(SHORT, spec, 1e-3)


def test_an_impedance_device_has_no_servo(tmp_path):
    with pytest.raises(ConfigurationError, match="no position servo"):
        ServoMeasurement(SHORT).run(Mover.of("virtual-joystick", {}), tmp_path / "run")
