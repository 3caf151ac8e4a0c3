"""Kikuuwe et al. 2006, section V-A and Figs. 16 and 17: model A on the virtual arm, and the evaluation of the run.

Like the device of the paper, the arm has about 10 N m of friction in its joints, elastic gears, and encoders on the
motors. The paper uses stiff PID control; here any servo law can be chosen (`apps.reproduce.kikuuwe_servo`).

Fig. 16: on straight strokes the hand's force has the direction of the motion. Averaged over a stroke from rest to rest,
its magnitude equals the friction. On the curve the force points inwards, because it must also turn the mass of the
model: with the accelerations a_t along and a_n across the path, by the angle atan2(M a_n, F + M a_t). Both the force
(noisy force sensor) and the path (encoders) are measured, and smoothed with the same window.

Fig. 17 is the same run over time, without drift of the arm. The magnitude of this force and its fluctuation by 1 N or
more are properties of the chosen hand.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from apps.reproduce.outcome import Bound, Outcome, Row, guard
from apps.reproduce.planar import Array, angles, norms
from apps.reproduce.style import INK
from apps.reproduce.tour import Motion, Tour, draw_courses, draw_path, motion_of, smooth, tour
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
"""Servo laws, with the arm settings that each requires."""

BELL = 0.01
"""Length of the window over which the force of a knock is smoothed [s]."""

MOVES = 1e-4
"""Speed above which the handle has broken away [m/s]."""


@dataclass(frozen=True)
class Trial:
    """Conditions of an experiment: element, arm, servo and hand.

    Attributes
    ----------
    friction, mass : float
        Parameters of model A [N], [kg].
    arm, servo, hand : tuple of (str, float)
        Settings that differ from the defaults, as pairs of name and value.
    """

    friction: float = FRICTION
    mass: float = MASS
    arm: tuple[tuple[str, float], ...] = ()
    servo: tuple[tuple[str, float], ...] = ()
    hand: tuple[tuple[str, float], ...] = ()


USUAL = Trial()
"""Conditions of the figures."""


@functools.lru_cache(maxsize=16)
def experiment(law: str = "pid", trial: Trial = USUAL) -> Tour:
    """Run the experiment under a servo law."""
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
    """Measures of how well an arm renders model A, from the true state of handle and hand.

    Attributes
    ----------
    error_rms, error_max : float
        Distance between the handle and the reference of the model over the whole run [m].
    level : float
        Mean force of the hand along the straight strokes, less the force that accelerates model and handle [N]: the
        perceived friction.
    unevenness : float
        Root mean square of the hand's force on all strokes, less friction and acceleration [N].
    knock : float
        Maximum of this residual force along the motion, smoothed over `BELL` [N].
    angle : float
        Mean absolute angle between the perceived friction and the motion on the straight strokes [deg].
    early : float
        Maximum difference between the measured force and the friction when the model breaks away: below it in the first
        sliding tick, or above it in the last sticking tick [N].
    breakaway : float
        Force of the hand at which the handle begins to move, mean over the straight strokes [N].
    drift, reference_drift : float
        Motion of the handle and of the reference of the model while the hand rests on the handle [m].
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


def trial_measures(run: Tour, trial: Trial = USUAL) -> Felt:
    """Compute the measures of a run under the conditions of `trial`."""
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
    """Ratios of the measures of two runs.

    Attributes
    ----------
    closer, smoother, weaker : float
        Ratios of handle error, unevenness and knock.
    """

    closer: float
    smoother: float
    weaker: float


def ratios(worse: Felt, better: Felt) -> Ratios:
    """Return the ratios of `worse` to `better`."""
    return Ratios(worse.error_rms / better.error_rms, worse.unevenness / better.unevenness, worse.knock / better.knock)


def _unaccelerated(run: Tour, mass: float) -> Array:
    """Return the hand's force less the force that accelerates model and handle, (n, 2) [N]."""
    return np.asarray(run.hand_force - (mass + HANDLE) * np.gradient(run.velocity, run.period, axis=0))


def remainder(run: Tour, ticks: slice, mass: float = MASS) -> Array:
    """Return the hand's force along the motion, less acceleration, smoothed over `BELL`, (n,) [N]."""
    velocity = run.velocity[ticks]
    along = np.sum(_unaccelerated(run, mass)[ticks] * velocity, axis=1) / np.maximum(norms(velocity), 1e-9)
    return smooth(along[:, None], run.period, BELL)[:, 0]


