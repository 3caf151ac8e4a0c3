"""Comparison of the velocity estimators on the plant of the suite, for ``docs/velocity.md``.

``python -m apps.conformance.velocity OUT.png`` draws the picture and writes the table to standard output.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apps.conformance import cells, suite
from apps.conformance.cells import CELLS, DAMPING, FRICTION, REFERENCE, STIFFNESS, Cell, Motion
from apps.conformance.plant import ROW, drive_of, new_plant, run_element
from devices.common.settings import VelocitySettings
from devices.common.velocity import VelocityEstimator, fill_velocity, prepare_velocity
from haptics.device import Causality
from haptics.elements.models import MasslessImpedance
from haptics.friction.laws import Coulomb
from haptics.records import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

CANDIDATES: dict[str, VelocitySettings] = {
    "difference": VelocitySettings("difference"),
    "difference, window 4": VelocitySettings("difference", 4),
    "end-fit": VelocitySettings("end-fit"),
    "best-fit": VelocitySettings("best-fit"),
    "level-crossing": VelocitySettings("level-crossing"),
    "kalman": VelocitySettings("kalman"),
    "tracker": VelocitySettings(),
}
"""Compared estimators by their name in the table."""

USUAL = tuple(cell for cell in CELLS if cell.quantisation == REFERENCE.quantisation)
"""Cells with the reference encoder: both grips, all rates."""

SWING_FREQUENCY, SWING = 25.0, 2e-4
"""Frequency [Hz] and amplitude [m] of the oscillation for the delay: a handle on a sticking coupling."""

LARGEST_RESIDUE = 6.0
"""Maximum residual motion in encoder counts of a handle that is at rest after a kick."""

DAMPINGS = tuple(0.5 * k for k in range(1, 61))
"""Tested dampings of the coupling [N s/m]."""


@dataclass(frozen=True)
class Figures:
    """Measures of an estimator in the table.

    Attributes
    ----------
    drift : float
        Largest hold drift in any cell [um/s].
    buzz : float
        Largest buzz with the reference encoder [N rms].
    direction : float
        Largest direction error with the reference encoder [deg].
    delay : float
        Delay of the estimated velocity of an oscillation [ms].
    damping : float
        Minimum damping with which the handle stops after a kick, in the reference cell [N s/m].
    """

    drift: float
    buzz: float
    direction: float
    delay: float
    damping: float


def run(settings: VelocitySettings, cell: Cell, motion: Motion, damping: float = DAMPING) -> Rows:
    """Run model C through `motion` in `cell` with the estimator of `settings`."""
    element = MasslessImpedance(Coulomb(FRICTION), STIFFNESS, damping, 1.0 / cell.rate)
    plant, rows = new_plant(cell, Causality.IMPEDANCE, motion), np.zeros(motion.ticks(cell.rate), ROW)
    fill_velocity(plant["estimator"], settings, cell.quantisation, 1.0 / cell.rate)
    prepare_velocity(plant["estimator"])
    run_element(element.copy_record(), plant, drive_of(motion, cell.grip, cell.rate), rows)
    return rows[round(motion.settling * cell.rate) :]


KICK = Motion("kick", 2.0, 0.5, lambda t: np.outer(np.where(t < 0.01, 2.0, 0.0), cells.PUSH_DIRECTION))


def least_damping(settings: VelocitySettings) -> float:
    """Return the minimum of `DAMPINGS` with which a kicked handle stops; infinite if none suffices."""
    for damping in DAMPINGS:
        rest = run(settings, REFERENCE, KICK, damping)["position"]
        if np.ptp(rest, axis=0).max() <= LARGEST_RESIDUE * REFERENCE.quantisation:
            return damping
    return math.inf


def delay(settings: VelocitySettings) -> float:
    """Return the delay of the estimated velocity of an oscillation [s], from its phase."""
    period, quantisation = 1.0 / REFERENCE.rate, REFERENCE.quantisation
    estimator = VelocityEstimator(quantisation, period, settings)
    turns = 2.0 * math.pi * SWING_FREQUENCY * period * np.arange(4000)
    path = quantisation * np.floor(SWING * np.sin(turns) / quantisation + 0.5)
    velocity = np.array([estimator.update(period * k, x, 0.0)[0] for k, x in enumerate(path)])
    phase = np.angle(np.sum((velocity * np.exp(-1j * turns))[1000:]))
    return float(-phase / (2.0 * math.pi * SWING_FREQUENCY))


def measure(settings: VelocitySettings) -> Figures:
    """Compute the measures of an estimator."""
    holds = {cell: run(settings, cell, cells.HOLD) for cell in CELLS}
    circles = [run(settings, cell, cells.CIRCLE) for cell in USUAL]
    return Figures(
        drift=max(suite.hold_drift(rows, cell.rate) for cell, rows in holds.items()) * 1e6,
        buzz=max(suite.buzz(holds[cell], cell.rate) for cell in USUAL),
        direction=max(suite.direction_error_p95(rows) for rows in circles),
        delay=delay(settings) * 1e3,
        damping=least_damping(settings),
    )


def table(figures: dict[str, Figures]) -> str:
    """Format the table in Markdown."""
    head = (
        "| estimator | hold drift [um/s] | buzz [N rms] | direction error [deg] | delay [ms] | least damping [N s/m] |"
    )
    lines = [head, "|---|---|---|---|---|---|"]
    for name, f in figures.items():
        drift = f"{f.drift:.0f}" if f.drift >= 10.0 else f"{f.drift:.1f}"
        damping = "none" if math.isinf(f.damping) else f"{f.damping:g}"
        cells = (name, drift, f"{f.buzz:.2f}", f"{f.direction:.1f}", f"{f.delay:.1f}", damping)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


# --- the picture --------------------------------------------------------------------------------------------------

_INK = "#222222"
_LINES = {"difference": "#D55E00", "tracker": "#0072B2"}
"""Okabe-Ito colours."""

_SMALLEST = 1e-3
"""Lower bound of the plotted drifts [um/s]."""


def draw(figures: dict[str, Figures], path: str) -> None:
    """Draw the picture: held force, direction on the circle, and all hold drifts."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 4.6), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes: Sequence[Axes] = figure.subplots(1, 3, width_ratios=(1, 1, 1.1))
    held, turned, drifts = axes
    for name in ("difference", "tracker"):
        line: dict[str, Any] = {"color": _LINES[name], "label": name}
        rows = run(CANDIDATES[name], REFERENCE, cells.HOLD)[2000:2150]
        force = -rows["force"] @ cells.PUSH_DIRECTION
        held.plot(np.arange(len(force)) / REFERENCE.rate * 1e3, force, linewidth=1.3, **line)
        rows = run(CANDIDATES[name], REFERENCE, cells.CIRCLE)[1000:1300]
        v, f = rows["velocity"], -rows["force"]
        error = np.degrees(np.arctan2(v[:, 0] * f[:, 1] - v[:, 1] * f[:, 0], np.sum(v * f, axis=1)))
        turned.plot(np.arange(len(error)) / REFERENCE.rate * 1e3, error, linewidth=1.2, **line)
    held.axhline(cells.HOLD_FORCE, color=_INK, linewidth=0.8, linestyle=":")
    held.set_ylim(1.55, 2.6)
    lag = math.degrees(math.asin(FRICTION / STIFFNESS / cells.CIRCLE_RADIUS))
    turned.axhline(-lag, color=_INK, linewidth=0.8, linestyle=":", label="lag of the spring")
    turned.set_ylim(-4.0, 6.0)
    for panel in (held, turned):
        panel.legend(loc="upper right", fontsize=9, ncols=2)
    names = list(figures)[::-1]
    for y, name in enumerate(names):
        values = [suite.hold_drift(run(CANDIDATES[name], cell, cells.HOLD), cell.rate) * 1e6 for cell in CELLS]
        colour = _LINES["tracker"] if name == "tracker" else "#8A8A8A"
        drifts.plot(np.maximum(values, _SMALLEST), np.full(len(values), y), "o", color=colour, alpha=0.7, markersize=6)
    drifts.axvline(1.0, color=_LINES["difference"], linewidth=1.2, linestyle="--")
    drifts.text(1.3, len(names) - 0.42, "limit 1 µm/s", color=_LINES["difference"], fontsize=9, va="center")
    drifts.set_xscale("log")
    drifts.set_ylim(-0.6, len(names) - 0.1)
    drifts.set_yticks(range(len(names)), names)
    for panel, title, x, y_label in (
        (held, "held with 2 N", "time [ms]", "force [N]"),
        (turned, "circle of 100 mm radius at 100 mm/s", "time [ms]", "friction to motion [deg]"),
        (drifts, "hold drift in each of the 18 cells", f"drift [µm/s], {_SMALLEST:g} if less", ""),
    ):
        panel.set_title(title, fontsize=11, color=_INK)
        panel.set_xlabel(x)
        panel.set_ylabel(y_label)
        panel.grid(True, color="#E6E6E6", linewidth=0.6)
        panel.set_axisbelow(True)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    cell = f"{REFERENCE.grip.name} grip, {REFERENCE.quantisation_um:g} µm, {REFERENCE.rate:g} Hz"
    model = f"model C (F = {FRICTION:g} N, K = {STIFFNESS:g} N/m, B = {DAMPING:g} N s/m)"
    figure.suptitle(f"Velocity estimators in the loop: {model}; left and middle {cell}", fontsize=13, color=_INK)
    figure.savefig(path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute the measures, draw the picture and write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m apps.conformance.velocity", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("picture", metavar="OUT.png")
    chosen: Any = parser.parse_args(arguments)
    figures = {name: measure(settings) for name, settings in CANDIDATES.items()}
    sys.stdout.write(table(figures))
    draw(figures, chosen.picture)


if __name__ == "__main__":
    main()
