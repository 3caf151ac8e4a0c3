"""Recordings of joints from tables: CSV files, NPZ files, recordings of this project, and serial robots.

A column is named by quantity and unit, such as ``velocity_rad_per_s``. The name of the joint may precede, separated by
a dot: ``knee.torque_nm``. All unit conversions to SI are made here. Errors are reported in one sentence that names the
file and the column.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import UNNAMED, JointRecording, Source
from calibration.data.signals import integral
from haptics.errors import ConfigurationError
from haptics.files import read_npz
from haptics.settings import unknown_name


def read_joint_recordings(
    path: str | Path, columns: Mapping[str, str] | None = None, joints: tuple[str, ...] = ()
) -> tuple[JointRecording, ...]:
    """Read the recordings of the joints in a file.

    Parameters
    ----------
    path : str or Path
        Table (`calibration.data.reading`): a CSV or NPZ file, or the folder of a recording. Or an NPZ file of a serial
        robot (`calibration.data.reading`), whose joints are named 1, 2, ...
    columns : mapping, optional
        Standard names to names in the table, if they differ: ``{"torque_nm": "motor_torque:0"}``, with a colon and the
        column number for arrays with several columns.
    joints : tuple of str, optional
        Names of the joints to return, in this order; by default all.

    Raises
    ------
    ConfigurationError
        If the file cannot be used; names the file.
    """
    if Path(path).suffix.lower() != ".npz" or not _TELLING <= set(read_npz(path)):
        return _read_table(str(path), columns or {}, joints)
    found = {one.joint: one for one in read_serial_robot(path)}
    for name in joints:
        if name not in found:
            raise unknown_name(f"joint in {path}", name, found)
    return tuple(found[name] for name in joints or found)


# --- names of columns -------------------------------------------------------------------------------------------------

_DEGREE = math.pi / 180.0

TURNING, SLIDING, EITHER = "turning", "sliding", "either"

_ANGLE = {"rad": (1.0, TURNING), "deg": (_DEGREE, TURNING), "m": (1.0, SLIDING), "mm": (1e-3, SLIDING)}

UNITS: Mapping[str, Mapping[str, tuple[float, str]]] = {
    "time": {"s": (1.0, EITHER), "ms": (1e-3, EITHER), "us": (1e-6, EITHER)},
    "position": _ANGLE,
    "velocity": {f"{unit}_per_s": known for unit, known in _ANGLE.items()},
    "acceleration": {f"{unit}_per_s2": known for unit, known in _ANGLE.items()},
    "torque": {"nm": (1.0, TURNING), "mnm": (1e-3, TURNING)},
    "force": {"n": (1.0, SLIDING), "mn": (1e-3, SLIDING)},
    "pwm": {"percent": (1.0, EITHER), "count": (1.0, EITHER), "duty": (1.0, EITHER)},
    "current": {"a": (1.0, EITHER), "ma": (1e-3, EITHER)},
    "voltage": {"v": (1.0, EITHER), "mv": (1e-3, EITHER)},
}
"""Units of every quantity, with the factor to SI and the kind of joint (rotary, prismatic or either)."""

EFFORTS = ("torque", "force")
DRIVES = ("pwm", "current", "voltage")

_SI = {"ma": "a", "mv": "v"}
"""Units of drive signals after conversion to SI, if they differ."""


@dataclass(frozen=True)
class Column:
    """Parsed name of a column.

    Attributes
    ----------
    joint : str
        Name of the joint, empty if absent.
    quantity : str
        One of `UNITS`.
    unit : str
        One of the units of that quantity.
    """

    joint: str
    quantity: str
    unit: str

    @property
    def factor(self) -> float:
        """Conversion factor to SI."""
        return UNITS[self.quantity][self.unit][0]

    @property
    def kind(self) -> str:
        """Kind of the joint: `TURNING`, `SLIDING` or `EITHER`."""
        return UNITS[self.quantity][self.unit][1]

    def __str__(self) -> str:
        name = f"{self.quantity}_{self.unit}"
        return f"{self.joint}.{name}" if self.joint else name


def parse_column(name: str) -> Column | None:
    """Parse the name of a column; return None if it is not a known measurement."""
    joint, _, rest = name.strip().rpartition(".")
    quantity, _, unit = rest.lower().partition("_")
    return Column(joint, quantity, unit) if unit in UNITS.get(quantity, {}) else None


def names_of(quantities: Iterable[str]) -> str:
    """Return the possible names of columns with these quantities, for messages."""
    return ", ".join(f"{quantity}_{unit}" for quantity in quantities for unit in UNITS[quantity])


# --- columns of files -------------------------------------------------------------------------------------------------

Series = NDArray[np.float64]
Columns = dict[str, Series]

MOST_COLUMNS = 1000
"""Maximum number of columns of an array with one column per joint."""


@dataclass(frozen=True, eq=False)
class RawColumns:
    """Columns of a file before conversion.

    Attributes
    ----------
    source : Source
        Origin of the columns.
    columns : dict
        Names to values, (n,) float arrays.
    place : str
        Present joint, for messages.
    """

    source: Source
    columns: Columns
    place: str = ""

    def error(self, message: str) -> ConfigurationError:
        """Return an error that names the file and the joint."""
        joint = f", joint {self.place}" if self.place else ""
        return ConfigurationError(f"{self.source.path}{joint}: {message}.")


def read_columns(path: str, names: Mapping[str, str]) -> RawColumns:
    """Read the columns of a file.

    Parameters
    ----------
    path : str
        A CSV file, an NPZ file, or the folder of a recording.
    names : mapping
        Standard names to names in the file (``NAME``, or ``NAME:COLUMN`` for an array with several columns).

    Raises
    ------
    ConfigurationError
        If the file cannot be read, or a name is missing.
    """
    file = Path(path)
    if file.is_dir():
        columns, file, device = _recording_columns(file)
    else:
        columns, device = (_npz if file.suffix.lower() == ".npz" else _csv)(path), ""
    try:
        with open(file, "rb") as content:
            source = Source(path, hashlib.file_digest(content, "sha256").hexdigest(), device)
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read ({error.strerror or error}).") from error
    # apply the assignments of the user; other columns keep their names
    renamed = {name: values for name, values in columns.items() if name not in names.values()}
    for ours, theirs in names.items():
        if parse_column(ours) is None:
            raise unknown_name("column", ours, names_of(UNITS).split(", "))
        if theirs not in columns:
            raise unknown_name(f"column of {path}", theirs, columns)
        renamed[ours] = columns[theirs]
    return RawColumns(source, renamed)


def _csv(path: str) -> Columns:
    from devices.virtual.hands.csv_table import read_table, require_text

    require_text(path, "CSV files, NPZ files and folders of recordings")
    table = read_table(path)
    twice = {name for name in table.names if table.names.count(name) > 1}
    if twice:
        raise ConfigurationError(f"{path}: has more than one column {sorted(twice)[0]!r}.")
    return {name: table.values[:, number] for number, name in enumerate(table.names)}


def _npz(path: str) -> Columns:
    """Return the columns of an NPZ file; two-dimensional arrays give one column per joint."""
    columns: Columns = {}
    for name, array in read_npz(path).items():
        if array.dtype.kind not in "fiu":
            continue
        if array.ndim == 1:
            columns[name] = np.asarray(array, dtype=np.float64)
        elif array.ndim == 2 and array.shape[1] <= MOST_COLUMNS:
            # joint number first for known names, column number last for others
            known = parse_column(name) is not None
            for k in range(array.shape[1]):
                columns[f"{k + 1}.{name}" if known else f"{name}:{k}"] = np.array(array[:, k], dtype=np.float64)
    return columns


def _recording_columns(folder: Path) -> tuple[Columns, Path, str]:
    """Return both axes of a recording of a force-controlled device whose handle was free.

    Only the required columns are loaded. Also returns the file of the ticks and the name of the device.
    """
    from haptics.device import Causality
    from haptics.recording.recording import Recording

    recording = Recording(folder)
    device: dict[str, Any] = recording.metadata.get("device", {})
    if device.get("causality") != Causality.IMPEDANCE:
        raise ConfigurationError(
            f"{folder}: was made on {device.get('name', 'no device')}, whose motor forces are not recorded; friction "
            "can be identified from recordings of impedance devices only."
        )
    names = ["time_s", *(f"{axis}.{name}" for axis in "xy" for name in ("force_n", "velocity_m_per_s", "position_m"))]
    columns: Columns = {name: np.empty(len(recording)) for name in names}
    place = 0
    for rows in recording.chunks(("time", "command", "force", "velocity", "position")):
        part = slice(place, place + len(rows))
        columns["time_s"][part] = rows["time"]
        for number, axis in enumerate("xy"):
            # The effort of a joint is minus the driving force: the driving force less the friction accelerates the
            # mass.
            columns[f"{axis}.force_n"][part] = -(rows["command"][:, number] + rows["force"][:, number])
            columns[f"{axis}.velocity_m_per_s"][part] = rows["velocity"][:, number]
            columns[f"{axis}.position_m"][part] = rows["position"][:, number]
        place += len(rows)
    name = f"{device.get('name', '')} {device.get('identity', '')}".strip()
    return columns, recording.ticks, name


# --- tables -----------------------------------------------------------------------------------------------------------

FEWEST = 50
"""Minimum number of samples of a recording."""

_SUSPECT_RATIOS = {"degrees and radians": 180.0 / np.pi, "millimetres and metres": 1000.0}
_RATIO_TOLERANCE = 0.2
_SMALLEST, _LARGEST = 1e-30, 1e30
"""Bounds of the maximum magnitude of every column, in SI units."""


def _read_table(path: str, columns: Mapping[str, str], joints: tuple[str, ...]) -> tuple[JointRecording, ...]:
    """Read the recordings of the joints in a table; arguments as in `read_joint_recordings`."""
    raw = read_columns(path, columns)
    common: _Columns = {}  # columns without a joint belong to all joints
    found: dict[str, _Columns] = {}
    for name, values in raw.columns.items():
        column = parse_column(name)
        if column is None:
            continue
        place = found.setdefault(column.joint, {}) if column.joint else common
        if column.quantity in place:
            earlier = place[column.quantity][0]
            raise raw.error(f"gives the {column.quantity} twice, as {earlier} and as {column}; remove one of them")
        place[column.quantity] = column, values
    found = {name: common | each for name, each in found.items()} if found else {UNNAMED: common}
    chosen = joints or tuple(found)
    for name in chosen:
        if name not in found:
            raise unknown_name(f"joint in {raw.source.path}", name, found)
    recordings = tuple(_recording(raw, name, found[name]) for name in chosen)
    for recording in recordings:
        _check_units_of_motion(recording)
    return recordings


_Columns = dict[str, tuple[Column, Series]]
"""Columns of a joint by quantity."""


def _recording(raw: RawColumns, joint: str, found: _Columns) -> JointRecording:
    raw = replace(raw, place="" if joint == UNNAMED else joint)

    def of(*quantities: str, required: bool = True) -> tuple[Column, Series] | None:
        there = [found[name] for name in quantities if name in found]
        if len(there) > 1:
            raise raw.error(f"has both {there[0][0]} and {there[1][0]}; remove one of them")
        if required and not there:
            has = ", ".join(raw.columns) or "none"
            raise raw.error(f"has no column for the {' or '.join(quantities)} ({names_of(quantities)}); it has {has}")
        return there[0] if there else None

    time, velocity, effort = of("time"), of("velocity"), of(*EFFORTS)
    drive = of(*DRIVES, required=False)
    columns = [column for column, _ in found.values()]
    first = next(column for column in columns if column.kind != EITHER)
    other = next((column for column in columns if column.kind not in {EITHER, first.kind}), None)
    if other is not None:
        raise raw.error(f"mixes units: {first} is of a joint that is {first.kind}, {other} of one that is {other.kind}")
    _check_numbers(raw, found)

    def series(column: tuple[Column, Series] | None) -> Any:
        return None if column is None else column[1] * column[0].factor

    times = found["time"][1]
    back = np.flatnonzero(np.diff(times) <= 0.0)
    if len(back):
        row = int(back[0]) + 1
        raise raw.error(f"time {times[row]:g} in row {row + 1} does not come after {times[row - 1]:g}; sort the rows")
    return JointRecording(
        joint=joint,
        rotary=first.kind == TURNING,
        time=series(time) - series(time)[0],
        velocity=series(velocity),
        effort=series(effort),
        source=raw.source,
        acceleration=series(found.get("acceleration")),
        position=series(found.get("position")),
        drive=series(drive),
        drive_unit=_SI.get(drive[0].unit, drive[0].unit) if drive else "",
    )


def _check_numbers(raw: RawColumns, found: _Columns) -> None:
    lengths = {len(values) for _, values in found.values()}
    if len(lengths) > 1:
        raise raw.error(f"has columns of different lengths ({', '.join(map(str, sorted(lengths)))})")
    for column, values in found.values():
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise raw.error(f"{column} is not a finite number in row {bad[0] + 1} (and {len(bad) - 1} others)")
        top = float(np.abs(values).max(initial=0.0)) * column.factor
        if top and not _SMALLEST < top < _LARGEST:
            raise raw.error(f"{column} reaches {top:g} in SI units; must be between {_SMALLEST:g} and {_LARGEST:g}")
    if min(lengths) < FEWEST:
        raise raw.error(f"has {min(lengths)} samples; must have at least {FEWEST}")


def _check_units_of_motion(recording: JointRecording) -> None:
    """Compare the position with the integral of the velocity, to detect a wrong unit or sign."""
    time, velocity, position = recording.time, recording.velocity, recording.position
    if position is None or not velocity.any():
        return
    table = np.column_stack((integral(time, velocity), time, np.ones_like(time)))
    ratio = float(np.linalg.lstsq(table, position, rcond=None)[0][0])
    if ratio < -0.5:
        raise recording.error("the position falls while the velocity is positive: one of them has the wrong sign")
    for units, factor in _SUSPECT_RATIOS.items():
        if min(abs(ratio / factor - 1.0), abs(ratio * factor - 1.0)) < _RATIO_TOLERANCE:
            raise recording.error(
                f"the position changes {ratio:.3g} times as fast as the velocity says: {units} are mixed"
            )


# --- serial robots ----------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]

_TELLING = {"motor_torque", "gear_ratio", "link_inertia"}
_LOAD = ("acceleration_torque", "coriolis_torque", "gravity_torque")
_CONSTANTS = ("gear_ratio", "motor_inertia", "gravity_torque_home")
_MOTOR = ("motor_torque", "motor_velocity_link_side", "motor_angle_link_side")
_NEEDED = ("time", *_CONSTANTS, *_MOTOR, "link_acceleration_ref", "link_inertia", *_LOAD)

_PUBLISHED = tuple(f"friction_{name}" for name in ("asymmetry", "viscous", "coulomb", "smoothness", "a", "b"))
"""Friction parameters identified by the robot's owners; optional."""


