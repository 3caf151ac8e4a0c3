"""Identification of a joint, and its parameter file: units, values that come back, errors, and laws."""

import math
import re
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.coupled import COUPLINGS
from calibration.friction import MODELS, FitSettings
from calibration.identification import IdentificationOptions, identify, prediction_error, samples_of
from calibration.parameters import (
    Found,
    JointParameters,
    ParameterFile,
    Provenance,
    format_parameter_file,
    parameter_keys,
    parse_parameter_file,
    read_parameter_file,
    write_parameter_file,
)
from haptics.errors import ConfigurationError
from haptics.files import parse_toml
from haptics.friction.laws import CoulombViscous, GaussianStribeck, Stribeck
from tests.calibration.joints import KNEE, friction, idle

# --- identification ---------------------------------------------------------------------------------------------------

EXACT = JointParameters("knee", True, Found("stribeck", KNEE))


def relative_error(joint, samples):
    return prediction_error(joint, samples).relative


def test_samples_at_rest_are_not_judged():
    knee = idle()
    slow = np.abs(knee.velocity) < 0.02
    wrong_at_rest = replace(knee, effort=np.where(slow, 50.0, knee.effort))
    band = JointParameters("knee", True, Found("stribeck", KNEE, facts={"dead_band_rad_per_s": 0.02}))
    assert relative_error(band, samples_of(wrong_at_rest, IdentificationOptions())) < 1e-12
    assert relative_error(EXACT, samples_of(wrong_at_rest, IdentificationOptions())) > 0.5


def test_a_known_inertia_is_subtracted_and_a_found_one_judged():
    knee = idle()
    assert knee.acceleration is not None
    heavy = replace(knee, effort=knee.effort - 3.0 * knee.acceleration)
    assert relative_error(EXACT, samples_of(heavy, IdentificationOptions(inertia=3.0))) < 1e-12
    assert relative_error(EXACT, samples_of(heavy, IdentificationOptions())) > 0.05
    with_inertia = JointParameters("knee", True, Found("stribeck", {**KNEE, "inertia": 3.0}))
    assert relative_error(with_inertia, samples_of(heavy, IdentificationOptions())) < 1e-12
    with pytest.raises(ConfigurationError, match="has no accelerations"):
        relative_error(with_inertia, samples_of(replace(heavy, acceleration=None), IdentificationOptions()))


def test_a_known_load_is_no_friction():
    knee = idle()
    load = 4.0 * np.cos(knee.position)
    loaded = replace(knee, effort=knee.effort - load, load=load)
    assert relative_error(EXACT, samples_of(loaded, IdentificationOptions())) < 1e-12
    assert relative_error(EXACT, samples_of(replace(loaded, load=None), IdentificationOptions())) > 0.1
    with pytest.raises(ConfigurationError, match="leave out --inertia"):
        samples_of(loaded, IdentificationOptions(inertia=1.0))


@pytest.mark.parametrize("cutoff", [4.0, "auto"])
def test_smoothed_velocities_state_their_noise(cutoff):
    knee = idle()
    noise = 0.005 * np.random.default_rng(0).standard_normal(len(knee))
    noisy = replace(knee, velocity=knee.velocity + noise, acceleration=None, position=None)
    samples = samples_of(noisy, IdentificationOptions(smooth=cutoff))
    left = (samples.velocity - knee.velocity)[samples.inner]
    assert samples.noise == pytest.approx(left.std(), rel=0.15)
    assert samples.edge > 0
    assert samples.acceleration is not None


def test_parameters_state_how_they_were_found():
    found = identify([idle(0.1)], IdentificationOptions("stribeck", settings=FitSettings(dead_band=0.01))).parameters()
    facts = found.known_friction().facts
    assert found.dead_band == facts["dead_band_rad_per_s"] == 0.01
    assert facts["samples_used"] + facts["excluded_near_zero_velocity"] == facts["samples"] == 6000
    assert facts["residual_torque_rms_nm"] == pytest.approx(0.1, rel=0.05)
    np.testing.assert_allclose(found.friction_at(np.array([0.3])), friction(np.array([0.3])), rtol=0.01)


def test_a_recording_with_a_constant_velocity_is_named():
    still = replace(idle(), velocity=np.full(6000, 0.2), position=None)
    with pytest.raises(ConfigurationError, match=r"knee\.csv, joint knee: the velocity is constant"):
        identify([still], IdentificationOptions())


# --- parameter files --------------------------------------------------------------------------------------------------

