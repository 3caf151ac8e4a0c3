"""Kikuuwe et al. 2006, section V-A and Figs. 16 and 17: model A on the virtual arm, and the evaluation of the run.

Like the device of the paper, the arm has about 10 N m of friction in its joints, elastic gears, and encoders on the
motors. The paper uses stiff PID control; here any servo law can be chosen.

Fig. 16: on straight strokes the hand's force has the direction of the motion. Averaged over a stroke from rest to rest,
its magnitude equals the friction. On the curve the force points inwards, because it must also turn the mass of the
model: with the accelerations a_t along and a_n across the path, by the angle atan2(M a_n, F + M a_t). Both the force
(noisy force sensor) and the path (encoders) are measured, and smoothed with the same window.

Fig. 17 is the same run over time, without drift of the arm. The magnitude of this force and its fluctuation by 1 N or
more are properties of the chosen hand.

Every servo law: the element computes the motion of a mass with friction exactly; the hand feels the response of the arm
to it. The joints have friction of about 10 N m, which is 25 N at the handle and four times the rendered friction, and
elastic gears. Stiff PID (the paper's choice) is compared with the feed-forwards of Weigand et al. 2020, rigid (27) and
flatness-based (20), with exact linearization, (12) to (15) there, and with the fractional-order law of Machado et al.
2002. All have the same bandwidth on the same arm with the same hand. The model-based laws use friction, inertia and
elasticity of the arm, but not its static friction, which no smooth law can represent.

The measures use the true position of the handle and the true force of the hand, which no sensor of the arm provides.
PID leaves an error of 0.2 mm, the torsion of the gears under friction, for any gains, because encoders on the motors do
not measure it.

The paper has none of these results. The perceived friction F, the break-away at F and the absence of motion at rest
follow from model A. The quality of a servo law does not, so those rows are guards. ``python -m
apps.reproduce.kikuuwe_arm`` writes tables of the servo laws, and of the comparison of PID and feed-forward under errors
of the arm model.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from apps.reproduce.outcome import Bound, Outcome, Row, derived, guard
from apps.reproduce.planar import Array, angles, norms
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, PALE, PINK, dress
from apps.reproduce.tour import MIDDLE, STEADY, Motion, Tour, draw_courses, draw_path, motion_of, smooth, tour
from haptics import Coulomb, RigidAdmittance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    straight = np.concatenate([np.arange(len(run.rows))[run.ticks(stroke, STEADY)] for stroke in STRAIGHT])
    moving = np.concatenate([np.arange(len(run.rows))[run.ticks(stroke, MIDDLE)] for stroke in (*STRAIGHT, CURVE)])
    direction = velocity / np.maximum(norms(velocity), 1e-9)[:, None]
    along = np.sum(friction * direction, axis=1)
    left = _unaccelerated(run, trial.mass) - trial.friction * direction
    knocks = [remainder(run, run.ticks(stroke, MIDDLE), trial.mass) - trial.friction for stroke in (*STRAIGHT, CURVE)]
    early, breakaways = 0.0, []
    for stroke in STRAIGHT:
        first = run.slide(stroke).start  # the final break-away of the model
        before, after = norms(run.rows["force"][first - 1 : first + 1])
        early = max(early, float(before - trial.friction), float(trial.friction - after))
        beginning = run.ticks(stroke, (0.0, 0.5))
        rests = np.flatnonzero(norms(run.velocity[beginning]) < MOVES)
        breakaways.append(float(norms(run.hand_force)[beginning.start + int(rests[-1]) + 1]))
    rest = run.rest(REST)
    return Felt(
        float(np.sqrt(np.mean(error**2))),
        float(error.max()),
        float(along[straight].mean()),
        float(np.sqrt(np.mean(np.sum(left[moving] ** 2, axis=1)))),
        max(float(abs(force).max()) for force in knocks),
        float(np.abs(angles(velocity, friction))[straight].mean()),
        early,
        float(np.mean(breakaways)),
        *(float(norms(np.ptp(places[rest], axis=0)[None])[0]) for places in (run.handle, run.rows["command"])),
    )


def ratios(worse: Felt, better: Felt) -> tuple[float, float, float]:
    """Return the ratios of `worse` to `better`: handle error, unevenness and knock."""
    return worse.error_rms / better.error_rms, worse.unevenness / better.unevenness, worse.knock / better.knock


def _unaccelerated(run: Tour, mass: float) -> Array:
    """Return the hand's force less the force that accelerates model and handle, (n, 2) [N]."""
    return np.asarray(run.hand_force - (mass + HANDLE) * np.gradient(run.velocity, run.period, axis=0))


