"""Kikuuwe et al. 2006, Fig. 14: model D sliding to rest, and its vibrating alternative."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.alternatives import mass_on_contact
from apps.reproduce.kikuuwe_fig13 import COLOURS, MASS, PERIOD, STIFFNESSES, critical_damping
from apps.reproduce.outcome import Outcome, Row
from apps.reproduce.planar import Array
from apps.reproduce.style import INK, dress
from haptics import CompliantAdmittance, Coulomb, MasslessImpedance, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "model D and its alternative sliding to rest (Kikuuwe et al. 2006, Fig. 14)"

FRICTION, START = 7.0, 1.0
COUNT = 400

_UNDERSHOOTS = dict(zip(STIFFNESSES, (-7.9e-3, -4.2e-3, -2.1e-3), strict=True))
_SWING = dict(zip(STIFFNESSES, (0.0, 0.0, 7e-3), strict=True))


def reproduce() -> Outcome:
    """Simulate model D and its alternative sliding from 1 m/s."""
    ours: dict[float, Array] = {}
    alternative: dict[float, Array] = {}
    rows: list[Row] = []
    for stiffness in STIFFNESSES:
        damping = critical_damping(stiffness)
        element = CompliantAdmittance(Coulomb(FRICTION), MASS, stiffness, damping, PERIOD)
        element.reset(velocity=(START, 0.0))
        ours[stiffness] = simulate(element, np.zeros((COUNT, 2))).output[:, 0]
        rows += _rows(stiffness, ours[stiffness])
        contact = MasslessImpedance(Coulomb(FRICTION), stiffness, damping, PERIOD)
        alternative[stiffness] = mass_on_contact(contact, MASS, START, COUNT)
    for stiffness in STIFFNESSES:
        rows += _alternative_rows(stiffness, alternative[stiffness])
    return Outcome(rows, lambda figure: _draw(figure, ours, alternative))


def _rows(stiffness: float, velocity: Array) -> list[Row]:
    exact = MASS * START / FRICTION
    slow = (int(np.argmax(np.abs(velocity) < 1e-3)) + 1) * PERIOD
    where = f"model D, K = {stiffness:.1e} N/m"
    lowest, end = float(velocity.min()), float(np.abs(velocity[-100:]).max())
    return [
        Row(f"{where}: slower than 1 mm/s for the first time (rigid body: M u/F)", exact, slow, PERIOD, "s", "derived"),
        Row(f"{where}: the same, to the step", 0.143, slow, 1e-9, "s", "derived"),
        Row(f"{where}: undershoot", _UNDERSHOOTS[stiffness], lowest, 6e-5, "m/s", "derived"),
        Row(f"{where}: largest speed in the last 0.1 s", 0.0, end, 1e-8, "m/s"),
    ]


def _alternative_rows(stiffness: float, velocity: Array) -> list[Row]:
    last = velocity[-100:]
    where = f"alternative, K = {stiffness:.1e} N/m"
    swing, expected = float(np.ptp(last)), _SWING[stiffness]
    tolerance = 5e-4 if expected else 1e-9
    rows = [Row(f"{where}: peak to peak in the last 0.1 s", expected, swing, tolerance, "m/s", "derived")]
    if expected:
        turns = int(np.count_nonzero(np.diff(np.sign(last))))
        rows.append(Row(f"{where}: changes of sign in the last 0.1 s", 99, turns, 0.0, "", "derived"))
    return rows


def _draw(figure: Figure, ours: dict[float, Array], alternative: dict[float, Array]) -> None:
    axes = figure.subplots(2, 2, sharex="row", sharey="row")
    for column, (title, speeds) in enumerate(
        (("model D", ours), ("alternative, Fig. 12(b): mass and model C, one step late", alternative))
    ):
        _curves(axes[0, column], speeds, 1.0, "velocity u [m/s]", title)
        _curves(axes[1, column], speeds, 1e3, "velocity u [mm/s]", "the end of it, enlarged")
    axes[0, 0].set_xlim(0.0, 0.25)
    axes[1, 0].set_xlim(0.135, 0.25)
    axes[1, 0].set_ylim(-10.0, 20.0)
    axes[0, 0].legend(loc="upper right", fontsize=10)
    figure.suptitle("Fig. 14: from u = 1 m/s with h = 0; F = 7 N, M = 1 kg, B = 2 sqrt(K M), T = 1 ms", color=INK)


def _curves(axes: Axes, speeds: dict[float, Array], scale: float, label: str, title: str) -> None:
    time = PERIOD * np.arange(COUNT + 1)
    for stiffness in reversed(STIFFNESSES):
        values = scale * np.append(START, speeds[stiffness])
        axes.plot(time, values, color=COLOURS[stiffness], linewidth=1.1, label=f"K = {stiffness:.1e} N/m")
    dress(axes, "time [s]", label, title)
