"""Kikuuwe et al. 2006, Fig. 6: model A brings a sliding body to rest, for any time step.

The caption gives 0.7 m/s as the initial velocity, the text 1.3 m/s. The caption is correct: only with 0.7 m/s does the
body stop at about the time at which the body of Fig. 7 reverses (1.3/18 = 0.072 s). Both are computed here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.outcome import Outcome, Row
from apps.reproduce.planar import along_x
from apps.reproduce.style import BLUE, INK, ORANGE, PALE, dress
from haptics import Coulomb, RigidAdmittance, Simulation, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "model A reaches zero velocity without chattering (Kikuuwe et al. 2006, Fig. 6)"

MASS, FRICTION, PUSH = 1.0, 8.0, -1.0
PERIODS = (1e-3, 4e-3)
START, START_IN_TEXT = 0.7, 1.3
DURATION = 0.4


def sliding(start: float, push: float, period: float, duration: float = DURATION) -> Simulation:
    """Simulate the body from `start` [m/s] under a constant `push` [N].

    Row k is the state after step k + 1.
    """
    element = RigidAdmittance(Coulomb(FRICTION), MASS, period)
    element.reset(velocity=(start, 0.0))
    return simulate(element, along_x(np.full(round(duration / period), push)))


def reproduce() -> Outcome:
    """Simulate both initial velocities with both time steps."""
    runs = {period: sliding(START, PUSH, period) for period in PERIODS}
    rows = [row for period, run in runs.items() for row in _rows(START, period, run)]
    for period, stop in zip(PERIODS, (0.02687, 0.02584), strict=True):
        distance = float(runs[period].output[:, 0].sum() * period)
        rows.append(Row(f"T = {period * 1e3:g} ms: distance to rest", stop, distance, 5e-6, "m", "derived"))
    rows += [row for period in PERIODS for row in _rows(START_IN_TEXT, period, sliding(START_IN_TEXT, PUSH, period))]
    return Outcome(rows, lambda figure: _draw(figure, runs))


def _rows(start: float, period: float, run: Simulation) -> list[Row]:
    velocity = run.output[:, 0]
    first = int(np.argmax(velocity == 0.0))
    exact = MASS * start / (FRICTION - PUSH)
    step = math.ceil(round(exact / period, 9))
    where = f"v = {start:g} m/s, T = {period * 1e3:g} ms"
    return [
        Row(f"{where}: first step with zero velocity", step, first + 1, 0.0, "", "derived"),
        Row(f"{where}: when it is at rest (exactly: M v/(F - h))", exact, (first + 1) * period, period, "s", "derived"),
        Row(f"{where}: largest speed afterwards", 0.0, float(np.abs(velocity[first:]).max()), 0.0, "m/s"),
        Row(f"{where}: smallest velocity of all", 0.0, float(velocity.min()), 0.0, "m/s"),
        Row(f"{where}: friction force at rest equals the push", PUSH, float(run.friction_force[-1, 0]), 0.0, "N"),
    ]


def _draw(figure: Figure, runs: dict[float, Simulation]) -> None:
    axes = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=(1.6, 1.0))
    for column, (period, run) in enumerate(runs.items()):
        draw_velocity(axes[0, column], START, PUSH, period, run)
        axes[0, column].set_title(f"T = {period:g} s", fontsize=12, color=INK)
        draw_friction(axes[1, column], period, run)
    axes[0, 0].set_xlim(0.0, 0.16)
    axes[0, 0].legend(loc="upper right", fontsize=10)
    figure.suptitle("Fig. 6: a body of 1 kg slides against 8 N of friction and is pulled back with 1 N", color=INK)


def draw_velocity(axes: Axes, start: float, push: float, period: float, run: Simulation) -> None:
    """Plot the velocity after every step over the exact one."""
    velocity = run.output[:, 0]
    stop = MASS * start / (FRICTION - push)
    after = (push + FRICTION) / MASS if push < -FRICTION else 0.0
    times = np.array((0.0, stop, DURATION))
    axes.plot(times, (start, 0.0, after * (DURATION - stop)), color=PALE, linewidth=1.2, label="exact")
    time = period * np.arange(len(velocity) + 1)
    axes.plot(time, np.append(start, velocity), ".", markersize=4.5, color=BLUE, label="model A")
    zero = np.flatnonzero(velocity == 0.0)[:1]
    axes.plot(period * (zero + 1), velocity[zero], "o", markersize=9, markerfacecolor="none", color=ORANGE)
    for k in zero:
        axes.annotate(
            f"exactly 0 after step {k + 1}",
            (period * (k + 1), 0.0),
            (12, 18),
            textcoords="offset points",
            color=ORANGE,
            fontsize=10,
        )
    dress(axes, "", "velocity v [m/s]")


def draw_friction(axes: Axes, period: float, run: Simulation) -> None:
    """Plot the friction force of every step."""
    time = period * np.arange(1, len(run.output) + 1)
    axes.plot(time, run.friction_force[:, 0], ".", markersize=4.5, color=ORANGE)
    dress(axes, "time [s]", "friction f [N]")
