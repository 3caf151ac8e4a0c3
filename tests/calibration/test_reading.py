"""Files of measurements: columns and units, other formats, recordings of the servo, and errors that name the file."""

import gzip
import io
import zipfile

import numpy as np
import pytest

from calibration.data.reading import UNITS, Column, parse_column, read_columns, read_joint_recordings
from devices.virtual.hands.csv_table import read_table
from haptics.errors import ConfigurationError
from haptics.recording.recorder import Recorder
from haptics.records import ROW
from tests.calibration.joints import DEGREE, swinging, write_csv

TIME, POSITION, VELOCITY, ACCELERATION = swinging(duration=5.0)
TORQUE = np.cos(TIME)
COLUMNS = {"velocity_rad_per_s": VELOCITY, "torque_nm": TORQUE}
"""Columns of the contract without the time."""


def refused(path, message, **options):
    with pytest.raises(ConfigurationError, match=message) as caught:
        read_joint_recordings(path, **options)
    text = str(caught.value)
    assert str(path) in text and "\n" not in text and text.endswith(".")


# --- columns and units ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t", " ; "])
def test_the_columns_of_the_contract_are_read_exactly(tmp_path, separator):
    path = write_csv(tmp_path / "a.csv", time_s=TIME + 7.0, **COLUMNS)
    path.write_text(path.read_text().replace(",", separator))
    (measured,) = read_joint_recordings(path)
    assert measured.joint == "joint" and measured.rotary
    assert measured.time[0] == 0.0
    np.testing.assert_allclose(measured.time, TIME, atol=1e-12)
    np.testing.assert_array_equal(measured.velocity, VELOCITY)
    np.testing.assert_array_equal(measured.effort, TORQUE)
    np.testing.assert_array_equal(measured.friction, -TORQUE)
    assert measured.acceleration is None and measured.position is None and measured.drive is None
    assert len(measured.source.sha256) == 64


def test_units_are_converted_to_si(tmp_path):
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
    read = (measured.time, measured.velocity, measured.acceleration, measured.position, measured.effort, measured.drive)
    np.testing.assert_allclose(read, (TIME, VELOCITY, ACCELERATION, POSITION, TORQUE, TORQUE), atol=1e-9)
    assert measured.drive_unit == "a"
    (slide,) = read_joint_recordings(
        write_csv(tmp_path / "slide.csv", time_s=TIME, velocity_mm_per_s=1e3 * VELOCITY, force_n=TORQUE)
    )
    assert not slide.rotary
    np.testing.assert_allclose(slide.velocity, VELOCITY)


def test_several_joints_share_a_time(tmp_path):
    knee_and_hip = {f"knee__{name}": column for name, column in COLUMNS.items()}
    knee_and_hip |= {"hip__velocity_rad_per_s": 2.0 * VELOCITY, "hip__torque_nm": -TORQUE}
    path = write_csv(tmp_path / "a.csv", time_s=TIME, **knee_and_hip)
    knee, hip = read_joint_recordings(path)
    assert (knee.joint, hip.joint) == ("knee", "hip")
    np.testing.assert_array_equal(hip.effort, -knee.effort)
    (only,) = read_joint_recordings(path, joints=("hip",))
    assert only.joint == "hip"
    refused(path, "unknown joint.*'hop'. Did you mean 'hip'", joints=("hop",))


def test_arrays_of_several_joints_are_numbered(tmp_path):
    torques = np.ones((len(TIME), 2))
    np.savez(
        tmp_path / "a.npz", time_s=TIME, velocity_rad_per_s=np.column_stack((VELOCITY, -VELOCITY)), torque_nm=torques
    )
    first, second = read_joint_recordings(tmp_path / "a.npz")
    assert (first.joint, second.joint) == ("1", "2")
    np.testing.assert_array_equal(second.velocity, -VELOCITY)


def test_other_column_names_can_be_mapped(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, t=TIME, speeds=np.column_stack((VELOCITY, 3.0 * VELOCITY)), load=TORQUE, word=np.array("robot"))
    names = {"time_s": "t", "velocity_rad_per_s": "speeds:1", "torque_nm": "load"}
    (measured,) = read_joint_recordings(path, columns=names)
    np.testing.assert_array_equal(measured.velocity, 3.0 * VELOCITY)
    refused(path, "has no column for the time")
    refused(path, "unknown column of .*'speeds:2'", columns={**names, "velocity_rad_per_s": "speeds:2"})
    with pytest.raises(ConfigurationError, match="unknown column 'torque_lbft'"):
        read_joint_recordings(path, columns={"torque_lbft": "load"})