def remainder(run: Tour, ticks: slice, mass: float = MASS) -> Array:
    """Return the hand's force along the motion, less acceleration, smoothed over `BELL`, (n,) [N]."""
    velocity = run.velocity[ticks]
    along = np.sum(_unaccelerated(run, mass)[ticks] * velocity, axis=1) / np.maximum(norms(velocity), 1e-9)
    return smooth(along[:, None], run.period, BELL)[:, 0]


def _response(run: Tour, ticks: slice) -> tuple[Motion, Array]:
    """Return the smoothed forces at `ticks`, (n, 2) [N], after the smoothed motion that they cause.

    The reference moves during the period after a sample, so the motion is taken one tick after the force.
    """
    motion = motion_of(run, slice(ticks.start + 1, ticks.stop + 1))
    return motion, smooth(run.rows["force"], run.period)[ticks]


def reproduce_fig16() -> Outcome:
    """Compare the forces on the strokes and the curve."""
    run = experiment()
    ticks = run.slide(STRAIGHT[0])  # from rest to rest, so that the net momentum of the stroke is zero
    force, place = run.rows["force"][ticks].mean(axis=0), run.rows["position"][ticks]
    way = place[-1] - place[0]
    along = float(force @ way / np.hypot(*way))
    rows = [Row(f"stroke {STRAIGHT[0]} from rest to rest: mean force along it", FRICTION, along, 0.01, "N")]
    for stroke in STRAIGHT:
        motion, forces = _response(run, run.ticks(stroke, STEADY))
        beyond = np.mean(np.sum(forces * motion.velocity, axis=1) / norms(motion.velocity) - MASS * motion.along)
        turned = angles(motion.velocity, forces).mean()
        where = f"straight stroke {stroke}"
        rows += [
            derived(f"{where}: mean force along the motion, less M a", FRICTION, beyond, 0.01, "N"),
            Row(f"{where}: mean angle of the force to the motion", 0.0, turned, 0.1, "deg"),
        ]
    motion, forces = _response(run, run.ticks(CURVE, MIDDLE))
    slant = angles(motion.velocity, forces)
    expected = float(np.degrees(np.arctan2(MASS * motion.inwards, FRICTION + MASS * motion.along)).mean())
    rows += [
        derived("curve d-e: mean slant, atan2(M a_n, F + M a_t)", expected, slant.mean(), 0.1, "deg"),
        Row("curve d-e: least slant; to the inside is positive", Bound(minimum=0.0), slant.min(), 0.0, "deg"),
    ]
    title = "Fig. 16: model A (F = 6 N, M = 2 kg) on the virtual arm; path and force of the hand"
    letters = {"a": (-14, 0), "b": (-10, 12), "c": (-16, -4), "d": (16, 4), "e": (-16, 0)}
    scale = (20.0, FRICTION)
    return Outcome(rows, lambda figure: draw_path(figure, title, run, run.rows["force"], 0.02, scale, letters))


def reproduce_fig17() -> Outcome:
    """Evaluate the rest period."""
    run = experiment()
    rest = run.rows[run.rest(REST)]
    force, below = norms(rest["force"]), Bound(maximum=FRICTION)
    reference = float(norms(np.ptp(rest["command"], axis=0)[None])[0] * 1e6)
    handle = float(norms(np.ptp(run.handle[run.rest(REST)], axis=0)[None])[0] * 1e6)
    rows = [
        Row("rest at c: the measured force, tremor and noise included, stays below F", below, force.max(), 0.0, "N"),
        guard(
            "rest at c: the force fluctuates, peak to peak (hand chosen for it)", Bound(minimum=1.0), np.ptp(force), "N"
        ),
        Row("rest at c: largest speed of model A", 0.0, norms(rest["sliding_velocity"]).max(), 0.0, "m/s"),
        Row("rest at c: drift of the position reference", 0.0, reference, 0.0, "um"),
        Row("rest at c: drift of the handle itself", 0.0, handle, 1.0, "um"),
        Row("rest at c: ticks that slide", 0, int(np.count_nonzero(rest["sticking"] == 0))),
    ]
    title = "Fig. 17: model A (F = 6 N, M = 2 kg) on the virtual arm; position and measured force"
    return Outcome(rows, lambda figure: draw_courses(figure, title, run, norms(run.rows["force"]), "|h|", FRICTION))


