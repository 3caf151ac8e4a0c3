"""Figure of a participant's tracks: levels by trial, right and wrong answers, reversals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from apps.experiment.report.figures.curves import COLUMNS, log_ticks, panels_for, title_of
from apps.experiment.report.results import ConditionResult
from apps.reproduce.style import AMBER, BLUE, GREEN, ORANGE, PINK, SKY, dress
from apps.shared.figure import svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 2.5
_COLOURS = (BLUE, GREEN, PINK, SKY, AMBER)


def tracks_figure(conditions: Sequence[ConditionResult], unit: str) -> str:
    """Return the figure with a panel for each condition."""
    figure, panels = panels_for(len(conditions), _HEIGHT)
    for panel, condition in zip(panels, conditions, strict=True):
        _panel(panel, condition, unit)
    for panel in panels[::COLUMNS]:
        panel.set_ylabel(f"level [{unit}]" if unit else "level")
    return svg(figure)


def _panel(axes: Axes, condition: ConditionResult, unit: str) -> None:
    dress(axes, "trial of the track", "", title_of(condition, unit))
    by_track: dict[tuple[int, str], list[dict[str, object]]] = {}
    for row in condition.rows:
        by_track.setdefault((int(row["session"]), str(row["track"])), []).append(row)
    axes.set_yscale("log")
    for number, (key, rows) in enumerate(sorted(by_track.items())):
        _track(axes, rows, _COLOURS[number % len(_COLOURS)])
        for procedure in condition.procedures:
            if (procedure["session"], procedure["track"]) == key:
                _reversals(axes, procedure)
    for one in condition.differences[:1]:
        if not one.jnd.bound:
            axes.axhline(one.jnd.value, color=ORANGE, linewidth=1.1, linestyle="--", zorder=1)
    levels = [float(row["level"]) for row in condition.rows if row["level"]]
    if levels:
        low, high = 0.8 * min(levels), 1.25 * max(levels)
        axes.set_ylim(low, high)
        log_ticks(axes, low, high, "y")


def _track(axes: Axes, rows: Sequence[dict[str, object]], colour: str) -> None:
    trials, levels = range(1, len(rows) + 1), [float(str(row["level"])) for row in rows]
    axes.plot(trials, levels, color=colour, linewidth=0.9, alpha=0.7, zorder=2)
    faces = [colour if row["correct"] else "white" for row in rows]
    axes.scatter(trials, levels, s=15.0, c=faces, edgecolors=colour, linewidths=0.9, zorder=3)


def _reversals(axes: Axes, procedure: dict[str, object]) -> None:
    found = procedure.get("reversals")
    if not isinstance(found, list) or not found:
        return
    trials, levels = zip(*[(one["trial"], one["level"]) for one in found], strict=True)
    axes.scatter(trials, levels, s=62.0, facecolors="none", edgecolors=ORANGE, linewidths=1.2, zorder=4)
