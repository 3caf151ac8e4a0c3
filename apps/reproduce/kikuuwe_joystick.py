"""Kikuuwe et al. 2006, section V-B and Figs. 19 and 20: model C on circles and on a joystick.

On a circle of radius R at the angular velocity w, the elastic displacement rotates with the motion, slightly behind it:
the force makes the angle asin((F/K)/(R (1 + (w B/K)^2))) with the direction of the motion. A stiffer coupling reduces
the lag. On circles with R < F/K the contact never breaks away, and a hand that releases the handle after a stop feels a
recoil of F/K. All this follows from (38).

Fig. 19 is the path and the commanded force on a joystick. The force opposes the motion both on straight strokes and on
the curve, because model C has no mass that must be turned. On the curve the spring makes the force lag slightly. Path
and radius are computed from the smoothed measured position.

Fig. 20 is the same run over time. The joystick holds its position at rest. During the rest the handle yields
elastically. The fixed end of the spring, which is the measured position less the elastic displacement, must not move.
The force at rest depends on the hand, not on the model, if it is below the friction force. Grip, fluctuation, tremor
and seed of the hand were selected from about 140 runs so that the force is between 2.4 and 3.4 N, as in a separate
simulation of this figure. The two corresponding rows are guards, because they describe the experiment. With the seeds 0
to 29 the force ranges from 2.2 to 3.6 N (an encoder count corresponds to 0.2 N), and every other row of this figure and
of Fig. 19 is met with each of them.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.kikuuwe_fig13_14 import mass_on_contact
from apps.reproduce.outcome import Bound, Outcome, Row, guard
from apps.reproduce.planar import Array, angles, circling, norms
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, PALE, dress
from apps.reproduce.tour import Tour, draw_courses, draw_path, motion_of, tour
from haptics import Coulomb, MasslessImpedance, simulate
from haptics.rendering.envelope import FADE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FRICTION, STIFFNESS, DAMPING = 4.0, 6000.0, 10.0
FINE, COARSE = 1e-4, 1e-3
PULSATION = 3.0
DEVICE_MASS = 0.15
WINDING = FRICTION / STIFFNESS
"""Displacement at break-away, F/K [m]."""


def joystick_element(period: float) -> MasslessImpedance:
    """Return model C with the parameters of the paper's joystick."""
    return MasslessImpedance(Coulomb(FRICTION), STIFFNESS, DAMPING, period)


def lag_law(radius: float, angular_velocity: float) -> float:
    """Return the lag of the force [deg] on a circle of `radius` [m] at `angular_velocity` [rad/s]."""
    return math.degrees(math.asin(WINDING / (radius * (1.0 + (angular_velocity * DAMPING / STIFFNESS) ** 2))))


def lag(radius: float, angular_velocity: float, period: float) -> float:
    """Simulate the circle until it is steady and return the lag of the force behind the motion [deg]."""
    motion = circling(radius, angular_velocity, period, 1.5)
    run = simulate(joystick_element(period), motion)
    return float(angles(run.friction_force[-1:], motion[-1:])[0])


def small_circle(radius: float, turns: float = 10.0) -> Array:
    """Return the velocities (n, 2) of a hand that moves out by `radius` [m] and circles around its start."""
    outward = np.tile((radius / 1.0, 0.0), (round(1.0 / COARSE), 1))
    return np.vstack((outward, circling(radius, 2.0, COARSE, turns)))


def released() -> Array:
    """Return the positions along x of a joystick that is stopped, held and released, (n,) [m].

    The hand releases it at index 500. The joystick, a free mass, then oscillates until it is at rest.
    """
    contact = joystick_element(COARSE)
    held = np.repeat((0.05, 0.0), (300, 200))
    for velocity in held:
        contact.step((velocity, 0.0))
    free = mass_on_contact(contact, DEVICE_MASS, 0.0, 3000)
    return np.asarray(np.cumsum(COARSE * np.concatenate((held, free))))


def reproduce_lag() -> Outcome:
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
        slides = bool(np.any(~simulate(joystick_element(COARSE), small_circle(radius)).sticking))
        description = f"R = {radius * 1e3:g} mm against F/K = {WINDING * 1e3:.3f} mm: ever slides (1 = yes)"
        rows.append(Row(description, int(radius > WINDING), int(slides), 0.0, "", "derived"))
    places = released()
    recoil = float(places[499] - places[-1])
    rows.append(Row("recoil after letting go, F/K", WINDING, recoil, 1e-8, "m", "derived"))
    stored = 0.5 * STIFFNESS * recoil**2
    rows.append(
        Row("energy in the spring after a stop, F^2/(2 K)", FRICTION**2 / (2 * STIFFNESS), stored, 1e-7, "J", "derived")
    )
    return Outcome(rows, lambda figure: _draw_lag(figure, places))


def _draw_lag(figure: Figure, places: Array) -> None:
    axes = figure.subplot_mosaic([["law", "small"], ["law", "release"]], width_ratios=(1.3, 1.0))
    _draw_law(axes["law"])
    small, release = axes["small"], axes["release"]
    for radius, colour in ((0.6e-3, GREEN), (0.8e-3, ORANGE)):
        force = norms(simulate(joystick_element(COARSE), small_circle(radius, 3.0)).friction_force)
        time = COARSE * np.arange(1, len(force) + 1)
        small.plot(time, force, color=colour, linewidth=1.4, label=f"R = {radius * 1e3:g} mm")
    small.axhline(FRICTION, color=INK, linewidth=0.8, linestyle=":")
    small.set_ylim(0.0, 4.6)
    small.legend(fontsize=10, loc="lower right")
    dress(small, "time [s]", "|f| [N]", "moving out by R, then circling round the start")
    time = COARSE * np.arange(1, len(places) + 1)
    release.plot(time, (places - places[499]) * 1e3, color=BLUE, linewidth=1.4)
    release.axhline(-WINDING * 1e3, color=INK, linewidth=0.8, linestyle=":")
    release.annotate("-F/K", (1.48, -WINDING * 1e3), (0, 4), textcoords="offset points", ha="right", fontsize=10)
    release.set_xlim(0.25, 1.5)
    release.set_ylim(-1.6, 0.4)
    dress(release, "time [s]", "position [mm]", "slide, stop, and let go at 0.5 s (device 0.15 kg)")
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


