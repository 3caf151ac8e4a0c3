"""Columns of recordings: which of ours an older one may lack, and which others may stand beside them.

A recording has the columns of its format. One that its format did not have is not made up in the table; who needs it
(`column`, `completed`) gets its neutral value (`haptics.records.NEUTRAL`). Columns that this version does not know are
carried along if they are plain numbers.

What else a device measures (`haptics.device.DeviceSpec.channels`) are columns too, after ours and named so that they
are never taken for one of ours: the channel ``joint_angles`` is the column ``channel_joint_angles``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from haptics.device import Channel
from haptics.records import COLUMNS, NEUTRAL, ROW, ROW_UNITS, Rows

CHANNEL = "channel_"
"""What the columns of channels begin with."""

FORMATS: dict[str, int] = {"marker": 3, "gate": 3, "region": 3, "normal_force": 3, "hand_force": 3}
"""Columns that the first formats did not have, and the format from which on they are there."""

MOST_COLUMNS = 100
"""Columns that a table may have."""

WIDEST = 64
"""Numbers that a column of others may have in a row."""

_OURS: dict[str, tuple[Any, ...]] = {entry[0]: entry for entry in npy.dtype_to_descr(COLUMNS)}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NUMBERS = ("<f4", "<f8", "<i4", "<i8", "<u4", "<u8", "|i1", "|u1")


def columns_with(channels: Iterable[Channel]) -> np.dtype[Any]:
    """Return what a recording has of a tick of a device with `channels`: what a row of the trace begins with."""
    further = [(CHANNEL + name, "<f8", *([(size,)] if size > 1 else [])) for name, _, size in channels]
    return np.dtype([*_OURS.values(), *further])


def units_with(channels: Iterable[Channel]) -> dict[str, str]:
    """Return all columns of a recording of a device with `channels`, and their units."""
    return ROW_UNITS | {CHANNEL + name: unit for name, unit, _ in channels}


def missing_columns(names: Any, version: int) -> list[str]:
    """Return those of our columns that are not among `names` and that a recording of format `version` must have."""
    return [name for name in _OURS if name not in names and FORMATS.get(name, 0) <= version]


def safe_column(entry: Any) -> tuple[Any, ...] | None:
    """Return the column that an entry of a table's header stands for: ours as it must be, or harmless; None else."""
    if not isinstance(entry, tuple) or len(entry) not in (2, 3) or not all(isinstance(part, str) for part in entry[:2]):
        return None
    name, kind, *shape = entry
    if name in _OURS:
        return _OURS[name] if entry == _OURS[name] else None
    harmless = _NAME.fullmatch(name) is not None and kind in _NUMBERS and all(map(_is_width, shape))
    return entry if harmless else None


def _is_width(shape: Any) -> bool:
    return type(shape) is tuple and len(shape) == 1 and type(shape[0]) is int and 1 <= shape[0] <= WIDEST


def column(rows: Rows, name: str) -> NDArray[Any]:
    """Return a column of ours, whether `rows` have it or it stands for its neutral value; not to be written to."""
    if name in (rows.dtype.names or ()):
        return np.asarray(rows[name])
    neutral = NEUTRAL[name]
    return np.broadcast_to(neutral, (len(rows), *neutral.shape[1:]))


def completed(rows: Rows) -> Rows:
    """Return a copy of `rows` as a trace has them, dtype `ROW`: all of our columns, and none of others nor channels."""
    whole = np.empty(len(rows), ROW)
    whole["channels"] = NEUTRAL["channels"]
    for name in _OURS:
        whole[name] = column(rows, name)
    return whole
