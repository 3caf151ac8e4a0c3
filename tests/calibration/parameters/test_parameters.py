"""Parameter files: the same numbers come back, units are in the keys, and what is wrong is named."""

import math
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.coupled import COUPLINGS
from calibration.friction import MODELS
from calibration.parameters.files import (
    format_parameter_file,
    parse_parameter_file,
    read_parameter_file,
    write_parameter_file,
)
from calibration.parameters.keys import friction_keys
from calibration.parameters.parameters import Found, JointParameters, ParameterFile, Provenance
from haptics.errors import ConfigurationError
from haptics.friction.laws import CoulombViscous, GaussianStribeck, Stribeck
from tests.calibration.hand_moved import KNEE
from tests.calibration.measured import friction

FRICTION = Found(
    "stribeck", KNEE, {"coulomb": (0.84, 0.86)}, {"samples": 6000, "condition_number": 42.0}, ("too slow",)
)
MOTOR = Found("percent", {"gain": 0.05, "offset": 0.8, "hysteresis": 1.2}, {"gain": (0.049, 0.051)}, {"held": False})
PROVENANCE = Provenance(
    "2026-01-31T12:00:00+00:00", "least squares", 'a "knee"', ("knee.csv",), ("0" * 64,), {"numpy": "2.0"}
)
FILE = ParameterFile(PROVENANCE, (JointParameters("knee", True, FRICTION, MOTOR),))


def same(one: ParameterFile, other: ParameterFile) -> None:
    assert one.provenance == other.provenance
    assert one.joints == other.joints


def test_a_file_comes_back_as_it_was(tmp_path: Path) -> None:
    write_parameter_file(tmp_path / "p.toml", FILE)
    same(read_parameter_file(tmp_path / "p.toml"), FILE)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
LEVELS = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("name", ["coulomb", "static_backward", "viscosity"])
def test_what_is_negative_is_neither_written_nor_read(name: str, tmp_path: Path) -> None:
    values = {"coulomb": 1.0, "viscosity": 2.0, "static_forward": 1.5, "static_backward": 1.5, "stribeck_velocity": 0.1}
    good = JointParameters("x", False, Found("stribeck", values))
    text = format_parameter_file(ParameterFile(PROVENANCE, (good,)))
    bad = JointParameters("x", False, Found("stribeck", values | {name: -80.5}))
    with pytest.raises(
        ConfigurationError, match=r"joint\.x\.friction\.\w+ = -80\.5: is no friction; must be at least 0"
    ):
        write_parameter_file(tmp_path / "p.toml", ParameterFile(PROVENANCE, (bad,)))
    assert not (tmp_path / "p.toml").exists()
    key = friction_keys("stribeck", False)[name]
    spoilt = text.replace(f"\n{key} = {values[name]}", f"\n{key} = -80.5")
    assert spoilt != text
    with pytest.raises(ConfigurationError, match=rf"p\.toml: joint\.x\.friction\.{key} = -80\.5: is no friction"):
        parse_parameter_file(spoilt, "p.toml")


@given(
    model=st.sampled_from(sorted(MODELS)),
    rotary=st.booleans(),
    name=st.text(min_size=1, max_size=12),
    data=st.data(),
)
def test_every_model_joint_and_number_comes_back(model: str, rotary: bool, name: str, data: st.DataObject) -> None:
    values = {key: data.draw(NUMBERS if key == "offset" else LEVELS) for key in MODELS[model].names}
    intervals = {key: (data.draw(NUMBERS), data.draw(NUMBERS)) for key in values}
    joint = JointParameters(name, rotary, Found(model, values, intervals, {}, (name,)))
    file = ParameterFile(replace(PROVENANCE, device=name), (joint,))
    same(parse_parameter_file(format_parameter_file(file), "p.toml"), file)


def test_a_coupling_comes_back() -> None:
    file = replace(FILE, coupling=COUPLINGS["icub-torso"])
    coupling = parse_parameter_file(format_parameter_file(file), "p.toml").coupling
    assert coupling is not None
    assert coupling.joints == ("torso_yaw", "torso_roll", "torso_pitch")
    np.testing.assert_array_equal(coupling.matrix, COUPLINGS["icub-torso"].matrix)


def keys(rotary: bool) -> tuple[set[str], set[str]]:
    content = tomllib.loads(
        format_parameter_file(ParameterFile(PROVENANCE, (JointParameters("j", rotary, FRICTION, MOTOR),)))
    )
    joint = content["joint"]["j"]
    return set(joint["friction"]), set(joint["motor"])


