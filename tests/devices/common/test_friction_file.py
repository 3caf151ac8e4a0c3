"""The file with a device's own friction, as a driver reads it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.friction import MODELS
from calibration.friction.model import HARMONICS
from calibration.parameters.files import write_parameter_file
from calibration.parameters.parameters import Found, JointParameters, ParameterFile, Provenance
from devices.common.friction_file import OwnFriction, read_joint_friction, read_own_friction
from haptics.errors import ConfigurationError

LEVELS = {
    "coulomb_forward": 1.2,
    "coulomb_backward": 0.9,
    "viscosity_forward": 1.1,
    "viscosity_backward": 1.0,
    "static_forward": 1.8,
    "static_backward": 1.4,
    "stribeck_velocity": 0.01,
}


def written(path: Path, model: str, values: dict[str, float], device: str = "stick a", **others: Any) -> str:
    """Write the file of a calibration with one axis and return its name."""
    joint = JointParameters("x", rotary=False, friction=Found(model, values, **others))
    write_parameter_file(path / "own.toml", ParameterFile(Provenance(device=device), (joint,)))
    return str(path / "own.toml")


def level(own: OwnFriction, axis: int, speed: float) -> float:
    law = own.laws[axis][0 if speed > 0.0 else 1]
    return float(np.abs(law(np.array([[speed, 0.0]])))[0, 0])


def test_what_a_calibration_wrote_is_read_as_the_same_friction(tmp_path: Path) -> None:
    from calibration.friction import MODELS

    own = read_own_friction(written(tmp_path, "stribeck-asymmetric", LEVELS), "stick")
    speeds = np.array([-0.2, -0.01, -0.002, 0.003, 0.02, 0.1])
    expected = np.abs(MODELS["stribeck-asymmetric"].evaluate(LEVELS, speeds))
    np.testing.assert_allclose([level(own, 0, speed) for speed in speeds], expected, rtol=1e-12)
    assert level(own, 1, 0.1) == 0.0
    assert own.breakaway_force == 1.8


@pytest.mark.parametrize("model", MODELS)
def test_every_model_of_the_calibration_is_read(tmp_path: Path, model: str) -> None:
    """Presliding and harmonics are left out: friction is compensated while the handle slides."""
    values = {"coulomb": 1.0, "viscosity": 0.5, "offset": 0.2, "stribeck_velocity": 0.02}
    values |= {"static_forward": 1.6, "static_backward": 1.4, "coulomb_forward": 1.1, "coulomb_backward": 0.9}
    values |= {"viscosity_forward": 0.6, "viscosity_backward": 0.4, "presliding": 0.5, "presliding_distance": 0.01}
    values |= dict.fromkeys(HARMONICS, 0.3)
    values = {name: values[name] for name in MODELS[model].names}
    own = read_own_friction(written(tmp_path, model, values), "stick")
    speeds = np.array([-0.1, -0.005, 0.005, 0.1])
    expected = np.abs(MODELS[model].evaluate(values, speeds))  # an offset is what differs between the directions
    np.testing.assert_allclose([level(own, 0, speed) for speed in speeds], expected, rtol=1e-12)


def test_what_is_left_counts_the_doubts(tmp_path: Path) -> None:
    path = written(tmp_path, "coulomb-viscous", {"coulomb": 2.0, "viscosity": 0.0}, intervals={"coulomb": (1.9, 2.1)})
    assert read_own_friction(path, "stick").least_friction(0.9) == pytest.approx(0.1 * 2.0 + 0.1)


def test_friction_that_rises_from_rest_is_taken_for_its_least(tmp_path: Path) -> None:
    own = read_own_friction(written(tmp_path, "stribeck-asymmetric", LEVELS | {"static_forward": 0.8}), "stick")
    assert level(own, 0, 1e-4) == pytest.approx(0.8, abs=1e-3)
    assert level(own, 0, 0.1) == pytest.approx(0.8 + 0.1 * 1.1)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("[joint.x]\nrotary = true\n", r"joint\.x\.rotary = True: must be false"),
        ("[joint.elbow]\n", "neither a table"),
        ("[joint.x.friction]\nviscosity_ns_per_m = 1.0\n", r"coulomb_force_n is missing"),
        ("[joint.x.friction]\ncoulomb_force_n = 'much'\nviscosity_ns_per_m = 0.0\n", "coulomb_force_n = 'much'"),
        ("[joint.x.friction]\ncoulomb_force_n = -1.0\nviscosity_ns_per_m = 0.0\n", "is no friction"),
        (  # also where the interval holds 0
            "[joint.x.friction]\ncoulomb_force_n = -1.0\nviscosity_ns_per_m = 0.0\n"
            "[joint.x.friction.interval_95]\ncoulomb_force_n = [-3.0, 1.0]\n",
            r"coulomb_force_n = -1: is no friction; must be at least 0",
        ),
        ("[joint.x.friction]\ncoulomb_force_n = nan\nviscosity_ns_per_m = 0.0\n", "finite"),
        ("[provenance]\ndevice = 'pantograph b'\n[joint.x]\n", "is of the device 'pantograph b'; must be of 'stick a'"),
        ("[joint", "is no TOML"),
    ],
)
def test_a_wrong_file_is_refused_in_words(tmp_path: Path, change: str, complaint: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(change)
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        read_own_friction(str(path), "stick", "a")
    assert str(path) in str(caught.value)


def test_a_missing_file_says_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="haptics calibrate friction --device stick"):
        read_own_friction(str(tmp_path / "none.toml"), "stick")


def test_only_the_kind_of_device_counts_where_one_is_as_the_other(tmp_path: Path) -> None:
    path = written(tmp_path, "coulomb-viscous", {"coulomb": 2.0, "viscosity": 0.0}, device="stick b")
    assert read_own_friction(path, "stick").breakaway_force == 2.0
    with pytest.raises(ConfigurationError, match="is of the device"):
        read_own_friction(path, "stick", "a")


def test_joints_of_an_arm_have_torques(tmp_path: Path) -> None:
    from calibration.friction import MODELS

    joints = tuple(JointParameters(name, rotary=True, friction=Found("stribeck-asymmetric", LEVELS)) for name in "12")
    write_parameter_file(tmp_path / "arm.toml", ParameterFile(Provenance(), joints))
    speeds = np.array([-0.3, -0.01, 0.02, 0.5])
    expected = np.abs(MODELS["stribeck-asymmetric"].evaluate(LEVELS, speeds))
    for laws in read_joint_friction(str(tmp_path / "arm.toml"), "virtual-arm"):
        levels = [float(np.abs(laws[int(speed < 0.0)](np.array([[speed, 0.0]])))[0, 0]) for speed in speeds]
        np.testing.assert_allclose(levels, expected, rtol=1e-12)
    with pytest.raises(ConfigurationError, match="neither a table"):
        read_own_friction(str(tmp_path / "arm.toml"), "stick")


def test_a_joint_that_slides_is_none_of_an_arm(tmp_path: Path) -> None:
    (tmp_path / "arm.toml").write_text("[joint.1]\nrotary = false\n")
    with pytest.raises(ConfigurationError, match=r"joint\.1\.rotary = False: must be true"):
        read_joint_friction(str(tmp_path / "arm.toml"), "virtual-arm")
