"""Columns of numbers from the files that people have: CSV, NPZ, and our own recordings."""

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
from haptics.settings import unknown

Series = NDArray[np.float64]
Columns = dict[str, Series]

MOST_COLUMNS = 1000
"""Columns that an array of joints may have; one with more is no such array."""


@dataclass(frozen=True)
class Source:
    """Where a measurement comes from.

    Attributes
    ----------
    path : str
        File or folder.
    sha256 : str
        Of the bytes that were read.
    device : str
        What was measured, as far as the file says it.
    """

    path: str
    sha256: str
    device: str = ""


@dataclass(frozen=True, eq=False)
class RawColumns:
    """The columns of a file as they are in it.

    Attributes
    ----------
    source : Source
        Where they come from.
    columns : dict
        Names to values, (n,) float arrays.
    place : str
        Which joint is being looked at, for messages.
    """

    source: Source
    columns: Columns
    place: str = ""

    def of_joint(self, joint: str) -> RawColumns:
        """Return the same, with messages that name the joint."""
        return replace(self, place=joint)

    def error(self, message: str) -> ConfigurationError:
        """Return the error that says what is wrong with the file."""
        joint = f", joint {self.place}" if self.place else ""
        return ConfigurationError(f"{self.source.path}{joint}: {message}.")


def read_columns(path: str, names: Mapping[str, str]) -> RawColumns:
    """Read the columns of a file.

    Parameters
    ----------
    path : str
        A CSV file, an NPZ file, or the folder of a recording.
    names : mapping
        Names of ours to names in the file (``NAME``, or ``NAME:COLUMN`` for an array with several).

    Raises
    ------
    ConfigurationError
        If it cannot be read, or a name is not in it.
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
    """Return the columns of an NPZ file; those of a two-dimensional array get the number of the joint before them."""
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
    """Return what a column of a two-dimensional array is called: ours by the number of its joint, others by theirs."""
    return f"{column + 1}.{name}" if parse_column(name) is not None else f"{name}:{column}"


def _recording(folder: Path) -> tuple[Columns, Path, str]:
    """Return both axes of a recording, made on a device that takes forces and whose handle nobody held.

    Only the columns that are needed are in memory. With them come the file of the ticks and the name of the device.
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
            # A joint gives minus what moves it: what reaches its mass is that less the friction.
            columns[f"{axis}.force_n"][part] = -(rows["command"][:, number] + rows["force"][:, number])
            columns[f"{axis}.velocity_m_per_s"][part] = rows["velocity"][:, number]
            columns[f"{axis}.position_m"][part] = rows["position"][:, number]
        place += len(rows)
    name = f"{device.get('name', '')} {device.get('identity', '')}".strip()
    return columns, recording.ticks, name


def _renamed(path: str, columns: Columns, names: Mapping[str, str]) -> Columns:
    """Return the columns with the names that a person gave to some of them; the others keep theirs."""
    renamed = {name: values for name, values in columns.items() if name not in names.values()}
    for ours, theirs in names.items():
        if parse_column(ours) is None:
            raise unknown("column", ours, names_of(UNITS).split(", "))
        if theirs not in columns:
            raise unknown(f"column of {path}", theirs, columns)
        renamed[ours] = columns[theirs]
    return renamed