def _knock(run: Tour, trial: Trial) -> float:
    """Return the maximum difference between the hand's force along the motion and the friction [N]."""
    strokes = [remainder(run, run.middle(stroke), trial.mass) for stroke in (*STRAIGHT, CURVE)]
    return max(float(abs(force - trial.friction).max()) for force in strokes)


def _early(run: Tour, stroke: str, friction: float) -> float:
    """Return the error of the measured force against `friction` at the final break-away of a stroke [N]."""
    first = run.slide(stroke).start
    before, after = norms(run.rows["force"][first - 1 : first + 1])
    return float(max(before - friction, friction - after, 0.0))


def _breakaway(run: Tour, stroke: str) -> float:
    """Return the hand's force when the handle finally begins to move at the beginning of a stroke [N]."""
    phase = run.phase(stroke)
    ticks = run.between(phase.start, phase.start + 0.5 * phase.duration)
    rests = np.flatnonzero(norms(run.velocity[ticks]) < MOVES)
    return float(norms(run.hand_force)[ticks.start + int(rests[-1]) + 1])


if TYPE_CHECKING:
    from matplotlib.figure import Figure


def reproduce_fig16() -> Outcome:
    """Compare the forces on the strokes and the curve."""
    run = experiment()
    rows = [row for stroke in STRAIGHT for row in _straight_rows(run, stroke)]
    ticks = run.slide(STRAIGHT[0])  # from rest to rest, so that the net momentum of the stroke is zero
    force, place = run.rows["force"][ticks].mean(axis=0), run.rows["position"][ticks]
    way = place[-1] - place[0]
    along = float(force @ way / np.hypot(*way))
    whole = Row(f"stroke {STRAIGHT[0]} from rest to rest: mean force along it", FRICTION, along, 0.01, "N")
    slant, expected = slants(run)
    description = "curve d-e: mean slant, atan2(M a_n, F + M a_t)"
    curve = [
        Row(description, float(expected.mean()), float(slant.mean()), 0.1, "deg", "derived"),
        Row("curve d-e: least slant; to the inside is positive", Bound(minimum=0.0), float(slant.min()), 0.0, "deg"),
    ]
    return Outcome([whole, *rows, *curve], lambda figure: _draw_fig16(figure, run))


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


def slants(run: Tour) -> tuple[Array, Array]:
    """Return the measured and expected angles (n,) [deg] between force and motion, positive inwards."""
    motion, force = response(run, run.middle(CURVE))
    expected = np.arctan2(MASS * motion.inwards, FRICTION + MASS * motion.along)
    return angles(motion.velocity, force), np.degrees(expected)


def _draw_fig16(figure: Figure, run: Tour) -> None:
    letters = {"a": (-14, 0), "b": (-10, 12), "c": (-16, -4), "d": (16, 4), "e": (-16, 0)}
    draw_path(figure.subplots(), run, run.rows["force"], 0.02, (20.0, FRICTION), letters)
    figure.suptitle("Fig. 16: model A (F = 6 N, M = 2 kg) on the virtual arm; path and force of the hand", color=INK)


def reproduce_fig17() -> Outcome:
    """Evaluate the rest period."""
    run = experiment()
    rest = run.rows[run.rest(REST)]
    force = norms(rest["force"])
    reference = float(norms(np.ptp(rest["command"], axis=0)[None])[0] * 1e6)
    handle = float(norms(np.ptp(run.handle[run.rest(REST)], axis=0)[None])[0] * 1e6)
    rows = [
        Row(
            "rest at c: the measured force, tremor and noise included, stays below F",
            Bound(maximum=FRICTION),
            float(force.max()),
            0.0,
            "N",
        ),
        guard(
            "rest at c: the force fluctuates, peak to peak (hand chosen for it)", Bound(minimum=1.0), np.ptp(force), "N"
        ),
        Row("rest at c: largest speed of model A", 0.0, float(norms(rest["sliding_velocity"]).max()), 0.0, "m/s"),
        Row("rest at c: drift of the position reference", 0.0, reference, 0.0, "um"),
        Row("rest at c: drift of the handle itself", 0.0, handle, 1.0, "um"),
        Row("rest at c: ticks that slide", 0, int(np.count_nonzero(rest["sticking"] == 0))),
    ]
    return Outcome(rows, lambda figure: _draw_fig17(figure, run))


def _draw_fig17(figure: Figure, run: Tour) -> None:
    draw_courses(figure, run, norms(run.rows["force"]), "|h|", FRICTION)
    figure.suptitle("Fig. 17: model A (F = 6 N, M = 2 kg) on the virtual arm; position and measured force", color=INK)
