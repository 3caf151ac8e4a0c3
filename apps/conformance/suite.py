"""The suite: run every motion in every cell, compute the metrics, and compare them with their limits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.conformance import cells
from apps.conformance.cells import CELLS, FRICTION, Cell, Motion
from apps.conformance.subjects import Subject
from haptics.records import Rows

Result = dict[str, Any]
"""Result of one renderer in one cell, with the keys of the JSON output. A metric without a finite value is None."""


@dataclass(frozen=True)
class Metric:
    """Metric, a column of the result.

    Attributes
    ----------
    key : str
        Key in a row.
    title : str
        Title.
    unit : str
        Display unit.
    scale : float
        Factor from the value in a row to the display unit.
    limit : float
        Maximum magnitude, in the unit of the row; infinite for a metric without limit.
    """

    key: str
    title: str
    unit: str
    scale: float
    limit: float = math.inf

    @property
    def is_judged(self) -> bool:
        """Whether the metric has a limit."""
        return math.isfinite(self.limit)

    def shown(self, value: float | None) -> str:
        """Format `value`, given in the unit of a row, in the display unit with three digits, at most three decimals."""
        if value is None:
            return "none"
        scaled = value * self.scale
        if scaled == 0.0:
            return "0"
        if abs(scaled) >= 99999.5:
            return f"{scaled:.1e}"
        decimals = sum(abs(scaled) < bound for bound in (1.0, 10.0, 100.0))
        return f"{scaled:.{decimals}f}"

    def excess(self, row: Mapping[str, Any]) -> float:
        """Return the magnitude in `row` relative to the limit.

        The result is infinite if the value of a limited metric is missing.
        """
        if not self.is_judged:
            return 0.0
        value = row[self.key]
        return float("inf") if value is None else abs(value) / self.limit


METRICS: tuple[Metric, ...] = (
    Metric("hold_drift_um_s", "hold drift", "um/s", 1.0, 1.0),
    Metric("fluctuation_drift_um", "fluctuation drift", "um", 1.0, 9.0),
    Metric("breakaway_error", "break-away error", "%", 100.0, 0.01),
    Metric("sliding_error", "sliding error", "%", 100.0, 0.001),
    Metric("sliding_std", "sliding std", "%", 100.0, 0.005),
    Metric("direction_error_deg_p95", "direction error", "deg", 1.0, 1.0),
    Metric("isotropy", "anisotropy", "%", 100.0, 0.001),
    Metric("buzz_n_rms", "buzz", "N rms", 1.0, 0.05),
    Metric("buzz_sliding_n_rms", "sliding buzz", "N rms", 1.0),
)


def passes(row: Mapping[str, Any]) -> bool:
    """Return True if every metric of `row` is within its limit."""
    return all(metric.excess(row) <= 1.0 for metric in METRICS)


def worst(metric: Metric, rows: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the value of `metric` that exceeds its limit most in `rows`."""
    if metric.is_judged:
        value: float | None = max(rows, key=metric.excess)[metric.key]
        return value
    values = [row[metric.key] for row in rows]
    return None if None in values else max(values, key=abs)


MICRO = 1e6


_MEASURED = (
    *("hold_drift_um_s", "buzz_n_rms", "fluctuation_drift_um", "breakaway_error"),
    *("sliding_error", "sliding_std", "isotropy", "buzz_sliding_n_rms", "direction_error_deg_p95"),
)
"""Keys of the metrics in the order of a row."""


def run_cell(subject: Subject, cell: Cell) -> Result:
    """Run all motions of `subject` in `cell` and return the result row."""
    row: Result = {
        "element": subject.name,
        "grip": cell.grip.name,
        "quantisation_um": cell.quantisation_um,
        "rate_hz": cell.rate,
        "velocity": cell.velocity,
        "causality": str(subject.causality),
        **dict.fromkeys(_MEASURED),
    }
    with np.errstate(all="ignore"):  # an unstable renderer may overflow
        if (rows := _observed(subject, cell, cells.HOLD)) is not None:
            row["hold_drift_um_s"] = hold_drift(rows, cell.rate) * MICRO
            row["buzz_n_rms"] = buzz(rows, cell.rate)
        if (rows := subject.run(cell, cells.FLUCTUATION)) is not None:
            # the last cycle before the observation time, and the last cycle of it, nine seconds later
            cycle, start = round(cell.rate / cells.FLUCTUATION_FREQUENCY), round(cells.SETTLING * cell.rate)
            row["fluctuation_drift_um"] = net_drift(rows[start - cycle : start], rows[-cycle:]) * MICRO
        if (rows := subject.run(cell, cells.BREAKAWAY)) is not None:
            row["breakaway_error"] = breakaway_force(rows, cell.rate) / FRICTION - 1.0
        row |= _sliding(subject, cell)
        if (rows := _observed(subject, cell, cells.CIRCLE)) is not None:
            row["direction_error_deg_p95"] = direction_error_p95(rows)
    return row | {key: row[key] if math.isfinite(row[key] or 0.0) else None for key in _MEASURED}


def _observed(subject: Subject, cell: Cell, motion: Motion) -> Rows | None:
    """Return the rows of `motion` after its settling time."""
    rows = subject.run(cell, motion)
    return None if rows is None else rows[round(motion.settling * cell.rate) :]


