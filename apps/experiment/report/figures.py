"""Figures of the report as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from apps.experiment.journal.tables import Row
from apps.experiment.report.analysis import ConditionResult, Difference, GroupResult, PersonResult
from apps.reproduce.style import AMBER, BLUE, GREEN, INK, ORANGE, PALE, PINK, SKY, dress
from apps.shared.html import new_figure, svg
from calibration.psychometric import Magnitude

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibration.psychometric import Estimate, PsychometricFit

COLUMNS = 4
WIDTH = 11.0
_LARGEST_DOT, _SMALLEST_DOT = 130.0, 9.0
_COLOURS = (BLUE, GREEN, PINK, SKY, AMBER)

Point = tuple[float, Difference]
"""Reference and difference."""


def bracket(unit: str) -> str:
    """Return a unit in brackets for a label."""
    return f" [{unit}]" if unit else ""


def curves_figure(conditions: Sequence[ConditionResult], axis: str, unit: str, asked: str) -> str:
    """Return the figure of psychometric functions with a panel for each condition; `asked` labels the proportion."""
    figure, panels = _panels_for(len(conditions), 2.9)
    for number, (panel, condition) in enumerate(zip(panels, conditions, strict=True)):
        label = f"level [{unit}]" if unit else f"level of {axis}"
        dress(panel, label, "" if number % COLUMNS else asked, title_of(condition, unit))
        if condition.fit is not None:
            _curve(panel, condition, condition.fit)
    return svg(figure)


def _panels_for(count: int, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels of `height` [inch], `COLUMNS` in a row.

    A single panel is narrower.
    """
    rows = -(-count // COLUMNS)
    figure = new_figure(WIDTH if count > 1 else 0.56 * WIDTH, height * rows)
    panels = list(figure.subplots(rows, min(count, COLUMNS), squeeze=False).ravel())
    for panel in panels[count:]:
        panel.set_visible(False)
    return figure, panels[:count]


def log_ticks(axes: Axes, low: float, high: float, which: str = "x") -> None:
    """Set plain numbers at 1, 2 and 5 of each decade as ticks of a logarithmic axis."""
    from matplotlib.ticker import FixedLocator

    decades = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for digits in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        ticks = [d * 10.0**e for e in decades for d in digits if low <= d * 10.0**e <= high]
        if len(ticks) <= 6:
            break
    if len(ticks) < 2:
        ticks = [float(f"{value:.2g}") for value in np.geomspace(low, high, 3)]
    place = axes.xaxis if which == "x" else axes.yaxis
    place.set_major_locator(FixedLocator(ticks))
    place.set_major_formatter(lambda value, _: f"{value:g}")
    place.set_minor_locator(FixedLocator([]))


def title_of(condition: ConditionResult, unit: str) -> str:
    """Return the title of a panel: the condition, and its reference unless the name contains it."""
    if not condition.reference:
        return condition.name
    value = f"{condition.reference:g} {unit}".strip()
    says_it = condition.name.replace(" ", "") in {value.replace(" ", ""), f"{condition.reference:g}"}
    return f"on {value}" if says_it else f"{condition.name}: on {value}"


def _curve(axes: Axes, condition: ConditionResult, fit: PsychometricFit) -> None:
    """Draw the curve with its band, the answers, and the differences."""
    levels, floor = fit.answers.levels[fit.answers.levels > 0.0], fit.posterior.prior.floor
    low, high = 0.8 * float(levels.min()), 1.25 * float(levels.max())
    curve = fit.curve(np.geomspace(low, high, 90))
    axes.set_xscale("log")
    axes.fill_between(curve.levels, curve.low, curve.high, color=BLUE, alpha=0.16, linewidth=0.0)
    axes.plot(curve.levels, curve.middle, color=BLUE, linewidth=1.8)
    answers = fit.answers.gathered()  # levels closer than 1/40 of the axis are combined
    kept = answers.levels > 0.0
    logs = np.log(answers.levels[kept])
    step = np.log(high / low) / 40.0
    bins = np.unique(np.round(logs / step), return_inverse=True)[1]
    total, correct = np.bincount(bins, answers.total[kept]), np.bincount(bins, answers.correct[kept])
    centre = np.exp(np.bincount(bins, logs * answers.total[kept]) / total)
    area = np.maximum(_LARGEST_DOT * total / total.max(), _SMALLEST_DOT)
    axes.scatter(centre, correct / total, s=area, color=INK, alpha=0.55, linewidths=0.0, zorder=3, clip_on=False)
    for one in condition.differences:
        height = one.percent / 100.0
        if not floor:
            mean = fit.curve(np.geomspace(low, high, 60))
            height = float(np.interp(one.jnd.value, mean.levels, mean.middle))
        ends = [max(one.jnd.low, low), min(one.jnd.high, high)]
        axes.plot(ends, [height, height], color=ORANGE, linewidth=2.2, zorder=4)
        if not one.jnd.bound:
            axes.plot(one.jnd.value, height, "o", color=ORANGE, markersize=6.0, zorder=5)
        if one.true_jnd is not None:
            axes.plot(one.true_jnd, height, "D", color=ORANGE, markerfacecolor="white", markersize=5.5, zorder=6)
    axes.set_xlim(low, high)
    axes.set_ylim(-0.03, 1.03)
    log_ticks(axes, low, high)
    if floor > 0.0:
        axes.axhline(floor, color=PALE, linewidth=0.8, linestyle=":")


def tracks_figure(conditions: Sequence[ConditionResult], unit: str) -> str:
    """Return the figure of levels by trial with a panel for each condition."""
    figure, panels = _panels_for(len(conditions), 2.5)
    for panel_number, (axes, condition) in enumerate(zip(panels, conditions, strict=True)):
        label = "" if panel_number % COLUMNS else f"level{bracket(unit)}"
        dress(axes, "trial of the track", label, title_of(condition, unit))
        by_track: dict[tuple[int, str], list[Row]] = {}
        for row in condition.rows:
            by_track.setdefault((int(row["session"]), str(row["track"])), []).append(row)
        axes.set_yscale("log")
        for number, (key, rows) in enumerate(sorted(by_track.items())):
            colour = _COLOURS[number % len(_COLOURS)]
            trials, levels = range(1, len(rows) + 1), [float(row["level"]) for row in rows]
            axes.plot(trials, levels, color=colour, linewidth=0.9, alpha=0.7, zorder=2)
            faces = [colour if row["correct"] else "white" for row in rows]
            axes.scatter(trials, levels, s=15.0, c=faces, edgecolors=colour, linewidths=0.9, zorder=3)
            for procedure in condition.procedures:
                turns = procedure.get("reversals") if (procedure["session"], procedure["track"]) == key else None
                if turns:
                    places = [one["trial"] for one in turns], [one["level"] for one in turns]
                    axes.scatter(*places, s=62.0, facecolors="none", edgecolors=ORANGE, linewidths=1.2, zorder=4)
        for one in condition.differences[:1]:
            if not one.jnd.bound:
                axes.axhline(one.jnd.value, color=ORANGE, linewidth=1.1, linestyle="--", zorder=1)
        levels = [float(row["level"]) for row in condition.rows if row["level"]]
        if levels:
            low, high = 0.8 * min(levels), 1.25 * max(levels)
            axes.set_ylim(low, high)
            log_ticks(axes, low, high, "y")
    return svg(figure)


def drift_figure(conditions: Sequence[ConditionResult], unit: str) -> str:
    """Return the figure of the threshold over the trials of each session, at the first percentage."""
    figure, panels = _panels_for(len(conditions), 2.5)
    for panel_number, (axes, condition) in enumerate(zip(panels, conditions, strict=True)):
        first = condition.differences[0]
        label = "" if panel_number % COLUMNS else f"difference at {first.percent:g} %{bracket(unit)}"
        dress(axes, "trial of the session", label, title_of(condition, unit))
        axes.set_yscale("log")
        courses = condition.drift.time_courses(first.percent / 100.0, first.jnd.probability) if condition.drift else ()
        for number, course in enumerate(courses):
            colour = _COLOURS[number % len(_COLOURS)]
            axes.fill_between(course.times, course.low, course.high, color=colour, alpha=0.16, linewidth=0.0)
            axes.plot(course.times, course.middle, ".-", color=colour, linewidth=1.5)
        if not first.jnd.bound:
            axes.axhline(first.jnd.value, color=ORANGE, linewidth=1.1, linestyle="--")
        low = 0.9 * min(float(course.low.min()) for course in courses)
        high = 1.1 * max(float(course.high.max()) for course in courses)
        axes.set_ylim(low, high)
        log_ticks(axes, low, high, "y")
    return svg(figure)


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
    _bars(axes, [(reference, one.weber) for reference, one in points if one.weber is not None])
    true = [(reference, one.true_weber) for reference, one in points if one.true_weber is not None]
    _diamonds(axes, true, "the simulated observer's own")
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
    _bars(panels[0], [(reference, one.mean) for reference, one in means], "geometric mean, ", 7.0)
    at_percent = [one for one in group.conditions if one.percent == percent]
    true = [(one.reference, one.true_weber) for one in at_percent if one.true_weber is not None]
    _diamonds(panels[0], true, "the simulated observers' own, geometric mean")
    _from_zero(panels[0], [one.mean for _, one in means], [d.weber.value for _, d in every if d.weber])
    panels[0].legend(loc="upper right", fontsize=8.5, framealpha=0.9)
    if simulated:
        _recovered(panels[1], simulated, percent)
    return svg(figure)


def _ground(axes: Axes, references: Sequence[float], percent: float, unit: str) -> None:
    dress(axes, f"reference{bracket(unit)}", f"Weber fraction at {percent:g} % correct [%]")
    low, high = min(references), max(references)
    if high > low:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.3, high * 1.3)
        axes.set_xticks(sorted(set(references)), [f"{one:g}" for one in sorted(set(references))], minor=False)
        axes.set_xticks([], minor=True)


