"""Kikuuwe et al. 2006, Fig. 16: model A on an arm, path and measured force of the hand.

On straight strokes the hand's force has the direction of the motion. Averaged over a stroke from rest to rest, its
magnitude equals the friction. On the curve the force points inwards, because it must also turn the mass of the model:
with the accelerations a_t along and a_n across the path, by the angle atan2(M a_n, F + M a_t). Both the force (noisy
force sensor) and the path (encoders) are measured, and smoothed with the same window. The joints of the arm are under
stiff PID control, as in the paper. `apps.reproduce.kikuuwe_servo` has other laws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.arm_tour import CURVE, FRICTION, MASS, STRAIGHT, experiment
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.planar import Array, angles, norms
from apps.reproduce.style import INK
from apps.reproduce.tour import Motion, Tour, draw_path, motion_of, smooth

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "model A on the virtual arm: path and force of the hand (Kikuuwe et al. 2006, Fig. 16)"


def reproduce() -> Outcome:
    """Compare the forces on the strokes and the curve."""
    run = experiment()
    rows = [row for stroke in STRAIGHT for row in _straight_rows(run, stroke)]
    return Outcome([_whole_stroke_row(run), *rows, *_curve_rows(run)], lambda figure: _draw(figure, run))


def response(run: Tour, ticks: slice) -> tuple[Motion, Array]:
    """Return the smoothed forces at `ticks`, (n, 2) [N], after the smoothed motion that they cause.

    The reference moves during the period after a sample, so the motion is taken one tick after the force.
    """
    motion = motion_of(run, slice(ticks.start + 1, ticks.stop + 1))
    return motion, smooth(run.rows["force"], run.period)[ticks]


def _straight_rows(run: Tour, stroke: str) -> list[Row]:
    motion, force = response(run, run.straight(stroke))
    along = np.sum(force * motion.velocity, axis=1) / norms(motion.velocity)
    beyond = float(np.mean(along - MASS * motion.along))
    turned = float(angles(motion.velocity, force).mean())
    where = f"straight stroke {stroke}"
    return [
        Row(f"{where}: mean force along the motion, less M a", FRICTION, beyond, 0.01, "N", "derived"),
        Row(f"{where}: mean angle of the force to the motion", 0.0, turned, 0.1, "deg"),
    ]


def _whole_stroke_row(run: Tour) -> Row:
    """Return the row of the first stroke.

    The stroke is straight from rest to rest, so that its net momentum is zero.
    """
    ticks = run.slide(STRAIGHT[0])
    force, place = run.rows["force"][ticks].mean(axis=0), run.rows["position"][ticks]
    way = place[-1] - place[0]
    along = float(force @ way / np.hypot(*way))
    return Row(f"stroke {STRAIGHT[0]} from rest to rest: mean force along it", FRICTION, along, 0.01, "N")


def slants(run: Tour) -> tuple[Array, Array]:
    """Return the measured and expected angles (n,) [deg] between force and motion, positive inwards."""
    motion, force = response(run, run.middle(CURVE))
    expected = np.arctan2(MASS * motion.inwards, FRICTION + MASS * motion.along)
    return angles(motion.velocity, force), np.degrees(expected)


def _curve_rows(run: Tour) -> list[Row]:
    seen, expected = slants(run)
    mean = float(expected.mean())
    return [
        Row("curve d-e: mean slant, atan2(M a_n, F + M a_t)", mean, float(seen.mean()), 0.1, "deg", "derived"),
        Row("curve d-e: least slant; to the inside is positive", Bound(minimum=0.0), float(seen.min()), 0.0, "deg"),
    ]


def _draw(figure: Figure, run: Tour) -> None:
    letters = {"a": (-14, 0), "b": (-10, 12), "c": (-16, -4), "d": (16, 4), "e": (-16, 0)}
    draw_path(figure.subplots(), run, run.rows["force"], 0.02, (20.0, FRICTION), letters)
    figure.suptitle("Fig. 16: model A (F = 6 N, M = 2 kg) on the virtual arm; path and force of the hand", color=INK)