# --- every servo law -------------------------------------------------------------------------------------------------

COLOURS = {"pid": ORANGE, "rigid": PINK, "flatness": BLUE, "fractional": GREEN, "linearising": PALE}
"""Colour of each law in the picture."""

ERROR = {"pid": 300.0, "rigid": 300.0, "flatness": 60.0, "fractional": 500.0, "linearising": 300.0}
"""Guard: upper bound of the rms tracking error [um]."""

UNEVENNESS = {"pid": 1.5, "rigid": 1.5, "flatness": 0.5, "fractional": 1.2, "linearising": 1.2}
"""Guard: upper bound of the rms residual force [N]."""

KNOCK = {"pid": 8.0, "rigid": 8.0, "flatness": 2.5, "fractional": 8.0, "linearising": 3.0}
"""Guard: upper bound of the largest residual force along the motion [N]."""


def reproduce_servo() -> Outcome:
    """Compare all servo laws."""
    results = {law: trial_measures(experiment(law)) for law in LAWS}
    rows = [row for law, result in results.items() for row in _servo_rows(law, result)]
    closer, smoother, weaker = ratios(results["pid"], results["flatness"])
    comparison = [
        guard("how many times smoother with flatness than with pid", Bound(minimum=2.0), smoother),
        guard("how many times weaker knocks are with flatness than with pid", Bound(minimum=2.0), weaker),
        guard("how many times closer with flatness than with pid", Bound(minimum=3.0), closer),
    ]
    return Outcome([*rows, *comparison], _draw_servo)


def _servo_rows(law: str, result: Felt) -> list[Row]:
    rms, largest, drift = (1e6 * length for length in (result.error_rms, result.error_max, result.drift))
    early = f"{law}: by how much the measured force misses F when the model breaks away"
    return [
        derived(f"{law}: friction felt on straight strokes", FRICTION, result.level, 0.02, "N"),
        derived(early, 0.0, result.early, 0.0, "N"),
        Row(f"{law}: drift of the reference at rest at {REST}", 0.0, 1e6 * result.reference_drift, 0.0, "um"),
        Row(f"{law}: drift of the handle at rest at {REST}", 0.0, drift, 1.0, "um"),
        guard(f"{law}: force of the hand when the handle breaks away", Bound(FRICTION, 7.5), result.breakaway, "N"),
        guard(f"{law}: angle of the friction felt to the motion", Bound(maximum=0.2), result.angle, "deg"),
        guard(f"{law}: force that is neither F nor M a, rms", Bound(maximum=UNEVENNESS[law]), result.unevenness, "N"),
        guard(f"{law}: largest of that force along the motion", Bound(maximum=KNOCK[law]), result.knock, "N"),
        guard(f"{law}: error of the handle, rms", Bound(maximum=ERROR[law]), rms, "um"),
        guard(f"{law}: error of the handle, largest", Bound(maximum=1e3), largest, "um"),
    ]


