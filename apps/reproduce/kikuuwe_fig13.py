"""Kikuuwe et al. 2006, Fig. 13: model B on a velocity ramp, and its unstable alternative.

The caption prints the damping as B = 2 sqrt(K/M); the critical damping of section IV-C is B = 2 sqrt(K M). At 1 kg both
are equal.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.alternatives import pulled_mass
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.planar import Array, along_x
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, dress
from haptics import Coulomb, InertialImpedance, RigidAdmittance, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "model B and its alternative on a velocity ramp (Kikuuwe et al. 2006, Fig. 13)"

MASS, FRICTION, PERIOD, RAMP = 1.0, 10.0, 1e-3, 0.1
STIFFNESSES = (8.3e4, 2.5e5, 7.5e5)
COLOURS = dict(zip(STIFFNESSES, (GREEN, BLUE, ORANGE), strict=True))
COUNT = 500

_PEAKS = dict(zip(STIFFNESSES, (10.488, 10.456, 10.403), strict=True))
_GROWTH = {0.2: 84.0, 0.3: 126.0, 0.4: 168.0, 0.5: 211.0}
"""Peak-to-peak force [N] of the stiff alternative in the 0.1 s before each time [s]."""


def critical_damping(stiffness: float) -> float:
    """Return the critical damping B = 2 sqrt(K M) [N s/m]."""
    return 2.0 * math.sqrt(stiffness * MASS)


def reproduce() -> Outcome:
    """Apply the same ramp to model B and its alternative."""
    pull = along_x(RAMP * PERIOD * np.arange(1, COUNT + 1))
    ours: dict[float, Array] = {}
    alternative: dict[float, Array] = {}
    rows: list[Row] = []
    for stiffness in STIFFNESSES:
        damping = critical_damping(stiffness)
        run = simulate(InertialImpedance(Coulomb(FRICTION), MASS, stiffness, damping, PERIOD), pull)
        ours[stiffness] = run.output[:, 0]
        first = (int(np.argmin(run.sticking)) + 1) * PERIOD
        rows += _rows(stiffness, damping, first, ours[stiffness])
        body = RigidAdmittance(Coulomb(FRICTION), MASS, PERIOD)
        alternative[stiffness] = pulled_mass(body, stiffness, damping, pull)[0][:, 0]
    rows += _alternative_rows(alternative)
    return Outcome(rows, lambda figure: _draw(figure, ours, alternative))


def _rows(stiffness: float, damping: float, first: float, force: Array) -> list[Row]:
    # Until break-away the spring-damper has the force K a t^2/2 + B a t on the ramp u = a t.
    breakaway = (math.sqrt(damping**2 + 2.0 * stiffness * FRICTION / RAMP) - damping) / stiffness
    end, last = FRICTION + MASS * RAMP, force[-100:]
    worst = float(last[np.argmax(np.abs(last - end))])
    where = f"model B, K = {stiffness:.1e} N/m"
    return [
        Row(f"{where}: time of the step at which it breaks away", breakaway, first, PERIOD, "s", "derived"),
        Row(f"{where}: peak force", _PEAKS[stiffness], float(force.max()), 5e-4, "N", "derived"),
        Row(f"{where}: force in the last 0.1 s, F + M a", end, worst, 1e-9, "N", "derived"),
        Row(f"{where}: peak to peak in the last 0.1 s", 0.0, float(np.ptp(last)), 5e-13, "N"),
    ]


def _alternative_rows(alternative: dict[float, Array]) -> list[Row]:
    rows = []
    for stiffness in STIFFNESSES[:2]:
        swing = float(np.ptp(alternative[stiffness][-100:]))
        rows.append(Row(f"alternative, K = {stiffness:.1e} N/m: peak to peak in the last 0.1 s", 0.0, swing, 1e-9, "N"))
    stiff = alternative[STIFFNESSES[2]]
    where = f"alternative, K = {STIFFNESSES[2]:.1e} N/m"
    rows.append(
        Row(f"{where}: peak to peak before 0.4 s", Bound(minimum=100.0), float(np.ptp(stiff[300:400])), 0.0, "N")
    )
    for time, expected in _GROWTH.items():
        stop = round(time / PERIOD)
        swing = float(np.ptp(stiff[stop - 100 : stop]))
        rows.append(Row(f"{where}: peak to peak in the 0.1 s before {time:g} s", expected, swing, 1.0, "N", "derived"))
    return rows


def _draw(figure: Figure, ours: dict[float, Array], alternative: dict[float, Array]) -> None:
    axes = figure.subplots(2, 2)
    pairs = ((ours, "model B"), (alternative, "alternative, Fig. 12(a): spring-damper and model A, one step late"))
    for column, (forces, title) in enumerate(pairs):
        _curves(axes[0, column], forces, 0.1, title)
        axes[0, column].set_ylim(0.0, 32.0)
        _curves(axes[1, column], forces, COUNT * PERIOD, "the whole of it")
        axes[1, column].set_ylim(-115.0, 125.0)
    axes[0, 0].axhline(FRICTION + MASS * RAMP, color=INK, linewidth=0.8, linestyle=":")
    end = (0.099, FRICTION + MASS * RAMP)
    axes[0, 0].annotate("F + M a = 10.1 N", end, (0, 6), textcoords="offset points", ha="right", fontsize=10)
    axes[0, 0].legend(loc="upper right", fontsize=10)
    figure.suptitle(
        "Fig. 13: force on the puller; u = 0.1 t m/s, F = 10 N, M = 1 kg, B = 2 sqrt(K M), T = 1 ms", color=INK
    )


def _curves(axes: Axes, forces: dict[float, Array], end: float, title: str) -> None:
    time = PERIOD * np.arange(1, COUNT + 1)
    for stiffness in reversed(STIFFNESSES):
        axes.plot(time, forces[stiffness], color=COLOURS[stiffness], linewidth=1.1, label=f"K = {stiffness:.1e} N/m")
    axes.set_xlim(0.0, end)
    dress(axes, "time [s]", "force h [N]", title)
