"""The suite: run every motion in every cell and compute the metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from apps.conformance import metrics, motions
from apps.conformance.cells import CELLS, FRICTION, RAW, Cell
from apps.conformance.limits import METRICS, Row
from apps.conformance.motions import Motion
from apps.conformance.subjects import Subject
from haptics.device import Causality
from haptics.records import Rows

MICRO = 1e6


def run_cell(subject: Subject, cell: Cell) -> Row:
    """Run all motions of `subject` in `cell` and return the result row."""
    row: Row = {
        "element": subject.name,
        "grip": cell.grip.name,
        "quantisation_um": cell.quantisation_um,
        "rate_hz": cell.rate,
        "velocity": cell.velocity,
        "causality": str(subject.causality),
    }
    with np.errstate(all="ignore"):  # an unstable renderer may overflow
        for part in (_hold, _fluctuation, _breakaway, _sliding, _circle):
            row.update(part(subject, cell))
    for metric in METRICS:
        value = row[metric.key]
        row[metric.key] = value if value is not None and math.isfinite(value) else None
    return row


def _watched(subject: Subject, cell: Cell, motion: Motion) -> Rows | None:
    """Return the rows of `motion` after its settling time."""
    rows = subject.run(cell, motion)
    return None if rows is None else rows[round(motion.settling * cell.rate) :]


def _hold(subject: Subject, cell: Cell) -> Row:
    rows = _watched(subject, cell, motions.HOLD)
    if rows is None:
        return {"hold_drift_um_s": None, "buzz_n_rms": None}
    return {
        "hold_drift_um_s": metrics.hold_drift(rows, cell.rate) * MICRO,
        "buzz_n_rms": metrics.buzz(rows, cell.rate),
    }


def _fluctuation(subject: Subject, cell: Cell) -> Row:
    """Compare the last cycle before the observation time with its last cycle, nine seconds later."""
    rows = subject.run(cell, motions.FLUCTUATION)
    if rows is None:
        return {"fluctuation_drift_um": None}
    cycle = round(cell.rate / motions.FLUCTUATION_FREQUENCY)
    start = round(motions.SETTLING * cell.rate)
    return {"fluctuation_drift_um": metrics.net_drift(rows[start - cycle : start], rows[-cycle:]) * MICRO}


def _breakaway(subject: Subject, cell: Cell) -> Row:
    rows = subject.run(cell, motions.BREAKAWAY)
    force = None if rows is None else metrics.breakaway_force(rows, cell.rate)
    return {"breakaway_error": None if force is None else metrics.relative(force)}


def _sliding(subject: Subject, cell: Cell) -> Row:
    """Return the worst values over all speeds and directions.

    The anisotropy is the larger of both speeds.
    """
    errors: list[float] = []
    stds: list[float] = []
    spreads = []
    buzzes = []
    for speed in motions.SLIDING_SPEEDS:
        means = []
        for direction in motions.DIRECTIONS:
            rows = _watched(subject, cell, motions.SLIDES[speed, direction])
            if rows is None:
                return dict.fromkeys(("sliding_error", "sliding_std", "isotropy", "buzz_sliding_n_rms"))
            force = metrics.opposing(rows, direction)
            means.append(float(force.mean()))
            stds.append(float(force.std()))
            buzzes.append(metrics.sliding_buzz(rows, cell.rate))
        errors += [metrics.relative(mean) for mean in means]
        spreads.append(metrics.spread(means))
    return {
        "sliding_error": metrics.worst(errors),
        "sliding_std": max(stds) / FRICTION,
        "isotropy": metrics.largest(spreads),
        "buzz_sliding_n_rms": max(buzzes),
    }


def _circle(subject: Subject, cell: Cell) -> Row:
    rows = _watched(subject, cell, motions.CIRCLE)
    return {"direction_error_deg_p95": None if rows is None else metrics.direction_error_p95(rows)}


def judge_all(
    subjects: Sequence[Subject], cells: Sequence[Cell] = CELLS, progress: Callable[[int, int, str], None] | None = None
) -> list[Row]:
    """Judge all `subjects` in all `cells`; call ``progress(done, total, words)`` before each.

    All subjects run in a cell before the next one, so that the hand's motions are computed once.
    """
    pairs = [(cell, subject) for cell in sorted(cells, key=_plant_of) for subject in subjects]
    found = {}
    for done, (cell, subject) in enumerate(pairs):
        if progress is not None:
            progress(done, len(pairs), f"{subject.name}: {cell.name}")
        found[subject.name, cell] = run_cell(subject, cell)
    return [found[subject.name, cell] for subject in subjects for cell in cells]


def judge_raw(subjects: Sequence[Subject]) -> list[Row]:
    """Judge the impedance `subjects` in the cell `RAW`, with the difference of positions as velocity."""
    return [run_cell(subject, RAW) for subject in subjects if subject.causality is Causality.IMPEDANCE]


def _plant_of(cell: Cell) -> tuple[str, float]:
    return cell.grip.name, cell.rate
