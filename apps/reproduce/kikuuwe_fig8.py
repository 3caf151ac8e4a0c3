"""Kikuuwe et al. 2006, Fig. 8: model A with Coulomb friction as a friction law, (27)."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from apps.reproduce.outcome import Outcome, Row
from apps.reproduce.planar import Array, along_x
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, dress
from haptics import Coulomb, RigidAdmittance, simulate

MASS, FRICTION, PERIOD = 2.0, 6.0, 1e-3
FORCES = (-3.0, 0.0, 3.0)


def stepped(velocity: Array, force: float) -> Array:
    """Return the friction force (n,) [N] after one step from each `velocity` (n,) [m/s] under `force` [N]."""
    forces = np.empty(len(velocity))
    element = RigidAdmittance(Coulomb(FRICTION), MASS, PERIOD)
    for k, v in enumerate(velocity):
        element.reset(velocity=(v, 0.0))
        forces[k] = simulate(element, along_x([force])).friction_force[0, 0]
    return forces


def printed(velocity: Array, force: float) -> Array:
    """Return the friction force of (27) [N]: M v/T + h, limited to the friction level."""
    stopping = MASS * velocity / PERIOD + force
    return np.where(np.abs(stopping) <= FRICTION, stopping, FRICTION * np.sign(stopping))


def reproduce() -> Outcome:
    """Step model A once from many velocities under several forces."""
    velocity = np.linspace(-8e-3, 8e-3, 401)
    ours = {force: stepped(velocity, force) for force in FORCES}
    rows = []
    for force, friction in ours.items():
        worst = float(np.abs(friction - printed(velocity, force)).max())
        rows.append(Row(f"h = {force:g} N: largest distance from (27)", 0.0, worst, 1e-14, "N"))
        steepest = float(np.abs(np.diff(friction)).max() / (velocity[1] - velocity[0]))
        rows.append(Row(f"h = {force:g} N: slope at rest, M/T", MASS / PERIOD, steepest, 1e-6, "N s/m"))
    at_rest = max(abs(stepped(np.zeros(1), force)[0] - force) for force in FORCES)
    rows.append(Row("at v = 0 the friction equals the force below F", 0.0, at_rest, 0.0, "N"))
    return Outcome(rows, lambda figure: _draw(figure, velocity, ours))


def _draw(figure: Figure, velocity: Array, ours: dict[float, Array]) -> None:
    axes = figure.subplots()
    for colour, (force, friction) in zip((ORANGE, BLUE, GREEN), ours.items(), strict=True):
        axes.plot(velocity * 1e3, printed(velocity, force), color=colour, linewidth=1.4, label=f"(27), h = {force:g} N")
        axes.plot(velocity[::8] * 1e3, friction[::8], "o", markersize=4.5, color=colour)
    axes.plot([], [], "o", markersize=4.5, color=INK, label="model A, one step from v")
    for level in (-FRICTION, FRICTION):
        axes.axhline(level, color=INK, linewidth=0.7, linestyle=":")
    axes.annotate(
        "-h T/M: here the push alone stops the body",
        (-1.5, 0.0),
        (-7.6, 1.2),
        color=GREEN,
        fontsize=10,
        arrowprops={"arrowstyle": "-", "color": GREEN},
    )
    dress(axes, "velocity before the step v [mm/s]", "friction force f [N]", legend="lower right")
    figure.suptitle("Fig. 8: friction of model A (F = 6 N, M = 2 kg, T = 1 ms) over the velocity", color=INK)
