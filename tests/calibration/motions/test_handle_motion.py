"""From a device whose friction nobody knows to one that is made up for: excite, identify, compensate, feel."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devices
from calibration.friction import FitSettings
from calibration.friction.commanded import Commanded
from calibration.identification import Wishes, identify
from calibration.motions import Mover, rows_of
from calibration.motions.axis_recordings import recorded_axes
from calibration.motions.excitation import Excitation
from calibration.motions.handle_motion import excite
from calibration.parameters.files import write_parameter_file
from calibration.parameters.parameters import ParameterFile, Provenance
from haptics import Clock, Coulomb, MasslessImpedance
from haptics.device import Causality
from haptics.errors import ConfigurationError, DeviceFault
from haptics.recording.recording import TICKS, Recording
from haptics.recording.replay import verify
from tests.devices.felt import FRICTION, ToAndFro, feel
from tests.haptics.doubles import BenchDevice

PERIOD = 1e-3
NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
SHORT = Excitation(speeds=6, rounds=2, strokes=1, stroke_time=0.5)
WISHES = Wishes("stribeck-asymmetric", "auto", settings=FitSettings(fit_inertia=True))


def joystick(clock: Clock | None = None, **changes: Any) -> Any:
    return devices.create_device("virtual-joystick", {"friction": FRICTION, "hand": NOBODY, **changes}, clock=clock)


def mover(**changes: Any) -> tuple[Mover, list[Any]]:
    """Return what moves a joystick here, and the list of the joysticks that were made for it."""
    made: list[Any] = []

    def make(more: Mapping[str, Any], clock: Clock) -> Any:
        made.append(joystick(clock, **changes))
        return made[-1]

    return Mover(make, live=False), made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording of an excitation."""
    return excite(mover()[0], SHORT, tmp_path_factory.mktemp("excited") / "run")


@pytest.fixture(scope="module")
def own_file(folder: Path) -> str:
    """What was identified from it."""
    measured = recorded_axes(folder)
    joints = tuple(identify(rounds, WISHES).parameters() for rounds in measured.values())
    source = measured["x"][0].source
    write_parameter_file(folder.parent / "own.toml", ParameterFile(Provenance(device=source.device), joints))
    return str(folder.parent / "own.toml")


# --- the closed loop --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1])
def test_one_newton_is_felt_as_one_newton(own_file: str, axis: int) -> None:
    hand = ToAndFro(axis, 0.05)
    element = MasslessImpedance(Coulomb(1.0), 3000.0, 10.0, PERIOD)
    device = held(own_file, hand)
    assert device.spec.least_friction < 1.0
    felt = feel(device, device, hand, 6000, element)
    assert felt.forward == pytest.approx(1.0, rel=0.05)
    assert felt.backward == pytest.approx(1.0, rel=0.05)


def held(own_file: str, hand: ToAndFro) -> Any:
    own = {"friction_parameters": own_file} if own_file else {}
    device = joystick(None, hand=hand, **own)
    device.open()
    device.compensate(1.0)
    return device


# --- what was found ---------------------------------------------------------------------------------------------------


def test_the_levels_and_the_mass_are_found(folder: Path) -> None:
    for axis, rounds in recorded_axes(folder).items():
        found = identify(rounds, WISHES).fit.values
        for name, truth in FRICTION[axis].items():
            tolerance = 0.03 if name == "stribeck_velocity" else 0.005
            assert found[name] == pytest.approx(truth, rel=tolerance), name
        assert found["inertia"] == pytest.approx(0.2, rel=0.01)


def test_a_run_is_replayed_bit_by_bit(folder: Path) -> None:
    found = verify(Recording(folder))
    assert (found.mismatches, found.verdict) == (0, "ok")
    assert [label for label, _ in rows_of(Recording(folder))] == ["hold", "x 1", "x 2", "y 1", "y 2"]


def test_recordings_of_older_versions_are_read(folder: Path) -> None:
    """Their motions were no programs: the description had the ticks of the rounds."""
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


def test_what_was_interrupted_before_both_axes_moved_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        excite(mover()[0], SHORT, tmp_path / "run", progress=interrupt_after(4.0))
    with pytest.raises(ConfigurationError, match="interrupted before both axes"):
        recorded_axes(tmp_path / "run")


def interrupt_after(moment: float) -> Callable[[float], None]:
    def progress(seconds: float) -> None:
        if seconds > moment:
            raise KeyboardInterrupt

    return progress


# --- when something is wrong ------------------------------------------------------------------------------------------


def test_an_interrupt_leaves_no_force_and_loses_nothing(tmp_path: Path) -> None:
    moved, made = mover()
    with pytest.raises(KeyboardInterrupt):
        excite(moved, SHORT, tmp_path / "run", progress=interrupt_after(2.0))
    assert not made[-1]._record["acting"].any()
    recording = Recording(tmp_path / "run")
    assert (recording.metadata["state"], recording.metadata["reason"]) == ("complete", "interrupted")
    assert len(recording.rows) == recording.metadata["certificate"]["ticks"] > 2000
    np.testing.assert_array_equal(np.diff(recording.rows["tick"]), 1)
    assert verify(recording).mismatches == 0


def holding(place: float) -> dict[str, Any]:
    point = [place, 0.0]
    rest = {"rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0, "tremor": 0.0}
    return {"name": "minimum-jerk", "points": [point, point], "stiffness": 3000.0, **rest}


def test_a_handle_that_is_held_is_let_go(tmp_path: Path) -> None:
    moved, made = mover(hand=holding(0.0))
    with pytest.raises(DeviceFault, match="20 mm from where it should be"):
        excite(moved, SHORT, tmp_path / "run")
    assert not made[-1]._record["acting"].any()
    assert Recording(tmp_path / "run").metadata["reason"] == "fault"


class Wrong:
    """A stick whose forces point the other way."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def write(self, command: np.ndarray) -> None:
        self._device.write(-command)


def test_a_handle_that_runs_away_is_let_go(tmp_path: Path) -> None:
    moved, made = mover(friction=None)
    with pytest.raises(DeviceFault, match="did not follow its motion"):
        excite(Mover(lambda more, clock: Wrong(moved.factory(more, clock)), live=False), SHORT, tmp_path / "run")
    assert not made[-1]._record["acting"].any()


def test_a_device_that_takes_positions_is_refused(tmp_path: Path) -> None:
    arm = Mover(lambda more, clock: BenchDevice(clock, Causality.ADMITTANCE), live=False)
    with pytest.raises(ConfigurationError, match="is an admittance device"):
        excite(arm, SHORT, tmp_path / "run")
    assert not (tmp_path / "run").exists()


# --- how far to trust it ----------------------------------------------------------------------------------------------


def test_an_error_of_the_delay_is_nothing_to_the_instruments() -> None:
    random = np.random.default_rng(0)
    motion = Commanded(*random.standard_normal((4, 200)))
    weights = random.uniform(0.5, 1.0, 200)
    found = motion.without_delay(random.standard_normal((200, 3)), weights)
    np.testing.assert_allclose((motion.force_rate * weights) @ found, 0.0, atol=1e-12)
