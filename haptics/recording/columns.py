"""Columns of recordings: standard columns by format, foreign columns and channels of devices.

A recording has the columns of its format. A column that was introduced later is not added to the table; `column` and
`with_missing_columns` return its neutral value (`haptics.records.NEUTRAL`) instead. Columns unknown to this version are
preserved if they are plain numbers.

The channels of a device (`haptics.device.DeviceSpec.channels`) are additional columns with a prefix that avoids name
collisions: the channel ``joint_angles`` is the column ``channel_joint_angles``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from haptics.device import Channel
from haptics.records import COLUMNS, NEUTRAL, ROW, ROW_UNITS, Rows
from haptics.settings import unit_suffix

CHANNEL = "channel_"
"""Prefix of channel columns."""

FORMATS: dict[str, int] = {"marker": 3, "gate": 3, "region": 3, "normal_force": 3, "hand_force": 3}
"""Columns that the first formats lack, and the first format that has them."""

MAX_COLUMNS = 100
"""Maximum number of columns of a table."""

MAX_COLUMN_WIDTH = 64
"""Maximum number of values per row in a foreign column."""

_OURS: dict[str, tuple[Any, ...]] = {entry[0]: entry for entry in npy.dtype_to_descr(COLUMNS)}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NUMBERS = ("<f4", "<f8", "<i4", "<i8", "<u4", "<u8", "|i1", "|u1")


def columns_with(channels: Iterable[Channel]) -> np.dtype[Any]:
    """Return the row type of a recording of a device with `channels`.

    A trace row begins with the same fields.
    """
    further = [(CHANNEL + name, "<f8", *([(size,)] if size > 1 else [])) for name, _, size in channels]
    return np.dtype([*_OURS.values(), *further])


def units_with(channels: Iterable[Channel]) -> dict[str, str]:
    """Return the columns of a recording of a device with `channels`, with their units."""
    return ROW_UNITS | {CHANNEL + name: unit for name, unit, _ in channels}


def missing_columns(names: Any, version: int) -> list[str]:
    """Return the required columns of format `version` that are missing from `names`."""
    return [name for name in _OURS if name not in names and FORMATS.get(name, 0) <= version]


def safe_column(entry: Any) -> tuple[Any, ...] | None:
    """Validate a column entry of a table header.

    Returns
    -------
    tuple or None
        The entry, if it is a known column with its exact type or a foreign column of numbers; None otherwise.
    """
    if not isinstance(entry, tuple) or len(entry) not in (2, 3) or not all(isinstance(part, str) for part in entry[:2]):
        return None
    name, kind, *shape = entry
    if name in _OURS:
        return _OURS[name] if entry == _OURS[name] else None
    harmless = _NAME.fullmatch(name) is not None and kind in _NUMBERS and all(map(_is_width, shape))
    return entry if harmless else None


def _is_width(shape: Any) -> bool:
    return type(shape) is tuple and len(shape) == 1 and type(shape[0]) is int and 1 <= shape[0] <= MAX_COLUMN_WIDTH


def column(rows: Rows, name: str) -> NDArray[Any]:
    """Return a known column of `rows`, or its neutral value if `rows` lack it; the array is read-only."""
    if name in (rows.dtype.names or ()):
        return np.asarray(rows[name])
    neutral = NEUTRAL[name]
    return np.broadcast_to(neutral, (len(rows), *neutral.shape[1:]))


def with_missing_columns(rows: Rows) -> Rows:
    """Return a copy of `rows` as trace rows (dtype `ROW`), without foreign columns and channels."""
    whole = np.empty(len(rows), ROW)
    whole["channels"] = NEUTRAL["channels"]
    for name in _OURS:
        whole[name] = column(rows, name)
    return whole


# --- flat columns -----------------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from haptics.recording.recording import Recording

_AXES = ("x", "y")
_BY_CAUSALITY = re.compile(r"(?P<impedance>.+) \(impedance\) or (?P<admittance>.+) \(admittance\)")


def flat_columns(recording: Recording) -> dict[str, NDArray[Any]]:
    """Return the columns of a recording as scalar columns, by name with unit, each of shape (n,).

    A vector of two gets ``_x`` and ``_y``, any other ``_1``, ``_2`` ... before the unit: ``position_x_m``,
    ``velocity_y_m_per_s``, ``channel_joint_angles_2_rad``. Columns without a unit, such as ``tick``, get no suffix. The
    unit of a command is N for an impedance device and m for an admittance device.
    """
    metadata = recording.metadata
    causality = str(metadata.get("device", {}).get("causality", ""))
    known = metadata.get("columns", {})
    return flatten(recording.rows, {name: known.get(name, "") for name in recording.rows.dtype.names or ()}, causality)


def flatten(rows: Rows, units: Mapping[str, Any], causality: str) -> dict[str, NDArray[Any]]:
    """Return `rows` as `flat_columns` does; `units` contains the units of the requested columns by name."""
    flat: dict[str, NDArray[Any]] = {}
    for name in (name for name in rows.dtype.names or () if name in units):
        column = np.asarray(rows[name])
        suffix = unit_suffix(_unit(str(units[name]), causality))
        for part, values in _parts(name, column):
            flat[f"{part}{suffix}"] = np.ascontiguousarray(values)
    return flat


def cells_of(column: NDArray[Any]) -> list[Any]:
    """Return the cells of a flat column as Python numbers; None for nan and infinity."""
    cells: list[Any] = column.tolist()
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        return [cell if math.isfinite(cell) else None for cell in cells]
    return cells


def _unit(text: str, causality: str) -> str:
    choice = _BY_CAUSALITY.fullmatch(text)
    return choice.groupdict().get(causality) or "" if choice else text


def _parts(name: str, column: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    if column.ndim == 1:
        yield name, column
        return
    ours = column.shape[1] == len(_AXES) and not name.startswith(CHANNEL)
    labels = _AXES if ours else range(1, column.shape[1] + 1)
    for k, label in enumerate(labels):
        yield f"{name}_{label}", column[:, k]
