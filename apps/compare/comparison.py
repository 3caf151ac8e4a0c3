"""Comparison of two recordings: summary figures of each, differences in the common ticks, and a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from apps.shared.theme import LIGHT
from haptics.device import Causality
from haptics.errors import ConfigurationError
from haptics.recording.certificate import Distribution
from haptics.recording.recording import Recording
from haptics.recording.tick_file import Table, TableInMemory
from haptics.records import ROW_UNITS, Rows, column

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OPEN_LOOP = "LOOP OPEN: answers to the samples of A; no hand has felt them"
"""Label of a side whose forces did not act on the hand that is shown."""


@dataclass(frozen=True)
class Side:
    """Run shown on one side of the view.

    Attributes
    ----------
    title : str
        Title of the side.
    source : Recording, table or structured array
        Ticks of the run.
    metadata : mapping
        As for `apps.view.replay.run`.
    open_loop : bool
        True if the rows were computed from the samples of the other run.
    """

    title: str
    source: Recording | Table | Rows
    metadata: Mapping[str, Any]
    open_loop: bool = False


COMPARED = ("position", "velocity", "force", "command", "friction_force", "proxy", "hand_force")
"""Columns that are compared tick by tick. The first describe the device and the hand, the others the rendering."""

_SIDES = ("a", "b")

Figures = list[tuple[str, str, float | None, float | None]]
"""Name, unit, and the values of both runs."""


@dataclass
class Difference:
    """Difference of a column over the ticks that both recordings have.

    Attributes
    ----------
    column, unit : str
        Name and unit of the column.
    rms, largest : float or None
        Root mean square and maximum of the norm of the difference; None if no tick has finite values in both.
    first_tick : int or None
        First tick that differs; None if all bits are equal.
    """

    column: str
    unit: str
    rms: float | None
    largest: float | None
    first_tick: int | None


@dataclass(frozen=True)
class Comparison:
    """Result of comparing two recordings.

    Attributes
    ----------
    recordings : (Recording, Recording)
        A and B.
    figures : list of (str, str, float or None, float or None)
        Name, unit, and the value of each recording.
    ticks : int
        Number of common ticks.
    differences : list of Difference
        One for each of `COMPARED`.
    settings : dict
        Settings that differ, with the values of both.
    """

    recordings: tuple[Recording, Recording]
    figures: Figures
    ticks: int
    differences: list[Difference]
    settings: dict[str, tuple[Any, Any]]

    @classmethod
    def of(cls, first: Recording, second: Recording) -> Self:
        """Compare two recordings.

        Raises
        ------
        ConfigurationError
            If a recording has no ticks.
        """
        for recording in (first, second):
            if not len(recording):
                raise ConfigurationError(f"{recording.folder} has no ticks to compare.")
        impedance = first.metadata.get("device", {}).get("causality") == Causality.IMPEDANCE
        units = {**ROW_UNITS, "command": "N" if impedance else "m"}
        differences = [Difference(name, units[name], 0.0, 0.0, None) for name in COMPARED]
        count, finite = 0, [0] * len(COMPARED)
        squares, largest = [0.0] * len(COMPARED), [0.0] * len(COMPARED)
        for one, other in _pairs(first, second):
            count += len(one)
            for k, found in enumerate(differences):
                a, b = (np.asarray(rows[found.column], float) for rows in (one, other))
                unlike = np.flatnonzero(~((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1))
                if found.first_tick is None and len(unlike):
                    found.first_tick = int(one["tick"][unlike[0]])
                with np.errstate(invalid="ignore"):  # the difference of two infinite values is invalid
                    distance = np.linalg.norm(a - b, axis=1)
                distance = distance[np.isfinite(distance)]
                squares[k] += float(np.sum(distance**2))
                finite[k] += len(distance)
                largest[k] = float(np.max(distance, initial=largest[k]))
        for k, found in enumerate(differences):
            if finite[k]:
                found.rms, found.largest = math.sqrt(squares[k] / finite[k]), largest[k]
            elif found.first_tick is not None:
                found.rms = found.largest = None
        mine, its = (dict(_flat(recording.metadata.get("configuration", {}))) for recording in (first, second))
        names = sorted({*mine, *its} - {"session.record", "session.picture"})  # without the output paths
        settings = {name: (mine.get(name), its.get(name)) for name in names if mine.get(name) != its.get(name)}
        return cls((first, second), figures(first, second), count, differences, settings)

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            **{side: str(recording.folder) for side, recording in zip(_SIDES, self.recordings, strict=True)},
            "ticks": self.ticks,
            "figures": [{"name": name, "unit": unit, "a": a, "b": b} for name, unit, a, b in self.figures],
            "differences": [vars(difference) for difference in self.differences],
            "settings": {name: {"a": a, "b": b} for name, (a, b) in self.settings.items()},
        }

    def describe(self) -> str:
        """Return the comparison as text."""
        lines = [f"{side.upper()}  {r.folder}" for side, r in zip(_SIDES, self.recordings, strict=True)]
        lines += ["", described(self.figures)]
        lines += ["", f"{self.ticks} ticks that both have" + (":" if self.ticks else "")]
        for one in self.differences if self.ticks else ():
            words = "the same"
            if one.first_tick is not None:
                words = "numbers in one of them only"
            if one.first_tick is not None and one.rms is not None:
                words = f"differs from tick {one.first_tick} on, by {one.rms:.3g} {one.unit} rms and at most "
                words += f"{one.largest:.3g} {one.unit}"
            lines.append(f"  {one.column.replace('_', ' ')}: {words}")
        if self.settings:
            lines += ["", "settings that differ:"]
            lines += [f"  {name}: {_said(a)} | {_said(b)}" for name, (a, b) in self.settings.items()]
        return "\n".join(lines)


def figures(first: Recording | Table | Rows, second: Recording | Table | Rows) -> Figures:
    """Return the summary figures of two runs."""
    both = zip(_run_figures(first), _run_figures(second), strict=True)
    return [(name, unit, a, b) for (name, unit, a), (_, _, b) in both]


def described(found: Figures) -> str:
    """Format figures as a table."""
    lines = [f"{'':<34}{'A':>12}{'B':>12}"]
    lines += [f"{f'{name} [{unit}]' if unit else name:<34}{_said(a):>12}{_said(b):>12}" for name, unit, a, b in found]
    return "\n".join(lines)


def in_a_line(found: Figures) -> str:
    """Format figures on a single line, A | B, for a label."""
    parts = (f"{name} {_said(a)} | {_said(b)} {unit}".rstrip().replace(" ", "\u00a0") for name, unit, a, b in found)
    return "A | B:\u2002" + "\u2002\u00b7\u2002".join(parts)


def _said(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) and abs(value) < 1e4 else str(value)


# --- ticks --------------------------------------------------------------------------------------------------------


def _pairs(first: Recording, second: Recording) -> Iterator[tuple[Rows, Rows]]:
    """Yield chunks of the rows whose ticks are in both recordings.

    Rows with decreasing ticks are ignored.
    """
    columns = ("tick", *COMPARED)

    def increasing(pieces: Iterator[Rows]) -> Iterator[Rows]:
        latest = -1
        for rows in pieces:
            highest = np.maximum.accumulate(np.concatenate(([latest], rows["tick"])))
            kept = rows[rows["tick"] > highest[:-1]]
            latest = int(highest[-1])
            if len(kept):
                yield kept

    pieces = [increasing(recording.chunks(columns)) for recording in (first, second)]
    empty = first.read(0, 0, columns)
    held = [empty, empty]
    while True:
        for side in (0, 1):
            if not len(held[side]):
                held[side] = next(pieces[side], empty)
        if not (len(held[0]) and len(held[1])):
            return
        upto = min(int(rows["tick"][-1]) for rows in held)
        parts = []
        for side in (0, 1):
            count = int(np.searchsorted(held[side]["tick"], upto, side="right"))
            parts.append(held[side][:count])
            held[side] = held[side][count:]
        _, one, other = np.intersect1d(parts[0]["tick"], parts[1]["tick"], assume_unique=True, return_indices=True)
        yield parts[0][one], parts[1][other]


_DURATIONS = {
    "start delay, p99": "period_error",
    "computation time, p99": "tick_time",
    "sample age, p99": "sample_age",
}
_VECTORS = ("position", "velocity", "friction_force")


def _run_figures(source: Recording | Table | Rows) -> list[tuple[str, str, float | None]]:
    """Return name, unit and value of each summary figure of a recording, a table of ticks, or rows in memory."""
    table = source.table if isinstance(source, Recording) else source
    table = TableInMemory(table) if isinstance(table, np.ndarray) else table
    count = stuck = steps = sliding = 0
    path = mean = spread = 0.0
    place: Rows | None = None
    largest = dict.fromkeys(("largest speed", "friction, largest", "injected energy, largest"), -math.inf)
    durations = {name: Distribution() for name in _DURATIONS}
    for rows in table.chunks((*_VECTORS, "sticking", "injected_energy", *_DURATIONS.values())):
        if not len(rows):
            continue
        count += len(rows)
        position = rows["position"].copy()
        before = position[:1] if place is None else place
        way = np.hypot(*np.diff(position, axis=0, prepend=before).T)[place is None :]
        way = way[np.isfinite(way)]
        path, steps, place = path + float(way.sum()), steps + len(way), position[-1:]
        force = norm_of(rows, "friction_force")
        for name, values in zip(largest, (norm_of(rows, "velocity"), force, rows["injected_energy"]), strict=True):
            largest[name] = float(np.max(values[np.isfinite(values)], initial=largest[name]))
        stuck += int(np.count_nonzero(rows["sticking"]))
        force = force[(rows["sticking"] == 0) & np.isfinite(force)]
        if len(force):  # mean and sum of squared deviations (Chan et al. 1983)
            own, total = float(np.mean(force)), sliding + len(force)
            apart = own - mean
            spread += float(np.sum((force - own) ** 2)) + apart * apart * sliding * len(force) / total
            mean += apart * len(force) / total
            sliding = total
        for name, distribution in durations.items():
            distribution.add(rows[_DURATIONS[name]])
    speed, friction, energy = (one if math.isfinite(one) else None for one in largest.values())
    numbers: list[tuple[str, str, float | None]] = [
        ("ticks", "", count),
        ("path of the end effector", "m", path if steps else None),
        ("largest speed", "m/s", speed),
        ("share of sticking", "", stuck / count if count else math.nan),
        ("friction while sliding, mean", "N", mean if sliding else None),
        ("friction while sliding, std", "N", math.sqrt(spread / sliding) if sliding else None),
        ("friction, largest", "N", friction),
        ("injected energy, largest", "J", energy),
    ]
    for name, distribution in durations.items():
        value = distribution.percentile(99.0)
        numbers.append((name, "us", None if value is None else 1e6 * value))
    return numbers


def norm_of(rows: Rows, name: str) -> NDArray[np.float64]:
    """Return the norm of a vector column in every row."""
    return np.asarray(np.hypot(*np.asarray(column(rows, name), float).T))


# --- settings -----------------------------------------------------------------------------------------------------


def _flat(table: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat = []
    for name, value in table.items():
        if isinstance(value, dict):
            flat += _flat(value, f"{prefix}{name}.")
        else:
            flat.append((f"{prefix}{name}", value))
    return flat


# --- picture ----------------------------------------------------------------------------------------------------------

_MOST_POINTS = 20_000
_STYLES = ((LIGHT.motion, "-", 1.6), (LIGHT.stick, "--", 1.1))
"""Colour, line style and width of A and B. The narrow dashed line leaves the wide line below it visible."""


def draw(comparison: Comparison, path: Path) -> None:
    """Plot a comparison into a PNG file.

    Raises
    ------
    ConfigurationError
        If the file cannot be written.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.8, 7.2), dpi=100, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2)
    over_time, speed, stretch = (figure.add_subplot(place) for place in (grid[0, :], grid[1, 0], grid[1, 1]))
    for letter, recording, style in zip("AB", comparison.recordings, _STYLES, strict=True):
        rows, (colour, line, width) = _thinned(recording), style
        force, sliding, axis = norm_of(rows, "friction_force"), rows["sticking"] == 0, np.array([1.0, 0.0])
        position = rows["position"][np.isfinite(rows["position"]).all(axis=1)]
        if len(position) > 1 and np.ptp(position, axis=0).any():  # main direction of motion
            axis = np.linalg.svd(position - position.mean(axis=0), full_matrices=False)[2][0]
            axis = axis if axis[np.argmax(np.abs(axis))] > 0.0 else -axis
        name = f"{letter}: {title_of(recording)}"
        over_time.plot(rows["time"], force, line, color=colour, linewidth=width, label=name)
        milli = 1e3 * norm_of(rows, "sliding_velocity")[sliding]
        speed.plot(milli, force[sliding], ".", color=colour, markersize=2.0, alpha=0.5)
        stretch.plot(1e3 * rows["position"] @ axis, rows["friction_force"] @ axis, line, color=colour, linewidth=0.9)
    _label(over_time, "time [s]", "friction force [N]")
    _label(speed, "sliding speed [mm/s]", "friction force [N]")
    _label(stretch, "along the motion [mm]", "friction along it [N]")
    over_time.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, fontsize=9, frameon=False)
    speed.set_ylim(bottom=0.0)
    try:
        with rc_context({"agg.path.chunksize": 2000}):  # bounds the memory of long lines
            figure.savefig(path, format="png")
    except OSError as error:
        raise ConfigurationError(f"--out = {str(path)!r}: cannot be written ({error.strerror or error}).") from error


def _thinned(recording: Recording) -> Rows:
    """Return every n-th row, at most `_MOST_POINTS` rows."""
    columns = ("time", "position", "friction_force", "sliding_velocity", "sticking")
    every, place, kept = max(1, -(-len(recording) // _MOST_POINTS)), 0, [recording.read(0, 0, columns)]
    for rows in recording.chunks(columns):
        kept.append(rows[-place % every :: every].copy())
        place += len(rows)
    return np.concatenate(kept)


def title_of(recording: Recording) -> str:
    """Return model, law and folder of a recording."""
    law = recording.metadata.get("configuration", {}).get("law", {})
    return f"model {recording.metadata.get('model', '?')}, {law.get('name', '?')} ({recording.folder.name})"


def _label(axes: Axes, across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(True, color="#E6E6E6", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
