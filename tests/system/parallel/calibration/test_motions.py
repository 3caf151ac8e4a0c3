"""Friction of a joystick and of the joints of an arm: measured by moving them, then compensated."""

import json
from pathlib import Path

import numpy as np
import pytest

import devices
from calibration.friction import FitSettings
from calibration.identification import IdentificationOptions, identify
from calibration.motions import Mover, rows_of
from calibration.motions.arm import DEFAULT, JOINTS, JointExcitation, plan_joints, recorded_joints
from calibration.motions.excitation import Excitation, recorded_axes
from calibration.parameters import ParameterFile, Provenance, write_parameter_file
from calibration.trials import HANDLES, fits_of
from calibration.trials import held as held_shares
from devices.arm.body import ArmBody
from haptics import Clock, Coulomb, MasslessImpedance, RigidAdmittance, Servo, Trace
from haptics.errors import DeviceFault
from haptics.recording.recording import TICKS, Recording
from haptics.recording.replay import verify
from tests.calibration.test_motions import NOBODY, PERIOD, compensated, folder, own_file  # noqa: F401 - fixtures
from tests.devices.felt import ToAndFro, feel

# --- a joystick -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("speed", [0.03, 0.1])
def test_felt_friction_falls_by_more_than_80_percent(own_file, axis, speed):
    hand = ToAndFro(axis, speed)
    ticks = round(8.0 * hand.reach / speed / PERIOD)
    own, left = (feel(device, device, hand, ticks) for device in (compensated("", hand), compensated(own_file, hand)))
    assert left.work < 0.2 * own.work
    assert left.work > 0.0  # it is still friction
    assert max(left.forward, left.backward) < 0.2 * max(own.forward, own.backward)


def test_forces_are_aligned_with_the_time_at_which_they_act(folder):
    """Half a millisecond of delay, and half a period since a force holds for one."""
    rows = dict(rows_of(Recording(folder)))["x 1"]
    effort = recorded_axes(folder)["x"][0].effort
    lags = np.arange(4)
    misfits = [np.sum((rows["command"][10 - lag : -10 - lag, 0] + effort[10:-10]) ** 2) for lag in lags]
    assert lags[int(np.argmin(misfits))] == 1


@pytest.mark.parametrize("handle", HANDLES, ids=lambda handle: handle.model)
def test_position_noise_in_the_forces_does_not_bias_the_fit(handle):
    """Noise mistaken for a delay would make the viscosity 1 % too large."""
    short = Excitation(speeds=5, rounds=2, strokes=1, stroke_time=0.5)
    for fit in fits_of(handle, 0, short):
        assert fit.values["viscosity"] == pytest.approx(1.0, rel=0.003)
        assert fit.values["inertia"] == pytest.approx(0.2, rel=0.01)
        assert fit.values.get("coulomb", handle.coulomb) == pytest.approx(handle.coulomb, rel=0.001)


@pytest.mark.parametrize("handle", HANDLES, ids=lambda handle: handle.model)
def test_intervals_of_handles_hold_the_truth(handle):
    fits = [fit for seed in range(4) for fit in fits_of(handle, seed)]
    assert min(held_shares(handle, fits).values()) >= 0.8


# --- the joints of an arm ---------------------------------------------------------------------------------------------

SHORT = Excitation(slowest=0.01, fastest=0.4, speeds=4, rounds=2, strokes=1, stroke_time=0.8)
WISHES = IdentificationOptions("stribeck-asymmetric", settings=FitSettings(fit_inertia=True))


def arm(clock, **changes):
    return devices.create_device("virtual-arm", {"hand": NOBODY, **changes}, clock=clock)


def mover(**changes):
    return Mover.of("virtual-arm", {"hand": NOBODY, **changes})


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    return JointExcitation(SHORT).run(mover(), tmp_path_factory.mktemp("arm") / "run")


@pytest.fixture(scope="module")
def arm_file(measured, tmp_path_factory):
    joints = tuple(identify(rounds, WISHES).parameters() for rounds in measured.values())
    path = tmp_path_factory.mktemp("found") / "joints.toml"
    write_parameter_file(path, ParameterFile(Provenance(device=measured["1"][0].source.device), joints))
    return str(path)