@pytest.mark.parametrize("quantity", UNITS)
def test_column_names_can_be_parsed_back(quantity):
    for unit in UNITS[quantity]:
        for joint in ("", "knee", "left.hip"):
            column = Column(joint, quantity, unit)
            assert parse_column(str(column)) == column
    for name in ("velocity", "velocity_kmh", "torque_rad", "motor_torque", "remark", ""):
        assert parse_column(name) is None


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dropped", ["time_s", "velocity_rad_per_s", "torque_nm"])
def test_a_missing_column_is_named(tmp_path, dropped):
    columns = {"time_s": TIME, **COLUMNS, "remark": TIME}
    del columns[dropped]
    quantity = dropped.partition("_")[0]
    refused(write_csv(tmp_path / "a.csv", **columns), f"has no column for the {quantity}.*remark")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        pytest.param(columns, message, id=name)
        for name, columns, message in (
            ("both kinds", {"velocity_rad_per_s": VELOCITY, "force_n": TORQUE}, "mixes units: .* turning, .* sliding"),
            ("velocity twice", {**COLUMNS, "velocity_deg_per_s": VELOCITY}, "gives the velocity twice"),
            ("two drives", {**COLUMNS, "pwm_percent": TIME, "current_a": TIME}, "has both pwm_percent and current_a"),
            ("degrees", {**COLUMNS, "position_rad": POSITION / DEGREE}, "degrees and radians are mixed"),
            (
                "millimetres",
                {"velocity_m_per_s": 1e3 * VELOCITY, "force_n": TORQUE, "position_m": POSITION},
                "millimetres and metres are mixed",
            ),
            ("wrong sign", {**COLUMNS, "position_rad": -POSITION}, "one of them has the wrong sign"),
            ("huge", {**COLUMNS, "velocity_rad_per_s": 1e200 * VELOCITY}, "velocity_rad_per_s reaches .* between"),
            ("tiny", {**COLUMNS, "velocity_rad_per_s": 1e-200 * VELOCITY}, "velocity_rad_per_s reaches .* between"),
        )
    ],
)
def test_contradictory_columns_are_refused(tmp_path, columns, message):
    refused(write_csv(tmp_path / "a.csv", time_s=TIME, **columns), message)


def test_rows_that_cannot_be_used_are_named(tmp_path):
    broken = {**COLUMNS, "torque_nm": np.where(TIME == TIME[10], np.nan, TORQUE)}
    path = write_csv(tmp_path / "nan.csv", time_s=TIME, **broken)
    refused(path, "line 12, column 'torque_nm': 'nan' is not a finite number")
    np.savez(tmp_path / "nan.npz", time_s=TIME, **broken)
    refused(tmp_path / "nan.npz", r"torque_nm is not a finite number in row 11")
    time = TIME.copy()
    time[20] = time[18]
    path = write_csv(tmp_path / "back.csv", time_s=time, **COLUMNS)
    refused(path, "time 0.18 in row 21 does not come after 0.19; sort the rows")
    few = write_csv(tmp_path / "few.csv", time_s=TIME[:40], velocity_rad_per_s=VELOCITY[:40], torque_nm=TORQUE[:40])
    refused(few, "has 40 samples; must have at least 50")
    np.savez(tmp_path / "uneven.npz", time_s=TIME, velocity_rad_per_s=VELOCITY, torque_nm=TORQUE[:90])
    refused(tmp_path / "uneven.npz", "columns of different lengths")


def test_files_without_numbers_are_refused(tmp_path):
    refused(tmp_path / "none.csv", "there is no such file")
    refused(tmp_path / "none.npz", "there is no such file")
    (tmp_path / "bad.npz").write_bytes(b"not a zip")
    refused(tmp_path / "bad.npz", "is not an NPZ file")
    np.savez(tmp_path / "objects.npz", a=np.array([{}], dtype=object))
    refused(tmp_path / "objects.npz", "is not an NPZ file of numbers")
    (tmp_path / "knee.dat").write_bytes(b"\xff\xfe\x00\x01" * 100)
    refused(tmp_path / "knee.dat", r"knee\.dat: is not a text file")


# --- other formats ----------------------------------------------------------------------------------------------------

