"""Motors, servos and terms of friction, over many simulated or long recordings."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.cli import main
from calibration.motions import Mover
from calibration.motions.servo import ServoMeasurement, servo_of
from calibration.motor import identify_motor
from calibration.terms.selection import select_terms
from haptics.recording.recording import Recording
from tests.calibration.joints import driven, friction, joint, recorded
from tests.calibration.test_servo import PERIOD, SHORT, followed, found, reference

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


def measured_servo(folder, **arm):
    """Measure the servo of a virtual arm without a hand."""
    return ServoMeasurement(SHORT).run(Mover.of("virtual-arm", {"seed": 1, "hand": STILL, "arm": arm}), folder)


def test_dry_friction_does_not_change_the_servo(tmp_path):
    rough = measured_servo(tmp_path / "rough", coupling="rigid")  # 11 N m in each joint
    frictionless = {"kinetic_friction": 0.0, "static_friction": 0.0, "viscosity": 0.0}
    smooth = measured_servo(tmp_path / "smooth", coupling="rigid", **frictionless)
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


def test_an_arm_that_is_no_second_order_servo_is_doubted():
    time = PERIOD * np.arange(8000)
    fit = found(time, 0.5 * reference(time), time, knows=True)
    assert fit.residual > 0.15
    assert "no servo of second order" in fit.warnings[0]


def test_the_measured_servo_is_written_as_settings(tmp_path, capsys):
    out = tmp_path / "servo.toml"
    arguments = ["calibrate", "servo", "--device=virtual-arm", "--set=servo.lowest=4", "--set=servo.strokes=2"]
    assert main([*arguments, f"--out={out}", f"--record={tmp_path}"]) == 0
    assert "data sheet: 50 Hz" in capsys.readouterr().out
    device = tomllib.loads(out.read_text())["device"]
    assert set(device) == {"delay", "servo_frequency", "servo_damping_ratio"}
    spec = Mover.of("arm", {"emulated": True, **device}).spec
    assert (spec.delay or 2e-3, spec.servo_frequency) == (device["delay"] or 2e-3, device["servo_frequency"])
    unmeasured = Mover.of("arm", {"emulated": True}).spec
    assert (unmeasured.delay, unmeasured.servo_frequency) == (2e-3, None)


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
    assert [one.term.name for one in second.model.fitted] == [one.term.name for one in first.model.fitted]
    assert second.score.value == pytest.approx(first.score.value, rel=1e-6)
