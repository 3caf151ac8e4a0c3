"""Kikuuwe et al. 2006, section V-B: lag of model C's force on a curve, and stored energy.

On a circle of radius R at the angular velocity w, the elastic displacement rotates with the motion, slightly behind it:
the force makes the angle asin((F/K)/(R (1 + (w B/K)^2))) with the direction of the motion. A stiffer coupling reduces
the lag. On circles with R < F/K the contact never breaks away, and a hand that releases the handle after a stop feels a
recoil of F/K. All this follows from (38).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.alternatives import mass_on_contact
from apps.reproduce.outcome import Outcome, Row
from apps.reproduce.planar import Array, angles, circling, norms
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, PALE, dress
from haptics import Coulomb, MasslessImpedance, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "model C on circles: lag of the force, circles that never slip, recoil (Kikuuwe et al. 2006, (38))"

FRICTION, STIFFNESS, DAMPING = 4.0, 6000.0, 10.0
FINE, COARSE = 1e-4, 1e-3
PULSATION = 3.0
DEVICE_MASS = 0.15
WINDING = FRICTION / STIFFNESS
"""Displacement at break-away, F/K [m]."""


def element(period: float) -> MasslessImpedance:
    """Return model C with the parameters of the paper's joystick."""
    return MasslessImpedance(Coulomb(FRICTION), STIFFNESS, DAMPING, period)


def lag_law(radius: float, angular_velocity: float) -> float:
    """Return the lag of the force [deg] on a circle of `radius` [m] at `angular_velocity` [rad/s]."""
    return math.degrees(math.asin(WINDING / (radius * (1.0 + (angular_velocity * DAMPING / STIFFNESS) ** 2))))


def lag(radius: float, angular_velocity: float, period: float) -> float:
    """Simulate the circle until it is steady and return the lag of the force behind the motion [deg]."""
    motion = circling(radius, angular_velocity, period, 1.5)
    run = simulate(element(period), motion)
    return float(angles(run.friction_force[-1:], motion[-1:])[0])


def small_circle(radius: float, turns: float = 10.0) -> Array:
    """Return the velocities (n, 2) of a hand that moves out by `radius` [m] and circles around its start."""
    outward = np.tile((radius / 1.0, 0.0), (round(1.0 / COARSE), 1))
    return np.vstack((outward, circling(radius, 2.0, COARSE, turns)))


def released() -> Array:
    """Return the positions along x of a joystick that is stopped, held and released, (n,) [m].

    The hand releases it at index 500. The joystick, a free mass, then oscillates until it is at rest.
    """
    contact = element(COARSE)
    held = np.repeat((0.05, 0.0), (300, 200))
    for velocity in held:
        contact.step((velocity, 0.0))
    free = mass_on_contact(contact, DEVICE_MASS, 0.0, 3000)
    return np.asarray(np.cumsum(COARSE * np.concatenate((held, free))))


def reproduce() -> Outcome:
    """Simulate the circles and the release."""
    rows = []
    for radius, printed in ((0.04, 0.955), (0.01, 3.82)):
        ours = lag(radius, PULSATION, FINE)
        where = f"R = {radius * 1e3:g} mm, T = 0.1 ms"
        rows.append(Row(f"{where}: lag of the force", printed, ours, 0.02, "deg", "derived"))
        rows.append(
            Row(f"{where}: lag, distance from the law", 0.0, ours - lag_law(radius, PULSATION), 1e-3, "deg", "derived")
        )
    for radius in (0.6e-3, 0.66e-3, 0.68e-3, 0.8e-3):
        slides = bool(np.any(~simulate(element(COARSE), small_circle(radius)).sticking))
        what = f"R = {radius * 1e3:g} mm against F/K = {WINDING * 1e3:.3f} mm: ever slides (1 = yes)"
        rows.append(Row(what, int(radius > WINDING), int(slides), 0.0, "", "derived"))
    places = released()
    recoil = float(places[499] - places[-1])
    rows.append(Row("recoil after letting go, F/K", WINDING, recoil, 1e-8, "m", "derived"))
    stored = 0.5 * STIFFNESS * recoil**2
    rows.append(
        Row("energy in the spring after a stop, F^2/(2 K)", FRICTION**2 / (2 * STIFFNESS), stored, 1e-7, "J", "derived")
    )
    return Outcome(rows, lambda figure: _draw(figure, places))


def _draw(figure: Figure, places: Array) -> None:
    axes = figure.subplot_mosaic([["law", "small"], ["law", "release"]], width_ratios=(1.3, 1.0))
    _draw_law(axes["law"])
    _draw_small(axes["small"])
    _draw_release(axes["release"], places)
    figure.suptitle("model C (F = 4 N, K = 6000 N/m, B = 10 N s/m) off the straight line", color=INK)


def _draw_law(axes: Axes) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    radii = np.geomspace(0.8e-3, 0.1, 200)
    dots = np.geomspace(1e-3, 0.08, 12)
    for angular_velocity, colour in ((3.0, BLUE), (300.0, ORANGE)):
        label = f"w = {angular_velocity:g} rad/s"
        axes.plot(
            radii * 1e3,
            [lag_law(r, angular_velocity) for r in radii],
            color=colour,
            linewidth=1.4,
            label=f"law, {label}",
        )
        seen = [lag(r, angular_velocity, FINE if angular_velocity < 100.0 else FINE / 10.0) for r in dots]
        axes.plot(dots * 1e3, seen, "o", markersize=5, color=colour, label=f"simulated, {label}")
    axes.axvline(WINDING * 1e3, color=PALE, linewidth=1.0, linestyle="--")
    words = "F/K: nothing slides\nleft of this"
    axes.annotate(words, (WINDING * 1e3, 0.5), (5, 0), textcoords="offset points", fontsize=10)
    for axis, ticks in ((axes.xaxis, (1, 2, 5, 10, 20, 50, 100)), (axes.yaxis, (0.5, 1, 2, 5, 10, 20, 50))):
        axis.set_minor_locator(NullLocator())
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter("{x:g}")
    axes.legend(fontsize=10)
    dress(
        axes, "radius of the circle R [mm]", "lag of the force behind the motion [deg]", "lag of the force on a circle"
    )


def _draw_small(axes: Axes) -> None:
    for radius, colour in ((0.6e-3, GREEN), (0.8e-3, ORANGE)):
        motion = small_circle(radius, 3.0)
        force = norms(simulate(element(COARSE), motion).friction_force)
        time = COARSE * np.arange(1, len(force) + 1)
        axes.plot(time, force, color=colour, linewidth=1.4, label=f"R = {radius * 1e3:g} mm")
    axes.axhline(FRICTION, color=INK, linewidth=0.8, linestyle=":")
    axes.set_ylim(0.0, 4.6)
    axes.legend(fontsize=10, loc="lower right")
    dress(axes, "time [s]", "|f| [N]", "moving out by R, then circling round the start")


def _draw_release(axes: Axes, places: Array) -> None:
    time = COARSE * np.arange(1, len(places) + 1)
    axes.plot(time, (places - places[499]) * 1e3, color=BLUE, linewidth=1.4)
    axes.axhline(-WINDING * 1e3, color=INK, linewidth=0.8, linestyle=":")
    axes.annotate("-F/K", (1.48, -WINDING * 1e3), (0, 4), textcoords="offset points", ha="right", fontsize=10)
    axes.set_xlim(0.25, 1.5)
    axes.set_ylim(-1.6, 0.4)
    dress(axes, "time [s]", "position [mm]", "slide, stop, and let go at 0.5 s (device 0.15 kg)")
