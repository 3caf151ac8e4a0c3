"""Figures of numerical responses: magnitude estimates on logarithmic axes, and adjusted values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from apps.experiment.report.figures.curves import log_ticks
from apps.experiment.report.results import ConditionResult
from apps.reproduce.style import BLUE, INK, ORANGE, PALE, dress
from apps.shared.figure import new_figure, svg
from calibration.psychometric import Magnitude


def magnitude_figure(found: Magnitude, stimuli: Sequence[float], unit: str) -> str:
    """Return the figure of a power law: normalised estimates, geometric means, and the fitted line."""
    figure = new_figure(5.8, 4.2)
    axes = figure.subplots()
    dress(axes, f"stimulus [{unit}]" if unit else "stimulus", "estimate, modulus equalised")
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
    bracket = f" [{unit}]" if unit else ""
    dress(axes, f"reference{bracket}", f"set{bracket}")
    references = [one.reference for one in conditions]
    axes.plot([min(references), max(references)], [min(references), max(references)], ":", color=INK, linewidth=0.9)
    for one in conditions:
        values = [float(row["response"]) for row in one.rows if row["response"] is not None]
        axes.plot([one.reference] * len(values), values, ".", color=PALE, markersize=5.0, alpha=0.5)
        if one.settings:
            point, spread = one.settings["point"].value, one.settings["spread"].value
            axes.errorbar(one.reference, point, spread, fmt="o", color=BLUE, capsize=4.0, markersize=6.0)
    return svg(figure)