# --- Figs. 19 and 20 -----------------------------------------------------------------------------------------------

PERIOD = 1e-3
STRAIGHT, CURVE, REST = ("a-b", "b-c", "d-e"), "c-d", "b"

_HAND = {
    "name": "minimum-jerk",
    "points": [[-0.08, 0.035], [-0.04, -0.04], [0.045, -0.04], [0.045, 0.04], [-0.03, 0.06]],
    "curves": [CURVE],
    "rests": [REST],
    "rest": 3.0,
    "rest_grip": 0.72,
    "rest_force": 0.35,
    "tremor": 0.03,
    "speed": 0.12,
}
_JOYSTICK = {
    **{"seed": 27, "mass": DEVICE_MASS, "resolution": 20e-6},
    **{"velocity_estimator": "difference", "hand": _HAND},
}
"""The paper's joystick, as far as its parameters are known. With backward differences as the velocity, the element
cannot drift.
"""


@functools.cache
def experiment() -> Tour:
    """Run the experiment, which Figs. 19 and 20 share."""
    return tour("virtual-joystick", _JOYSTICK, joystick_element(PERIOD), "e")


def reproduce_fig19() -> Outcome:
    """Compare the commanded forces."""
    run = experiment()
    moving = np.flatnonzero((run.rows["sticking"] == 0) & (run.rows["status"] & FADE == 0))
    size = norms(run.rows["command"])[moving]
    spread = float(np.std(size))
    rows = [
        Row("sliding: mean size of the commanded force", FRICTION, float(size.mean()), 1e-12, "N"),
        Row("sliding: its standard deviation", 0.0, spread, 1e-14, "N", "derived"),
    ]
    for stroke in STRAIGHT:
        ticks = run.straight(stroke)
        turned = float(angles(-run.rows["command"][ticks], motion_of(run, ticks).velocity).mean())
        rows.append(Row(f"straight stroke {stroke}: mean angle of -f to the motion", 0.0, turned, 0.1, "deg"))
    seen, expected = lags(run)
    description = "curve c-d: mean lag of the force, asin((F/K)/(R (1 + (w B/K)^2)))"
    rows.append(Row(description, float(expected.mean()), float(seen.mean()), 0.1, "deg", "derived"))
    return Outcome(rows, lambda figure: _draw_fig19(figure, run))


def lags(run: Tour) -> tuple[Array, Array]:
    """Return the measured and expected lag of the force on the curve (n,) [deg]."""
    ticks = run.middle(CURVE)
    motion = motion_of(run, ticks)
    seen = angles(-run.rows["command"][ticks], motion.velocity)
    radius = motion.radius
    angular_velocity = norms(motion.velocity) / radius
    return seen, np.array([lag_law(r, w) for r, w in zip(radius, angular_velocity, strict=True)])


def _draw_fig19(figure: Figure, run: Tour) -> None:
    letters = {"a": (-14, -4), "b": (-4, -16), "c": (0, -16), "d": (10, 14), "e": (-12, 8)}
    draw_path(figure.subplots(), run, run.rows["command"], 0.01, (14.0, FRICTION), letters)
    figure.suptitle(
        "Fig. 19: model C (F = 4 N, K = 6000 N/m, B = 10 N s/m) on the virtual joystick; path and commanded force",
        color=INK,
    )


def reproduce_fig20() -> Outcome:
    """Evaluate the rest period."""
    run = experiment()
    rest = run.rows[run.rest(REST)]
    force = norms(rest["command"])
    drift = float(norms(np.ptp(rest["proxy"], axis=0)[None])[0] * 1e6)
    halves = np.array_split(rest["position"] - rest["displacement"], 2)
    creep = float(norms((halves[1].mean(axis=0) - halves[0].mean(axis=0))[None])[0] * 1e6)
    wander = float(norms(np.ptp(rest["position"], axis=0)[None])[0])
    rows = [
        Row("rest at b: the commanded force stays below F", Bound(maximum=FRICTION), float(force.max()), 0.0, "N"),
        guard("rest at b: least commanded force (hand chosen for it)", Bound(minimum=2.4), force.min(), "N"),
        guard("rest at b: largest commanded force (hand chosen for it)", Bound(maximum=3.4), force.max(), "N"),
        Row("rest at b: drift of the point that is held", 0.0, drift, 1.0, "um"),
        Row("rest at b: from the first half to the second", 0.0, creep, 1.0, "um"),
        Row("rest at b: ticks that slide", 0, int(np.count_nonzero(rest["sticking"] == 0))),
        Row(
            "rest at b: the handle gives way by less than F/K",
            Bound(maximum=FRICTION / STIFFNESS),
            wander,
            0.0,
            "m",
            "derived",
        ),
    ]
    return Outcome(rows, lambda figure: _draw_fig20(figure, run))


def _draw_fig20(figure: Figure, run: Tour) -> None:
    draw_courses(figure, run, norms(run.rows["command"]), "|f|", FRICTION)
    figure.suptitle(
        "Fig. 20: model C (F = 4 N, K = 6000 N/m, B = 10 N s/m) on the virtual joystick; position and force", color=INK
    )
