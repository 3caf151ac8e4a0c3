"""Joints of a real industrial robot: what is found in the first part of a recording is judged on the rest."""

from pathlib import Path

import numpy as np
import pytest

from apps.calibrate.reports.rotor_inertia import excess, table
from calibration.data.serial_robot import read_serial_robot
from calibration.fitting.prediction_error import relative_error
from calibration.terms.comparison import ALL, ASYMMETRIC, FRICTION, LATE, PUBLISHED, RIGID, SYMMETRIC, fit_kinds
from calibration.terms.selection import SelectionSettings, select_terms
from haptics.errors import ConfigurationError

RECORDING = Path(__file__).resolve().parents[3] / "shared" / "data" / "kuka_kr300" / "run_a.npz"


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
    kinds = {one.kind: one for one in fit_kinds([first], SelectionSettings()).compared(rest)}
    assert list(kinds) == [PUBLISHED, SYMMETRIC, ASYMMETRIC, FRICTION, RIGID, ALL, LATE]
    theirs = relative_error(rest, published(arrays, joint, rest.velocity))
    assert kinds[PUBLISHED].error.value == pytest.approx(theirs.value, rel=1e-12)
    assert kinds[ALL].error.value < at_most
    assert kinds[ALL].ratio[2] < 0.8
    assert kinds[RIGID].error.value < min(rigid, theirs.value)
    assert kinds[RIGID].ratio[2] < 0.92


@pytest.mark.parametrize("joint", [0, 1, 2])
def test_the_answer_to_ripple_is_worth_nothing_a_sample_late(joints, joint):
    """So it is a prediction and no compensation."""
    first, rest = joints[joint].part(0.0, 0.6), joints[joint].part(0.6, 1.0)
    kinds = {one.kind: one for one in fit_kinds([first], SelectionSettings()).compared(rest)}
    assert kinds[LATE].error.value > 1.3 * kinds[RIGID].error.value
    assert {kind for kind, one in kinds.items() if one.note} == {ALL}
    assert kinds[ALL].note == "needs measured velocity: prediction, not compensation"


KEPT_BACK = {
    ("friction",): ((0.262, 0.257), (0.159, 0.156), (0.094, 0.106)),
    ("friction", "inertia", "load"): ((0.230, 0.218), (0.147, 0.137), (0.085, 0.074)),
    ("friction", "inertia", "load", "drive"): ((0.153, 0.151), (0.120, 0.108), (0.074, 0.064)),
}
"""What the models of joints 1 to 3 left of the torque of two recordings that are not here."""


@pytest.mark.parametrize("kinds", KEPT_BACK)
def test_the_interval_holds_what_other_recordings_gave(joints, kinds):
    """Those of a bootstrap over 20 blocks held 9 of the 18."""
    for seen, errors in zip(joints, KEPT_BACK[kinds], strict=False):
        score = select_terms(seen, settings=SelectionSettings(kinds=kinds)).score
        assert score.low < min(errors) < max(errors) < score.high


@pytest.mark.parametrize(("joint", "at_most"), [(0, 0.13), (1, 0.072), (2, 0.042)])
def test_out_of_sample_the_error_is_less_than_half_of_the_published_models(arrays, joints, joint, at_most):
    seen = joints[joint]
    score = select_terms(seen).score
    assert score.value < at_most
    assert score.value < 0.5 * relative_error(seen, published(arrays, joint, seen.velocity)).value


def test_the_torque_lacks_that_of_the_rotors(arrays, joints):
    """In all six joints alike, also where the link inertia of the data is too small to hold the rotor's."""
    rotors = arrays["motor_inertia"] * arrays["gear_ratio"] ** 2
    found = np.array([excess(seen) for seen in joints])
    assert np.all(found[1:] == pytest.approx(-rotors[1:], rel=0.25))
    assert np.all(arrays["link_inertia"][:, 3:].max(axis=0) < 0.25 * rotors[3:])
    assert "| 4 | 488 | 85 to 88 | -492 | -1.01 |" in table(str(RECORDING))


@pytest.mark.parametrize("joint", [1, 2, 3, 4])
def test_the_inertia_that_is_chosen_is_minus_the_rotors(arrays, joints, joint):
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
    with pytest.raises(ConfigurationError, match="there is no such file"):
        read_serial_robot(tmp_path / "none.npz")
    np.savez(tmp_path / "a.npz", **{name: array for name, array in arrays.items() if name != "motor_inertia"})
    with pytest.raises(ConfigurationError, match="has no array motor_inertia"):
        read_serial_robot(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", **{**arrays, "link_inertia": arrays["link_inertia"][:, :3]})
    with pytest.raises(ConfigurationError, match=r"link_inertia has the shape \(2501, 3\); must be \(2501, 6\)"):
        read_serial_robot(tmp_path / "b.npz")
