"""Rows of a trace, with their columns and status flags.

A row has the same columns in the trace (memory), in a recording (disk) and in a replay. This module declares the
columns, their units and their neutral values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from enum import IntFlag
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from haptics.device import MAX_CHANNELS, Channel
from haptics.settings import unit_suffix

Rows = NDArray[Any]
"""A structured array of trace rows."""


def fields(kind: str, names: str, *shape: int) -> list[tuple[Any, ...]]:
    """Return the fields of a record with these names, separated by spaces, of one kind: ``fields("<f8", "x v", 2)``."""
    return [(name, kind, *([shape] if shape else [])) for name in names.split()]


LATE_FRACTION = 0.5
"""Fraction of a period after the deadline beyond which the start of a tick is flagged as late."""


class Status(IntFlag):
    """Events of a tick; see `haptics.rendering.envelope` for the order in which its rules are applied."""

    NOT_FINITE = 1 << 0
    """The sample or the output of the element was nan or infinite: safe output instead."""
    STALE = 1 << 1
    """The sample was older than permitted: safe output instead."""
    LIMITED = 1 << 2
    """The norm was limited (force, or speed of the reference) with the direction unchanged."""
    SLEW = 1 << 3
    """The slew rate was limited (rate of the force, or acceleration of the reference)."""
    WORKSPACE = 1 << 4
    """The end effector or its reference was at the edge of the workspace."""
    SPEED = 1 << 5
    """Overspeed: the force component along the motion was removed."""
    FADE = 1 << 6
    """The output was fading in (after start, release or change of parameters) or out (before the end)."""
    ENERGY = 1 << 7
    """The loop had injected its maximum energy: the injecting component was removed from the output."""
    STARTED_LATE = 1 << 8
    """The tick started more than half a period after its deadline."""
    ENDED_LATE = 1 << 9
    """The tick ended after the next deadline."""
    AFTER_SKIP = 1 << 10
    """One or more deadlines before this tick were missed entirely and skipped."""
    IMPLAUSIBLE = 1 << 11
    """Implausible position or speed, or a force beyond the range of its sensor: safe output."""
    RELEASED = 1 << 12
    """The dead-man's switch was not held: the output was fading out or was the safe output."""
    PASSIVITY = 1 << 13
    """The passivity controller added damping."""
    ASTRAY = 1 << 14
    """The following error or the speed exceeded the limit of a prescribed motion: safe output."""
    FOLLOWING_ERROR = 1 << 15
    """The following error exceeded its limit, as if the end effector were blocked: safe output."""
    THERMAL = 1 << 16
    """The motors were warm from earlier forces: the norm of the force was limited to a lower bound."""


UNUSABLE = int(Status.NOT_FINITE | Status.STALE | Status.IMPLAUSIBLE | Status.FOLLOWING_ERROR | Status.ASTRAY)
"""Flags of a tick whose command was the safe output."""


class Permission(IntFlag):
    """Inputs of the envelope in a tick besides the sample; they are recorded for replays."""

    RELEASED = 1 << 0
    """The dead-man's switch is not held."""
    ENDING = 1 << 1
    """The run is about to end: fade out."""


class _Column(NamedTuple):
    """Recorded column of a tick: name, unit, type and number of values."""

    name: str
    unit: str
    kind: str
    size: int = 1
    computed: bool = False  # by `haptics.rendering.kernels.render` from the sample: a replay compares it
    since: int = 0  # first format that has it
    neutral: float = 0.0  # value in earlier formats, and in rows to which it was not written


_OF_COMMAND = "N (impedance) or m (admittance)"

_COLUMNS = (
    _Column("tick", "1", "<i8"),
    _Column("time", "s", "<f8"),
    _Column("position", "m", "<f8", 2),
    _Column("velocity", "m/s", "<f8", 2),
    _Column("force", "N", "<f8", 2),
    _Column("command", _OF_COMMAND, "<f8", 2, computed=True),
    _Column("command_unlimited", _OF_COMMAND, "<f8", 2, computed=True),
    _Column("proxy", "m", "<f8", 2, computed=True),
    _Column("displacement", "m", "<f8", 2, computed=True),
    _Column("friction_force", "N", "<f8", 2, computed=True),
    _Column("sliding_velocity", "m/s", "<f8", 2, computed=True),
    _Column("sample_age", "s", "<f8"),
    _Column("period_error", "s", "<f8"),
    _Column("tick_time", "s", "<f8"),
    _Column("write_time", "s", "<f8"),
    _Column("injected_energy", "J", "<f8", computed=True),
    _Column("settings_version", "1", "<i8"),
    _Column("status", "bit flags", "<u4"),
    _Column("sticking", "0 or 1", "<u4", computed=True),
    _Column("permission", "bit flags", "<u4"),
    _Column("buttons", "bit flags", "<u4"),
    _Column("marker", "1", "<i8", since=3),
    _Column("gate", "1", "<f8", since=3, neutral=1.0),
    _Column("region", "1", "<i8", computed=True, since=3, neutral=-1),
    _Column("normal_force", "N", "<f8", computed=True, since=3, neutral=math.nan),
    _Column("hand_force", "N", "<f8", 2, since=3, neutral=math.nan),
)

