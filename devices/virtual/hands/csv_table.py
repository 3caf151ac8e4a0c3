"""Columns of numbers from CSV files, with line numbers in error messages.

Lines that begin with ``#`` are comments. They are kept, because recordings state their geometry there. The first other
line contains the column names. Empty lines are skipped. Columns are separated by commas or, if the names contain none,
by semicolons or tabs.
"""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError

_LARGEST_FILE = 200_000_000  # maximum file size [bytes]

_SEPARATORS = ",;\t"

_POINT = " Write numbers with a point, not with a comma: 4.5 (and separate columns by commas, semicolons or tabs)."

# First bytes of common binary formats of tables.
_BEGINNINGS = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "excel",
    b"PAR1": "parquet",
    b"MATLAB 5.0 MAT-file": "mat",
    b"MATLAB 7.3 MAT-file": "mat",
}

# Suffixes of the same formats, for binary files with other first bytes.
_SUFFIXES = {".gz": "gzip", ".xlsx": "excel", ".xls": "excel", ".parquet": "parquet", ".mat": "mat"}

_FORMS = {
    "gzip": ("a gzip file", "decompress it with 'gunzip {path}'"),
    "zip": ("a ZIP archive", "extract the file with the data"),
    "npz": ("an NPZ file with another name", "rename it so that it ends with .npz"),
    "excel": ("an Excel workbook", "save its sheet as CSV"),
    "parquet": ("a Parquet file", "convert it to CSV, for instance with pandas"),
    "mat": ("a MAT file", "save its columns as CSV, in MATLAB with writetable or writematrix"),
}

TIME_NAMES = ("t", "t_s", "time", "time_s")


@dataclass(frozen=True)
class Table:
    """A CSV file in memory.

    Attributes
    ----------
    path : str
        Path of the file.
    comments : tuple of str
        Comment lines without their ``#``.
    names : tuple of str
        Column names.
    values : (n, columns) float array
        All numbers, finite.
    lines : (n,) int array
        Line number of each row in the file, for messages.
    """

    path: str
    comments: tuple[str, ...]
    names: tuple[str, ...]
    values: NDArray[np.float64]
    lines: NDArray[np.int64]

    def find(self, *alternatives: Iterable[str]) -> NDArray[np.float64] | None:
        """Return the columns (n, k) of the first complete tuple of `alternatives`, or None."""
        lower = [name.lower() for name in self.names]
        for names in alternatives:
            wanted = list(names)
            if all(name in lower for name in wanted):
                return self.values[:, [lower.index(name) for name in wanted]]
        return None

    def times(self) -> NDArray[np.float64]:
        """Return the time column, (n,) [s], starting at zero.

        Raises
        ------
        ConfigurationError
            If the column is missing or does not increase from row to row.
        """
        column = self.find(*((name,) for name in TIME_NAMES))
        if column is None:
            raise self.error(f"there is no time column (one of {', '.join(TIME_NAMES)}); it has {self._columns()}")
        time = column[:, 0]
        with np.errstate(over="ignore", invalid="ignore"):
            since_start = time - time[0]  # steps much smaller than the first time may vanish
            later = np.diff(since_start) > 0.0
        if not later.all():
            bad = int(np.argmin(later)) + 1
            raise self.error(f"time {time[bad]:g} does not come after {time[bad - 1]:g}", bad)
        return np.asarray(since_start)

    def error(self, message: str, row: int | None = None) -> ConfigurationError:
        """Return an error for this file and row."""
        place = "" if row is None else f", line {self.lines[row]}"
        return ConfigurationError(f"{self.path}{place}: {message}.")

    def _columns(self) -> str:
        return ", ".join(repr(name) for name in self.names)

    def missing(self, wanted: str) -> ConfigurationError:
        """Return the error for missing columns."""
        return self.error(f"there are no columns for {wanted}; it has {self._columns()}")


def read_table(path: str) -> Table:
    """Read the CSV file at `path`.

    Raises
    ------
    ConfigurationError
        If it cannot be read or is not a table of at least two rows of finite numbers.
    """
    comments: list[str] = []
    names: tuple[str, ...] = ()
    separator = ","
    rows: list[list[float]] = []
    lines: list[int] = []
    file = Path(path)
    require_text(path)
    try:
        if not file.is_file():
            raise ConfigurationError(f"{path}: there is no such file.")
        if file.stat().st_size > _LARGEST_FILE:
            raise ConfigurationError(f"{path}: must be at most {_LARGEST_FILE // 1_000_000} MB.")
        content = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: is not a text file (byte {error.start} is not UTF-8).") from error
    except ConfigurationError:
        raise
    except (OSError, ValueError) as error:  # ValueError: file name with a zero byte
        raise ConfigurationError(f"{path!r}: cannot be read ({error}).") from error
    for number, text in enumerate(content.split("\n"), start=1):
        line = text.strip()
        if line.startswith("#"):
            comments.append(line[1:].strip())
        elif line and not names:
            separator = next((mark for mark in _SEPARATORS if mark in line), separator)
            names = tuple(cell.strip().strip('"') for cell in line.split(separator))
        elif line:
            rows.append(_numbers(path, number, line.split(separator), names))
            lines.append(number)
    if len(rows) < 2:
        raise ConfigurationError(f"{path}: must hold a line of column names and at least two rows of numbers.")
    return Table(path, tuple(comments), names, np.array(rows), np.array(lines))


def require_text(path: str, readable: str = "CSV files") -> None:
    """Raise `ConfigurationError` if a file has a known binary format.

    Parameters
    ----------
    path : str
        The file. No error is raised if it cannot be read.
    readable : str
        Formats that the caller can read, for the message.
    """
    try:
        with open(path, "rb") as file:
            beginning = file.read(512)
    except (OSError, ValueError):
        return
    form = next((form for first, form in _BEGINNINGS.items() if beginning.startswith(first)), None)
    if form is None and b"\0" in beginning:
        form = _SUFFIXES.get(Path(path).suffix.lower())
    if form == "zip":
        members: list[str] = []
        with contextlib.suppress(OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
            with zipfile.ZipFile(path) as archive:
                members = archive.namelist()
        if any(name.startswith("xl/") for name in members) or Path(path).suffix.lower() == ".xlsx":
            form = "excel"
        elif members and all(name.endswith(".npy") for name in members):
            form = "npz"
    if form is not None:
        name, remedy = _FORMS[form]
        if form == "gzip" and Path(path).suffix.lower() != ".gz":  # gunzip requires this suffix
            remedy = "rename it to {path}.gz and decompress it with gunzip"
        raise ConfigurationError(f"{path}: is {name}; only {readable} can be read: {remedy.format(path=path)}.")


def _numbers(path: str, number: int, cells: list[str], names: tuple[str, ...]) -> list[float]:
    if len(cells) != len(names):
        hint = _POINT if len(cells) == 2 * len(names) else ""
        raise ConfigurationError(f"{path}, line {number}: has {len(cells)} values for {len(names)} columns.{hint}")
    values = []
    for name, cell in zip(names, cells, strict=True):
        try:
            value = float(cell)
        except ValueError:
            value = float("nan")
        if not abs(value) < float("inf"):
            place = f"{path}, line {number}, column {name!r}"
            hint = _POINT if "," in cell else ""
            raise ConfigurationError(f"{place}: {cell.strip()!r} is not a finite number.{hint}")
        values.append(value)
    return values
