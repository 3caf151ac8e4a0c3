"""What people have: files with named columns, arrays and recordings; and what is wrong with them, in one sentence."""

from pathlib import Path

import numpy as np
import pytest

from calibration.data.columns import UNITS, Column, parse_column
from calibration.data.reading import read_joint_recordings
from haptics.errors import ConfigurationError
from haptics.recording.recorder import Recorder
from haptics.records import ROW
from tests.calibration.hand_moved import DEGREE
from tests.calibration.measured import Array, idle, swinging, write_csv, write_idle

TIME, POSITION, VELOCITY, ACCELERATION = swinging(duration=5.0)
TORQUE = np.cos(TIME)


def refused(path: Path, says: str, **options: object) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        read_joint_recordings(path, **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert str(path) in message and "\n" not in message and message.endswith(".")


def test_the_columns_of_the_contract_come_out_as_they_are(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", time_s=TIME + 7.0, velocity_rad_per_s=VELOCITY, torque_nm=TORQUE)
    (measured,) = read_joint_recordings(path)
    assert measured.joint == "joint" and measured.rotary
    assert measured.time[0] == 0.0
    np.testing.assert_allclose(measured.time, TIME, atol=1e-12)
    np.testing.assert_array_equal(measured.velocity, VELOCITY)
    np.testing.assert_array_equal(measured.effort, TORQUE)
    assert measured.acceleration is None and measured.position is None and measured.drive is None
    assert len(measured.source.sha256) == 64


@pytest.mark.parametrize("separator", [";", "\t", " ; "])
def test_columns_may_be_separated_by_semicolons_or_tabs(tmp_path: Path, separator: str) -> None:
    path = write_csv(tmp_path / "a.csv", time_s=TIME, velocity_rad_per_s=VELOCITY, torque_nm=TORQUE)
    path.write_text(path.read_text().replace(",", separator))
    (measured,) = read_joint_recordings(path)
    np.testing.assert_array_equal(measured.velocity, VELOCITY)


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_numbers_that_nothing_can_have_are_refused(tmp_path: Path, factor: float) -> None:
    path = write_csv(tmp_path / "a.csv", time_s=TIME, velocity_rad_per_s=factor * VELOCITY, torque_nm=TORQUE)
    refused(path, "velocity_rad_per_s reaches .* must be between")


def test_units_become_si(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "a.csv",
        time_ms=TIME * 1e3,
        velocity_deg_per_s=VELOCITY / DEGREE,
        acceleration_deg_per_s2=ACCELERATION / DEGREE,
        position_deg=POSITION / DEGREE,
        torque_mnm=TORQUE * 1e3,
        current_ma=TORQUE * 1e3,
    )
    (measured,) = read_joint_recordings(path)
    for series, truth in (
        (measured.time, TIME),
        (measured.velocity, VELOCITY),
        (measured.acceleration, ACCELERATION),
        (measured.position, POSITION),
        (measured.effort, TORQUE),
        (measured.drive, TORQUE),
    ):
        np.testing.assert_allclose(series, truth, atol=1e-9)
    assert measured.drive_unit == "a"


def test_a_slide_has_forces(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", time_s=TIME, velocity_mm_per_s=1e3 * VELOCITY, force_n=TORQUE)
    (measured,) = read_joint_recordings(path)
    assert not measured.rotary
    np.testing.assert_allclose(measured.velocity, VELOCITY)


def two_joints(path: Path) -> Path:
    return write_csv(
        path,
        time_s=TIME,
        knee__velocity_rad_per_s=VELOCITY,
        knee__torque_nm=TORQUE,
        hip__velocity_rad_per_s=2.0 * VELOCITY,
        hip__torque_nm=-TORQUE,
    )


def test_several_joints_share_a_time(tmp_path: Path) -> None:
    path = two_joints(tmp_path / "a.csv")
    knee, hip = read_joint_recordings(path)
    assert (knee.joint, hip.joint) == ("knee", "hip")
    np.testing.assert_array_equal(hip.effort, -knee.effort)
    (only,) = read_joint_recordings(path, joints=("hip",))
    assert only.joint == "hip"
    refused(path, "unknown joint.*'hop'. Did you mean 'hip'", joints=("hop",))


def test_arrays_of_several_joints_number_them(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(
        path, time_s=TIME, velocity_rad_per_s=np.column_stack((VELOCITY, -VELOCITY)), torque_nm=np.ones((len(TIME), 2))
    )
    first, second = read_joint_recordings(path)
    assert (first.joint, second.joint) == ("1", "2")
    np.testing.assert_array_equal(second.velocity, -VELOCITY)


def test_other_names_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, t=TIME, speeds=np.column_stack((VELOCITY, 3.0 * VELOCITY)), load=TORQUE, word=np.array("robot"))
    names = {"time_s": "t", "velocity_rad_per_s": "speeds:1", "torque_nm": "load"}
    (measured,) = read_joint_recordings(path, columns=names)
    np.testing.assert_array_equal(measured.velocity, 3.0 * VELOCITY)
    refused(path, "has no column for the time")
    refused(path, "unknown column of .*'speeds:2'", columns={**names, "velocity_rad_per_s": "speeds:2"})
    with pytest.raises(ConfigurationError, match="unknown column 'torque_lbft'"):
        read_joint_recordings(path, columns={"torque_lbft": "load"})


def test_the_hash_is_that_of_the_bytes(tmp_path: Path) -> None:
    one, other = write_idle(tmp_path / "a.csv", seed=1), write_idle(tmp_path / "b.csv", seed=1)
    different = write_idle(tmp_path / "c.csv", seed=2)
    hashes = [read_joint_recordings(path)[0].source.sha256 for path in (one, other, different)]
    assert hashes[0] == hashes[1] != hashes[2]


def recorded(folder: Path, causality: str = "impedance") -> Path:
    recorder = Recorder(folder, {"device": {"name": "stick", "identity": "A7", "causality": causality}})
    rows = np.zeros(len(TIME), ROW)
    rows["time"], rows["tick"] = TIME, np.arange(len(TIME))
    rows["position"] = POSITION[:, None]
    rows["velocity"] = VELOCITY[:, None]
    rows["command"] = np.column_stack((TORQUE, -TORQUE))
    recorder._ticks.append(rows)
    recorder.close({}, complete=True)
    return folder


def test_a_recording_gives_the_friction_of_both_axes(tmp_path: Path) -> None:
    x, y = read_joint_recordings(recorded(tmp_path / "run"))
    assert (x.joint, y.joint) == ("x", "y") and not x.rotary
    np.testing.assert_array_equal(x.effort, -TORQUE)  # what drives the handle on is minus what it gives
    np.testing.assert_array_equal(y.effort, TORQUE)
    assert x.source.device == "stick A7"


def test_a_recording_without_the_motors_forces_is_refused(tmp_path: Path) -> None:
    refused(recorded(tmp_path / "run", "admittance"), "of impedance devices only")


@pytest.mark.parametrize("dropped", ["time_s", "velocity_rad_per_s", "torque_nm"])
def test_a_missing_column_is_named(tmp_path: Path, dropped: str) -> None:
    columns = {"time_s": TIME, "velocity_rad_per_s": VELOCITY, "torque_nm": TORQUE, "remark": TIME}
    del columns[dropped]
    refused(
        write_csv(tmp_path / "a.csv", **columns), f"has no column for the {dropped.split('_', maxsplit=1)[0]}.*remark"
    )


MISTAKES: dict[str, tuple[dict[str, Array], str]] = {
    "units of both kinds": ({"velocity_rad_per_s": VELOCITY, "force_n": TORQUE}, "mixes units: .* turning, .* sliding"),
    "one thing twice": (
        {"velocity_rad_per_s": VELOCITY, "velocity_deg_per_s": VELOCITY, "torque_nm": TORQUE},
        "gives the velocity twice",
    ),
    "two drives": (
        {"velocity_rad_per_s": VELOCITY, "torque_nm": TORQUE, "pwm_percent": TIME, "current_a": TIME},
        "has both pwm_percent and current_a",
    ),
    "degrees": (
        {"velocity_rad_per_s": VELOCITY, "torque_nm": TORQUE, "position_rad": POSITION / DEGREE},
        "degrees and radians are mixed",
    ),
    "millimetres": (
        {"velocity_m_per_s": 1e3 * VELOCITY, "force_n": TORQUE, "position_m": POSITION},
        "millimetres and metres are mixed",
    ),
    "a wrong sign": (
        {"velocity_rad_per_s": VELOCITY, "torque_nm": TORQUE, "position_rad": -POSITION},
        "one of them has the wrong sign",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mixed_units_are_refused(tmp_path: Path, mistake: str) -> None:
    columns, says = MISTAKES[mistake]
    refused(write_csv(tmp_path / "a.csv", time_s=TIME, **columns), says)


def test_values_that_are_none_are_refused(tmp_path: Path) -> None:
    broken = np.where(TIME == TIME[10], np.nan, TORQUE)
    path = write_csv(tmp_path / "a.csv", time_s=TIME, velocity_rad_per_s=VELOCITY, torque_nm=broken)
    refused(path, "line 12, column 'torque_nm': 'nan' is not a finite number")
    np.savez(tmp_path / "a.npz", time_s=TIME, velocity_rad_per_s=VELOCITY, torque_nm=broken)
    refused(tmp_path / "a.npz", r"torque_nm is not a finite number in row 11")


def test_times_that_go_back_are_refused(tmp_path: Path) -> None:
    time = TIME.copy()
    time[20] = time[18]
    path = write_csv(tmp_path / "a.csv", time_s=time, velocity_rad_per_s=VELOCITY, torque_nm=TORQUE)
    refused(path, "time 0.18 in row 21 does not come after 0.19; sort the rows")


def test_what_is_too_short_or_uneven_is_refused(tmp_path: Path) -> None:
    few = write_csv(tmp_path / "a.csv", time_s=TIME[:40], velocity_rad_per_s=VELOCITY[:40], torque_nm=TORQUE[:40])
    refused(few, "has 40 samples; must have at least 50")
    np.savez(tmp_path / "a.npz", time_s=TIME, velocity_rad_per_s=VELOCITY, torque_nm=TORQUE[:90])
    refused(tmp_path / "a.npz", "columns of different lengths")


def test_what_is_no_file_of_numbers_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "none.csv", "there is no such file")
    refused(tmp_path / "none.npz", "there is no such file")
    (tmp_path / "bad.npz").write_bytes(b"not a zip")
    refused(tmp_path / "bad.npz", "is not an NPZ file")
    np.savez(tmp_path / "objects.npz", a=np.array([{}], dtype=object))
    refused(tmp_path / "objects.npz", "is not an NPZ file of numbers")


@pytest.mark.parametrize("quantity", UNITS)
def test_names_can_be_parsed_back(quantity: str) -> None:
    for unit in UNITS[quantity]:
        for joint in ("", "knee", "left.hip"):
            column = Column(joint, quantity, unit)
            assert parse_column(str(column)) == column


@pytest.mark.parametrize("name", ["velocity", "velocity_kmh", "torque_rad", "motor_torque", "remark", ""])
def test_other_names_are_none_of_ours(name: str) -> None:
    assert parse_column(name) is None


def test_a_measurement_says_where_it_comes_from() -> None:
    assert idle().where == "knee.csv, joint knee"