def read_serial_robot(path: str | Path) -> tuple[JointRecording, ...]:
    """Read the recordings of all joints of a robot, named 1, 2, ...

    On the link side, friction is u tau_M - M q'' - tau_A - tau_CC - g - J u^2 q'' of Weigand et al. 2020, (1) and (2),
    with the total gravity torque g and the accelerations of the reference. If the file has the friction parameters of
    the robot's owners, `published` is the friction that they predict.

    Parameters
    ----------
    path : str or Path
        NPZ file with the arrays time, gear_ratio, motor_inertia, motor_torque, motor_velocity_link_side,
        motor_angle_link_side, link_acceleration_ref, link_inertia, acceleration_torque, coriolis_torque, gravity_torque
        (relative to the home pose) and gravity_torque_home.

    Raises
    ------
    ConfigurationError
        If it cannot be read, or an array is missing.
    """
    found = read_npz(path)
    arrays = {name: np.asarray(found[name], float) for name in (*_NEEDED, *_PUBLISHED) if name in found}
    missing = [name for name in _NEEDED if name not in arrays]
    if missing:
        raise ConfigurationError(f"{path}: has no array {missing[0]}; a robot's recording has {', '.join(_NEEDED)}.")
    count, joints = len(np.atleast_1d(arrays["time"])), np.size(arrays["gear_ratio"])
    for name in _NEEDED:
        shape = (count,) if name == "time" else (joints,) if name in _CONSTANTS else (count, joints)
        if arrays[name].shape != shape:
            raise ConfigurationError(f"{path}: {name} has the shape {arrays[name].shape}; must be {shape}.")
    source = read_columns(str(path), {}).source
    return tuple(_joint(arrays, joint, source) for joint in range(joints))