def _bars(axes: Axes, points: Sequence[tuple[float, Estimate]], label: str = "", size: float = 6.0) -> None:
    for reference, one in points:
        top = one.high if math.isfinite(one.high) else 3.0 * one.value
        axes.plot([reference] * 2, [100 * one.low, 100 * top], color=BLUE, linewidth=1.8, zorder=4)
        mark = {"": "o", "above": "^", "below": "v"}[one.bound]
        axes.plot(reference, 100 * one.value, mark, color=BLUE, markersize=size, zorder=5)
    interval = f"{100 * points[0][1].probability:g} % interval"
    axes.plot([], [], "o-", color=BLUE, markersize=size, label=label + interval)


def _diamonds(axes: Axes, true: Sequence[tuple[float, float]], label: str) -> None:
    """Draw the true Weber fractions of simulated observers against the reference."""
    if true:
        x, y = zip(*((reference, 100 * weber) for reference, weber in true), strict=True)
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


def magnitude_figure(found: Magnitude, stimuli: Sequence[float], unit: str) -> str:
    """Return the figure of a power law: normalised estimates, geometric means, and the fitted line."""
    figure = new_figure(5.8, 4.2)
    axes = figure.subplots()
    dress(axes, f"stimulus{bracket(unit)}", "estimate, modulus equalised")
    axes.set(xscale="log", yscale="log")
    axes.plot(stimuli, found.normalised, ".", color=PALE, markersize=5.0, alpha=0.5, label="estimates")
    ends = np.array([0.85 * found.levels.min(), 1.18 * found.levels.max()])
    words = f"exponent {found.exponent.text('.2f')}"
    axes.plot(ends, found.factor.value * ends**found.exponent.value, color=BLUE, linewidth=1.8, label=words)
    axes.plot(found.levels, found.means, "o", color=ORANGE, markersize=6.5, label="geometric means")
    every = [*found.normalised, *found.means]
    axes.set_xlim(*ends)
    axes.set_ylim(0.8 * min(every), 1.25 * max(every))
    axes.set_xticks(found.levels, [f"{one:g}" for one in found.levels], minor=False)
    axes.set_xticks([], minor=True)
    log_ticks(axes, *axes.get_ylim(), "y")
    axes.legend(loc="upper left", fontsize=8.5, framealpha=0.9)
    return svg(figure)


