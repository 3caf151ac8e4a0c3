"""Motors, servos, terms of friction and force sensors, over many simulated or long recordings."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.handle import CENTRES, MASS, identify_handle
from calibration.motions import Mover
from calibration.motions.poses import Poses, measure_wrenches
from calibration.motor.gain import identify_motor
from calibration.servo.motion import measure_servo, servo_of
from calibration.terms.selection import select_terms
from devices.arm.sensors.mounting import STANDARD_GRAVITY
from haptics.recording.recording import Recording
from tests.calibration.measured import driven, friction
from tests.calibration.simulated_joints import joint, recorded
from tests.calibration.test_handle import BIAS, deviations, mover, truth, vertical
from tests.calibration.test_servo import PERIOD, SHORT, followed, found
from tests.devices.arm.arm_rig import ArmHere
from tests.devices.arm.arm_rig import settings as arm_settings

# --- motor ------------------------------------------------------------------------------------------------------------


def test_intervals_of_the_gain_cover_correlated_noise():
    measurement, hits = driven(), 0
    for seed in range(100):
        white = np.random.default_rng(seed).standard_normal(len(measurement) + 50)
        slow = np.convolve(white, np.ones(30) / 30.0**0.5, mode="valid")[: len(measurement)]
        noisy = replace(measurement, effort=measurement.effort + 0.1 * slow)
        low, high = identify_motor(noisy, friction).intervals["gain"]
        hits += low < 0.05 < high
    assert 86 <= hits <= 100  # white errors would give 50


# --- servo ------------------------------------------------------------------------------------------------------------


def test_standard_errors_of_a_servo_agree_with_repeated_measurements():
    time, truth = PERIOD * np.arange(8000), (17.0, 1.4, 4e-3)
    clean = followed(time, *truth, knows=True)
    fits = [
        found(time, clean + 2e-4 * np.random.default_rng(seed).standard_normal(len(time)), time, knows=True)
        for seed in range(40)
    ]
    values = np.array([(fit.frequency, fit.damping_ratio, fit.lag) for fit in fits])
    errors = np.array([(fit.frequency_error, fit.damping_ratio_error, fit.lag_error) for fit in fits])
    scaled = (values - truth) / errors
    assert (np.abs(scaled.mean(axis=0)) < 0.7).all()  # 4 standard errors of a mean of 40
    assert (scaled.std(axis=0) > 0.6).all() and (scaled.std(axis=0) < 1.6).all()


STILL = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}


SMOOTH = {"kinetic_friction": 0.0, "static_friction": 0.0, "viscosity": 0.0}


def measured_servo(folder, **arm):
    """Measure the servo of a virtual arm without a hand."""
    return measure_servo(Mover.of("virtual-arm", {"seed": 1, "hand": STILL, "arm": arm}), SHORT, folder)


def test_dry_friction_does_not_change_the_servo(tmp_path):
    rough = measured_servo(tmp_path / "rough", coupling="rigid")  # 11 N m in each joint
    smooth = measured_servo(tmp_path / "smooth", coupling="rigid", **SMOOTH)
    assert rough.fit.frequency == pytest.approx(smooth.fit.frequency, rel=0.03)
    assert rough.fit.damping_ratio == pytest.approx(smooth.fit.damping_ratio, rel=0.06)
    assert rough.fit.lag == pytest.approx(smooth.fit.lag, abs=1e-4)
    assert rough.fit.warnings == smooth.fit.warnings == ()


def test_the_age_of_samples_is_part_of_the_servo_delay(tmp_path):
    fresh = measured_servo(tmp_path / "run", coupling="rigid")
    assert fresh.age == 0.0
    recording = Recording(tmp_path / "run")
    rows, late = np.array(recording.rows), 3
    rows["position"][late:] = rows["position"][:-late].copy()
    rows["sample_age"] = late * 1e-3
    recording.rows = rows
    old = servo_of(recording, SHORT, knows_velocity=True)
    assert old.age == pytest.approx(3e-3)
    assert old.fit.lag == pytest.approx(fresh.fit.lag, abs=2e-5)
    assert old.fit.frequency == pytest.approx(fresh.fit.frequency, rel=0.01)
    assert old.delay == pytest.approx(3e-3 + fresh.fit.lag, abs=2e-5)


# --- terms ------------------------------------------------------------------------------------------------------------


@settings(max_examples=5)
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_units_do_not_change_the_chosen_terms(length, force):
    seen = joint(inertia=-8.0)
    scaled = recorded(
        seen.time,
        length * seen.velocity,
        force * seen.friction,
        length * seen.position,
        length * seen.acceleration,
        rotary=False,
    )
    plain = recorded(seen.time, seen.velocity, seen.friction, seen.position, seen.acceleration, rotary=False)
    first, second = select_terms(plain), select_terms(scaled)
    assert [term.name for term in second.model.terms] == [term.name for term in first.model.terms]
    assert second.score.value == pytest.approx(first.score.value, rel=1e-6)


# --- force sensor -----------------------------------------------------------------------------------------------------


def test_a_horizontal_virtual_arm_gives_the_resting_wrench(tmp_path):
    poses, _ = measure_wrenches(mover(), Poses(rounds=1), tmp_path / "poses")
    found = identify_handle(poses)
    assert {MASS, *CENTRES} <= set(found.unknown)
    assert found.resting[2] == pytest.approx(BIAS[2] - 0.3 * STANDARD_GRAVITY, abs=0.05)
    assert found.values["bias_force_x_n"] == pytest.approx(BIAS[0], abs=0.05)


def test_the_driver_of_an_arm_gives_the_handle(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    centre = (0.0, 0.01, 0.05)
    own = vertical(centre) | {"half_width": 0.04, "half_height": 0.04}
    poses = Poses(columns=2, rows=2, rounds=1, hold=0.05, settle=0.05, speed=0.25)
    here = Mover(lambda more, clock: ArmHere(arm_settings(**own)), live=False, clock_of=lambda device: device.clock)
    found = identify_handle(measure_wrenches(here, poses, tmp_path / "poses")[0])
    assert not found.unknown
    off = deviations(found, truth(0.3, centre))
    assert max(abs(off[name]) for name in (MASS, *CENTRES)) < 6.0
    assert found.values[MASS] == pytest.approx(0.3, abs=0.1)