def _joint(arrays: dict[str, Array], joint: int, source: Source) -> JointRecording:
    acceleration = arrays["link_acceleration_ref"][:, joint]
    ratio = arrays["gear_ratio"][joint]
    load = (arrays["link_inertia"][:, joint] + arrays["motor_inertia"][joint] * ratio**2) * acceleration
    load += sum(arrays[name][:, joint] for name in _LOAD) + arrays["gravity_torque_home"][joint]
    velocity, published = arrays["motor_velocity_link_side"][:, joint], None
    if all(name in arrays and arrays[name].shape == arrays["gear_ratio"].shape for name in _PUBLISHED):
        # the published friction tau_F of Weigand et al. 2020
        asymmetry, viscous, coulomb, smoothness, a, b = (arrays[name][joint] for name in _PUBLISHED)
        published = np.asarray(
            asymmetry + viscous * velocity + coulomb * np.tanh(smoothness * velocity) + a * np.tanh(b * velocity)
        )
    return JointRecording(
        joint=str(joint + 1),
        rotary=True,
        time=arrays["time"],
        velocity=velocity,
        effort=-ratio * arrays["motor_torque"][:, joint],
        source=source,
        position=arrays["motor_angle_link_side"][:, joint],
        acceleration=acceleration,
        load=load,
        published=published,
    )
