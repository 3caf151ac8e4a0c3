"""Figure of a friction fit, modelled on Fig. 10 of Guedelha et al. 2018, with its residuals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apps.calibrate.reports.drawing import dots, legend, units_of
from apps.calibrate.reports.results import effort_word
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, PALE, PINK, dress
from apps.shared.figure import new_figure, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibration.friction import FrictionFit
    from calibration.identification import IdentifiedFriction

Array = NDArray[np.float64]

_CURVE = 2000
_SLOW = 8.0
"""Range of the near-rest plot [Stribeck velocities]."""
_LAGS = 60


def friction_figure(identified: IdentifiedFriction) -> str:
    """Return the figure of a friction fit as SVG: data and law, detail near rest, residuals, model scores."""
    fit = identified.fit
    figure = new_figure(11.0, 10.4)
    rows = figure.add_gridspec(2, 1, height_ratios=(2.3, 0.9))
    top, bottom = rows[0].subgridspec(2, 2, height_ratios=(1.3, 0.8)), rows[1].subgridspec(1, 2)
    units, what = units_of(identified.rotary), effort_word(identified.rotary)
    _law(figure.add_subplot(top[0, 0]), fit, units)
    _near_rest(figure.add_subplot(top[0, 1]), fit, units)
    _left_by_velocity(figure.add_subplot(top[1, 0]), fit, units)
    _left_by_time(figure.add_subplot(top[1, 1]), fit, units)
    _memory(figure.add_subplot(bottom[0]), fit)
    last = figure.add_subplot(bottom[1])
    if len(identified.choice.scores) > 1:
        _scores(last, identified.choice.scores, identified.choice.name, what)
    else:
        _distribution(last, fit, units)
    return svg(figure)


def _curve(axes: Axes, fit: FrictionFit, reach: float, label: str) -> None:
    """Draw the law on both sides of zero.

    At rest the friction can have any value between the two levels.
    """
    for side in (-1.0, 1.0):
        velocity = side * np.geomspace(1e-5, 1.0, _CURVE) * reach
        axes.plot(velocity, fit.evaluate(velocity), color=ORANGE, linewidth=2.0, label=label if side > 0.0 else None)
    levels = fit.evaluate(np.array([-1e-9, 1e-9]) * reach)
    axes.plot([0.0, 0.0], levels, color=ORANGE, linewidth=1.2, linestyle=":")


def _plain(axes: Axes, fit: FrictionFit, reach: float) -> None:
    """Draw the best Coulomb-viscous law for comparison, as in Fig. 10, if the fit has a different model."""
    from calibration.friction import fit_friction

    if not fit.model.scaled:
        return
    plain = fit_friction(fit.samples, "coulomb-viscous", fit.settings)
    for side in (-1.0, 1.0):
        velocity = side * np.array([1e-6, 1.0]) * reach
        axes.plot(
            velocity,
            plain.evaluate(velocity),
            color=GREEN,
            linewidth=1.4,
            linestyle="--",
            label="Coulomb and viscous" if side > 0.0 else None,
        )


def _law(axes: Axes, fit: FrictionFit, units: tuple[str, str]) -> None:
    samples, kept = fit.samples, fit.kept
    reach = float(np.abs(samples.velocity).max())
    dots(axes, samples.velocity[~kept], _measured_friction(fit)[~kept], PALE, "left out")
    dots(axes, samples.velocity[kept], _measured_friction(fit)[kept], BLUE, "measured")
    _plain(axes, fit, reach)
    _curve(axes, fit, reach, "identified")
    dress(axes, f"velocity [{units[0]}]", f"friction [{units[1]}]", "friction and velocity")
    legend(axes, "upper left")


def _measured_friction(fit: FrictionFit) -> Array:
    """Return the measured friction without the load of an inertia identified with it."""
    inertia = fit.values.get("inertia", 0.0)
    acceleration = fit.samples.acceleration
    return fit.samples.friction if acceleration is None else fit.samples.friction - inertia * acceleration


def _near_rest(axes: Axes, fit: FrictionFit, units: tuple[str, str]) -> None:
    velocity = fit.samples.velocity
    reach = float(np.abs(velocity).max())
    reach = min(reach, max(_SLOW * fit.values.get("stribeck_velocity", 0.1 * reach), 4.0 * fit.dead_band))
    slow = np.abs(velocity) <= reach
    for chosen, colour in ((~fit.kept, PALE), (fit.kept, BLUE)):
        dots(axes, velocity[slow & chosen], _measured_friction(fit)[slow & chosen], colour)
    if fit.dead_band > 0.0:
        axes.axvspan(-fit.dead_band, fit.dead_band, color=PALE, alpha=0.2, linewidth=0.0)
        axes.text(
            0.5, 0.02, "grey: left out", transform=axes.transAxes, ha="center", va="bottom", fontsize=8.5, color=INK
        )
    _plain(axes, fit, reach)
    _curve(axes, fit, reach, "")
    _levels(axes, fit)
    axes.set_xlim(-reach, reach)
    dress(
        axes, f"velocity [{units[0]}]", f"friction [{units[1]}]", "near rest (diamonds: static levels, 95 % intervals)"
    )


def _levels(axes: Axes, fit: FrictionFit) -> None:
    """Mark the levels at zero speed and their intervals."""
    names = ("static_forward", "static_backward") if fit.model.scaled else ("coulomb", "coulomb")
    offset = fit.values.get("offset", 0.0)
    for name, side in zip(names, (1.0, -1.0), strict=True):
        for key in (name, f"{name}_{'forward' if side > 0.0 else 'backward'}"):
            if key in fit.values:
                level, (low, high) = fit.values[key], fit.intervals[key]
                axes.plot([0.0, 0.0], [offset + side * low, offset + side * high], color=INK, linewidth=2.2, zorder=4)
                axes.plot([0.0], [offset + side * level], "D", color=INK, markersize=5.0, zorder=5)


def _left_by_velocity(axes: Axes, fit: FrictionFit, units: tuple[str, str]) -> None:
    velocity = fit.samples.velocity[fit.kept]
    dots(axes, velocity, fit.residual, BLUE)
    edges = np.linspace(velocity.min(), velocity.max(), 31)
    groups = np.digitize(velocity, edges[1:-1])
    filled = [k for k in range(30) if np.count_nonzero(groups == k) >= 5]
    middles = [float(velocity[groups == k].mean()) for k in filled]
    means = [float(fit.residual[groups == k].mean()) for k in filled]
    axes.plot(middles, means, color=ORANGE, linewidth=1.8, label="mean of neighbours")
    axes.axhline(0.0, color=INK, linewidth=0.8)
    dress(axes, f"velocity [{units[0]}]", f"residual [{units[1]}]", "residual of the fit")
    legend(axes, "upper right")


def _left_by_time(axes: Axes, fit: FrictionFit, units: tuple[str, str]) -> None:
    dots(axes, fit.samples.time[fit.kept], fit.residual, BLUE)
    rms = fit.diagnostics.rms
    for level in (-rms, rms):
        axes.axhline(level, color=ORANGE, linewidth=1.2, linestyle="--")
    axes.axhline(0.0, color=INK, linewidth=0.8)
    dress(axes, "time [s]", f"residual [{units[1]}]", f"the same by time (dashed: rms {rms:.3g} {units[1]})")


def _memory(axes: Axes, fit: FrictionFit) -> None:
    """Draw the autocorrelation of the residual.

    It is zero for independent errors.
    """
    residual = fit.residual - fit.residual.mean()
    lags = np.arange(1, min(_LAGS, len(residual) // 4))
    power = float(residual @ residual) or 1.0
    values = [float(residual[lag:] @ residual[:-lag]) / power for lag in lags]
    axes.bar(lags, values, width=0.75, color=PINK)
    band = 1.96 / np.sqrt(len(residual))
    axes.axhspan(-band, band, color=PALE, alpha=0.3, linewidth=0.0)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.set_ylim(min(-0.25, min(values, default=0.0) - 0.05), max(0.5, max(values, default=0.0) + 0.05))
    dress(axes, "samples later", "correlation", "memory of the residual (grey: none)")


def _distribution(axes: Axes, fit: FrictionFit, units: tuple[str, str]) -> None:
    """Draw the histogram of the residuals and a normal distribution of the same rms."""
    reach = float(np.abs(fit.residual).max()) or 1.0
    _, edges, _ = axes.hist(fit.residual, bins=80, range=(-reach, reach), color=BLUE, alpha=0.8)
    size = np.linspace(-reach, reach, 400)
    rms = fit.diagnostics.rms or reach
    height = len(fit.residual) * float(edges[1] - edges[0]) / (rms * np.sqrt(2.0 * np.pi))
    axes.plot(size, height * np.exp(-0.5 * (size / rms) ** 2), color=ORANGE, linewidth=1.8, label="normal errors")
    dress(axes, f"residual [{units[1]}]", "samples", "sizes of the residual")
    legend(axes, "upper right")


def _scores(axes: Axes, scores: Mapping[str, float], chosen: str, what: str) -> None:
    """Draw the cross-validated error of every model."""
    names = list(scores)
    percent = [100.0 * scores[name] for name in names]
    axes.barh(range(len(names)), percent, height=0.62, color=[ORANGE if name == chosen else BLUE for name in names])
    for row, value in enumerate(percent):
        axes.text(value + 0.012 * max(percent), row, f"{value:.3g} %", va="center", fontsize=8.5, color=INK)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0.0, 1.16 * max(percent) or 1.0)
    dress(axes, f"cross-validated residual [% of the {what}]", "", "models (orange: chosen, the simplest as good)")