ROW_UNITS = {column.name: column.unit for column in _COLUMNS}
"""Columns of a recording with their units, in order; the channels of its device follow."""

COMPUTED = tuple(column.name for column in _COLUMNS if column.computed)
"""Columns that a replay computes and compares, besides the envelope's flags in ``status``."""

COLUMNS = np.dtype([(name, kind, *([(size,)] if size > 1 else [])) for name, _, kind, size, *_ in _COLUMNS])
"""Recorded columns of a tick.

``time`` is nominal (tick x period). ``period_error`` is the delay of the start of the tick after its deadline,
``write_time`` the time from the start until the device had the command, and ``tick_time`` the duration of the tick.
``marker`` is the trial or stage, ``gate`` the external scale factor of the output, and ``region`` the region of a scene
that contains the proxy (-1 without a scene). ``normal_force`` is the contact force of the proxy at a wall (nan without
a wall), and ``hand_force`` the true force of a virtual hand (nan if unknown).
"""

ROW = np.dtype([*npy.dtype_to_descr(COLUMNS), ("channels", "<f8", (MAX_CHANNELS,))])
"""One tick in a trace: `COLUMNS`, and space for the channels of a device.

All devices share this type, so that kernels are compiled only once.
"""

NEUTRAL = np.zeros(1, ROW)
"""Neutral row, shape (1,): the value of every column that was not written."""
NEUTRAL["channels"] = np.nan
for _column in _COLUMNS:
    NEUTRAL[_column.name] = _column.neutral
NEUTRAL.flags.writeable = False


# --- columns of recordings --------------------------------------------------------------------------------------------
#
# A recording has the columns of its format. A column that was introduced later is not added to the table; `column`
# and `with_missing_columns` return its neutral value (`NEUTRAL`) instead. Columns unknown to this version are
# preserved if they are plain numbers.
#
# The channels of a device (`haptics.device.DeviceSpec.channels`) are additional columns with a prefix that avoids
# name collisions: the channel ``joint_angles`` is the column ``channel_joint_angles``.

CHANNEL = "channel_"
"""Prefix of channel columns."""

FORMATS = {column.name: column.since for column in _COLUMNS if column.since > 0}
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
    harmless = (
        _NAME.fullmatch(name) is not None
        and kind in _NUMBERS
        and all(
            type(size) is tuple and len(size) == 1 and type(size[0]) is int and 1 <= size[0] <= MAX_COLUMN_WIDTH
            for size in shape
        )
    )
    return entry if harmless else None


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

_AXES = ("x", "y")
_BY_CAUSALITY = re.compile(r"(?P<impedance>.+) \(impedance\) or (?P<admittance>.+) \(admittance\)")


def flatten(rows: Rows, units: Mapping[str, Any], causality: str) -> dict[str, NDArray[Any]]:
    """Return `rows` as scalar columns, by name with unit; `units` contains the units of the columns by name.

    See `haptics.recording.recording.flat_columns`.
    """
    flat: dict[str, NDArray[Any]] = {}
    for name in (name for name in rows.dtype.names or () if name in units):
        column = np.asarray(rows[name])
        unit = str(units[name])
        if choice := _BY_CAUSALITY.fullmatch(unit):
            unit = choice.groupdict().get(causality) or ""
        if column.ndim == 1:
            flat[f"{name}{unit_suffix(unit)}"] = np.ascontiguousarray(column)
            continue
        plane = column.shape[1] == len(_AXES) and not name.startswith(CHANNEL)
        for k, label in enumerate(_AXES if plane else range(1, column.shape[1] + 1)):
            flat[f"{name}_{label}{unit_suffix(unit)}"] = np.ascontiguousarray(column[:, k])
    return flat


def cells_of(column: NDArray[Any]) -> list[Any]:
    """Return the cells of a flat column as Python numbers; None for nan and infinity."""
    cells: list[Any] = column.tolist()
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        return [cell if math.isfinite(cell) else None for cell in cells]
    return cells