def _draw_servo(figure: Figure) -> None:
    """Plot the handle error of every law, and the hand's force on every stroke for PID and flatness."""
    grid = figure.add_gridspec(2, 4, height_ratios=(1.2, 1.0))
    above = figure.add_subplot(grid[0, :])
    for law in ("fractional", "linearising", "rigid", "pid", "flatness"):
        run = experiment(law)
        error = norms(run.rows["command"][:-1] - run.handle[1:])
        above.plot(run.rows["time"][1:], 1e3 * error, color=COLOURS[law], linewidth=1.3, label=law)
    run = experiment()
    for stroke in (*STRAIGHT, CURVE):
        phase = run.phase(stroke)
        middle = phase.start + 0.5 * phase.duration
        above.text(middle, 1.02, stroke, transform=above.get_xaxis_transform(), ha="center", color=INK)
    dress(above, "time [s]", "error of the handle [mm]")
    above.set_ylim(bottom=0.0)
    above.set_xlim(0.0, float(run.rows["time"][-1]))
    above.legend(loc="center", bbox_to_anchor=(0.53, 0.8), fontsize=10, ncols=2)
    first = None
    for column, stroke in enumerate((*STRAIGHT, CURVE)):
        axes = figure.add_subplot(grid[1, column], sharey=first)
        for law in ("pid", "flatness"):
            run = experiment(law)
            ticks = run.ticks(stroke, MIDDLE)
            axes.plot(run.rows["time"][ticks], remainder(run, ticks), color=COLOURS[law], linewidth=1.2, label=law)
        axes.axhline(FRICTION, color=INK, linewidth=1.0, linestyle=":", label=f"F = {FRICTION:g} N")
        dress(axes, "time [s]", "", stroke)
        if first is None:
            first = axes
            axes.set_ylabel(f"hand's force along the\nmotion, less {MASS + HANDLE:g} kg a [N]")
            axes.legend(loc="upper right", fontsize=9)
        else:
            axes.tick_params(labelleft=False)
    figure.suptitle("Model A (F = 6 N, M = 2 kg) on the virtual arm: what servo laws make of it", color=INK)


# --- tables of ``docs/studies/servo_laws.md``, with the sensitivity to errors of the arm model -------------------

NAMES = {
    "pid": "PID",
    "rigid": "rigid feed-forward",
    "flatness": "flatness-based feed-forward",
    "fractional": "fractional order",
    "linearising": "exact linearisation, encoders also on the joints",
}
"""Names of the servo laws in the table."""


TRIALS: dict[str, Trial] = {
    "as above": USUAL,
    **{
        f"{name} believed 30 % too {word}": Trial(arm=((f"model_{name}", factor),))
        for name in ("friction", "stiffness", "inertia")
        for word, factor in (("low", 0.7), ("high", 1.3))
        if (name, word) != ("inertia", "low")
    },
    "F = 3 N": Trial(friction=3.0),
    "F = 10 N": Trial(friction=10.0),
    "M = 1.2 kg": Trial(mass=1.2),
    "M = 4 kg": Trial(mass=4.0),
    "bandwidth 25 Hz": Trial(servo=(("bandwidth", 25.0),)),
    "bandwidth 80 Hz": Trial(servo=(("bandwidth", 80.0),)),
    "hand at 0.09 m/s": Trial(hand=(("speed", 0.09),)),
    "hand at 0.3 m/s": Trial(hand=(("speed", 0.3),)),
    "hand half as stiff and damped": Trial(hand=(("stiffness", 300.0), ("damping", 20.0))),
    "hand twice as stiff": Trial(hand=(("stiffness", 1200.0),)),
}
"""Varied conditions by the name in the table; all others are as in the figures."""


def compared(trial: Trial) -> tuple[Felt, tuple[float, float, float]]:
    """Return the measures of flatness-based feed-forward, and its improvement over PID."""
    pid, flatness = (trial_measures(experiment(law, trial), trial) for law in ("pid", "flatness"))
    return flatness, ratios(pid, flatness)


def law_line(law: str) -> str:
    """Return the row of a servo law in Markdown, under the conditions of the figures."""
    result = trial_measures(experiment(law))
    error = f"{1e6 * result.error_rms:.0f} um ({1e6 * result.error_max:.0f} um)"
    numbers = f"{result.level:.3f} N | {result.unevenness:.2f} N | {result.knock:.1f} N | {result.breakaway:.1f} N"
    return f"| {NAMES[law]} | {error} | {numbers} |"


def trial_line(name: str) -> str:
    """Return the row of a trial in Markdown."""
    result, times = compared(TRIALS[name])
    felt_as = f"{1e6 * result.error_rms:.0f} um | {result.unevenness:.2f} N | {result.knock:.1f} N"
    return f"| {name} | {felt_as} | {times[0]:.1f} |"


def main() -> None:
    """Run all cases and write both tables."""
    lines = [
        "| servo law | error of the handle, rms (largest) | friction felt | force that is neither F nor M a, rms "
        "| hardest knock | handle breaks away at |",
        "|---|---|---|---|---|---|",
        *map(law_line, LAWS),
        "",
        "| flatness-based feed-forward | error, rms | force that is neither F nor M a, rms | hardest knock "
        "| times closer than PID |",
        "|---|---|---|---|---|",
        *map(trial_line, TRIALS),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
