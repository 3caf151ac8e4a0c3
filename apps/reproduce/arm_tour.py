"""The tour of Kikuuwe et al. 2006, section V-A, on the virtual arm, and what the hand feels of it.

The arm has what the device of the paper has: about 10 N m of friction in its joints, gears that yield, encoders on the
motors. The paper controls it by stiff PID; here any servo law can be chosen.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from apps.reproduce.planar import Array, angles, norms
from apps.reproduce.tour import Tour, smooth, tour
from haptics import Coulomb, RigidAdmittance

FRICTION, MASS, HANDLE = 6.0, 2.0, 0.3
STRAIGHT, CURVE, REST = ("a-b", "b-c", "c-d"), "d-e", "c"

HAND = {
    "name": "minimum-jerk",
    "points": [[-0.15, -0.09], [-0.04, 0.0], [0.1, -0.09], [0.1, 0.03], [0.0, 0.03]],
    "curves": [CURVE],
    "rests": [REST],
    "rest": 3.0,
    "speed": 0.18,
    "stiffness": 600.0,
    "damping": 40.0,
}

LAWS: dict[str, dict[str, Any]] = {
    "pid": {},
    "rigid": {},
    "flatness": {},
    "fractional": {},
    "linearising": {"arm": {"encoder": "both"}},
}
"""Servo law to what else of the arm must be chosen for it."""

BELL = 0.01
"""Length of the window over which the force of a knock is smoothed [s]."""

MOVES = 1e-4
"""A handle that is faster than this has broken away [m/s]."""


@functools.cache
def experiment(law: str = "pid") -> Tour:
    """Run the tour under a servo law."""
    table = LAWS[law]
    arm = {"handle_mass": HANDLE, **table.get("arm", {})}
    settings = {"seed": 16, "hand": HAND, "arm": arm, "servo": {"law": law, **table.get("servo", {})}}
    return tour("virtual-arm", settings, RigidAdmittance(Coulomb(FRICTION), MASS), "e")


@dataclass(frozen=True)
class Felt:
    """How good an arm is at being model A, as seen from outside.

    Attributes
    ----------
    error_rms, error_max : float
        How far the handle is from the reference of the model, over the whole tour [m].
    level : float
        Mean force of the hand along the straight strokes, beyond what accelerates model and handle [N]: the friction
        it feels.
    unevenness : float
        Root mean square of what is left of the hand's force on all strokes without friction and acceleration [N].
    knock : float
        The largest of it along the motion, smoothed over `BELL` [N].
    angle : float
        Mean size of the angle between that force and the motion on the straight strokes [deg].
    breakaway : float
        Force of the hand at which the handle begins to move, mean over the straight strokes [N].
    drift, reference_drift : float
        How far the handle and the reference of the model move while the hand rests on it [m].
    """

    error_rms: float
    error_max: float
    level: float
    unevenness: float
    knock: float
    angle: float
    breakaway: float
    drift: float
    reference_drift: float


def felt(run: Tour) -> Felt:
    """Return what is felt of a tour."""
    error = norms(run.rows["command"][:-1] - run.handle[1:])
    velocity = smooth(run.velocity, run.period)
    acceleration = np.gradient(velocity, run.period, axis=0)
    friction = smooth(run.hand_force, run.period) - (MASS + HANDLE) * acceleration
    straight = np.concatenate([np.arange(len(run.rows))[run.straight(stroke)] for stroke in STRAIGHT])
    moving = np.concatenate([np.arange(len(run.rows))[run.middle(stroke)] for stroke in (*STRAIGHT, CURVE)])
    direction = velocity / np.maximum(norms(velocity), 1e-9)[:, None]
    along = np.sum(friction * direction, axis=1)
    left = _unaccelerated(run) - FRICTION * direction
    rest = run.rest(REST)
    drifts = [float(norms(np.ptp(places[rest], axis=0)[None])[0]) for places in (run.handle, run.rows["command"])]
    return Felt(
        float(np.sqrt(np.mean(error**2))),
        float(error.max()),
        float(along[straight].mean()),
        float(np.sqrt(np.mean(np.sum(left[moving] ** 2, axis=1)))),
        max(float(abs(remainder(run, run.middle(stroke)) - FRICTION).max()) for stroke in (*STRAIGHT, CURVE)),
        float(np.abs(angles(velocity, friction))[straight].mean()),
        float(np.mean([_breakaway(run, stroke) for stroke in STRAIGHT])),
        *drifts,
    )


def _unaccelerated(run: Tour) -> Array:
    """Return the hand's force at every tick less what accelerates model and handle, (n, 2) [N]."""
    return np.asarray(run.hand_force - (MASS + HANDLE) * np.gradient(run.velocity, run.period, axis=0))


def remainder(run: Tour, ticks: slice) -> Array:
    """Return the hand's force along the motion at `ticks` less what accelerates all, smoothed over `BELL`, (n,) [N]."""
    velocity = run.velocity[ticks]
    along = np.sum(_unaccelerated(run)[ticks] * velocity, axis=1) / np.maximum(norms(velocity), 1e-9)
    return smooth(along[:, None], run.period, BELL)[:, 0]


def _breakaway(run: Tour, stroke: str) -> float:
    """Return the hand's force when the handle begins to move for good, at the beginning of a stroke [N]."""
    phase = run.phase(stroke)
    ticks = run.between(phase.start, phase.start + 0.5 * phase.duration)
    rests = np.flatnonzero(norms(run.velocity[ticks]) < MOVES)
    return float(norms(run.hand_force)[ticks.start + int(rests[-1]) + 1])
