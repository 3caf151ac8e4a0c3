"""The tour of Kikuuwe et al. 2006, section V-A, on the virtual arm, and what the hand feels of it.

The arm has what the device of the paper has: about 10 N m of friction in its joints, gears that yield, encoders on the
motors. The paper controls it by stiff PID; here any servo law can be chosen.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
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


@dataclass(frozen=True)
class Trial:
    """What is asked for, by whom, of which arm.

    Attributes
    ----------
    friction, mass : float
        Of model A [N], [kg].
    arm, servo, hand : tuple of (str, float)
        Settings that differ, as pairs of name and value.
    """

    friction: float = FRICTION
    mass: float = MASS
    arm: tuple[tuple[str, float], ...] = ()
    servo: tuple[tuple[str, float], ...] = ()
    hand: tuple[tuple[str, float], ...] = ()


USUAL = Trial()
"""The tour of the figures."""


@functools.lru_cache(maxsize=16)
def experiment(law: str = "pid", trial: Trial = USUAL) -> Tour:
    """Run the tour under a servo law."""
    table: Mapping[str, Any] = LAWS[law]
    settings = {
        "seed": 16,
        "hand": {**HAND, **dict(trial.hand)},
        "arm": {"handle_mass": HANDLE, **table.get("arm", {}), **dict(trial.arm)},
        "servo": {"law": law, **table.get("servo", {}), **dict(trial.servo)},
    }
    return tour("virtual-arm", settings, RigidAdmittance(Coulomb(trial.friction), trial.mass), "e")


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
    early : float
        By how much the measured force misses the friction when the model breaks away, at worst: short of it in the
        first tick that slides, or beyond it in the tick before, which still holds [N].
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
    early: float
    breakaway: float
    drift: float
    reference_drift: float


def felt(run: Tour, trial: Trial = USUAL) -> Felt:
    """Return what is felt of a tour, which was that of `trial`."""
    error = norms(run.rows["command"][:-1] - run.handle[1:])
    velocity = smooth(run.velocity, run.period)
    acceleration = np.gradient(velocity, run.period, axis=0)
    friction = smooth(run.hand_force, run.period) - (trial.mass + HANDLE) * acceleration
    straight = np.concatenate([np.arange(len(run.rows))[run.straight(stroke)] for stroke in STRAIGHT])
    moving = np.concatenate([np.arange(len(run.rows))[run.middle(stroke)] for stroke in (*STRAIGHT, CURVE)])
    direction = velocity / np.maximum(norms(velocity), 1e-9)[:, None]
    along = np.sum(friction * direction, axis=1)
    left = _unaccelerated(run, trial.mass) - trial.friction * direction
    rest = run.rest(REST)
    drifts = [float(norms(np.ptp(places[rest], axis=0)[None])[0]) for places in (run.handle, run.rows["command"])]
    return Felt(
        float(np.sqrt(np.mean(error**2))),
        float(error.max()),
        float(along[straight].mean()),
        float(np.sqrt(np.mean(np.sum(left[moving] ** 2, axis=1)))),
        _knock(run, trial),
        float(np.abs(angles(velocity, friction))[straight].mean()),
        max(_early(run, stroke, trial.friction) for stroke in STRAIGHT),
        float(np.mean([_breakaway(run, stroke) for stroke in STRAIGHT])),
        *drifts,
    )


@dataclass(frozen=True)
class Ratios:
    """How many times better one tour is felt than another.

    Attributes
    ----------
    closer, smoother, weaker : float
        Of the error of the handle, of the unevenness and of the knocks.
    """

    closer: float
    smoother: float
    weaker: float


def ratios(worse: Felt, better: Felt) -> Ratios:
    """Return how many times better `better` is."""
    return Ratios(worse.error_rms / better.error_rms, worse.unevenness / better.unevenness, worse.knock / better.knock)


def _unaccelerated(run: Tour, mass: float) -> Array:
    """Return the hand's force at every tick less what accelerates model and handle, (n, 2) [N]."""
    return np.asarray(run.hand_force - (mass + HANDLE) * np.gradient(run.velocity, run.period, axis=0))


def remainder(run: Tour, ticks: slice, mass: float = MASS) -> Array:
    """Return the hand's force along the motion at `ticks` less what accelerates all, smoothed over `BELL`, (n,) [N]."""
    velocity = run.velocity[ticks]
    along = np.sum(_unaccelerated(run, mass)[ticks] * velocity, axis=1) / np.maximum(norms(velocity), 1e-9)
    return smooth(along[:, None], run.period, BELL)[:, 0]


def _knock(run: Tour, trial: Trial) -> float:
    """Return by how much the hand's force along the motion differs from the friction at worst [N]."""
    strokes = [remainder(run, run.middle(stroke), trial.mass) for stroke in (*STRAIGHT, CURVE)]
    return max(float(abs(force - trial.friction).max()) for force in strokes)


def _early(run: Tour, stroke: str, friction: float) -> float:
    """Return by how much the measured force misses `friction` where the model breaks away for good in a stroke [N]."""
    first = run.slide(stroke).start
    before, after = norms(run.rows["force"][first - 1 : first + 1])
    return float(max(before - friction, friction - after, 0.0))


def _breakaway(run: Tour, stroke: str) -> float:
    """Return the hand's force when the handle begins to move for good, at the beginning of a stroke [N]."""
    phase = run.phase(stroke)
    ticks = run.between(phase.start, phase.start + 0.5 * phase.duration)
    rests = np.flatnonzero(norms(run.velocity[ticks]) < MOVES)
    return float(norms(run.hand_force)[ticks.start + int(rests[-1]) + 1])
