"""Figure of a participant's psychometric functions: curves with bands, answers, differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from apps.experiment.report.results import ConditionResult
from apps.reproduce.style import BLUE, INK, ORANGE, PALE, dress
from apps.shared.figure import new_figure, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibration.psychometric import PsychometricFit

COLUMNS = 4
WIDTH = 11.0
_HEIGHT = 2.9
_LARGEST_DOT, _SMALLEST_DOT = 130.0, 9.0


def curves_figure(conditions: Sequence[ConditionResult], axis: str, unit: str, asked: str) -> str:
    """Return the figure with a panel for each condition; `asked` labels the proportion."""
    figure, panels = panels_for(len(conditions), _HEIGHT)
    for panel, condition in zip(panels, conditions, strict=True):
        _panel(panel, condition, axis, unit)
    for panel in panels[::COLUMNS]:
        panel.set_ylabel(asked)
    return svg(figure)


def panels_for(count: int, height: float) -> tuple[Figure, list[Axes]]:
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
    decades = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for digits in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        ticks = [d * 10.0**e for e in decades for d in digits if low <= d * 10.0**e <= high]
        if len(ticks) <= 6:
            break
    if len(ticks) < 2:
        ticks = [float(f"{value:.2g}") for value in np.geomspace(low, high, 3)]
    place = axes.xaxis if which == "x" else axes.yaxis
    place.set_major_locator(_fixed(ticks))
    place.set_major_formatter(lambda value, _: f"{value:g}")
    place.set_minor_locator(_fixed([]))


def _fixed(ticks: Sequence[float]):  # type: ignore[no-untyped-def]
    from matplotlib.ticker import FixedLocator

    return FixedLocator(ticks)


def title_of(condition: ConditionResult, unit: str) -> str:
    """Return the title of a panel: the condition, and its reference unless the name contains it."""
    if not condition.reference:
        return condition.name
    value = f"{condition.reference:g} {unit}".strip()
    says_it = condition.name.replace(" ", "") in {value.replace(" ", ""), f"{condition.reference:g}"}
    return f"on {value}" if says_it else f"{condition.name}: on {value}"


def _panel(axes: Axes, condition: ConditionResult, axis: str, unit: str) -> None:
    dress(axes, f"level [{unit}]" if unit else f"level of {axis}", "", title_of(condition, unit))
    fit = condition.fit
    if fit is None:
        axes.text(0.5, 0.5, "too little to fit", transform=axes.transAxes, ha="center", color=PALE)
        return
    low, high = _extent(fit)
    curve = fit.curve(np.geomspace(low, high, 90))
    axes.set_xscale("log")
    axes.fill_between(curve.levels, curve.low, curve.high, color=BLUE, alpha=0.16, linewidth=0.0)
    axes.plot(curve.levels, curve.middle, color=BLUE, linewidth=1.8)
    _answers(axes, fit, low, high)
    _differences(axes, condition, fit)
    axes.set_xlim(low, high)
    axes.set_ylim(-0.03, 1.03)
    log_ticks(axes, low, high)
    if fit.posterior.prior.floor > 0.0:
        axes.axhline(fit.posterior.prior.floor, color=PALE, linewidth=0.8, linestyle=":")


def _extent(fit: PsychometricFit) -> tuple[float, float]:
    levels = fit.answers.levels[fit.answers.levels > 0.0]
    return 0.8 * float(levels.min()), 1.25 * float(levels.max())


def _answers(axes: Axes, fit: PsychometricFit, low: float, high: float) -> None:
    """Draw the answers at each level.

    Levels closer than 1/40 of the axis are combined.
    """
    answers = fit.answers.gathered()
    kept = answers.levels > 0.0
    logs = np.log(answers.levels[kept])
    step = np.log(high / low) / 40.0
    bins = np.unique(np.round(logs / step), return_inverse=True)[1]
    total, correct = np.bincount(bins, answers.total[kept]), np.bincount(bins, answers.correct[kept])
    centre = np.exp(np.bincount(bins, logs * answers.total[kept]) / total)
    area = np.maximum(_LARGEST_DOT * total / total.max(), _SMALLEST_DOT)
    axes.scatter(centre, correct / total, s=area, color=INK, alpha=0.55, linewidths=0.0, zorder=3, clip_on=False)


def _differences(axes: Axes, condition: ConditionResult, fit: PsychometricFit) -> None:
    floor = fit.posterior.prior.floor
    for one in condition.differences:
        height = one.percent / 100.0 if floor else float(np.interp(one.jnd.value, *_mean_curve(fit)))
        high = min(one.jnd.high, _extent(fit)[1])
        axes.plot([max(one.jnd.low, _extent(fit)[0]), high], [height, height], color=ORANGE, linewidth=2.2, zorder=4)
        if not one.jnd.bound:
            axes.plot(one.jnd.value, height, "o", color=ORANGE, markersize=6.0, zorder=5)
        if one.true_jnd is not None:
            axes.plot(one.true_jnd, height, "D", color=ORANGE, markerfacecolor="white", markersize=5.5, zorder=6)


def _mean_curve(fit: PsychometricFit) -> tuple[np.ndarray, np.ndarray]:
    curve = fit.curve(np.geomspace(*_extent(fit), 60))
    return curve.levels, curve.middle