def adjustment_figure(conditions: Sequence[ConditionResult], unit: str) -> str:
    """Return the figure of adjustments: values on each reference, with mean and standard deviation."""
    figure = new_figure(5.8, 4.2)
    axes = figure.subplots()
    dress(axes, f"reference{bracket(unit)}", f"set{bracket(unit)}")
    references = [one.reference for one in conditions]
    axes.plot([min(references), max(references)], [min(references), max(references)], ":", color=INK, linewidth=0.9)
    for one in conditions:
        values = [float(row["response"]) for row in one.rows if row["response"] is not None]
        axes.plot([one.reference] * len(values), values, ".", color=PALE, markersize=5.0, alpha=0.5)
        if one.settings:
            point, spread = one.settings["point"].value, one.settings["spread"].value
            axes.errorbar(one.reference, point, spread, fmt="o", color=BLUE, capsize=4.0, markersize=6.0)
    return svg(figure)


def stimulus_figure(rows: Sequence[Row], unit: str) -> str | None:
    """Return the figure of the stimuli, or None if nothing was measured."""
    names = ("asked", "delivered", "felt", "felt_low", "felt_high")
    intervals = ({name: row[f"{name}_{number}"] for name in names} for row in rows for number in (1, 2))
    found = [one for one in intervals if one["asked"] is not None and one["delivered"] is not None]
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
    dress(third, f"asked{bracket(unit)}", "deviation from asked [%]", "deviation")
    third.axhline(0.0, color=INK, linewidth=0.8, linestyle=":")
    for name, colour in (("delivered", BLUE), ("felt", GREEN)):
        pairs = [(one["asked"], one[name]) for one in found if one["asked"] and one[name] is not None]
        if pairs:
            x, y = np.array(pairs, dtype=float).T
            third.plot(x, 100.0 * (y / x - 1.0), ".", color=colour, markersize=4.5, alpha=0.5, label=name)
    third.legend(loc="best", fontsize=8.5, framealpha=0.9)
    return svg(figure)


