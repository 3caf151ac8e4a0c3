"""The joints of an arm: moved by its servo, their friction found, and believed by its feed-forward."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devices
from calibration.data.joint_recording import JointRecording
from calibration.friction import FitSettings
from calibration.identification import Wishes, identify
from calibration.motions import Mover, rows_of
from calibration.motions.excitation import Excitation
from calibration.motions.joint_motion import DEFAULT, JOINTS, excite_arm, plan_joints, recorded_joints
from calibration.parameters.files import write_parameter_file
from calibration.parameters.parameters import ParameterFile, Provenance
from devices.arm.body import ArmBody
from haptics import Clock, Coulomb, RigidAdmittance, Servo, Trace
from haptics.device import Causality
from haptics.errors import ConfigurationError, DeviceFault
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from tests.devices.felt import ToAndFro
from tests.haptics.doubles import BenchDevice

PERIOD = 1e-3
NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
SHORT = Excitation(slowest=0.01, fastest=0.4, speeds=4, rounds=2, strokes=1, stroke_time=0.8)
WISHES = Wishes("stribeck-asymmetric", settings=FitSettings(fit_inertia=True))


def arm(clock: Clock, **changes: Any) -> Any:
    return devices.create_device("virtual-arm", {"hand": NOBODY, **changes}, clock=clock)


def mover(**changes: Any) -> Mover:
    return Mover.of("virtual-arm", {"hand": NOBODY, **changes})


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[JointRecording]]:
    return excite_arm(mover(), SHORT, tmp_path_factory.mktemp("arm") / "run")


@pytest.fixture(scope="module")
def own_file(measured: dict[str, list[JointRecording]], tmp_path_factory: pytest.TempPathFactory) -> str:
    joints = tuple(identify(rounds, WISHES).parameters() for rounds in measured.values())
    path = tmp_path_factory.mktemp("found") / "joints.toml"
    write_parameter_file(path, ParameterFile(Provenance(device=measured["1"][0].source.device), joints))
    return str(path)


def test_friction_and_inertia_of_both_joints_are_found(tmp_path: Path) -> None:
    """With the motions of the command itself; most intervals hold the truth although joint 1 sticks and slips."""
    body, held = ArmBody(), []
    measured = excite_arm(mover(), DEFAULT, tmp_path / "run")
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


def error_of_the_handle(trace: Path, believed: dict[str, Any]) -> float:
    """Return the rms distance of the handle from where the flatness law was told to have it, on strokes of a hand."""
    clock = Clock(PERIOD)
    device = _Followed(arm(clock, hand=ToAndFro(reach=0.05), servo={"law": "flatness"}, arm=believed))
    Servo(device, RigidAdmittance(Coulomb(6.0), 2.0), Trace.create(trace), clock=clock).run(4.0)
    return float(np.sqrt(np.mean(np.sum(np.square(device.errors[1500:]), axis=1))))


class _Followed:
    """An arm; each time it is told where to go, how far its handle is from the place that it was told before."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._place = np.zeros(2)
        self.errors: list[np.ndarray] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def write(self, command: np.ndarray) -> None:
        self._device.write(command)
        self.errors.append(self._device.handle - self._place)
        self._place = np.array(command)


def test_an_arm_that_believes_what_was_found_goes_where_it_is_told(own_file: str, tmp_path: Path) -> None:
    none, found, true = (
        error_of_the_handle(tmp_path / name, believed)
        for name, believed in (
            ("none", {"model_friction": 0.0}),
            ("found", {"friction_parameters": own_file}),
            ("true", {}),
        )
    )
    assert found < 0.2 * none
    assert found < 1.2 * true


def test_a_run_is_replayed_bit_by_bit_and_its_recording_is_data(measured: dict[str, list[JointRecording]]) -> None:
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


def test_what_hinders_it_ends_it_and_what_was_recorded_stays(tmp_path: Path) -> None:
    point = [0.0, 0.0]
    held = {"name": "minimum-jerk", "points": [point, point], "rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0}
    stopped = mover(hand=held | {"stiffness": 3000.0, "tremor": 0.0}, arm={"torque_limit": 0.3})
    with pytest.raises(DeviceFault, match=r"mm from where it should be|beyond the range of its sensor"):
        excite_arm(stopped, SHORT, tmp_path / "run")
    assert len(Recording(tmp_path / "run").rows) > 100


def test_a_device_that_does_not_show_its_joints_is_refused(tmp_path: Path) -> None:
    bench = Mover(lambda more, clock: BenchDevice(clock, Causality.ADMITTANCE), live=False)
    with pytest.raises(ConfigurationError, match="does not report joint angles"):
        excite_arm(bench, SHORT, tmp_path / "run")
    assert not (tmp_path / "run").exists()
