"""Kikuuwe et al. 2006, Fig. 7: velocity reversal of model A, with and without a step at rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.kikuuwe_fig6 import FRICTION, MASS, PERIODS, draw_friction, draw_velocity, sliding
from apps.reproduce.outcome import Outcome, Row
from apps.reproduce.planar import Array
from apps.reproduce.style import INK
from haptics import Simulation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "model A crosses zero velocity under a force that turns it round (Kikuuwe et al. 2006, Fig. 7)"

START, PUSH = 1.3, -10.0


def reproduce() -> Outcome:
    """Simulate the reversal with both time steps."""
    runs = {period: sliding(START, PUSH, period) for period in PERIODS}
    small, large = (run.output[:, 0] for run in runs.values())
    rows = [
        *_crossing(1e-3, small),
        Row("T = 1 ms: velocity after step 72", 0.004, float(small[71]), 1e-12, "m/s", "derived"),
        Row("T = 1 ms: velocity after step 73 is exactly zero", 0.0, float(small[72]), 0.0, "m/s", "derived"),
        *_acceleration("T = 1 ms", small[72:], 1e-3),
        *_crossing(4e-3, large),
        Row("T = 4 ms: velocity after step 18", 0.004, float(large[17]), 1e-12, "m/s", "derived"),
        Row("T = 4 ms: velocity after step 19, zero is jumped over", -0.004, float(large[18]), 1e-12, "m/s", "derived"),
        Row("T = 4 ms: steps with exactly zero velocity", 0.0, int(np.count_nonzero(large == 0.0))),
        *_acceleration("T = 4 ms", large[18:], 4e-3),
    ]
    return Outcome(rows, lambda figure: _draw(figure, runs))


def _crossing(period: float, velocity: Array) -> list[Row]:
    exact = MASS * START / (FRICTION - PUSH)
    seen = (int(np.argmax(velocity <= 0.0)) + 1) * period
    what = f"T = {period * 1e3:g} ms: when the velocity reaches or crosses zero (exactly: M v/(F - h))"
    return [Row(what, exact, seen, period, "s", "derived")]


def _acceleration(where: str, velocity: Array, period: float) -> list[Row]:
    """Return the rows of the motion after the reversal, which has the acceleration (h + F)/M."""
    expected, seen = (PUSH + FRICTION) / MASS, np.diff(velocity) / period
    worst = float(seen[np.argmax(np.abs(seen - expected))])
    return [Row(f"{where}: acceleration after the reversal, worst step", expected, worst, 1e-9, "m/s^2", "derived")]


def _draw(figure: Figure, runs: dict[float, Simulation]) -> None:
    axes = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=(1.6, 1.0))
    for column, (period, run) in enumerate(runs.items()):
        draw_velocity(axes[0, column], START, PUSH, period, run)
        axes[0, column].axhline(0.0, color=INK, linewidth=0.6)
        axes[0, column].set_title(f"T = {period:g} s", fontsize=12, color=INK)
        draw_friction(axes[1, column], period, run)
    axes[0, 0].set_xlim(0.05, 0.1)
    axes[0, 0].set_ylim(-0.06, 0.42)
    axes[0, 0].legend(loc="upper right", fontsize=10)
    figure.suptitle("Fig. 7: 8 N of friction and a pull of 10 N turn a body of 1 kg round", color=INK)
