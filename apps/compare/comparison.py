"""Two recordings compared: what each comes down to, and where the ticks that both have differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.errors import ConfigurationError
from haptics.recording.columns import column
from haptics.recording.recording import Recording
from haptics.records import ROW_UNITS, Rows

COMPARED = ("position", "velocity", "force", "command", "friction_force", "proxy", "hand_force")
"""Columns that are compared tick by tick; hand and device are in the first, the rendering in the others."""

_SIDES = ("a", "b")

Figure = tuple[str, str, Callable[[Rows], float | None]]

Figures = list[tuple[str, str, float | None, float | None]]
"""Name, unit, and the number of each of two runs."""


@dataclass(frozen=True)
class Difference:
    """By how much a column differs in the ticks that both recordings have.

    Attributes
    ----------
    column, unit : str
        Which one.
    rms, largest : float or None
        Of the length of the difference; None where no tick has numbers in both.
    first_tick : int or None
        The first tick in which they differ at all; None if they are the same bits everywhere.
    """

    column: str
    unit: str
    rms: float | None
    largest: float | None
    first_tick: int | None


@dataclass(frozen=True)
class Comparison:
    """What two recordings have in common.

    Attributes
    ----------
    recordings : (Recording, Recording)
        A and B.
    figures : list of (str, str, float or None, float or None)
        Name, unit, and the number of each recording.
    ticks : int
        Ticks that both have.
    differences : list of Difference
        One for each of `COMPARED`.
    settings : dict
        Settings that differ: name to the values of both.
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
            If one of them has no ticks.
        """
        for recording in (first, second):
            if not len(recording.rows):
                raise ConfigurationError(f"{recording.folder} has no ticks: there is nothing to compare.")
        _, one, other = np.intersect1d(first.rows["tick"], second.rows["tick"], return_indices=True)
        pairs = first.rows[one], second.rows[other]
        units = {**ROW_UNITS, "command": "N" if _is_impedance(first) else "m"}
        differences = [_difference(name, units[name], *pairs) for name in COMPARED]
        return cls(
            (first, second), figures(first.rows, second.rows), len(one), differences, _other_settings(first, second)
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            **{side: str(recording.folder) for side, recording in zip(_SIDES, self.recordings, strict=True)},
            "ticks": self.ticks,
            "figures": [{"name": name, "unit": unit, "a": a, "b": b} for name, unit, a, b in self.figures],
            "differences": [vars(difference) for difference in self.differences],
            "settings": {name: {"a": a, "b": b} for name, (a, b) in self.settings.items()},
        }

    def describe(self) -> str:
        """Return all of it in words."""
        lines = [f"{side.upper()}  {r.folder}" for side, r in zip(_SIDES, self.recordings, strict=True)]
        lines += ["", described(self.figures)]
        lines += ["", f"{self.ticks} ticks that both have" + (":" if self.ticks else "")]
        lines += [f"  {_difference_said(difference)}" for difference in self.differences if self.ticks]
        if self.settings:
            lines += ["", "settings that differ:"]
            lines += [f"  {name}: {_said(a)} | {_said(b)}" for name, (a, b) in self.settings.items()]
        return "\n".join(lines)


def figures(first: Rows, second: Rows) -> Figures:
    """Return what the ticks of two runs come down to."""
    return [(name, unit, number(first), number(second)) for name, unit, number in _FIGURES]


def described(found: Figures) -> str:
    """Return figures as a table in words."""
    lines = [f"{'':<34}{'A':>12}{'B':>12}"]
    lines += [f"{f'{name} [{unit}]' if unit else name:<34}{_said(a):>12}{_said(b):>12}" for name, unit, a, b in found]
    return "\n".join(lines)


def in_a_line(found: Figures) -> str:
    """Return figures one after the other, A | B, for a label."""
    parts = (f"{name} {_said(a)} | {_said(b)} {unit}".rstrip().replace(" ", "\u00a0") for name, unit, a, b in found)
    return "A | B:\u2002" + "\u2002\u00b7\u2002".join(parts)


def _said(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) and abs(value) < 1e4 else str(value)


def _difference_said(difference: Difference) -> str:
    name = difference.column.replace("_", " ")
    if difference.first_tick is None:
        return f"{name}: the same"
    if difference.rms is None:
        return f"{name}: numbers in one of them only"
    unit = difference.unit
    return (
        f"{name}: differs from tick {difference.first_tick} on, "
        f"by {difference.rms:.3g} {unit} rms and at most {difference.largest:.3g} {unit}"
    )


# --- ticks --------------------------------------------------------------------------------------------------------


def _is_impedance(recording: Recording) -> bool:
    return bool(recording.metadata.get("device", {}).get("causality") == Causality.IMPEDANCE)


def _difference(name: str, unit: str, one: Rows, other: Rows) -> Difference:
    a, b = (np.asarray(column(rows, name), float) for rows in (one, other))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    unlike = np.flatnonzero(~same.all(axis=1))
    if not len(unlike):
        return Difference(name, unit, 0.0, 0.0, None)
    distance = np.linalg.norm(a - b, axis=1)
    distance = distance[np.isfinite(distance)]
    rms, largest = (float(np.sqrt(np.mean(distance**2))), float(distance.max())) if len(distance) else (None, None)
    return Difference(name, unit, rms, largest, int(one["tick"][unlike[0]]))


def norm_of(rows: Rows, name: str) -> NDArray[np.float64]:
    """Return the length of a vector in every row."""
    return np.asarray(np.hypot(*np.asarray(column(rows, name), float).T))


def _sliding(rows: Rows) -> NDArray[np.float64]:
    """Return the friction force while it slides."""
    return np.asarray(norm_of(rows, "friction_force")[rows["sticking"] == 0])


def _finite(number: Callable[[NDArray[np.float64]], Any], values: NDArray[np.float64]) -> float | None:
    values = values[np.isfinite(values)]
    return float(number(values)) if len(values) else None


def _microseconds(name: str) -> Callable[[Rows], float | None]:
    return lambda rows: _finite(lambda values: 1e6 * np.percentile(values, 99.0), np.asarray(rows[name]))


_FIGURES: tuple[Figure, ...] = (
    ("ticks", "", len),
    ("path of the end effector", "m", lambda rows: _finite(np.sum, np.hypot(*np.diff(rows["position"], axis=0).T))),
    ("largest speed", "m/s", lambda rows: _finite(np.max, norm_of(rows, "velocity"))),
    ("share of sticking", "", lambda rows: float(np.mean(rows["sticking"] != 0))),
    ("friction while sliding, mean", "N", lambda rows: _finite(np.mean, _sliding(rows))),
    ("friction while sliding, std", "N", lambda rows: _finite(np.std, _sliding(rows))),
    ("friction, largest", "N", lambda rows: _finite(np.max, norm_of(rows, "friction_force"))),
    ("injected energy, largest", "J", lambda rows: _finite(np.max, np.asarray(rows["injected_energy"]))),
    ("start delay, p99", "us", _microseconds("period_error")),
    ("computation time, p99", "us", _microseconds("tick_time")),
    ("sample age, p99", "us", _microseconds("sample_age")),
)
"""What a recording comes down to: name, unit, and the function of its rows."""


# --- settings -----------------------------------------------------------------------------------------------------


def _other_settings(first: Recording, second: Recording) -> dict[str, tuple[Any, Any]]:
    """Return the settings in which the configurations differ, where the runs were recorded left out."""
    a, b = (dict(_flat(recording.metadata.get("configuration", {}))) for recording in (first, second))
    names = sorted({*a, *b} - {"session.record", "session.picture"})
    return {name: (a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name)}


def _flat(table: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat = []
    for name, value in table.items():
        if isinstance(value, dict):
            flat += _flat(value, f"{prefix}{name}.")
        else:
            flat.append((f"{prefix}{name}", value))
    return flat
