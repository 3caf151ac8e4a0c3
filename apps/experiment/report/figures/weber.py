"""Figures of Weber fractions: against the reference, and recovered against true values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from apps.experiment.report.figures.curves import log_ticks
from apps.experiment.report.results import Difference, GroupResult, PersonResult
from apps.reproduce.style import BLUE, INK, ORANGE, PALE, dress
from apps.shared.figure import new_figure, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibration.psychometric import Estimate

Point = tuple[float, Difference]


def points_of(person: PersonResult, percent: float) -> list[Point]:
    """Return references and differences of a participant at a percentage, where Weber fractions exist."""
    return [
        (condition.reference, one)
        for condition in person.conditions
        for one in condition.differences
        if one.percent == percent and one.weber is not None
    ]


def person_figure(person: PersonResult, percent: float, unit: str) -> str | None:
    """Return the figure of a participant, or None with fewer than two references."""
    points = points_of(person, percent)
    if len({reference for reference, _ in points}) < 2:
        return None
    figure = new_figure(5.4, 3.2)
    axes = figure.subplots()
    _ground(axes, [reference for reference, _ in points], percent, unit)
    _bars(axes, [(reference, one.weber) for reference, one in points if one.weber is not None], BLUE)
    _truth(axes, points)
    _from_zero(axes, [one.weber for _, one in points if one.weber is not None])
    if any(one.true_weber for _, one in points):
        axes.legend(loc="upper right", fontsize=8.5, framealpha=0.9)
    return svg(figure)


def group_figure(people: Sequence[PersonResult], group: GroupResult, percent: float, unit: str) -> str | None:
    """Return the figure of the group: individual Weber fractions, their mean, and recovered against true."""
    counted = [one for one in people if not one.excluded]
    means = [(one.reference, one.weber) for one in group.conditions if one.percent == percent and one.weber is not None]
    if not means:
        return None
    every = [point for person in counted for point in points_of(person, percent)]
    simulated = [one for _, one in every if one.true_weber is not None]
    figure = new_figure(11.0 if simulated else 6.5, 4.0)
    panels = figure.subplots(1, 2 if simulated else 1, squeeze=False)[0]
    _ground(panels[0], [reference for reference, _ in means], percent, unit)
    for number, person in enumerate(counted):
        points = points_of(person, percent)
        own = [(reference, 100 * one.weber.value) for reference, one in points if one.weber and not one.jnd.bound]
        if own:
            label = "participants" if number == 0 else None
            panels[0].plot(*zip(*own, strict=True), "-", color=PALE, marker=".", linewidth=0.8, alpha=0.7, label=label)
    _bars(panels[0], [(reference, one.mean) for reference, one in means], BLUE, "geometric mean, 95 % interval", 7.0)
    _group_truth(panels[0], group, percent)
    _from_zero(panels[0], [one.mean for _, one in means], [d.weber.value for _, d in every if d.weber])
    panels[0].legend(loc="upper right", fontsize=8.5, framealpha=0.9)
    if simulated:
        _recovered(panels[1], simulated, percent)
    return svg(figure)


def _ground(axes: Axes, references: Sequence[float], percent: float, unit: str) -> None:
    dress(axes, f"reference [{unit}]" if unit else "reference", f"Weber fraction at {percent:g} % correct [%]")
    low, high = min(references), max(references)
    if high > low:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.3, high * 1.3)
        axes.set_xticks(sorted(set(references)), [f"{one:g}" for one in sorted(set(references))], minor=False)
        axes.set_xticks([], minor=True)


def _bars(
    axes: Axes, points: Sequence[tuple[float, Estimate]], colour: str, label: str = "95 % interval", size: float = 6.0
) -> None:
    for reference, one in points:
        top = one.high if math.isfinite(one.high) else 3.0 * one.value
        axes.plot([reference] * 2, [100 * one.low, 100 * top], color=colour, linewidth=1.8, zorder=4)
        mark = {"": "o", "above": "^", "below": "v"}[one.bound]
        axes.plot(reference, 100 * one.value, mark, color=colour, markersize=size, zorder=5)
    axes.plot([], [], "o-", color=colour, markersize=size, label=label)


def _truth(axes: Axes, points: Sequence[Point]) -> None:
    true = [(reference, 100 * one.true_weber) for reference, one in points if one.true_weber is not None]
    if true:
        _diamonds(axes, true, "the simulated observer's own")


def _group_truth(axes: Axes, group: GroupResult, percent: float) -> None:
    own = [one for one in group.conditions if one.percent == percent]
    true = [(one.reference, 100 * one.true_weber) for one in own if one.true_weber is not None]
    if true:
        _diamonds(axes, true, "the simulated observers' own, geometric mean")


def _diamonds(axes: Axes, points: Sequence[tuple[float, float]], label: str) -> None:
    x, y = zip(*points, strict=True)
    axes.plot(x, y, "D", markerfacecolor="white", markeredgecolor=ORANGE, markersize=6.5, zorder=6, label=label)


def _from_zero(axes: Axes, estimates: Sequence[Estimate], others: Sequence[float] = ()) -> None:
    middles = [*(one.value for one in estimates), *others, 1e-3]
    tops = [one.high if math.isfinite(one.high) else 3.0 * one.value for one in estimates]
    # The interval of a few participants may be ten times as long as the others. It is then cut off.
    axes.set_ylim(0.0, 100.0 * min(1.3 * max([*tops, *middles]), 2.2 * max(middles)))


def _recovered(axes: Axes, simulated: Sequence[Difference], percent: float) -> None:
    dress(axes, "true Weber fraction [%]", f"recovered, at {percent:g} % correct [%]")
    values = []
    for one in simulated:
        if one.weber is None or one.true_weber is None or one.weber.bound:
            continue
        true, high = 100 * one.true_weber, 100 * min(one.weber.high, 10.0 * one.weber.value)
        colour = BLUE if one.holds_truth else ORANGE
        axes.plot([true, true], [100 * one.weber.low, high], color=colour, linewidth=1.0, alpha=0.55)
        axes.plot(true, 100 * one.weber.value, "o", color=colour, markersize=4.0)
        values += [true, 100 * one.weber.value]
    if values:
        low, high = 0.6 * min(values), 1.6 * max(values)
        axes.plot([low, high], [low, high], color=INK, linewidth=0.9, linestyle=":")
        axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
        log_ticks(axes, low, high)
        log_ticks(axes, low, high, "y")
    held = sum(bool(one.holds_truth) for one in simulated)
    axes.set_title(f"{held} of {len(simulated)} intervals hold the truth", fontsize=11, color=INK)
