"""Results of a sweep on disk: one line for each completed job, and a table of all jobs at the end."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from apps.sweep.design import Job, Sweep
from haptics.errors import ConfigurationError
from haptics.files import write_atomically

LINES, TABLE, PARQUET, DESCRIPTION = "results.jsonl", "results.npz", "results.parquet", "sweep.json"

_KEY = 16
"""Length of the key of a job [bytes]."""

_LONGEST_LINE, _PIECE = 1_000_000, 65536


class Results:
    """Results of a sweep in a folder that is locked for one process.

    Parameters
    ----------
    folder : Path
        Folder of the results, created if necessary.
    sweep : Sweep
        The sweep.

    Attributes
    ----------
    done : set of bytes
        Keys of the jobs with outcomes, including earlier runs. The outcomes themselves are on disk only.
    failures : list of str
        Settings and error of each job that failed in this run.

    Raises
    ------
    ConfigurationError
        If the folder cannot be used, is in use, or contains another sweep.
    """

    def __init__(self, folder: Path, sweep: Sweep) -> None:
        self.folder, self._common = folder, sweep.common
        self.failures: list[str] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = open(folder / LINES, "ab+")
        except OSError as error:
            raise ConfigurationError(
                f"--out = {str(folder)!r}: cannot be used ({error.strerror or error}); name another folder."
            ) from error
        try:
            self._lock()
            self._require_same()
            self._cut_off()
            self.done = {bytes.fromhex(line["key"]) for line in self.lines() if "outcomes" in line}
        except BaseException:
            self._file.close()
            raise

    def add(self, job: Job, result: Mapping[str, Any]) -> None:
        """Append the result of a job to the file."""
        line = {"key": job.key(self._common), "number": job.number, "point": job.point, "seed": job.seed, **result}
        self._file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
        self._file.flush()
        if "outcomes" in line:
            self.done.add(bytes.fromhex(line["key"]))
        else:
            point = ", ".join(f"{name} = {value}" for name, value in job.point.items())
            self.failures.append(f"{point}: {line['error']}")

    def is_done(self, job: Job) -> bool:
        """Return True if the job has outcomes."""
        return bytes.fromhex(job.key(self._common)) in self.done

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            os.fsync(self._file.fileno())
        self._file.close()

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the lines on disk, parsed."""
        with (self.folder / LINES).open("rb") as file:
            number = 0
            while text := file.readline(_LONGEST_LINE):
                number += 1
                yield self._line(text, number)

    def _line(self, text: bytes, number: int) -> dict[str, Any]:
        try:
            line: dict[str, Any] = json.loads(text)
            if len(bytes.fromhex(line["key"])) != _KEY or not isinstance(line.get("outcomes", {}), dict):
                raise ValueError("not a result")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ConfigurationError(f"{self.folder / LINES}, line {number}: is no result ({error}).") from error
        return line

    def _cut_off(self) -> None:
        """Truncate an incomplete last line, which remains if the process was killed."""
        end = self._file.seek(0, os.SEEK_END)
        while end > 0:
            begin = max(end - _PIECE, 0)
            self._file.seek(begin)
            last = self._file.read(end - begin).rfind(b"\n")
            if last >= 0:
                self._file.truncate(begin + last + 1)
                return
            end = begin
        self._file.truncate(0)

    def _lock(self) -> None:
        import fcntl

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigurationError(
                f"{self.folder}: another program runs this sweep there; let it end first."
            ) from None

    def _require_same(self) -> None:
        """Raise if the folder contains results of another sweep.

        Writes the description of this sweep into a new folder.
        """
        path = self.folder / DESCRIPTION
        if not path.exists():
            write_atomically(path, self._common + "\n")
        elif path.read_text(encoding="utf-8").strip() != self._common:
            raise ConfigurationError(
                f"{self.folder} has results of another sweep, or of this file before a change: name another --out."
            )


def table_of(sweep: Sweep, results: Results) -> dict[str, NDArray[Any]]:
    """Return the columns axes, seed and outcomes, with a row for each completed job, in order."""
    common, places = sweep.common, dict[bytes, int]()
    columns: dict[str, list[Any]] = {axis.setting: [] for axis in sweep.axes}
    seeds: list[int] = []
    for job in sweep.jobs():
        key = bytes.fromhex(job.key(common))
        if key in results.done:
            places[key] = len(places)
            seeds.append(job.seed)
            for name, column in columns.items():
                column.append(job.point[name])
    table = {name: np.array(values) for name, values in columns.items()}
    return {**table, "seed": np.array(seeds, np.int64), **_outcomes(results, places)}


def _outcomes(results: Results, places: Mapping[bytes, int]) -> dict[str, NDArray[Any]]:
    """Return a column for each outcome, of integers if all values are integers."""
    found: dict[str, NDArray[np.float64]] = {}
    broken = set()
    for line in results.lines():
        place = places.get(bytes.fromhex(line["key"]))
        if place is None or "outcomes" not in line:
            continue
        for name, value in line["outcomes"].items():
            column = found.setdefault(name, np.full(len(places), math.nan))
            column[place] = math.nan if value is None else value
            if not isinstance(value, int):
                broken.add(name)
    whole = [name for name in found if name not in broken and not np.isnan(found[name]).any()]
    return {name: column.astype(np.int64) if name in whole else column for name, column in found.items()}


def write_tables(sweep: Sweep, results: Results) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Write the table as NPZ, and as Parquet if pandas and pyarrow are installed.

    Return the table and the files.
    """
    table = table_of(sweep, results)
    files = [results.folder / TABLE]
    whole = files[0].with_suffix(".part.npz")
    np.savez_compressed(whole, **table)  # type: ignore[arg-type]
    os.replace(whole, files[0])
    with contextlib.suppress(ImportError):
        import pandas
        import pyarrow  # noqa: F401

        files.append(results.folder / PARQUET)
        part = files[1].with_suffix(".part")
        pandas.DataFrame(table).to_parquet(part, engine="pyarrow", index=False)
        os.replace(part, files[1])
    return table, [str(file) for file in files]
