"""Figures of stimuli (specified, delivered, felt) and of timing (reaction times, tick delays)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from apps.experiment.journal.tables import Row
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, PALE, dress
from apps.shared.figure import new_figure, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def intervals_of(rows: Sequence[Row]) -> list[dict[str, float | None]]:
    """Return the specified, delivered and felt stimuli, with intervals, of every measured presentation."""
    names = ("asked", "delivered", "felt", "felt_low", "felt_high")
    found = [{name: row[f"{name}_{number}"] for name in names} for row in rows for number in (1, 2)]
    return [one for one in found if one["asked"] is not None and one["delivered"] is not None]


def stimulus_figure(rows: Sequence[Row], unit: str) -> str | None:
    """Return the figure of the stimuli, or None if nothing was measured."""
    found = intervals_of(rows)
    if not found:
        return None
    figure = new_figure(11.0, 3.3)
    first, second, third = figure.subplots(1, 3)
    asked, delivered = (np.array([one[name] for one in found], dtype=float) for name in ("asked", "delivered"))
    _against(first, asked, delivered, BLUE, ("asked", "delivered"), unit)
    felt = [one for one in found if one["felt"] is not None]
    if felt:
        given, got = (np.array([one[name] for one in felt], dtype=float) for name in ("delivered", "felt"))
        ends = np.array([[one["felt_low"] or np.nan, one["felt_high"] or np.nan] for one in felt], dtype=float)
        second.vlines(given, ends[:, 0], ends[:, 1], color=GREEN, alpha=0.35, linewidth=0.8)
        _against(second, given, got, GREEN, ("delivered", "felt"), unit)
    else:
        dress(second, "delivered", "felt")
        second.text(0.5, 0.5, "not known", transform=second.transAxes, ha="center", color=PALE)
    _deviations(third, found, unit)
    return svg(figure)


def _against(axes: Axes, x: np.ndarray, y: np.ndarray, colour: str, names: tuple[str, str], unit: str) -> None:
    bracket = f" [{unit}]" if unit else ""
    dress(axes, f"{names[0]}{bracket}", f"{names[1]}{bracket}", f"{names[1]} against {names[0]}")
    ends = [min(x.min(), y.min()), max(x.max(), y.max())]
    axes.plot(ends, ends, color=INK, linewidth=0.8, linestyle=":")
    axes.plot(x, y, ".", color=colour, markersize=4.5, alpha=0.5)


def _deviations(axes: Axes, found: Sequence[dict[str, float | None]], unit: str) -> None:
    dress(axes, f"asked [{unit}]" if unit else "asked", "deviation from asked [%]", "deviation")
    axes.axhline(0.0, color=INK, linewidth=0.8, linestyle=":")
    for name, colour in (("delivered", BLUE), ("felt", GREEN)):
        pairs = [(one["asked"], one[name]) for one in found if one["asked"] and one[name] is not None]
        if pairs:
            x, y = np.array(pairs, dtype=float).T
            axes.plot(x, 100.0 * (y / x - 1.0), ".", color=colour, markersize=4.5, alpha=0.5, label=name)
    axes.legend(loc="best", fontsize=8.5, framealpha=0.9)


def timing_figure(rows: Sequence[Row], certificates: Sequence[dict[str, Any]]) -> str | None:
    """Return the figure of reaction times and start delays of ticks, or None if both are unknown."""
    timed = [row for row in rows if row["reaction_time_s"] is not None]
    times, judged = [float(row["reaction_time_s"]) for row in timed], [row["correct"] for row in timed]
    histogram = delays_of(certificates)
    if not times and histogram is None:
        return None
    figure = new_figure(11.0, 2.9)
    first, second = figure.subplots(1, 2)
    _answers(first, times, [bool(row["correct"]) for row in timed] if any(one is not None for one in judged) else None)
    _delays(second, histogram)
    return svg(figure)


def _answers(axes: Axes, times: Sequence[float], right: Sequence[bool] | None) -> None:
    """Draw the histograms of all reaction times and of those with right answers."""
    dress(axes, "reaction time [s]", "trials", "answers")
    if not times:
        axes.text(0.5, 0.5, "not known", transform=axes.transAxes, ha="center", color=PALE)
        return
    bins = np.linspace(0.0, max(float(np.quantile(times, 0.995)), 0.1), 40).tolist()
    axes.hist(times, bins=bins, color=BLUE if right is None else ORANGE, label="wrong")
    if right is not None:
        axes.hist([one for one, good in zip(times, right, strict=True) if good], bins=bins, color=BLUE, label="right")
        axes.legend(loc="upper right", fontsize=8.5, framealpha=0.9)


def delays_of(certificates: Sequence[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the bin edges [us] and the summed counts of the start delays of all recordings, or None."""
    held = [one["histograms"] for one in certificates if isinstance(one.get("histograms"), dict)]
    held = [one for one in held if one.get("edges_us") and one.get("period_error_us")]
    if not held:
        return None
    return np.array(held[0]["edges_us"]), np.sum([one["period_error_us"] for one in held], axis=0)


def _delays(axes: Axes, histogram: tuple[np.ndarray, np.ndarray] | None) -> None:
    dress(axes, "start delay of a tick [µs]", "ticks", "punctuality of the ticks")
    if histogram is None or not histogram[1].sum():
        axes.text(0.5, 0.5, "no recording", transform=axes.transAxes, ha="center", color=PALE)
        return
    edges, counts = histogram
    if np.flatnonzero(counts)[-1] == 0:
        axes.text(0.5, 0.5, "no clock: no tick was late", transform=axes.transAxes, ha="center", color=PALE)
        return
    axes.stairs(counts, np.maximum(edges, 0.05), fill=True, color=BLUE, alpha=0.85)
    used = np.flatnonzero(counts)
    axes.set(xscale="log", yscale="log", ylim=(0.7, None))
    axes.set_xlim(max(edges[used[0]], 0.05) / 1.5, edges[min(used[-1] + 1, len(edges) - 1)] * 1.5)
