"""The joints of an arm: moved by its servo, their friction found, and believed by its feed-forward."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devices
from calibration.excitation import Excitation
from calibration.excited_arm import DEFAULT, JOINTS, excite_arm, plan_joints
from calibration.friction import FitSettings
from calibration.identification import Wishes, identify
from calibration.measurements import Measurement, read_measurements
from calibration.parameter_files import write_parameter_file
from calibration.parameters import ParameterFile, Provenance
from devices.arm.body import ArmBody
from haptics import Clock, Coulomb, RigidAdmittance, Servo, Trace
from haptics.device import Causality
from haptics.errors import ConfigurationError, DeviceFault
from tests.devices.felt import ToAndFro
from tests.haptics.doubles import BenchDevice

PERIOD = 1e-3
NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
SHORT = Excitation(slowest=0.01, fastest=0.4, speeds=4, rounds=2, strokes=1, stroke_time=0.8)
WISHES = Wishes("stribeck-asymmetric", settings=FitSettings(fit_inertia=True))

pytestmark = pytest.mark.slow


def arm(clock: Clock, **changes: Any) -> Any:
    return devices.create_device("virtual-arm", {"hand": NOBODY, **changes}, clock=clock)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Measurement]]:
    clock = Clock(PERIOD)
    return excite_arm(arm(clock), SHORT, tmp_path_factory.mktemp("arm") / "run.csv", clock)


@pytest.fixture(scope="module")
def own_file(measured: dict[str, list[Measurement]], tmp_path_factory: pytest.TempPathFactory) -> str:
    joints = tuple(identify(rounds, WISHES).parameters() for rounds in measured.values())
    path = tmp_path_factory.mktemp("found") / "joints.toml"
    write_parameter_file(path, ParameterFile(Provenance(device=measured["1"][0].source.device), joints))
    return str(path)


def test_friction_and_inertia_of_both_joints_are_found(tmp_path: Path) -> None:
    """With the motions of the command itself; most intervals hold the truth although joint 1 sticks and slips."""
    clock, body, held = Clock(PERIOD), ArmBody(), []
    measured = excite_arm(arm(clock), DEFAULT, tmp_path / "run.csv", clock)
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


def test_the_recording_is_data_like_any_other(measured: dict[str, list[Measurement]]) -> None:
    read = {one.joint: one for one in read_measurements(measured["1"][0].source.path)}
    assert set(read) == set(JOINTS)
    assert all(one.rotary for one in read.values())
    body, spec = ArmBody(), arm(Clock(PERIOD)).spec
    angles, parts = plan_joints(body, SHORT, spec, PERIOD)
    assert len(read["1"].time) == len(angles)
    for k, joint in enumerate(JOINTS):
        position = read[joint].position
        assert position is not None
        np.testing.assert_allclose(position, angles[:, k], atol=2e-3)
        assert len(parts[k]) == SHORT.rounds


def test_what_hinders_it_ends_it_and_what_was_recorded_stays(tmp_path: Path) -> None:
    clock = Clock(PERIOD)
    point = [0.0, 0.0]
    held = {"name": "minimum-jerk", "points": [point, point], "rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0}
    device = arm(clock, hand=held | {"stiffness": 3000.0, "tremor": 0.0}, arm={"torque_limit": 0.3})
    with pytest.raises(DeviceFault, match="mm from where it should be"):
        excite_arm(device, SHORT, tmp_path / "run.csv", clock)
    assert (tmp_path / "run.csv").read_text().count("\n") > 100


def test_a_device_that_does_not_show_its_joints_is_refused(tmp_path: Path) -> None:
    clock = Clock(PERIOD)
    with pytest.raises(ConfigurationError, match="does not show its joints"):
        excite_arm(BenchDevice(clock, Causality.ADMITTANCE), SHORT, tmp_path / "run.csv", clock)
    assert not (tmp_path / "run.csv").exists()
