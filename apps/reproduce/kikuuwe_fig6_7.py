"""Kikuuwe et al. 2006, Figs. 6 and 7: model A brings a sliding body to rest, or reverses it, for any time step.

The caption of Fig. 6 gives 0.7 m/s as the initial velocity, the text 1.3 m/s. The caption is correct: only with 0.7 m/s
does the body stop at about the time at which the body of Fig. 7 reverses (1.3/18 = 0.072 s). Both are computed here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from apps.reproduce.outcome import Outcome, Row, derived
from apps.reproduce.planar import Array, along_x
from apps.reproduce.style import BLUE, INK, ORANGE, PALE, dress
from haptics import Coulomb, RigidAdmittance, Simulation, simulate

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


def reproduce_fig6() -> Outcome:
    """Simulate both initial velocities with both time steps."""
    runs = {period: sliding(START, PUSH, period) for period in PERIODS}
    rows = [row for period, run in runs.items() for row in _rows(START, period, run)]
    for period, stop in zip(PERIODS, (0.02687, 0.02584), strict=True):
        distance = float(runs[period].output[:, 0].sum() * period)
        rows.append(derived(f"T = {period * 1e3:g} ms: distance to rest", stop, distance, 5e-6, "m"))
    rows += [row for period in PERIODS for row in _rows(START_IN_TEXT, period, sliding(START_IN_TEXT, PUSH, period))]
    title = "Fig. 6: a body of 1 kg slides against 8 N of friction and is pulled back with 1 N"
    return Outcome(rows, lambda figure: _draw(figure, title, runs, START, PUSH, xlim=(0.0, 0.16)))


def _rows(start: float, period: float, run: Simulation) -> list[Row]:
    velocity = run.output[:, 0]
    first = int(np.argmax(velocity == 0.0))
    exact = MASS * start / (FRICTION - PUSH)
    step = math.ceil(round(exact / period, 9))
    where = f"v = {start:g} m/s, T = {period * 1e3:g} ms"
    return [
        derived(f"{where}: first step with zero velocity", step, first + 1),
        derived(f"{where}: when it is at rest (exactly: M v/(F - h))", exact, (first + 1) * period, period, "s"),
        Row(f"{where}: largest speed afterwards", 0.0, np.abs(velocity[first:]).max(), 0.0, "m/s"),
        Row(f"{where}: smallest velocity of all", 0.0, velocity.min(), 0.0, "m/s"),
        Row(f"{where}: friction force at rest equals the push", PUSH, run.friction_force[-1, 0], 0.0, "N"),
    ]


def _draw(
    figure: Figure, title: str, runs: dict[float, Simulation], start: float, push: float, **limits: tuple[float, float]
) -> None:
    """Plot velocities and friction forces over time within the `limits` of the velocity's axes."""
    axes = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=(1.6, 1.0))
    stop = MASS * start / (FRICTION - push)
    after = (push + FRICTION) / MASS if push < -FRICTION else 0.0
    exact = (start, 0.0, after * (DURATION - stop))
    for (above, below), (period, run) in zip(axes.T, runs.items(), strict=True):
        velocity = run.output[:, 0]
        above.plot(np.array((0.0, stop, DURATION)), exact, color=PALE, linewidth=1.2, label="exact")
        time = period * np.arange(len(velocity) + 1)
        above.plot(time, np.append(start, velocity), ".", markersize=4.5, color=BLUE, label="model A")
        zero = np.flatnonzero(velocity == 0.0)[:1]
        above.plot(period * (zero + 1), velocity[zero], "o", markersize=9, markerfacecolor="none", color=ORANGE)
        style: dict[str, Any] = {"textcoords": "offset points", "color": ORANGE, "fontsize": 10}
        for k in zero:
            above.annotate(f"exactly 0 after step {k + 1}", (period * (k + 1), 0.0), (12, 18), **style)
        dress(above, "", "velocity v [m/s]")
        above.set_title(f"T = {period:g} s", fontsize=12, color=INK)
        below.plot(time[1:], run.friction_force[:, 0], ".", markersize=4.5, color=ORANGE)
        dress(below, "time [s]", "friction f [N]")
    axes[0, 0].legend(loc="upper right", fontsize=10)
    for above in axes[0] if push < -FRICTION else ():
        above.axhline(0.0, color=INK, linewidth=0.6)
    axes[0, 0].set(**limits)
    figure.suptitle(title, color=INK)


REVERSAL_START, REVERSAL_PUSH = 1.3, -10.0


def reproduce_fig7() -> Outcome:
    """Simulate the reversal with both time steps."""
    runs = {period: sliding(REVERSAL_START, REVERSAL_PUSH, period) for period in PERIODS}
    small, large = (run.output[:, 0] for run in runs.values())
    rows = [
        _crossing_row(1e-3, small),
        derived("T = 1 ms: velocity after step 72", 0.004, small[71], 1e-12, "m/s"),
        derived("T = 1 ms: velocity after step 73 is exactly zero", 0.0, small[72], 0.0, "m/s"),
        _acceleration_row("T = 1 ms", small[72:], 1e-3),
        _crossing_row(4e-3, large),
        derived("T = 4 ms: velocity after step 18", 0.004, large[17], 1e-12, "m/s"),
        derived("T = 4 ms: velocity after step 19, zero is jumped over", -0.004, large[18], 1e-12, "m/s"),
        Row("T = 4 ms: steps with exactly zero velocity", 0.0, int(np.count_nonzero(large == 0.0))),
        _acceleration_row("T = 4 ms", large[18:], 4e-3),
    ]
    title, limits = "Fig. 7: 8 N of friction and a pull of 10 N turn a body of 1 kg round", {"ylim": (-0.06, 0.42)}
    start, push = REVERSAL_START, REVERSAL_PUSH
    return Outcome(rows, lambda figure: _draw(figure, title, runs, start, push, xlim=(0.05, 0.1), **limits))


def _crossing_row(period: float, velocity: Array) -> Row:
    exact = MASS * REVERSAL_START / (FRICTION - REVERSAL_PUSH)
    seen = (int(np.argmax(velocity <= 0.0)) + 1) * period
    description = f"T = {period * 1e3:g} ms: when the velocity reaches or crosses zero (exactly: M v/(F - h))"
    return derived(description, exact, seen, period, "s")


def _acceleration_row(where: str, velocity: Array, period: float) -> Row:
    """Return the row of the motion after the reversal, which has the acceleration (h + F)/M."""
    expected, seen = (REVERSAL_PUSH + FRICTION) / MASS, np.diff(velocity) / period
    worst = float(seen[np.argmax(np.abs(seen - expected))])
    return derived(f"{where}: acceleration after the reversal, worst step", expected, worst, 1e-9, "m/s^2")