def _against(axes: Axes, x: np.ndarray, y: np.ndarray, colour: str, names: tuple[str, str], unit: str) -> None:
    dress(axes, f"{names[0]}{bracket(unit)}", f"{names[1]}{bracket(unit)}", f"{names[1]} against {names[0]}")
    ends = [min(x.min(), y.min()), max(x.max(), y.max())]
    axes.plot(ends, ends, color=INK, linewidth=0.8, linestyle=":")
    axes.plot(x, y, ".", color=colour, markersize=4.5, alpha=0.5)


def timing_figure(rows: Sequence[Row], certificates: Sequence[dict[str, Any]]) -> str | None:
    """Return the figure of reaction times and start delays of ticks, or None if both are unknown."""
    timed = [row for row in rows if row["reaction_time_s"] is not None]
    times, correct = [float(row["reaction_time_s"]) for row in timed], [row["correct"] for row in timed]
    held = [one["histograms"] for one in certificates if isinstance(one.get("histograms"), dict)]
    held = [one for one in held if one.get("edges_us") and one.get("period_error_us")]
    if not times and not held:
        return None
    figure = new_figure(11.0, 2.9)
    first, second = figure.subplots(1, 2)
    dress(first, "reaction time [s]", "trials", "answers")
    if times:
        graded = any(one is not None for one in correct)
        bins = np.linspace(0.0, max(float(np.quantile(times, 0.995)), 0.1), 40).tolist()
        first.hist(times, bins=bins, color=ORANGE if graded else BLUE, label="wrong")
        if graded:
            right = [one for one, good in zip(times, correct, strict=True) if good]
            first.hist(right, bins=bins, color=BLUE, label="right")
            first.legend(loc="upper right", fontsize=8.5, framealpha=0.9)
    else:
        first.text(0.5, 0.5, "not known", transform=first.transAxes, ha="center", color=PALE)
    dress(second, "start delay of a tick [µs]", "ticks", "punctuality of the ticks")
    counts = np.sum([one["period_error_us"] for one in held], axis=0)  # over all recordings
    used = np.flatnonzero(counts)
    if not len(used) or used[-1] == 0:
        words = "no clock: no tick was late" if len(used) else "no recording"
        second.text(0.5, 0.5, words, transform=second.transAxes, ha="center", color=PALE)
    else:
        edges = np.array(held[0]["edges_us"])
        second.stairs(counts, np.maximum(edges, 0.05), fill=True, color=BLUE, alpha=0.85)
        second.set(xscale="log", yscale="log", ylim=(0.7, None))
        second.set_xlim(max(edges[used[0]], 0.05) / 1.5, edges[min(used[-1] + 1, len(edges) - 1)] * 1.5)
    return svg(figure)
