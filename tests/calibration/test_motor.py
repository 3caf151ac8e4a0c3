"""The motor: gain, offset, hysteresis and back-EMF, and warnings about misleading recordings."""

from dataclasses import replace

import numpy as np
import pytest

from calibration.motor import back_emf, estimated, identify_motor
from calibration.parameters import Found, JointParameters, friction_change, friction_spread
from calibration.trials import MOTOR_SCENARIOS, motor_coverage
from haptics.errors import ConfigurationError
from tests.calibration.joints import KNEE, driven, friction, through_stuck_gear

# --- gain, offset and hysteresis --------------------------------------------------------------------------------------


def near(fit, gain, offset, tolerance):
    assert fit.values["gain"] == pytest.approx(gain, abs=tolerance * 0.1)
    assert fit.values["offset"] == pytest.approx(offset, abs=tolerance)


def test_gain_and_offset_are_found():
    exact = identify_motor(driven(), friction)
    near(exact, 0.05, 0.8, 1e-10)
    assert exact.found().facts["zero_drive_percent"] == pytest.approx(-16.0)
    fit = identify_motor(driven(noise=0.1), friction)
    near(fit, 0.05, 0.8, 0.01)
    for name, truth in (("gain", 0.05), ("offset", 0.8)):
        low, high = fit.intervals[name]
        assert low < truth < high
        assert high - low < 0.02
    assert fit.rms == pytest.approx(0.1, rel=0.05)


def test_the_inertia_of_motor_and_gear_is_accounted_for():
    measurement = driven(inertia=2.0)
    near(identify_motor(measurement, friction, inertia=2.0), 0.05, 0.8, 1e-10)
    assert identify_motor(measurement, friction).rms > 0.1
    with pytest.raises(ConfigurationError, match="has no accelerations"):
        identify_motor(replace(measurement, acceleration=None), friction, inertia=2.0)


def test_unknown_friction_shows_as_hysteresis():
    measurement = driven()
    fit = identify_motor(measurement)
    moving = fit.used
    level = np.mean(np.abs(friction(measurement.velocity[moving])))
    assert fit.values["hysteresis"] == pytest.approx(level, rel=0.05)
    near(fit, 0.05, 0.8, 0.2)


def held(static, noise):
    """Return the fit of a held joint whose motor is driven up and down through a gear with this static friction."""
    measurement = driven()
    drive = 60.0 * np.sin(0.5 * measurement.time)
    errors = noise * np.random.default_rng(5).standard_normal(len(drive))
    effort = through_stuck_gear(0.05 * drive, static) + 0.3 + errors
    return identify_motor(replace(measurement, velocity=np.zeros_like(drive), drive=drive, effort=effort), friction)


def test_a_held_joint_shows_the_static_friction_of_its_gear():
    fit = held(static=0.7, noise=0.02)
    assert fit.held
    for name, truth in (("hysteresis", 0.7), ("gain", 0.05), ("offset", 0.3)):
        low, high = fit.intervals[name]
        assert low - 0.01 * truth < truth < high + 0.01 * truth
        assert fit.values[name] == pytest.approx(truth, rel=0.02)
    low, high = held(static=0.0, noise=0.02).intervals["hysteresis"]
    assert low < 0.0 < high


def test_uncertain_friction_widens_the_intervals():
    measurement = driven(noise=0.1)
    deviations = {"coulomb": (0.75, 0.95), "viscosity": (KNEE["viscosity"] - 1.0, KNEE["viscosity"] + 1.0)}
    joint = JointParameters("knee", True, Found("stribeck", KNEE, deviations))
    spread = friction_spread(joint, measurement.velocity)
    sure = identify_motor(measurement, joint.friction_at)
    unsure = identify_motor(measurement, joint.friction_at, friction_spread=spread)
    assert unsure.values == sure.values
    assert np.ptp(unsure.intervals["gain"]) > 1.2 * np.ptp(sure.intervals["gain"])
    assert np.ptp(unsure.intervals["offset"]) > np.ptp(sure.intervals["offset"])


def test_the_back_emf_is_the_difference_of_viscosities():
    closed = Found("stribeck", {**KNEE, "viscosity": 17.8}, {"viscosity": (17.5, 18.1)})
    opened = Found("stribeck", {**KNEE, "viscosity": 12.0}, {"viscosity": (11.6, 12.4)})
    value, (low, high) = back_emf(closed, opened)
    assert value == pytest.approx(5.8)
    assert (low, high) == pytest.approx((5.3, 6.3))
    both_ways = Found("stribeck-asymmetric", {"viscosity_forward": 1.0, "viscosity_backward": 2.0})
    with pytest.raises(ConfigurationError, match="has two viscosities"):
        back_emf(closed, both_ways)


@pytest.mark.parametrize(
    ("measurement", "law", "message"),
    [
        (replace(driven(), drive=None), friction, "no column for what drives the motor"),
        (replace(driven(), drive=np.full(4000, 3.0)), friction, "drive is constant"),
        (replace(driven(), drive=np.sign(driven().velocity)), None, "gain and friction cannot be separated"),
    ],
    ids=["no drive", "constant drive", "drive that follows the motion"],
)
def test_uninformative_recordings_of_a_motor_are_refused(measurement, law, message):
    with pytest.raises(ConfigurationError, match=message):
        identify_motor(measurement, law)


def test_a_motor_without_torque_is_doubted():
    dead = replace(driven(), effort=np.zeros(4000), velocity=np.zeros(4000))
    found = identify_motor(dead).found()
    assert found.values["gain"] == pytest.approx(0.0, abs=1e-12)
    assert "the gain cannot be told from 0" in found.warnings[0]


