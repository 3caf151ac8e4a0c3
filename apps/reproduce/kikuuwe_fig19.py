"""Kikuuwe et al. 2006, Fig. 19: model C on a joystick, path and commanded force.

The force opposes the motion both on straight strokes and on the curve, because model C has no mass that must be turned.
On the curve the spring makes the force lag slightly, by the law of `apps.reproduce.kikuuwe_lag`. Path and radius are
computed from the smoothed measured position.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.kikuuwe_lag import DEVICE_MASS, FRICTION, element, lag_law
from apps.reproduce.outcome import Outcome, Row
from apps.reproduce.planar import Array, angles, norms
from apps.reproduce.style import INK
from apps.reproduce.tour import Tour, draw_path, motion_of, tour
from haptics.rendering.envelope import FADE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "model C on the virtual joystick: path and commanded force (Kikuuwe et al. 2006, Fig. 19)"

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
    return tour("virtual-joystick", _JOYSTICK, element(PERIOD), "e")


def reproduce() -> Outcome:
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
    rows += _curve_rows(run)
    return Outcome(rows, lambda figure: _draw(figure, run))


def lags(run: Tour) -> tuple[Array, Array]:
    """Return the measured and expected lag of the force on the curve (n,) [deg]."""
    ticks = run.middle(CURVE)
    motion = motion_of(run, ticks)
    seen = angles(-run.rows["command"][ticks], motion.velocity)
    radius = motion.radius
    angular_velocity = norms(motion.velocity) / radius
    return seen, np.array([lag_law(r, w) for r, w in zip(radius, angular_velocity, strict=True)])


def _curve_rows(run: Tour) -> list[Row]:
    seen, expected = lags(run)
    what = "curve c-d: mean lag of the force, asin((F/K)/(R (1 + (w B/K)^2)))"
    return [Row(what, float(expected.mean()), float(seen.mean()), 0.1, "deg", "derived")]


def _draw(figure: Figure, run: Tour) -> None:
    letters = {"a": (-14, -4), "b": (-4, -16), "c": (0, -16), "d": (10, 14), "e": (-12, 8)}
    draw_path(figure.subplots(), run, run.rows["command"], 0.01, (14.0, FRICTION), letters)
    figure.suptitle(
        "Fig. 19: model C (F = 4 N, K = 6000 N/m, B = 10 N s/m) on the virtual joystick; path and commanded force",
        color=INK,
    )
