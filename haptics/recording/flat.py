"""Flat columns of a recording, with one number per cell and the unit in the name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from haptics.recording.columns import CHANNEL
from haptics.records import Rows
from haptics.settings import unit_suffix

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
