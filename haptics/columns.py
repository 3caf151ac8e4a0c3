"""Columns of recordings: which of ours an older one may lack, and which others may stand beside them.

A recording has the columns of its format. One that its format did not have is not made up in the table; who needs it
(`column`, `completed`) gets its neutral value (`haptics.trace.NEUTRAL`). Columns that this version does not know are
carried along if they are plain numbers.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from haptics.trace import NEUTRAL, ROW, Rows

FORMATS: dict[str, int] = {"marker": 3, "gate": 3, "region": 3, "normal_force": 3, "hand_force": 3}
"""Columns that the first formats did not have, and the format from which on they are there."""

MOST_COLUMNS = 100
"""Columns that a table may have."""

WIDEST = 64
"""Numbers that a column of others may have in a row."""

_OURS: dict[str, tuple[Any, ...]] = {entry[0]: entry for entry in npy.dtype_to_descr(ROW)}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NUMBERS = ("<f4", "<f8", "<i4", "<i8", "<u4", "<u8", "|i1", "|u1")


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
    """Return a copy of `rows` with all of our columns, dtype `ROW`, and no others."""
    whole = np.empty(len(rows), ROW)
    for name in _OURS:
        whole[name] = column(rows, name)
    return whole
