"""The motor: gain and offset once the friction is known, hysteresis where the joint is held, back-EMF."""

from dataclasses import replace

import numpy as np
import pytest

from calibration.motor.gain import MotorFit, back_emf, identify_motor
from calibration.parameters.parameters import Found, JointParameters
from calibration.parameters.spread import friction_spread
from haptics.errors import ConfigurationError
from tests.calibration.hand_moved import KNEE
from tests.calibration.measured import Array, driven, friction, through_stuck_gear


def near(fit: MotorFit, gain: float, offset: float, tolerance: float) -> None:
    assert fit.values["gain"] == pytest.approx(gain, abs=tolerance * 0.1)
    assert fit.values["offset"] == pytest.approx(offset, abs=tolerance)


def test_gain_and_offset_are_exact_without_noise() -> None:
    near(identify_motor(driven(), friction), 0.05, 0.8, 1e-10)


def test_gain_and_offset_with_noise() -> None:
    fit = identify_motor(driven(noise=0.1), friction)
    near(fit, 0.05, 0.8, 0.01)
    for name, truth in (("gain", 0.05), ("offset", 0.8)):
        low, high = fit.intervals[name]
        assert low < truth < high
        assert high - low < 0.02
    assert fit.rms == pytest.approx(0.1, rel=0.05)


def test_the_inertia_of_motor_and_gear_is_accounted_for() -> None:
    measurement = driven(inertia=2.0)
    near(identify_motor(measurement, friction, inertia=2.0), 0.05, 0.8, 1e-10)
    assert identify_motor(measurement, friction).rms > 0.1
    with pytest.raises(ConfigurationError, match="has no accelerations"):
        identify_motor(replace(measurement, acceleration=None), friction, inertia=2.0)


def test_the_sign_of_the_static_friction_that_is_printed_spoils_the_offset() -> None:
    """(32) subtracts the static friction; levels that are positive (Table 1) have to be added."""

    def printed(velocity: Array) -> Array:
        dry = friction(velocity, {**KNEE, "static_forward": KNEE["coulomb"], "static_backward": KNEE["coulomb"]})
        return 2.0 * dry - friction(velocity)

    fit = identify_motor(driven(noise=0.1), printed)
    assert abs(fit.values["offset"] - 0.8) > 0.03
    assert fit.rms > 0.15


def test_the_drive_that_gives_nothing() -> None:
    fit = identify_motor(driven(), friction)
    assert fit.zero_drive == pytest.approx(-0.8 / 0.05)
    assert fit.found().facts["zero_drive_percent"] == pytest.approx(-16.0)


def test_without_the_friction_its_mean_level_shows_as_hysteresis() -> None:
    measurement = driven()
    fit = identify_motor(measurement)
    moving = fit.used
    level = np.mean(np.abs(friction(measurement.velocity[moving])))
    assert fit.values["hysteresis"] == pytest.approx(level, rel=0.05)
    near(fit, 0.05, 0.8, 0.2)


def held(static: float, noise: float) -> MotorFit:
    """Return the fit of a joint that is held while its motor is driven up and down, a gear that sticks in between."""
    measurement = driven()
    drive = 60.0 * np.sin(0.5 * measurement.time)
    effort = (
        through_stuck_gear(0.05 * drive, static) + 0.3 + noise * np.random.default_rng(5).standard_normal(len(drive))
    )
    return identify_motor(replace(measurement, velocity=np.zeros_like(drive), drive=drive, effort=effort), friction)


def test_a_held_joint_shows_the_static_friction_of_its_gear() -> None:
    fit = held(static=0.7, noise=0.02)
    assert fit.held
    for name, truth in (("hysteresis", 0.7), ("gain", 0.05), ("offset", 0.3)):
        low, high = fit.intervals[name]
        assert low - 0.01 * truth < truth < high + 0.01 * truth
        assert fit.values[name] == pytest.approx(truth, rel=0.02)


def test_without_friction_a_held_joint_has_no_hysteresis() -> None:
    fit = held(static=0.0, noise=0.02)
    low, high = fit.intervals["hysteresis"]
    assert low < 0.0 < high


def test_friction_that_is_uncertain_widens_the_intervals() -> None:
    measurement = driven(noise=0.1)
    deviations = {"coulomb": (0.75, 0.95), "viscosity": (KNEE["viscosity"] - 1.0, KNEE["viscosity"] + 1.0)}
    joint = JointParameters("knee", True, Found("stribeck", KNEE, deviations))
    sure = identify_motor(measurement, joint.friction_at)
    unsure = identify_motor(
        measurement, joint.friction_at, friction_spread=friction_spread(joint, measurement.velocity)
    )
    assert unsure.values == sure.values

    def width(fit: MotorFit, name: str) -> float:
        return fit.intervals[name][1] - fit.intervals[name][0]

    assert width(unsure, "gain") > 1.2 * width(sure, "gain")
    assert width(unsure, "offset") > width(sure, "offset")


def test_the_back_emf_is_the_viscosity_that_open_windings_do_not_have() -> None:
    closed = Found("stribeck", {**KNEE, "viscosity": 17.8}, {"viscosity": (17.5, 18.1)})
    opened = Found("stribeck", {**KNEE, "viscosity": 12.0}, {"viscosity": (11.6, 12.4)})
    value, (low, high) = back_emf(closed, opened)
    assert value == pytest.approx(5.8)
    assert (low, high) == pytest.approx((5.3, 6.3))
    both_ways = Found("stribeck-asymmetric", {"viscosity_forward": 1.0, "viscosity_backward": 2.0})
    with pytest.raises(ConfigurationError, match="has two viscosities"):
        back_emf(closed, both_ways)


@pytest.mark.parametrize(
    ("change", "says"),
    [({"drive": None}, "no column for what drives the motor"), ({"drive": np.full(4000, 3.0)}, "drive is constant")],
)
def test_what_tells_nothing_of_the_motor_is_refused(change: dict[str, Array | None], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        identify_motor(replace(driven(), **change), friction)


def test_a_drive_that_follows_the_motion_is_refused() -> None:
    measurement = driven()
    with pytest.raises(ConfigurationError, match="gain and friction cannot be separated"):
        identify_motor(replace(measurement, drive=np.sign(measurement.velocity)))


def test_a_motor_that_gives_nothing_is_doubted() -> None:
    dead = replace(driven(), effort=np.zeros(4000), velocity=np.zeros(4000))
    found = identify_motor(dead).found()
    assert found.values["gain"] == pytest.approx(0.0, abs=1e-12)
    assert "the gain cannot be told from 0" in found.warnings[0]