def test_friction_and_inertia_of_both_joints_are_found(tmp_path):
    """With the motions of the command itself; most intervals hold the truth although joint 1 sticks and slips."""
    body, held = ArmBody(), []
    measured = JointExcitation(DEFAULT).run(mover(), tmp_path / "run")
    inertias = np.diag(body.links.terms(body.linkage.home)["inertia"][0]) + body.rotor_inertia * body.reduction**2
    for joint, inertia in zip(JOINTS, inertias, strict=True):
        fit = identify(measured[joint], WISHES).fit
        found, intervals = fit.values, fit.intervals
        held.append(intervals["inertia"][0] <= inertia <= intervals["inertia"][1])
        for direction, more in (("forward", 1.0 + body.asymmetry), ("backward", 1.0 - body.asymmetry)):
            assert found[f"coulomb_{direction}"] == pytest.approx(more * body.kinetic_friction, rel=0.02)
            assert found[f"static_{direction}"] == pytest.approx(more * body.static_friction, rel=0.03)
            low, high = intervals[f"static_{direction}"]
            held.append(low <= more * body.static_friction <= high)
        assert found["inertia"] == pytest.approx(inertia, rel=0.04)
    assert sum(held) >= 5  # of 6


def error_of_the_handle(trace, believed):
    """Return the rms distance of the handle from the previous command of the flatness law, on strokes of a hand."""
    clock = Clock(PERIOD)
    device = arm(clock, hand=ToAndFro(reach=0.05), servo={"law": "flatness"}, arm=believed)
    write, places, errors = device.write, [np.zeros(2)], []

    def followed(command):
        write(command)
        errors.append(device.handle - places[-1])
        places.append(np.array(command))

    device.write = followed
    Servo(device, RigidAdmittance(Coulomb(6.0), 2.0), Trace.create(trace), clock=clock).run(4.0)
    return float(np.sqrt(np.mean(np.sum(np.square(errors[1500:]), axis=1))))


def test_an_arm_with_the_identified_friction_follows_its_command(arm_file, tmp_path):
    friction = {"none": {"model_friction": 0.0}, "found": {"friction_parameters": arm_file}, "true": {}}
    errors = {name: error_of_the_handle(tmp_path / name, believed) for name, believed in friction.items()}
    assert errors["found"] < 0.2 * errors["none"]
    assert errors["found"] < 1.2 * errors["true"]


def test_a_run_of_an_arm_is_replayed_bit_by_bit_and_read_again(measured):
    recording = Recording(Path(measured["1"][0].source.path))
    found = verify(recording)
    assert (found.mismatches, found.verdict) == (0, "ok")
    again = recorded_joints(recording)
    assert set(again) == set(JOINTS)
    for joint in JOINTS:
        assert len(again[joint]) == SHORT.rounds
        np.testing.assert_array_equal(again[joint][0].effort, measured[joint][0].effort)
    angles, _ = plan_joints(ArmBody(), SHORT, mover().spec, PERIOD)
    moved = np.concatenate([rows["channel_joint_angles"] for label, rows in rows_of(recording) if label[0] in "12"])
    for extreme in (np.min, np.max):
        np.testing.assert_allclose(extreme(moved, axis=0), extreme(angles, axis=0), atol=2e-3)


def test_a_blocked_arm_ends_the_motion_and_keeps_its_recording(tmp_path):
    point = [0.0, 0.0]
    held = {"name": "minimum-jerk", "points": [point, point], "rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0}
    stopped = mover(hand=held | {"stiffness": 3000.0, "tremor": 0.0}, arm={"torque_limit": 0.3})
    with pytest.raises(DeviceFault, match=r"mm from where it should be|beyond the range of its sensor"):
        JointExcitation(SHORT).run(stopped, tmp_path / "run")
    assert len(Recording(tmp_path / "run").rows) > 100


@pytest.mark.parametrize("axis", [0, 1])
def test_one_newton_is_felt_as_one_newton_under_compensation(own_file, axis):
    hand = ToAndFro(axis, 0.05)
    element = MasslessImpedance(Coulomb(1.0), 3000.0, 10.0, PERIOD)
    device = compensated(own_file, hand)
    assert device.spec.least_friction < 1.0
    felt = feel(device, device, hand, 6000, element)
    assert felt.forward == pytest.approx(1.0, rel=0.05)
    assert felt.backward == pytest.approx(1.0, rel=0.05)


def test_recordings_of_older_versions_are_read(folder):
    """Older descriptions had the ticks of the rounds instead of programs."""
    ours = recorded_axes(folder)
    path = folder.parent / "older"
    path.mkdir()
    metadata, rows = json.loads((folder / "recording.json").read_text()), Recording(folder).rows
    parts: list[list[list[int]]] = [[], []]
    for label, part in rows_of(Recording(folder)):
        if label[0] in "xy" and label[1] == " ":
            parts["xy".index(label[0])].append([int(part["tick"][0]), int(part["tick"][-1]) + 1])
    (path / "recording.json").write_text(json.dumps({**metadata, "excited_ticks": parts}))
    np.save(path / TICKS, rows)
    for axis, rounds in recorded_axes(path).items():
        assert len(rounds) == 2
        np.testing.assert_array_equal(rounds[0].effort, ours[axis][0].effort)
