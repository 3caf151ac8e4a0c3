"""Metrics of the result, and their limits for a good rendering of friction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
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

    @property
    def limit_shown(self) -> str:
        """Formatted limit."""
        return f"<= {self.shown(self.limit)}" if self.is_judged else "none"

    def shown(self, value: float | None) -> str:
        """Format `value`, given in the unit of a row, in the display unit."""
        if value is None:
            return "none"
        scaled = value * self.scale
        if scaled == 0.0:
            return "0"
        return f"{scaled:.1e}" if abs(scaled) >= 99999.5 else f"{scaled:.{_decimals(scaled)}f}"

    def excess(self, row: Mapping[str, Any]) -> float:
        """Return the magnitude in `row` relative to the limit.

        The result is infinite if the value of a limited metric is missing.
        """
        if not self.is_judged:
            return 0.0
        value = row[self.key]
        return float("inf") if value is None else abs(value) / self.limit


def _decimals(value: float) -> int:
    """Return the number of decimals that shows three digits, at most three."""
    size = abs(value)
    return 3 if size < 1.0 else 2 if size < 10.0 else 1 if size < 100.0 else 0


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