FRICTION = Found(
    "stribeck", KNEE, {"coulomb": (0.84, 0.86)}, {"samples": 6000, "condition_number": 42.0}, ("too slow",)
)
MOTOR = Found("percent", {"gain": 0.05, "offset": 0.8, "hysteresis": 1.2}, {"gain": (0.049, 0.051)}, {"held": False})
PROVENANCE = Provenance(
    "2026-01-31T12:00:00+00:00", "least squares", 'a "knee"', ("knee.csv",), ("0" * 64,), {"numpy": "2.0"}
)
FILE = ParameterFile(PROVENANCE, (JointParameters("knee", True, FRICTION, MOTOR),))


def test_a_file_is_read_back_unchanged(tmp_path):
    write_parameter_file(tmp_path / "p.toml", FILE)
    assert read_parameter_file(tmp_path / "p.toml") == FILE
    coupled = replace(FILE, coupling=COUPLINGS["icub-torso"])
    coupling = parse_parameter_file(parse_toml(format_parameter_file(coupled), "p.toml"), "p.toml").coupling
    assert coupling is not None
    assert coupling.joints == ("torso_yaw", "torso_roll", "torso_pitch")
    np.testing.assert_array_equal(coupling.matrix, COUPLINGS["icub-torso"].matrix)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
LEVELS = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("name", ["coulomb", "static_backward", "viscosity"])
def test_negative_friction_is_neither_written_nor_read(name, tmp_path):
    values = {"coulomb": 1.0, "viscosity": 2.0, "static_forward": 1.5, "static_backward": 1.5, "stribeck_velocity": 0.1}
    good = JointParameters("x", False, Found("stribeck", values))
    text = format_parameter_file(ParameterFile(PROVENANCE, (good,)))
    bad = JointParameters("x", False, Found("stribeck", values | {name: -80.5}))
    with pytest.raises(
        ConfigurationError, match=r"joint\.x\.friction\.\w+ = -80\.5: is no friction; must be at least 0"
    ):
        write_parameter_file(tmp_path / "p.toml", ParameterFile(PROVENANCE, (bad,)))
    assert not (tmp_path / "p.toml").exists()
    key = parameter_keys("friction", "stribeck", False)[name]
    spoilt = text.replace(f"\n{key} = {values[name]}", f"\n{key} = -80.5")
    assert spoilt != text
    with pytest.raises(ConfigurationError, match=rf"p\.toml: joint\.x\.friction\.{key} = -80\.5: is no friction"):
        parse_parameter_file(parse_toml(spoilt, "p.toml"), "p.toml")


@given(
    model=st.sampled_from(sorted(MODELS)), rotary=st.booleans(), name=st.text(min_size=1, max_size=12), data=st.data()
)
def test_every_model_joint_and_number_is_read_back(model, rotary, name, data):
    values = {key: data.draw(NUMBERS if key == "offset" else LEVELS) for key in MODELS[model].names}
    intervals = {key: (data.draw(NUMBERS), data.draw(NUMBERS)) for key in values}
    joint = JointParameters(name, rotary, Found(model, values, intervals, {}, (name,)))
    file = ParameterFile(replace(PROVENANCE, device=name), (joint,))
    assert parse_parameter_file(parse_toml(format_parameter_file(file), "p.toml"), "p.toml") == file


@pytest.mark.parametrize("rotary", [True, False])
def test_keys_name_their_units(rotary):
    file = ParameterFile(PROVENANCE, (JointParameters("j", rotary, FRICTION, MOTOR),))
    joint = tomllib.loads(format_parameter_file(file))["joint"]["j"]
    level, viscosity, speed = ("torque", "nms_per_rad", "rad_per_s") if rotary else ("force", "ns_per_m", "m_per_s")
    unit = "nm" if rotary else "n"
    sides = {f"static_{level}_{side}_{unit}" for side in ("forward", "backward")}
    others = {f"coulomb_{level}_{unit}", f"viscosity_{viscosity}", f"stribeck_velocity_{speed}"}
    assert set(joint["friction"]) >= sides | others
    assert set(joint["motor"]) >= {f"gain_{unit}_per_percent", f"offset_{level}_{unit}", f"hysteresis_{level}_{unit}"}


