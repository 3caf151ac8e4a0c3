"""Numeric columns from CSV files, NPZ files and recordings of this project."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.columns import UNITS, names_of, parse_column
from haptics.errors import ConfigurationError
from haptics.reading import read_npz
from haptics.settings import unknown_name

Series = NDArray[np.float64]
Columns = dict[str, Series]

MOST_COLUMNS = 1000
"""Maximum number of columns of an array with one column per joint."""


@dataclass(frozen=True)
class Source:
    """Origin of a measurement.

    Attributes
    ----------
    path : str
        File or folder.
    sha256 : str
        Hash of the file content.
    device : str
        Measured device, if the file states it.
    """

    path: str
    sha256: str
    device: str = ""


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

    def of_joint(self, joint: str) -> RawColumns:
        """Return a copy whose messages name the joint."""
        return replace(self, place=joint)

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
        columns, file, device = _recording(file)
    else:
        columns, device = (_npz if file.suffix.lower() == ".npz" else _csv)(path), ""
    source = Source(path, _sha256(file), device)
    return RawColumns(source, _renamed(path, columns, names))


def _sha256(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror or error}).") from error


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
            columns |= {_numbered(name, k): np.array(array[:, k], dtype=np.float64) for k in range(array.shape[1])}
    return columns


def _numbered(name: str, column: int) -> str:
    """Return the name of an array column: joint number first for known names, index last for others."""
    return f"{column + 1}.{name}" if parse_column(name) is not None else f"{name}:{column}"


def _recording(folder: Path) -> tuple[Columns, Path, str]:
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


def _renamed(path: str, columns: Columns, names: Mapping[str, str]) -> Columns:
    """Return the columns with the user's assignments applied; other columns keep their names."""
    renamed = {name: values for name, values in columns.items() if name not in names.values()}
    for ours, theirs in names.items():
        if parse_column(ours) is None:
            raise unknown_name("column", ours, names_of(UNITS).split(", "))
        if theirs not in columns:
            raise unknown_name(f"column of {path}", theirs, columns)
        renamed[ours] = columns[theirs]
    return renamed