CSV = b"time_s,velocity_rad_per_s,torque_nm\n" + b"".join(b"%d,0.5,1.5\n" % k for k in range(9))
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def archive(*members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for member in members:
            file.writestr(member, "x")
    return content.getvalue()


WORKBOOK = archive("[Content_Types].xml", "xl/workbook.xml", "xl/worksheets/sheet1.xml")
SHEET = ("an Excel workbook", "save its sheet as CSV")
MAT = ("a MAT file", "as CSV")
FORMATS = [
    ("knee.csv.gz", gzip.compress(CSV, mtime=0), "a gzip file", "gunzip {path}"),
    ("knee.csv", gzip.compress(CSV, mtime=0), "a gzip file", "rename it to {path}.gz"),
    ("knee.xlsx", WORKBOOK, *SHEET),
    ("knee.csv", WORKBOOK, *SHEET),
    ("knee.xlsx", b"PK\x03\x04 cut short", *SHEET),
    ("knee.xlsx", COMPOUND, *SHEET),
    ("knee.xls", COMPOUND + bytes(504), *SHEET),
    ("knee.xls", b"\x09\x08\x10\x00\x00\x06", *SHEET),
    ("knee.zip", archive("knee.csv"), "a ZIP archive", "extract"),
    ("knee.csv", archive("time_s.npy", "torque_nm.npy"), "an NPZ file with another name", "ends with .npz"),
    ("knee.parquet", b"PAR1\x15\x04", "a Parquet file", "convert it to CSV"),
    ("knee.mat", b"MATLAB 5.0 MAT-file, Platform: GLNXA64".ljust(128), *MAT),
    ("knee.mat", b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(128), *MAT),
    ("knee.mat", np.array([0, 9, 3, 0, 7], "<i4").tobytes() + b"time_s\0", *MAT),
]
READERS = {
    "CSV files, NPZ files and folders of recordings": lambda path: read_columns(path, {}),
    "CSV files": read_table,
}


@pytest.mark.parametrize(("name", "content", "form", "remedy"), FORMATS)
@pytest.mark.parametrize("readable", READERS, ids=["calibration", "hand"])
def test_another_format_is_refused_with_a_remedy(tmp_path, name, content, form, remedy, readable):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        READERS[readable](str(path))
    message = str(caught.value)
    assert message.startswith(f"{path}: is {form}; only {readable} can be read: ")
    assert remedy.format(path=path) in message
    assert "\n" not in message and message.endswith(".")


@pytest.mark.parametrize("name", ["knee.csv", "knee.txt", "knee.xls", "knee.gz", "knee"])
def test_text_is_read_as_csv_under_any_name(tmp_path, name):
    """Some instruments write text with the suffix .xls."""
    (tmp_path / name).write_bytes(CSV)
    columns = read_columns(str(tmp_path / name), {}).columns
    assert np.array_equal(columns["time_s"], np.arange(9.0))


# --- recordings of the servo and of robots ----------------------------------------------------------------------------


def servo_recording(folder, causality="impedance"):
    recorder = Recorder(folder, {"device": {"name": "stick", "identity": "A7", "causality": causality}})
    rows = np.zeros(len(TIME), ROW)
    rows["time"], rows["tick"] = TIME, np.arange(len(TIME))
    rows["position"], rows["velocity"] = POSITION[:, None], VELOCITY[:, None]
    rows["command"] = np.column_stack((TORQUE, -TORQUE))
    recorder._ticks.append(rows)
    recorder.close({}, complete=True)
    return folder


def test_a_servo_recording_gives_the_friction_of_both_axes(tmp_path):
    x, y = read_joint_recordings(servo_recording(tmp_path / "run"))
    assert (x.joint, y.joint) == ("x", "y") and not x.rotary
    np.testing.assert_array_equal(x.effort, -TORQUE)  # the driving force is minus the rendered one
    np.testing.assert_array_equal(y.effort, TORQUE)
    assert x.source.device == "stick A7"
    refused(servo_recording(tmp_path / "admittance", "admittance"), "of impedance devices only")


def test_a_robot_recording_is_recognised_by_its_arrays(tmp_path):
    time = 0.01 * np.arange(300)
    wave = np.sin(np.outer(time, (1.0, 2.0)))
    names = ("motor_torque", "motor_velocity_link_side", "motor_angle_link_side", "link_acceleration_ref")
    names += ("link_inertia", "acceleration_torque", "coriolis_torque", "gravity_torque")
    arrays = {name: (number + 1.0) * wave for number, name in enumerate(names)}
    constants = {"gear_ratio": 100.0, "motor_inertia": 1e-3, "gravity_torque_home": 7.0}
    path = tmp_path / "r.npz"
    np.savez(path, time=time, **arrays, **{name: np.full(2, value) for name, value in constants.items()})
    first, second = read_joint_recordings(path)
    assert (first.joint, second.joint) == ("1", "2")
    assert np.allclose(second.effort, -100.0 * arrays["motor_torque"][:, 1], atol=1e-9)
    rotor = 1e-3 * 100.0**2
    inertial = (arrays["link_inertia"][:, 1] + rotor) * arrays["link_acceleration_ref"][:, 1]
    rest = 7.0 + sum(arrays[f"{name}_torque"][:, 1] for name in ("acceleration", "coriolis", "gravity"))
    assert np.allclose(second.load, inertial + rest, atol=1e-9)
    assert [one.joint for one in read_joint_recordings(path, joints=("2",))] == ["2"]
    refused(path, r"unknown joint in .* '7'", joints=("7",))