def _sliding(subject: Subject, cell: Cell) -> Result:
    """Return the worst values over all speeds and directions.

    The anisotropy is the larger of both speeds.
    """
    errors: list[float] = []
    stds: list[float] = []
    buzzes: list[float] = []
    spreads: list[float | None] = []
    for speed in cells.SLIDING_SPEEDS:
        means = []
        for direction in cells.DIRECTIONS:
            rows = _observed(subject, cell, cells.SLIDES[speed, direction])
            if rows is None:
                return {}
            force = -rows["force"] @ np.array((np.cos(direction), np.sin(direction)))
            means.append(float(force.mean()))
            stds.append(float(force.std()))
            buzzes.append(sliding_buzz(rows, cell.rate))
        errors += [mean / FRICTION - 1.0 for mean in means]
        spreads.append(spread(means))
    return {
        "sliding_error": max(errors, key=abs),
        "sliding_std": max(stds) / FRICTION,
        "isotropy": None if None in spreads else max(one for one in spreads if one is not None),
        "buzz_sliding_n_rms": max(buzzes),
    }


def judge_all(
    subjects: Sequence[Subject],
    conditions: Sequence[Cell] = CELLS,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Result]:
    """Judge all `subjects` in all `conditions`; call ``progress(done, total, words)`` before each.

    All subjects run in a cell before the next one, so that the hand's motions are computed once.
    """
    ordered = sorted(conditions, key=lambda cell: (cell.grip.name, cell.rate))
    pairs = list(itertools.product(ordered, subjects))
    found = {}
    for done, (cell, subject) in enumerate(pairs):
        if progress is not None:
            progress(done, len(pairs), f"{subject.name}: {cell.name}")
        found[subject.name, cell] = run_cell(subject, cell)
    return [found[subject.name, cell] for subject in subjects for cell in conditions]


# --- metrics ------------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]

SLIP_DISTANCE = 2e-3
"""Displacement that counts as break-away [m]: three times the elongation of a coupling of 6000 N/m under 4 N."""

AVERAGING = 0.02
"""Averaging time of the break-away force [s], so that a chattering force counts with its mean."""

LOWEST_BUZZ = 10.0
"""Lower cutoff frequency of the buzz [Hz]."""


def hold_drift(rows: Rows, rate: float) -> float:
    """Return the speed [m/s] of the linear fit to the position."""
    t = np.arange(len(rows)) / rate
    t -= t.mean()
    position = rows["position"] - rows["position"].mean(axis=0)
    slope = t @ position / (t @ t)
    return float(np.hypot(*slope))


def net_drift(before: Rows, after: Rows) -> float:
    """Return the distance [m] between the mean positions in two equal sections of a periodic motion."""
    way = after["position"].mean(axis=0) - before["position"].mean(axis=0)
    return float(np.hypot(*way))


def breakaway_force(rows: Rows, rate: float) -> float:
    """Return the maximum force [N] against a growing push, up to a motion of `SLIP_DISTANCE`.

    The force is the component against the push, averaged over `AVERAGING`. For a law that creeps, the result is the
    force at which the creep has covered this distance.
    """
    moved = np.flatnonzero(np.hypot(*(rows["position"] - rows["position"][0]).T) > SLIP_DISTANCE)
    end = moved[0] + 1 if len(moved) else len(rows)
    against = -rows["force"][:end] @ cells.PUSH_DIRECTION
    width = min(max(round(AVERAGING * rate), 1), len(against))
    total = np.concatenate(([0.0], np.cumsum(against)))
    return float((total[width:] - total[:-width]).max() / width)


def direction_error_p95(rows: Rows) -> float:
    """Return the 95th percentile of the angle [deg] between the motion and the opposite of the force.

    A tick without force counts as 90 degrees.
    """
    v, f = rows["velocity"], -rows["force"]
    cross, dot = v[:, 0] * f[:, 1] - v[:, 1] * f[:, 0], np.sum(v * f, axis=1)
    angles = np.where(np.hypot(*f.T) > 0.0, np.abs(np.arctan2(cross, dot)), 0.5 * np.pi)
    return float(np.degrees(np.percentile(angles, 95.0)))


def buzz(rows: Rows, rate: float) -> float:
    """Return the rms of the force on the hand above `LOWEST_BUZZ`, both components [N].

    It contains chatter and limit cycles.
    """
    return _above(rows["felt"] - rows["felt"].mean(axis=0), rate)


def sliding_buzz(rows: Rows, rate: float) -> float:
    """Return the buzz while the handle slides [N].

    The force of a motion that still settles has different values at both ends. A Hann window prevents leakage of this
    difference into the buzz.
    """
    window = np.hanning(len(rows) + 2)[1:-1]
    faded = (rows["felt"] - rows["felt"].mean(axis=0)) * window[:, None]
    return _above(faded, rate) / float(np.sqrt(np.mean(window**2)))


def _above(force: Array, rate: float) -> float:
    """Return the rms of a force (n, 2) above `LOWEST_BUZZ`."""
    spectrum = np.fft.rfft(force, axis=0)
    spectrum[np.fft.rfftfreq(len(force), 1.0 / rate) <= LOWEST_BUZZ] = 0.0
    high = np.fft.irfft(spectrum, len(force), axis=0)
    return float(np.sqrt(np.mean(np.sum(high**2, axis=1))))


def spread(means: Sequence[float]) -> float | None:
    """Return the range of `means` relative to their mean; None if the mean is not positive."""
    mean = sum(means) / len(means)
    return (max(means) - min(means)) / mean if mean > 0.0 else None