GOOD = format_parameter_file(FILE)
WARNED = re.sub(r"(?s)(\[joint\.knee\.friction\].*?warnings = )\[.*?\]\n", r"\g<1>1\n", GOOD, count=1)
HANDLE = "[handle]\nmass_kg = 0.5\nresting_wrench_n_nm = [0, 0, 0, 0, 0, 0]\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = [", "is no TOML"),
        ("", r"there is no table \[joint.NAME\]"),
        (GOOD.replace('model = "stribeck"', 'model = "stribek"'), "Did you mean 'stribeck'"),
        (GOOD.replace('model = "stribeck"\n', ""), "joint.knee.friction.model is missing"),
        (GOOD.replace("coulomb_torque_nm = 0.85\n", ""), "joint.knee.friction.coulomb_torque_nm is missing"),
        (
            GOOD.replace("coulomb_torque_nm = 0.85", "coulomb_torque_nm = nan"),
            "coulomb_torque_nm = nan: must be a finite",
        ),
        (GOOD.replace("coulomb_torque_nm = 0.85", 'coulomb_torque_nm = "1"'), "must be a finite number"),
        (GOOD.replace("coulomb_torque_nm = 0.85", "coulomb_force_n = 0.85"), "unknown joint.knee.friction key"),
        (GOOD.replace("[0.84, 0.86]", "0.84"), "must be two numbers"),
        (GOOD.replace("rotary = true", "rotary = 1"), "joint.knee.rotary = 1: must be true or false"),
        (GOOD.replace('drive_unit = "percent"', 'drive_unit = "furlong"'), "unknown drive unit 'furlong'"),
        (GOOD.replace("[provenance]", "[origin]"), "unknown table 'origin'"),
        (GOOD + "\n[coupling]\njoints = ['a']\n", "coupling: must have joints, motors"),
        ("coupling = 3\n" + GOOD, "coupling = 3: must be a table"),
        (GOOD.replace("coulomb_torque_nm = 0.85", "coulomb_torque_nm = 1" + "0" * 400), "beyond 64 bits"),
        (WARNED, r"joint\.knee\.friction\.warnings = 1: must be a list of texts"),
        (HANDLE + "warnings = [1]\n", r"handle\.warnings = \[1\]: must be a list of texts"),
    ],
)
def test_invalid_parameter_files_are_refused(text, says):
    with pytest.raises(ConfigurationError, match=says) as caught:
        parse_parameter_file(parse_toml(text, "p.toml"), "p.toml")
    assert str(caught.value).startswith("p.toml: ")
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_or_written_are_reported(tmp_path):
    with pytest.raises(ConfigurationError, match="haptics calibrate friction makes such a file"):
        read_parameter_file(tmp_path / "none.toml")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_parameter_file(tmp_path / "nowhere" / "p.toml", FILE)
    assert list(tmp_path.iterdir()) == []


def test_the_friction_of_a_joint_follows_its_law():
    velocity = np.linspace(-0.3, 0.3, 200)
    np.testing.assert_allclose(FILE.joint("knee").friction_at(velocity), friction(velocity), rtol=1e-12)
    with pytest.raises(ConfigurationError, match=r"unknown joint 'kne'.*'knee'"):
        FILE.joint("kne")
    with pytest.raises(ConfigurationError, match="joint hip: its friction is not known"):
        JointParameters("hip", True).law()


# --- laws that can be rendered ----------------------------------------------------------------------------------------

SYMMETRIC = {**KNEE, "static_forward": 1.5, "static_backward": 1.5}


@given(lever_arm=st.floats(0.01, 2.0), speed=st.floats(1e-4, 5.0))
def test_the_handle_renders_the_torque_of_the_joint(lever_arm, speed):
    joint = JointParameters("knee", True, Found("stribeck", SYMMETRIC))
    law = joint.law(lever_arm)
    assert isinstance(law, Stribeck)
    force = float(law(speed * lever_arm))
    torque = float(joint.friction_at(np.array([speed]))[0])
    assert math.isclose(force * lever_arm, torque, rel_tol=1e-9)


def test_each_model_becomes_its_law_with_the_mean_of_both_directions():
    law = JointParameters("x", False, FRICTION).law()
    assert isinstance(law, Stribeck)
    assert law.static_force == pytest.approx((1.27 + 1.95) / 2.0)
    assert law.kinetic_force == KNEE["coulomb"]
    plain = JointParameters("x", False, Found("coulomb-viscous", {"coulomb": 2.0, "viscosity": 3.0})).law()
    assert plain == CoulombViscous(2.0, 3.0)
    sides = {"coulomb_forward": 1.0, "coulomb_backward": 3.0, "viscosity_forward": 2.0, "viscosity_backward": 4.0}
    assert JointParameters("x", False, Found("coulomb-viscous-asymmetric", sides)).law() == CoulombViscous(2.0, 3.0)
    bell = JointParameters("x", False, Found("stribeck-gaussian", SYMMETRIC)).law()
    assert isinstance(bell, GaussianStribeck)
    with pytest.raises(ConfigurationError, match=r"lever_arm = 0\.0: must be a length greater than 0 m"):
        FILE.joint("knee").law(0.0)
