"""Joints of a real industrial robot: what is found in the first part of a recording is judged on the rest."""

from pathlib import Path

import numpy as np
import pytest

from calibration.prediction_error import relative_error
from calibration.selection import SelectionSettings, select_terms
from calibration.serial_robot import read_serial_robot
from haptics.errors import ConfigurationError

RECORDING = Path(__file__).resolve().parents[3] / "shared" / "data" / "kuka_kr300" / "run_a.npz"
RIGID = SelectionSettings(kinds=("friction", "inertia", "load"))


@pytest.fixture(scope="module")
def arrays():
    if not RECORDING.is_file():
        pytest.skip(f"the recorded robot is not here ({RECORDING.name})")
    with np.load(RECORDING) as file:
        return dict(file)


@pytest.fixture(scope="module")
def joints(arrays):
    return read_serial_robot(RECORDING)


def published(arrays, joint, velocity):
    """Return the friction that the robot's owners identified, Weigand et al. 2020."""
    asymmetry, viscous, coulomb, a, b, smoothness = (
        arrays[f"friction_{name}"][joint] for name in ("asymmetry", "viscous", "coulomb", "a", "b", "smoothness")
    )
    return asymmetry + viscous * velocity + coulomb * np.tanh(smoothness * velocity) + a * np.tanh(b * velocity)


@pytest.mark.parametrize(("joint", "at_most", "rigid"), [(0, 0.26, 0.37), (1, 0.08, 0.10), (2, 0.08, 0.10)])
def test_what_the_first_part_shows_predicts_the_rest(arrays, joints, joint, at_most, rigid):
    first, rest = joints[joint].part(0.0, 0.6), joints[joint].part(0.6, 1.0)
    error = select_terms(first).model.error(rest)
    theirs = relative_error(rest, published(arrays, joint, rest.velocity))
    assert error.value < at_most
    assert error.high < theirs.low
    assert select_terms(first, settings=RIGID).model.error(rest).value < min(rigid, theirs.value)


@pytest.mark.parametrize(("joint", "at_most"), [(0, 0.13), (1, 0.072), (2, 0.042)])
def test_out_of_sample_the_error_is_less_than_half_of_the_published_models(arrays, joints, joint, at_most):
    seen = joints[joint]
    score = select_terms(seen).score
    assert score.value < at_most
    assert score.high < 0.6 * relative_error(seen, published(arrays, joint, seen.velocity)).value


@pytest.mark.parametrize("joint", [1, 2, 3, 4])
def test_the_inertia_of_the_rotor_was_counted_twice(arrays, joints, joint):
    """The recording's link inertia holds the rotor's already: what is found is minus that."""
    rotor = arrays["motor_inertia"][joint] * arrays["gear_ratio"][joint] ** 2
    inertia = select_terms(joints[joint]).model.of("inertia")
    assert inertia.values[0] == pytest.approx(-rotor, rel=0.25)


@pytest.mark.parametrize("joint", [0, 1, 2])
def test_the_terms_of_the_three_big_joints_are_alike(joints, joint):
    model = select_terms(joints[joint]).model
    values = {one.term.name: one.values[0] for one in model.fitted}
    assert {"presliding", "rest", "drive_reaction"} < set(values)
    assert 5e5 < values["drive_reaction"] < 7.5e5  # the same drives
    assert 1500.0 < values["viscosity"] < 2500.0


def test_files_that_are_no_robots_are_said(tmp_path, arrays):
    with pytest.raises(ConfigurationError, match="is not an NPZ file"):
        read_serial_robot(tmp_path / "none.npz")
    np.savez(tmp_path / "a.npz", **{name: array for name, array in arrays.items() if name != "motor_inertia"})
    with pytest.raises(ConfigurationError, match="has no array motor_inertia"):
        read_serial_robot(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", **{**arrays, "link_inertia": arrays["link_inertia"][:, :3]})
    with pytest.raises(ConfigurationError, match=r"link_inertia has the shape \(2501, 3\); must be \(2501, 6\)"):
        read_serial_robot(tmp_path / "b.npz")
