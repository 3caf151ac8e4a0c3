"""Joint recordings from validated tables: CSV files, NPZ files or recordings.

Errors are reported in one sentence that names the file and the column.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from calibration.data.columns import DRIVES, EFFORTS, EITHER, TURNING, Column, names_of, parse_column
from calibration.data.files import RawColumns, Series, read_columns
from calibration.data.joint_recording import UNNAMED, JointRecording
from haptics.settings import unknown_name

FEWEST = 50
"""Minimum number of samples of a recording."""

_SUSPECT_RATIOS = {"degrees and radians": 180.0 / np.pi, "millimetres and metres": 1000.0}
_RATIO_TOLERANCE = 0.2
_SMALLEST, _LARGEST = 1e-30, 1e30
"""Bounds of the maximum magnitude of every column, in SI units."""


def read_table(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    joints: tuple[str, ...] = (),
) -> tuple[JointRecording, ...]:
    """Read the recordings of the joints in a table.

    Parameters
    ----------
    path : str or Path
        CSV or NPZ file with column names as in `calibration.data.columns`, or the folder of a recording.
    columns : mapping, optional
        Standard names to names in the file, if they differ: ``{"torque_nm": "motor_torque:0"}``, with a colon and the
        column number for arrays with several columns.
    joints : tuple of str, optional
        Names of the joints to return, in this order; by default all.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, or required data are missing, implausible or not finite.
    """
    raw = read_columns(str(path), dict(columns or {}))
    found = _by_joint(raw)
    chosen = joints or tuple(found)
    for name in chosen:
        if name not in found:
            raise unknown_name(f"joint in {raw.source.path}", name, found)
    recordings = tuple(_recording(raw, name, found[name]) for name in chosen)
    for recording in recordings:
        _check_units_of_motion(recording)
    return recordings


# --- columns to joints ------------------------------------------------------------------------------------------------


def _by_joint(raw: RawColumns) -> dict[str, dict[str, tuple[Column, Series]]]:
    """Return the columns of every joint by quantity; columns without a joint belong to all joints."""
    common: dict[str, tuple[Column, Series]] = {}
    joints: dict[str, dict[str, tuple[Column, Series]]] = {}
    for name, values in raw.columns.items():
        column = parse_column(name)
        if column is None:
            continue
        place = joints.setdefault(column.joint, {}) if column.joint else common
        if column.quantity in place:
            earlier = place[column.quantity][0]
            raise raw.error(f"gives the {column.quantity} twice, as {earlier} and as {column}; remove one of them")
        place[column.quantity] = column, values
    return {name: common | own for name, own in joints.items()} if joints else {UNNAMED: common}


def _recording(raw: RawColumns, joint: str, found: dict[str, tuple[Column, Series]]) -> JointRecording:
    raw = raw.of_joint("" if joint == UNNAMED else joint)
    time = _required(raw, found, ("time",))
    velocity = _required(raw, found, ("velocity",))
    effort = _required(raw, found, EFFORTS)
    drive = _one_of(raw, found, DRIVES)
    rotary = _turns(raw, [column for column, _ in found.values()])
    _check_numbers(raw, found)
    _check_time(raw, time[1])
    return JointRecording(
        joint=joint,
        rotary=rotary,
        time=time[1] * time[0].factor - time[1][0] * time[0].factor,
        velocity=velocity[1] * velocity[0].factor,
        effort=effort[1] * effort[0].factor,
        source=raw.source,
        acceleration=_optional(found, "acceleration"),
        position=_optional(found, "position"),
        drive=drive and drive[1] * drive[0].factor,
        drive_unit=drive[0].si_unit if drive else "",
    )


def _required(
    raw: RawColumns, found: dict[str, tuple[Column, Series]], quantities: tuple[str, ...]
) -> tuple[Column, Series]:
    column = _one_of(raw, found, quantities)
    if column is None:
        what = " or ".join(quantities)
        has = ", ".join(raw.columns) or "none"
        raise raw.error(f"has no column for the {what} ({names_of(quantities)}); it has {has}")
    return column


def _one_of(
    raw: RawColumns, found: dict[str, tuple[Column, Series]], quantities: tuple[str, ...]
) -> tuple[Column, Series] | None:
    there = [found[name] for name in quantities if name in found]
    if len(there) > 1:
        raise raw.error(f"has both {there[0][0]} and {there[1][0]}; remove one of them")
    return there[0] if there else None


def _optional(found: dict[str, tuple[Column, Series]], quantity: str) -> Series | None:
    if quantity not in found:
        return None
    column, values = found[quantity]
    return values * column.factor


def _turns(raw: RawColumns, columns: list[Column]) -> bool:
    """Return True for a rotary joint; units of both kinds are an error."""
    first = next(column for column in columns if column.kind != EITHER)
    other = next((column for column in columns if column.kind not in {EITHER, first.kind}), None)
    if other is not None:
        raise raw.error(f"mixes units: {first} is of a joint that is {first.kind}, {other} of one that is {other.kind}")
    return first.kind == TURNING


# --- validation -------------------------------------------------------------------------------------------------------


def _check_numbers(raw: RawColumns, found: dict[str, tuple[Column, Series]]) -> None:
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


def _check_time(raw: RawColumns, time: Series) -> None:
    back = np.flatnonzero(np.diff(time) <= 0.0)
    if len(back):
        row = int(back[0]) + 1
        raise raw.error(f"time {time[row]:g} in row {row + 1} does not come after {time[row - 1]:g}; sort the rows")


def _check_units_of_motion(recording: JointRecording) -> None:
    """Compare the position with the integral of the velocity, to detect a wrong unit or sign."""
    time, velocity, position = recording.time, recording.velocity, recording.position
    if position is None or not velocity.any():
        return
    path = np.concatenate(([0.0], np.cumsum(np.diff(time) * (velocity[1:] + velocity[:-1]) / 2.0)))
    table = np.column_stack((path, time, np.ones_like(time)))
    ratio = float(np.linalg.lstsq(table, position, rcond=None)[0][0])
    if ratio < -0.5:
        raise recording.error("the position falls while the velocity is positive: one of them has the wrong sign")
    for what, factor in _SUSPECT_RATIOS.items():
        if min(abs(ratio / factor - 1.0), abs(ratio * factor - 1.0)) < _RATIO_TOLERANCE:
            raise recording.error(
                f"the position changes {ratio:.3g} times as fast as the velocity says: {what} are mixed"
            )
