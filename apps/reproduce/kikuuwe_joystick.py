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

import numpy as np
from matplotlib.figure import Figure

from apps.reproduce.kikuuwe_fig13_14 import mass_on_contact
from apps.reproduce.outcome import Bound, Outcome, Row, derived, guard
from apps.reproduce.planar import Array, angles, circling, norms
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, PALE, dress
from apps.reproduce.tour import MIDDLE, STEADY, Tour, draw_courses, draw_path, motion_of, tour
from haptics import Coulomb, MasslessImpedance, simulate
from haptics.rendering.envelope import FADE

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
        rows.append(derived(f"{where}: lag of the force", printed, ours, 0.02, "deg"))
        rows.append(
            derived(f"{where}: lag, distance from the law", 0.0, ours - lag_law(radius, PULSATION), 1e-3, "deg")
        )
    for radius in (0.6e-3, 0.66e-3, 0.68e-3, 0.8e-3):
        slides = bool(np.any(~simulate(joystick_element(COARSE), small_circle(radius)).sticking))
        description = f"R = {radius * 1e3:g} mm against F/K = {WINDING * 1e3:.3f} mm: ever slides (1 = yes)"
        rows.append(derived(description, int(radius > WINDING), int(slides)))
    places = released()
    recoil = float(places[499] - places[-1])
    rows.append(derived("recoil after letting go, F/K", WINDING, recoil, 1e-8, "m"))
    stored = 0.5 * STIFFNESS * recoil**2
    rows.append(
        derived("energy in the spring after a stop, F^2/(2 K)", FRICTION**2 / (2 * STIFFNESS), stored, 1e-7, "J")
    )
    return Outcome(rows, lambda figure: _draw_lag(figure, places))


def _draw_lag(figure: Figure, places: Array) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    axes = figure.subplot_mosaic([["law", "small"], ["law", "release"]], width_ratios=(1.3, 1.0))
    law, small, release = axes["law"], axes["small"], axes["release"]
    law.set_xscale("log")
    law.set_yscale("log")
    radii = np.geomspace(0.8e-3, 0.1, 200)
    dots = np.geomspace(1e-3, 0.08, 12)
    for w, period, colour in ((3.0, FINE, BLUE), (300.0, FINE / 10.0, ORANGE)):
        label = f"w = {w:g} rad/s"
        law.plot(radii * 1e3, [lag_law(r, w) for r in radii], color=colour, linewidth=1.4, label=f"law, {label}")
        seen = [lag(r, w, period) for r in dots]
        law.plot(dots * 1e3, seen, "o", markersize=5, color=colour, label=f"simulated, {label}")
    law.axvline(WINDING * 1e3, color=PALE, linewidth=1.0, linestyle="--")
    words = "F/K: nothing slides\nleft of this"
    law.annotate(words, (WINDING * 1e3, 0.5), (5, 0), textcoords="offset points", fontsize=10)
    for axis, ticks in ((law.xaxis, (1, 2, 5, 10, 20, 50, 100)), (law.yaxis, (0.5, 1, 2, 5, 10, 20, 50))):
        axis.set_minor_locator(NullLocator())
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter("{x:g}")
    words = "lag of the force behind the motion [deg]"
    dress(law, "radius of the circle R [mm]", words, "lag of the force on a circle", legend="best")
    for radius, colour in ((0.6e-3, GREEN), (0.8e-3, ORANGE)):
        force = norms(simulate(joystick_element(COARSE), small_circle(radius, 3.0)).friction_force)
        time = COARSE * np.arange(1, len(force) + 1)
        small.plot(time, force, color=colour, linewidth=1.4, label=f"R = {radius * 1e3:g} mm")
    small.axhline(FRICTION, color=INK, linewidth=0.8, linestyle=":")
    small.set_ylim(0.0, 4.6)
    dress(small, "time [s]", "|f| [N]", "moving out by R, then circling round the start", legend="lower right")
    time = COARSE * np.arange(1, len(places) + 1)
    release.plot(time, (places - places[499]) * 1e3, color=BLUE, linewidth=1.4)
    release.axhline(-WINDING * 1e3, color=INK, linewidth=0.8, linestyle=":")
    release.annotate("-F/K", (1.48, -WINDING * 1e3), (0, 4), textcoords="offset points", ha="right", fontsize=10)
    release.set(xlim=(0.25, 1.5), ylim=(-1.6, 0.4))
    dress(release, "time [s]", "position [mm]", "slide, stop, and let go at 0.5 s (device 0.15 kg)")
    figure.suptitle("model C (F = 4 N, K = 6000 N/m, B = 10 N s/m) off the straight line", color=INK)


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
        Row("sliding: mean size of the commanded force", FRICTION, size.mean(), 1e-12, "N"),
        derived("sliding: its standard deviation", 0.0, spread, 1e-14, "N"),
    ]
    for stroke in STRAIGHT:
        ticks = run.ticks(stroke, STEADY)
        turned = float(angles(-run.rows["command"][ticks], motion_of(run, ticks).velocity).mean())
        rows.append(Row(f"straight stroke {stroke}: mean angle of -f to the motion", 0.0, turned, 0.1, "deg"))
    ticks = run.ticks(CURVE, MIDDLE)
    motion = motion_of(run, ticks)
    seen = angles(-run.rows["command"][ticks], motion.velocity)
    radius = motion.radius
    expected = [lag_law(r, w) for r, w in zip(radius, norms(motion.velocity) / radius, strict=True)]
    description = "curve c-d: mean lag of the force, asin((F/K)/(R (1 + (w B/K)^2)))"
    rows.append(derived(description, float(np.mean(expected)), seen.mean(), 0.1, "deg"))
    title = "Fig. 19: model C (F = 4 N, K = 6000 N/m, B = 10 N s/m) on the virtual joystick; path and commanded force"
    letters = {"a": (-14, -4), "b": (-4, -16), "c": (0, -16), "d": (10, 14), "e": (-12, 8)}
    scale = (14.0, FRICTION)
    return Outcome(rows, lambda figure: draw_path(figure, title, run, run.rows["command"], 0.01, scale, letters))


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
        Row("rest at b: the commanded force stays below F", Bound(maximum=FRICTION), force.max(), 0.0, "N"),
        guard("rest at b: least commanded force (hand chosen for it)", Bound(minimum=2.4), force.min(), "N"),
        guard("rest at b: largest commanded force (hand chosen for it)", Bound(maximum=3.4), force.max(), "N"),
        Row("rest at b: drift of the point that is held", 0.0, drift, 1.0, "um"),
        Row("rest at b: from the first half to the second", 0.0, creep, 1.0, "um"),
        Row("rest at b: ticks that slide", 0, int(np.count_nonzero(rest["sticking"] == 0))),
        derived(
            "rest at b: the handle gives way by less than F/K", Bound(maximum=FRICTION / STIFFNESS), wander, 0.0, "m"
        ),
    ]
    title = "Fig. 20: model C (F = 4 N, K = 6000 N/m, B = 10 N s/m) on the virtual joystick; position and force"
    return Outcome(rows, lambda figure: draw_courses(figure, title, run, norms(run.rows["command"]), "|f|", FRICTION))
