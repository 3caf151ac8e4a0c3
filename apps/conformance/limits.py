"""The columns of the result, and the limits that a good rendering of friction keeps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
"""One renderer in one cell, with the keys of the JSON output; a metric is None if it has no finite value."""


@dataclass(frozen=True)
class Metric:
    """A column.

    Attributes
    ----------
    key : str
        Its key in a row.
    title : str
        What it is, for people.
    unit : str
        In which people read it.
    scale : float
        What the value in a row is multiplied with for that unit.
    limit : float
        Largest magnitude that passes, in the unit of the row; infinite if the column is shown and not judged.
    """

    key: str
    title: str
    unit: str
    scale: float
    limit: float = math.inf

    @property
    def is_judged(self) -> bool:
        """Whether there is a limit."""
        return math.isfinite(self.limit)

    @property
    def limit_shown(self) -> str:
        """The limit as people read it."""
        return f"<= {self.shown(self.limit)}" if self.is_judged else "none"

    def shown(self, value: float | None) -> str:
        """Return `value`, in the unit of a row, as people read it."""
        if value is None:
            return "none"
        scaled = value * self.scale
        if scaled == 0.0:
            return "0"
        return f"{scaled:.1e}" if abs(scaled) >= 99999.5 else f"{scaled:.{_decimals(scaled)}f}"

    def excess(self, row: Mapping[str, Any]) -> float:
        """Return the magnitude in `row` relative to the limit; infinite if a value that is judged is missing."""
        if not self.is_judged:
            return 0.0
        value = row[self.key]
        return float("inf") if value is None else abs(value) / self.limit


def _decimals(value: float) -> int:
    """Return how many decimals show three digits, three decimals at most."""
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
    """Tell whether every metric of `row` is within its limit."""
    return all(metric.excess(row) <= 1.0 for metric in METRICS)


def worst(metric: Metric, rows: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the value of `metric` that is farthest beyond its limit in `rows`."""
    if metric.is_judged:
        value: float | None = max(rows, key=metric.excess)[metric.key]
        return value
    values = [row[metric.key] for row in rows]
    return None if None in values else max(values, key=abs)