def test_the_keys_name_the_units() -> None:
    turning, motor = keys(rotary=True)
    assert turning >= {
        "coulomb_torque_nm",
        "viscosity_nms_per_rad",
        "static_torque_forward_nm",
        "static_torque_backward_nm",
        "stribeck_velocity_rad_per_s",
    }
    assert motor >= {"gain_nm_per_percent", "offset_torque_nm", "hysteresis_torque_nm"}
    sliding, motor = keys(rotary=False)
    assert sliding >= {
        "coulomb_force_n",
        "viscosity_ns_per_m",
        "static_force_forward_n",
        "static_force_backward_n",
        "stribeck_velocity_m_per_s",
    }
    assert motor >= {"gain_n_per_percent", "offset_force_n"}


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
        (GOOD + "\n[joint]\nhip = 3\n", "is no TOML|must be a table"),
        ("coupling = 3\n" + GOOD, "coupling = 3: must be a table"),
        (GOOD.replace("coulomb_torque_nm = 0.85", "coulomb_torque_nm = 1" + "0" * 5000), "too many digits"),
        (GOOD.replace("coulomb_torque_nm = 0.85", "coulomb_torque_nm = 1" + "0" * 400), "beyond 64 bits"),
        ("x = " + "[" * 2000 + "]" * 2000, "nested too deeply"),
        (WARNED, r"joint\.knee\.friction\.warnings = 1: must be a list of texts"),
        (HANDLE + "unknown = 1\n", r"handle\.unknown = 1: must be a list of texts"),
        (HANDLE + "warnings = 1\n", r"handle\.warnings = 1: must be a list of texts"),
        (HANDLE + "warnings = [1]\n", r"handle\.warnings = \[1\]: must be a list of texts"),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        parse_parameter_file(text, "p.toml")
    assert str(caught.value).startswith("p.toml: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_says_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="haptics calibrate friction makes such a file"):
        read_parameter_file(tmp_path / "none.toml")


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_parameter_file(tmp_path / "nowhere" / "p.toml", FILE)
    assert list(tmp_path.iterdir()) == []


def test_the_friction_is_that_of_the_law() -> None:
    velocity = np.linspace(-0.3, 0.3, 200)
    np.testing.assert_allclose(FILE.joint("knee").friction_at(velocity), friction(velocity), rtol=1e-12)


def test_a_joint_that_is_not_there_or_not_known_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown joint 'kne'.*'knee'"):
        FILE.joint("kne")
    with pytest.raises(ConfigurationError, match="joint hip: its friction is not known"):
        JointParameters("hip", True).law()


# --- as a law that can be rendered ------------------------------------------------------------------------------------

SYMMETRIC = {**KNEE, "static_forward": 1.5, "static_backward": 1.5}


@given(lever_arm=st.floats(0.01, 2.0), speed=st.floats(1e-4, 5.0))
def test_the_handle_feels_the_torque_of_the_joint(lever_arm: float, speed: float) -> None:
    joint = JointParameters("knee", True, Found("stribeck", SYMMETRIC))
    law = joint.law(lever_arm)
    assert isinstance(law, Stribeck)
    force = float(law(speed * lever_arm))
    torque = float(joint.friction_at(np.array([speed]))[0])
    assert math.isclose(force * lever_arm, torque, rel_tol=1e-9)


def test_the_law_is_the_mean_of_both_directions() -> None:
    law = JointParameters("x", False, FRICTION).law()
    assert isinstance(law, Stribeck)
    assert law.static_force == pytest.approx((1.27 + 1.95) / 2.0)
    assert law.kinetic_force == KNEE["coulomb"]


def test_each_shape_becomes_its_law() -> None:
    plain = JointParameters("x", False, Found("coulomb-viscous", {"coulomb": 2.0, "viscosity": 3.0})).law()
    assert plain == CoulombViscous(2.0, 3.0)
    sides = {"coulomb_forward": 1.0, "coulomb_backward": 3.0, "viscosity_forward": 2.0, "viscosity_backward": 4.0}
    assert JointParameters("x", False, Found("coulomb-viscous-asymmetric", sides)).law() == CoulombViscous(2.0, 3.0)
    bell = JointParameters("x", False, Found("stribeck-gaussian", SYMMETRIC)).law()
    assert isinstance(bell, GaussianStribeck)


def test_a_lever_arm_must_have_a_length() -> None:
    with pytest.raises(ConfigurationError, match=r"lever_arm = 0\.0: must be a length greater than 0 m"):
        FILE.joint("knee").law(0.0)
