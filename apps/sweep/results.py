"""Results of a sweep on disk: a line for each job as it ends, and at the end one table of all."""

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
from haptics.files import write_whole

LINES, TABLE, PARQUET, DESCRIPTION = "results.jsonl", "results.npz", "results.parquet", "sweep.json"

_LARGEST = 2_000_000_000


class Results:
    """The lines of a sweep, in a folder that one process at a time writes to.

    Parameters
    ----------
    folder : Path
        It is made if it is not there.
    sweep : Sweep
        The sweep that the folder is for.

    Attributes
    ----------
    done : dict
        Key of a job to its line: those of an earlier run, and those that were added. A job that failed is not done.
    failures : list of str
        Of this run: settings of each job that failed, and why.

    Raises
    ------
    ConfigurationError
        If the folder cannot be used, is in use, or is that of another sweep.
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
            self.done = {line["key"]: line for line in self._lines() if "outcomes" in line}
        except BaseException:
            self._file.close()
            raise

    def add(self, job: Job, result: Mapping[str, Any]) -> None:
        """Write down how a job ended."""
        line = {"key": job.key(self._common), "number": job.number, "point": job.point, "seed": job.seed, **result}
        self._file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
        self._file.flush()
        if "outcomes" in line:
            self.done[line["key"]] = line
        else:
            point = ", ".join(f"{name} = {value}" for name, value in job.point.items())
            self.failures.append(f"{point}: {line['error']}")

    def is_done(self, job: Job) -> bool:
        """Tell whether a job has its result."""
        return job.key(self._common) in self.done

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            os.fsync(self._file.fileno())
        self._file.close()

    def _lock(self) -> None:
        import fcntl

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigurationError(
                f"{self.folder}: another program runs this sweep there; let it end first."
            ) from None

    def _require_same(self) -> None:
        """See that the folder has no results of another sweep, and say whose they are."""
        path = self.folder / DESCRIPTION
        if not path.exists():
            write_whole(path, self._common + "\n")
        elif path.read_text(encoding="utf-8").strip() != self._common:
            raise ConfigurationError(
                f"{self.folder} has results of another sweep, or of this file before a change: name another --out."
            )

    def _lines(self) -> Iterator[dict[str, Any]]:
        """Yield the whole lines; the last one may have been cut short by a kill, and is then taken off."""
        self._file.seek(0)
        data = self._file.read(_LARGEST)
        end = data.rfind(b"\n") + 1
        self._file.truncate(end)
        for number, text in enumerate(data[:end].splitlines(), 1):
            try:
                line = json.loads(text)
                if not isinstance(line["key"], str) or not isinstance(line.get("outcomes", {}), dict):
                    raise ValueError("not a result")
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise ConfigurationError(f"{self.folder / LINES}, line {number}: is no result ({error}).") from error
            yield line


def table_of(sweep: Sweep, results: Results) -> dict[str, NDArray[Any]]:
    """Return a column for each axis, for the seed and for each outcome; a row for each job that is done, in order."""
    lines = [results.done[key] for job in sweep.jobs() if (key := job.key(sweep.common)) in results.done]
    columns: dict[str, list[Any]] = {
        axis.setting: [line["point"][axis.setting] for line in lines] for axis in sweep.axes
    }
    columns["seed"] = [line["seed"] for line in lines]
    for name in dict.fromkeys(name for line in lines for name in line["outcomes"]):
        columns[name] = [math.nan if (value := line["outcomes"].get(name)) is None else value for line in lines]
    return {name: np.array(values) for name, values in columns.items()}


def write_tables(sweep: Sweep, results: Results) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Write the table as NPZ, and as Parquet where pandas and pyarrow are installed; return it and the files."""
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