# --- misleading recordings --------------------------------------------------------------------------------------------

JOINT = JointParameters("knee", True, Found("stribeck", KNEE, facts={"dead_band_rad_per_s": 0.003}))
RNG = np.random.default_rng(3)


def fit_of(warm=1.0, in_phase=False, warming=0.0, change=True):
    """Return the fit of the knee, whose friction was `warm` times the one in its file."""
    measurement = driven(gain=0.2)
    velocity, time = measurement.velocity, measurement.time
    drive = measurement.drive
    assert drive is not None
    if in_phase:
        drive = 60.0 * velocity / np.abs(velocity).max() + 0.1 * drive
    level = warm * (1.0 - warming * time / time[-1])
    noise = 0.1 * np.random.default_rng(4).standard_normal(len(time))
    driven_so = replace(measurement, drive=drive, effort=0.2 * drive + 0.8 - level * friction(velocity) + noise)
    columns = friction_change(JOINT, velocity) if change else ()
    return identify_motor(driven_so, JOINT.friction_at, rest=JOINT.dead_band, friction_change=columns)


def says(fit, words):
    return any(words in warning for warning in fit.found().warnings)


@pytest.mark.parametrize("scenario", MOTOR_SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_interval_holds_the_gain_or_there_is_a_warning(scenario):
    plain = scenario in MOTOR_SCENARIOS[:2]
    seen = motor_coverage(scenario, 2)
    assert seen.silent_misses == 0
    assert all(seen.warned) != plain
    assert any(seen.warned) != plain


def test_changed_friction_is_reported():
    assert says(fit_of(0.75), "25% lower than in its file")
    assert says(fit_of(1.2), "20% higher than in its file")


def test_a_drive_that_follows_the_motion_is_doubted():
    fit = fit_of(in_phase=True)
    assert says(fit, "the drive follows the motion (correlation 0.9")
    assert says(fit, "changed by no more than 40%")
    assert says(fit_of(in_phase=True, change=False), "is exactly that of its file")


def test_drift_is_doubted():
    assert says(fit_of(warming=0.3), "drift: the friction relative to its file is")
    assert says(fit_of(warming=0.3, in_phase=True), "drift: the gain is")
    measurement = driven()
    drive = 60.0 * np.sin(0.5 * measurement.time)
    still = replace(measurement, velocity=np.zeros(len(drive)), drive=drive)
    errors = 0.02 * RNG.standard_normal(len(drive))
    assert not says(identify_motor(replace(still, effort=0.05 * drive + errors)), "drift")
    sagging = identify_motor(replace(still, effort=0.05 * drive * (1.0 - 0.01 * measurement.time) + errors))
    assert says(sagging, "drift: the gain is")


@pytest.mark.parametrize(("divisor", "doubted"), [(4.0, True), (6.0, False)])
def test_slow_motion_is_doubted(divisor, doubted):
    measurement = driven(noise=0.1)
    columns = friction_change(JOINT, measurement.velocity)
    rest = float(np.median(np.abs(measurement.velocity))) / divisor
    fit = identify_motor(measurement, JOINT.friction_at, rest=rest, friction_change=columns)
    assert says(fit, "the joint moved slowly") == doubted


def test_a_creeping_joint_is_doubted():
    measurement = driven(noise=0.1)
    creeping = replace(measurement, velocity=0.5 * measurement.velocity / np.abs(measurement.velocity).max())
    assert says(identify_motor(creeping, JOINT.friction_at, rest=1.0), "it creeps")
    noise = replace(measurement, velocity=0.1 * RNG.standard_normal(len(measurement)))
    assert not says(identify_motor(noise, JOINT.friction_at, rest=1.0), "it creeps")


def test_hysteresis_that_depends_on_the_speed_is_doubted():
    measurement = driven(noise=0.1)
    assert says(identify_motor(measurement), "depends on the speed")
    dry = replace(measurement, effort=0.05 * measurement.drive - np.sign(measurement.velocity) + 0.1 * RNG.random(4000))
    assert not says(identify_motor(dry), "depends on the speed")


def test_a_visible_change_is_found_and_an_invisible_one_widens_the_interval():
    column, other = RNG.standard_normal((2, 1000))
    errors = 0.1 * RNG.standard_normal(1000)
    visible = estimated(column[:, None], 3.0 * column + 2.0 * other + errors, change=(other,))
    assert visible.changes == pytest.approx([2.0], abs=0.02)
    assert visible.coefficients == pytest.approx([3.0], abs=0.02)
    invisible = estimated(column[:, None], 3.0 * column + errors, change=(0.5 * column,))
    assert invisible.deviations == pytest.approx([0.5], rel=0.05)
    exact = estimated(column[:, None], 3.0 * column + 1.5 * other, change=(other,))
    assert exact.coefficients == pytest.approx([3.0], abs=1e-9)


def test_many_unknowns_do_not_make_intervals_narrow():
    """With 20 changes fitted to 60 samples, the residual holds two thirds of the errors."""
    columns = RNG.standard_normal((60, 21))
    matrix, changes = columns[:, :1], tuple(1e3 * columns.T[1:])
    stated = [estimated(matrix, noise, change=changes).deviations[0] for noise in RNG.standard_normal((100, 60))]
    true = np.sqrt(np.linalg.inv(columns.T @ columns)[0, 0])
    assert np.sqrt(np.mean(np.square(stated))) == pytest.approx(true, rel=0.1)
