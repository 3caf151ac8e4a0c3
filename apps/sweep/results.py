"""Results of a sweep: one line for each completed job, a table of all jobs, the agreement with the bound, a picture.

The agreement compares simulated stability with the eigenvalue bound for each cell. The picture shows each outcome as a
curve over one axis or as a map over two; outcomes are averaged over the other axes.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apps.shared.theme import LIGHT
from apps.sweep.design import AxisSettings, Job, Sweep
from haptics.errors import ConfigurationError
from haptics.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
            import fcntl

            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ConfigurationError(
                    f"{folder}: another program runs this sweep there; wait until it has ended."
                ) from None
            description = folder / DESCRIPTION
            if not description.exists():
                write_atomically(description, self._common + "\n")
            elif description.read_text(encoding="utf-8").strip() != self._common:
                raise ConfigurationError(
                    f"{folder} has results of another sweep, or of this file before a change: name another --out."
                )
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
                try:
                    line: dict[str, Any] = json.loads(text)
                    if len(bytes.fromhex(line["key"])) != _KEY or not isinstance(line.get("outcomes", {}), dict):
                        raise ValueError("not a result")
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    place = f"{self.folder / LINES}, line {number}"
                    raise ConfigurationError(f"{place}: is no result ({error}).") from error
                yield line

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


def table_of(sweep: Sweep, results: Results) -> dict[str, NDArray[Any]]:
    """Return the columns axes, seed and outcomes, with a row for each completed job, in order.

    An outcome is a column of integers if all its values are integers.
    """
    jobs = {bytes.fromhex(job.key(sweep.common)): job for job in sweep.jobs() if results.is_done(job)}
    table = {axis.setting: np.array([job.point[axis.setting] for job in jobs.values()]) for axis in sweep.axes}
    table["seed"] = np.array([job.seed for job in jobs.values()], np.int64)
    places = {key: place for place, key in enumerate(jobs)}
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
    return table | {name: column.astype(np.int64) if name in whole else column for name, column in found.items()}


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


# --- agreement with the eigenvalue bound --------------------------------------------------------------------------

BOUND = "bound_growth_per_s"

Table = dict[str, NDArray[Any]]


def agreement(sweep: Sweep, table: Table) -> dict[str, Any] | None:
    """Count the grid cells in which simulation and eigenvalue bound agree, and classify the other cells.

    Returns
    -------
    dict or None
        Numbers of cells. ``cells`` have a bound, ``agree`` have the same result by both methods. Of the cells that
        differ, ``border`` are next to a cell with the opposite bound, and ``inside`` are all others. Of the cells that
        differ, ``slow`` grow or decay by less than a factor of e during the session, ``quiet`` are stable although the
        bound is clearly violated, and ``loud`` are unstable although the bound is met. None if the sweep lacks one of
        the two outcomes or is not a complete grid.
    """
    counts = [len(axis.all()) for axis in sweep.axes]
    whole = sweep.settings.design == "grid" and sweep.settings.repeats == 1
    if not whole or not {"stable", BOUND} <= table.keys() or len(table[BOUND]) != int(np.prod(counts)):
        return None
    growth = table[BOUND].astype(float).reshape(counts)
    known, stable = np.isfinite(growth), table["stable"].reshape(counts) == 1
    differ = known & (stable != (growth < 0.0))
    slow = differ & (np.abs(growth) * sweep.settings.duration < 1.0)
    good, beside = growth < 0.0, np.zeros_like(known)  # next to a known cell of the opposite bound, also diagonally
    for step in itertools.product((-1, 0, 1), repeat=good.ndim):
        here = tuple(slice(max(-s, 0), n + min(-s, 0)) for s, n in zip(step, good.shape, strict=True))
        there = tuple(slice(max(s, 0), n + min(s, 0)) for s, n in zip(step, good.shape, strict=True))
        beside[here] |= known[there] & (good[there] != good[here])
    border = differ & beside
    numbers = {
        "cells": known,
        "agree": known & ~differ,
        "border": border,
        "inside": differ & ~border,
        "slow": slow,
        "quiet": differ & ~slow & stable,
        "loud": differ & ~slow & ~stable,
    }
    return {name: int(np.count_nonzero(cells)) for name, cells in numbers.items()}


def describe_agreement(found: dict[str, Any]) -> str:
    """Return the agreement as text."""
    return (
        f"bound: {found['agree']} of {found['cells']} cells agree; {found['border']} differ at its border, "
        f"{found['inside']} elsewhere ({found['slow']} too slow for the session to show, {found['quiet']} quiet beyond "
        f"it, {found['loud']} unstable within it)"
    )


# --- picture ------------------------------------------------------------------------------------------------------

PICTURE = "sweep.png"
MOST_PANELS = 9
_MOST_SLICES, _OF_SLICES = 6, 4
_DPI = {False: 100, True: 64}
_NOT_DRAWN = {"seed", "flags", "unusable_ticks"}


def draw(sweep: Sweep, table: Table, folder: Path) -> str | None:
    """Draw the outcomes of a sweep.

    Return the path of the picture, or None if nothing can be drawn.
    """
    axes = [axis for axis in sweep.axes if _is_number(table[axis.setting]) and len(np.unique(table[axis.setting])) > 1]
    axis_names = {axis.setting for axis in sweep.axes}
    drawn = [name for name in table if name not in _NOT_DRAWN | axis_names and _is_number(table[name])]
    names = [name for name in drawn if np.isfinite(table[name].astype(float)).any()]
    if not axes or not names:
        return None
    from matplotlib.figure import Figure

    # A slice for each combination of the axes that no panel shows. With too many slices, the panels show means.
    rest = [axis.setting for axis in sweep.axes if axis not in axes[:2] and len(np.unique(table[axis.setting])) > 1]
    values = [list(dict.fromkeys(table[name].tolist())) for name in rest]
    slices = [("", table)]
    if sweep.settings.design == "grid" and rest and math.prod(map(len, values)) <= _MOST_SLICES:
        slices = []
        for point in itertools.product(*values):
            chosen = np.all([table[name] == value for name, value in zip(rest, point, strict=True)], axis=0)
            words = ", ".join(f"{name} = {value}" for name, value in zip(rest, point, strict=True))
            slices.append((f"\n{words}", {name: column[chosen] for name, column in table.items()}))
    names = names[: MOST_PANELS if len(slices) == 1 else _OF_SLICES]
    columns = min(3, len(names)) if len(slices) == 1 else len(names)
    lines = math.ceil(len(names) * len(slices) / columns)
    figure = Figure(figsize=(4.6 * columns, 3.6 * lines), dpi=_DPI[len(slices) > 1], facecolor="white")
    figure.set_layout_engine("constrained")
    panels = np.atleast_1d(figure.subplots(lines, columns)).ravel()
    wanted = [(title, part, name) for title, part in slices for name in names]
    for panel, (title, part, name) in zip(panels, wanted, strict=False):
        _panel(panel, part, name, axes[:2], grid=sweep.settings.design == "grid")
        panel.set_title(name.replace("_", " ") + title, fontsize=10)
    for panel in panels[len(wanted) :]:
        panel.set_axis_off()
    path = folder / PICTURE
    figure.savefig(path, format="png")
    return str(path)


def _is_number(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "fiub"


def _means(values: NDArray[Any], places: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    """Return the mean of the finite `values` at each place, shape (count,), nan without values."""
    values = values.astype(float)
    finite = np.isfinite(values)
    number = np.bincount(places[finite], minlength=count)
    total = np.bincount(places[finite], values[finite], minlength=count)
    return np.where(number > 0, total / np.maximum(number, 1), math.nan)


def _panel(axes: Axes, table: Table, name: str, shown: list[AxisSettings], *, grid: bool) -> None:
    """Draw an outcome over one or two axes of the sweep.

    The points of a drawn design are dots. A grid is a map of means, or a curve of means with every job as a pale dot.
    """
    values, places = table[name].astype(float), [table[axis.setting].astype(float) for axis in shown]
    if grid and len(shown) > 1:
        (columns, column), (lines, line) = (np.unique(one, return_inverse=True) for one in places)
        cells = line * len(columns) + column
        means = _means(values, cells, len(columns) * len(lines)).reshape(len(lines), len(columns))
        mesh = axes.pcolormesh(columns, lines, means, shading="nearest", cmap="viridis")
        axes.figure.colorbar(mesh, ax=axes)
        if BOUND in table and name != BOUND and np.isfinite(table[BOUND].astype(float)).all():
            bound = _means(table[BOUND], cells, means.size).reshape(means.shape)
            axes.contour(columns, lines, bound, levels=[0.0], colors=LIGHT.force, linewidths=1.6)
    elif grid:
        levels, cells = np.unique(places[0], return_inverse=True)
        axes.plot(*places, values, ".", color=LIGHT.border, markersize=3)
        axes.plot(levels, _means(values, cells, len(levels)), "-", color=LIGHT.motion, linewidth=1.6)
    elif len(shown) > 1:
        axes.figure.colorbar(axes.scatter(places[0], places[1], c=values, s=12, cmap="viridis"), ax=axes)
    else:
        axes.plot(*places, values, ".", color=LIGHT.motion, markersize=4)
    axes.set(xlabel=shown[0].setting, xscale=shown[0].scale)
    if len(shown) > 1:
        axes.set(ylabel=shown[1].setting, yscale=shown[1].scale)
