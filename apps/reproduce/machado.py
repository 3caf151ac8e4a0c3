"""Machado et al. 2002, Figs. 3 to 10: force steps of an arm under fractional-order (CF) and PD/PI control.

All numbers of section IV and of Tables I to IV are defined here. The paper leaves three points open: whether the weight
of the arm is compensated (here it is, by G(q)), which part of the contact force is measured (here B x' + K x unless
stated otherwise), and the time axes of its figures. The figures have no numbers, so only the ranking of the controllers
can be compared with the paper. The expected numbers in the tables follow from its equations and were computed
independently.

Figs. 3 and 4, ideal arm: the stability of CF depends on the measured force. The printed force (3) contains M x'', and
x'' follows the torque without delay. The gain of that loop is K_F M J_x H^-1 J_x^T. Fed back one sample late, the loop
is unstable where this gain, times the gain of the law for an alternating force (0.87), exceeds 1. It is stable if
B x' + K x is fed back, or if the loop is solved within each sample.

Figs. 5 and 6, joint friction: the printed friction (10) pushes: a joint at rest gets the torque F_H, without a sign.
Here the friction is set-valued: at rest it balances any torque up to F_H. The final force then depends on where the
joints stick. Its error is bounded by the force that the static friction can hold against the force loop.

Figs. 7 and 8, backlash: the paper re-tunes both controllers because they were unstable with backlash. This is not
reproduced: with the gains of Table II the rotors cross their gaps and collide, yet the force settles, because the
gravity compensation presses the rotors to one end of their gaps. Without gravity compensation, in a horizontal plane,
or with a gap of twice the width, the rattling persists and the force oscillates by about 0.1 N, which may be the
instability that the authors observed. With the gains of Table IV the control torques stay below the gravity torques:
the gaps never open, and the response is that of an ideal arm. Only the ranking and the impacts can be compared.
According to the text, the re-tuned PD/PI is slower. Table IV has half of a_P and b_P, but five times a_F and b_F: as
printed it is faster. With a_F and b_F halved too, ten times less than printed, it is slower.

Figs. 9 and 10, flexible joints: rotor and joint are two masses coupled by a spring, (12a), (12b). In (12b), J should be
the inertia of the links without the rotors, and the contact force is missing. The damping of 10 kN m s/rad acts on the
rotors.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from apps.reproduce.outcome import Bound, Outcome, Row, derived, guard
from apps.reproduce.planar import Array
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, PALE, SKY, dress
from devices.arm.hybrid import FractionalLaw, Hybrid, ProportionalDerivative, ProportionalIntegral, Run, simulate_hybrid
from devices.arm.mechanics.drive import Drive, Motor, collide
from devices.arm.mechanics.dynamics import TwoLinks
from devices.arm.mechanics.plant import Surface
from devices.arm.servo.fractional import weights
from haptics import CoulombViscous, GaussianStribeck

PERIOD, FORCE, DURATION = 1e-3, 1.0, 4.0
START = (math.radians(75.0), math.radians(75.0))
LINKS = TwoLinks()
WEIGHTLESS = replace(LINKS, gravity=0.0)
SURFACE = Surface(mass=0.03, damping=1.0, stiffness=400.0, angle=math.pi / 2.0)

TERMS = 17


def fractional(position_gain: float, force_gain: float, position_order: float, force_order: float) -> Hybrid:
    """Return a fractional-order controller (CF) with the columns of Tables II and IV."""
    position = FractionalLaw.sampled(position_gain, position_order, TERMS, PERIOD)
    return Hybrid(position, FractionalLaw.sampled(force_gain, force_order, TERMS, PERIOD), PERIOD)


def classic(a_p: float, b_p: float, a_f: float, b_f: float) -> Hybrid:
    """Return a PD/PI controller with the columns of Tables III and IV."""
    return Hybrid(ProportionalDerivative(a_p, b_p), ProportionalIntegral(a_f, b_f), PERIOD)


CF, PD_PI = fractional(1e5, 1e3, 1 / 2, -1 / 5), classic(1e4, 2.5e4, 25.0, 100.0)
CF_RETUNED, PD_PI_PRINTED = fractional(5e3, 50.0, 1 / 2, 1 / 5), classic(5e3, 12.5e3, 125.0, 500.0)
PD_PI_HALVED = classic(5e3, 12.5e3, 12.5, 50.0)
"""Table IV with all four gains halved. The printed a_F and b_F are ten times larger, which makes the controller faster,
not slower.
"""

HOLDING, COULOMB, VISCOSITY, CREEP = 6.0, 5.0, 0.5, 0.0025
BACKLASH, RESTITUTION = 1.8e-4, 0.5

IDEAL = Drive()
RUBBING = Drive(friction=GaussianStribeck(COULOMB, HOLDING, CREEP, VISCOSITY))
"""(10) as a law: up to F_H at rest, Coulomb and viscous above DV. The printed one has no sign at rest."""
LOOSE = Drive(coupling="impact", backlash=BACKLASH, restitution=RESTITUTION)
YIELDING = Drive(Motor(friction=CoulombViscous(0.0, 1e4)), coupling="elastic", stiffness=2e7)

_SUBSTEPS = {IDEAL: 50, RUBBING: 50, LOOSE: 100, YIELDING: 100}


Shown = tuple[Hybrid, str, int]
"""Controller, its name, and the figure of the paper that shows it under the compared condition."""

FASTER, SLOWER = Bound(maximum=1.0), Bound(minimum=1.0)
"""Ranges of a time relative to the time of another controller."""


@functools.cache
def experiment(drive: Drive, control: Hybrid, sensor: str = "elastic", links: TwoLinks = LINKS) -> Run:
    """Simulate a force step of 1 N with `drive` in both joints."""
    return simulate_hybrid(
        links,
        (drive, drive),
        SURFACE,
        control,
        start=START,
        force=FORCE,
        duration=DURATION,
        sensor=sensor,
        substeps=_SUBSTEPS[drive],
    )


def unheld(control: Hybrid) -> Run:
    """Simulate a force step of 1 N of the ideal arm without gravity compensation."""
    return experiment(IDEAL, replace(control, holds_weight=False))


@dataclass(frozen=True)
class Response:
    """Measures of a force step response.

    Attributes
    ----------
    rise : float
        Time from 10 % to 90 % of the final force, the mean of the last 0.2 s [ms].
    overshoot : float
        Overshoot over the final force [%].
    settling : float
        Time after which the force stays within 5 % of the final force [ms].
    error : float
        Steady-state error, desired less final force [N].
    deviation : float
        Largest motion along the surface [mm].
    """

    rise: float
    overshoot: float
    settling: float
    error: float
    deviation: float


def response(run: Run) -> Response:
    """Compute the measures of a run from the force that is fed back."""
    force = run.rows["force"]
    final = float(force[-200:].mean())
    step = 1e3 * PERIOD
    away = np.flatnonzero(np.abs(force - final) > 0.05 * abs(final))
    return Response(
        step * float(np.argmax(force >= 0.9 * final) - np.argmax(force >= 0.1 * final)),
        100.0 * (float(force.max()) / final - 1.0),
        step * float(away[-1] + 1),
        FORCE - final,
        1e3 * float(np.abs(run.rows["along"]).max()),
    )


def rows(label: str, found: Response, rise: float, overshoot: float, settling: float, within: float = 0.0) -> list[Row]:
    """Compare a response with expected values, within 10 %, one sample or one per cent of overshoot.

    `within` is an additional tolerance of the settling time [ms]. For a slowly decaying oscillation, one more
    half-oscillation beyond 5 % increases the settling time by half a period.
    """
    return [
        derived(f"{label}: rise time", rise, found.rise, max(0.1 * rise, 1e3 * PERIOD), "ms"),
        derived(f"{label}: overshoot", overshoot, found.overshoot, max(0.1 * overshoot, 1.0), "%"),
        derived(f"{label}: settling time", settling, found.settling, max(0.1 * settling, within), "ms"),
    ]


def relative_rows(drive: Drive, law: Hybrid, other: Shown, bound: Bound) -> list[Row]:
    """Compare rise and settling time with the times of the other controller and the same drive."""
    other_law, name, number = other
    found, beside = response(experiment(drive, law)), response(experiment(drive, other_law))
    relative = f"relative to {name} of Fig. {number}"
    return [
        Row(f"rise time, {relative}", bound, found.rise / beside.rise),
        Row(f"settling time, {relative}", bound, found.settling / beside.settling),
    ]


def error_row(label: str, expected: float, found: Response, tolerance: float) -> Row:
    """Compare the steady-state error of the force with an expected value."""
    return derived(f"{label}: force missing at the end", expected, found.error, tolerance, "N")


def unstable_row(table: str, run: Run) -> Row:
    """Return the row of a statement of the paper that is not reproduced."""
    label = f"gains of Table {table}: unstable, as the paper says it was (1 = yes)"
    return derived(label, 0, int(run.ran_away))


def last_swing(run: Run) -> float:
    """Return the peak-to-peak force in the last 0.5 s [N]."""
    return float(np.ptp(run.rows["force"][-500:]))


def feed_through(control: Hybrid) -> float:
    """Return the gain of the force loop through the surface's mass; unstable above 1.

    The gain is K_F M J_x H^-1 J_x^T.
    """
    terms = LINKS.terms(START)[0]
    across = terms["jacobian"][0]  # the plane is vertical: x_c is x
    inertia = terms["inertia"] + np.eye(2) * IDEAL.motor.inertia + SURFACE.mass * np.outer(across, across)
    return float(control.force.weights(PERIOD)[0] * SURFACE.mass * across @ np.linalg.solve(inertia, across))


# --- pictures --------------------------------------------------------------------------------------------------------

GAP = f"rotor in its gap of ±{0.5e6 * BACKLASH:.0f} µrad"
"""Title of a panel with `rotor_ahead`."""


@dataclass(frozen=True)
class Curve:
    """Run in a picture with its label, colour and line style."""

    name: str
    run: Run
    colour: str
    line: str = "-"


@dataclass(frozen=True)
class Inside:
    """Panel of joint quantities: title, unit, an (n, 2) array for one run, and the time shown [ms]."""

    title: str
    unit: str
    values: Array
    curve: Curve
    shown: float


def draw(figure: Figure, title: str, curves: list[Curve], inside: Inside, shown: float, zoom: float) -> None:
    """Plot the force, its beginning, the deviation along the surface, and the joints.

    `shown` and `zoom` are the lengths of the long and the short time axes [ms].
    """
    (force, beginning), (deviation, joints) = figure.subplots(2, 2)
    for axes, end, words in ((force, shown, "force on the surface"), (beginning, zoom, "its beginning")):
        axes.axhspan(0.95 * FORCE, 1.05 * FORCE, color=PALE, alpha=0.18, linewidth=0.0)
        for curve in reversed(curves):
            _line(axes, curve, curve.run.rows["force"])
        axes.set(xlim=(0.0, end), ylim=(-0.05, 2.05))
        dress(axes, "time [ms]", "force [N]", f"{words}; grey: 1 N ± 5 %")
    for curve in reversed([curve for curve in curves if not curve.run.ran_away]):
        _line(deviation, curve, 1e3 * curve.run.rows["along"])
    deviation.set_xlim(0.0, shown)
    dress(deviation, "time [ms]", "y - y$_d$ [mm]", "deviation along the surface")
    time = 1e3 * inside.curve.run.rows["time"]
    window = time <= inside.shown
    for joint, (line, colour) in enumerate((("-", inside.curve.colour), ("--", INK))):
        values = inside.values[window, joint]
        joints.plot(time[window], values, line, color=colour, linewidth=1.1, label=f"joint {joint + 1}")
    joints.set_xlim(0.0, inside.shown)
    low, high = joints.get_ylim()
    joints.set_ylim(low, high + 0.2 * (high - low))  # room for the legend
    joints.legend(loc="upper right", ncols=2, fontsize=10, frameon=False)
    dress(joints, "time [ms]", inside.unit, f"{inside.title}; {inside.curve.name}")
    lines, labels = force.get_legend_handles_labels()
    figure.legend(lines[::-1], labels[::-1], loc="outside lower center", ncols=2, fontsize=10.5, frameon=False)
    figure.suptitle(title, color=INK)


def _line(axes: Axes, curve: Curve, values: Array) -> None:
    label = f"{curve.name}: unstable"
    if not curve.run.ran_away:
        found = response(curve.run)
        measures = f"rises {found.rise:.0f} ms, over {found.overshoot:.0f} %, settles {found.settling:.0f} ms"
        label = f"{curve.name}: {measures}"
    axes.plot(1e3 * curve.run.rows["time"], values, curve.line, color=curve.colour, linewidth=1.3, label=label)


def draw_joints(
    figure: Figure, title: str, drive: Drive, words: str, own: Shown, other: Shown, spans: tuple[float, float]
) -> None:
    """Plot a controller with real joints, described by `words`, beside ideal ones and the other controller.

    `spans` are the lengths of the long and the short time axis [ms].
    """
    (law, name, ideal), (other_law, other_name, number) = own, other
    curve = Curve(f"{name}{words}", experiment(drive, law), BLUE)
    curves = [
        curve,
        Curve(f"{name}, ideal joints (Fig. {ideal})", experiment(IDEAL, law), SKY, "--"),
        Curve(f"{other_name}{words} (Fig. {number})", experiment(drive, other_law), PALE),
    ]
    if drive is RUBBING:
        inside = Inside("friction", "torque [N m]", curve.run.rows["friction"], curve, 600.0)
    else:
        twist = curve.run.rows["rotor"] - curve.run.rows["angle"]
        inside = Inside("twist beyond that at the end", "angle [µrad]", 1e6 * (twist - twist[-1]), curve, 30.0)
    draw(figure, title, curves, inside, *spans)


def rotor_ahead(run: Run) -> Array:
    """Return the angles by which the rotors are ahead of their joints (n, 2) [µrad]."""
    return np.asarray(1e6 * (run.rows["rotor"] - run.rows["angle"]))


# --- figures ---------------------------------------------------------------------------------------------------------

_GAINS = {0.5: 0.1358, -0.2: 1.9328, 0.2: 0.4851}
"""Static gain of the truncated sum of (6), by order."""

_SWING = 22.0
"""Half a period of the force oscillation with the gains of Table IV [ms]."""

_ELASTIC = "B x' + K x fed back"

# --- ideal arm ----------------------------------------------------------------------------------------------------


def reproduce_fig3() -> Outcome:
    """Compare the response of CF to 1 N for the three readings of the fed-back force."""
    plain, solved = response(experiment(IDEAL, CF)), response(experiment(IDEAL, CF, "solved"))
    other = PD_PI, "PD/PI", 4
    static = FORCE / (1.0 + float(CF.force.weights(PERIOD).sum()))
    sampled = experiment(IDEAL, CF, "sampled")
    sideways = 1e3 * float(unheld(CF).rows["along"][-1])
    description = "sum of the weights c_0 .. c_17 of order"
    sums = [
        derived(f"{description} {order:g}", gain, np.sum(weights(order, TERMS)), 5e-5) for order, gain in _GAINS.items()
    ]
    table = [
        *sums,
        *rows(_ELASTIC, plain, 4, 82, 324),
        error_row(_ELASTIC, static, plain, 1e-5),
        derived(f"{_ELASTIC}: motion along the surface", 1.1, plain.deviation, 0.11, "mm"),
        *rows("M x'' too, loop solved in the sample", solved, 6, 13, 119),
        error_row("M x'' too, loop solved in the sample", static, solved, 1e-5),
        derived("gain around the force loop through M x''", 3.05, feed_through(CF), 0.305),
        derived("M x'' too, sampled: unstable (1 = yes)", 1, int(sampled.ran_away)),
        derived("weight not held: y - y_d at the end", -1.35, sideways, 0.135, "mm"),
        *relative_rows(IDEAL, CF, other, FASTER),
    ]
    title = "Fig. 3: ideal arm under fractional-order control (CF); step of 1 N"
    return Outcome(table, lambda figure: _draw_readings(figure, title, CF, other, 60.0))


def reproduce_fig4() -> Outcome:
    """Compare the response of PD/PI to 1 N for the three readings of the fed-back force."""
    runs = {sensor: experiment(IDEAL, PD_PI, sensor) for sensor in ("elastic", "sampled", "solved")}
    plain, sampled, solved = (response(run) for run in runs.values())
    other = CF, "CF", 3
    # The integral part removes the error of the proportional part, 1/(1 + b_F), with the time constant (1 + b_F)/a_F.
    left = FORCE / 101.0 * math.exp(-(DURATION - 0.1) / (101.0 / 25.0))
    free = unheld(PD_PI)
    table = [
        *rows(_ELASTIC, plain, 16, 82, 667),
        error_row(_ELASTIC, left, plain, 1e-5),
        derived(f"{_ELASTIC}: motion along the surface", 0.032, plain.deviation, 0.0032, "mm"),
        *rows("M x'' too, sampled", sampled, 22, 61, 763),
        *rows("M x'' too, loop solved in the sample", solved, 24, 63, 868),
        derived("gain around the force loop through M x''", 0.31, feed_through(PD_PI), 0.031),
        derived("weight not held: y - y_d at the end", -0.73, 1e3 * float(free.rows["along"][-1]), 0.073, "mm"),
        derived("weight not held: settling time", 2260.0, response(free).settling, 226.0, "ms"),
        error_row("weight not held", 0.10, response(free), 0.01),
        *relative_rows(IDEAL, PD_PI, other, SLOWER),
    ]
    title = "Fig. 4: ideal arm under PD and PI control; step of 1 N"
    return Outcome(table, lambda figure: _draw_readings(figure, title, PD_PI, other, 120.0))


def _draw_readings(figure: Figure, title: str, law: Hybrid, other: Shown, zoom: float) -> None:
    other_law, other_name, number = other
    plain = Curve(_ELASTIC, experiment(IDEAL, law), BLUE)
    curves = [
        plain,
        Curve("M x'' too, loop solved", experiment(IDEAL, law, "solved"), GREEN),
        Curve("M x'' too, sampled", experiment(IDEAL, law, "sampled"), ORANGE, "-" if law == CF else ":"),
        Curve(f"{other_name} (Fig. {number})", experiment(IDEAL, other_law), PALE),
    ]
    torque = plain.run.rows["torque"]
    beyond = torque - torque[-200:].mean(axis=0)  # less the torques that hold the weight and the force
    inside = Inside("torque beyond that at the end", "torque [N m]", beyond, plain, 1000.0)
    draw(figure, title, curves, inside, 1000.0, zoom)


# --- joint friction -----------------------------------------------------------------------------------------------


def reproduce_fig5() -> Outcome:
    """Compare the response of CF to 1 N with the expected values and with PD/PI."""
    own, other = (CF, "CF", 3), (PD_PI, "PD/PI", 6)
    run = experiment(RUBBING, CF)
    found, beside = response(run), response(experiment(RUBBING, PD_PI))
    gain = float(CF.force.weights(PERIOD).sum())
    band = (FORCE + HOLDING / abs(float(LINKS.terms(START)["jacobian"][0, 0, 0]))) / (1.0 + gain)
    speed = float(np.abs(run.rows["speed"][-200:]).max())
    table = [
        *rows("CF with friction", found, 4, 81, 260),
        derived("CF with friction: force missing at the end", Bound(-band, band), found.error, 0.0, "N"),
        derived("speed of the joints in the last 0.2 s", 0.0, speed, 0.0, "rad/s"),
        *relative_rows(RUBBING, CF, other, FASTER),
        Row("force missing, relative to PD/PI of Fig. 6", Bound(-1.0, 1.0), found.error / beside.error),
    ]
    title = "Fig. 5: friction in the joints, fractional-order control (CF); step of 1 N"
    spans = 600.0, 60.0
    return Outcome(table, lambda figure: draw_joints(figure, title, RUBBING, " with friction", own, other, spans))


def reproduce_fig6() -> Outcome:
    """Compare the response of PD/PI to 1 N with the expected values and with CF."""
    own, other = (PD_PI, "PD/PI", 4), (CF, "CF", 5)
    found = response(experiment(RUBBING, PD_PI))
    table = [
        *rows("PD/PI with friction", found, 16, 80, 347),
        error_row("PD/PI with friction", 0.0197, found, 0.00197),
        *relative_rows(RUBBING, PD_PI, other, SLOWER),
    ]
    title = "Fig. 6: friction in the joints, PD and PI control; step of 1 N"
    spans = 600.0, 120.0
    return Outcome(table, lambda figure: draw_joints(figure, title, RUBBING, " with friction", own, other, spans))


# --- backlash -----------------------------------------------------------------------------------------------------


def reproduce_fig7() -> Outcome:
    """Compare the responses of CF to 1 N with the gains of Tables II and IV, and check the impacts."""
    run, floating = experiment(LOOSE, CF), experiment(LOOSE, CF, links=WEIGHTLESS)
    first, retuned = response(run), response(experiment(LOOSE, CF_RETUNED))
    slower = response(experiment(LOOSE, PD_PI_HALVED))
    generator = np.random.default_rng(11)
    momentum = newton = 0.0  # the conservation laws of (11) for random inertias and speeds
    for joint, motor, w, v in generator.uniform((0.1, 0.1, -1.0, -1.0), (10.0, 10.0, 1.0, 1.0), (1000, 4)).tolist():
        after, rotor = collide(joint, motor, RESTITUTION, w, v)
        momentum = max(momentum, abs(joint * (after - w) + motor * (rotor - v)))
        newton = max(newton, abs((rotor - after) + RESTITUTION * (v - w)))
    table = [
        Row("impacts (11) with J_ii for J_i: momentum gained, worst of 1000", 0.0, momentum, 1e-14, "N m s"),
        Row("impacts (11) with J_ii for J_i: restitution missed, worst of 1000", 0.0, newton, 1e-14, "rad/s"),
        *rows("gains of Table II", first, 4, 82, 397),
        *rows("gains of Table IV", retuned, 32, 78, 989),
        error_row("gains of Table IV", 0.04, retuned, 0.004),
        unstable_row("II", run),
        guard("gains of Table II: swing of the force in the last 0.5 s", 0.0, last_swing(run), "N", 1e-3),
        guard("the same without weight on the joints", Bound(minimum=0.02), last_swing(floating), "N"),
        Row("settling time, relative to halved PD/PI", FASTER, retuned.settling / slower.settling),
    ]
    untuned = Curve("CF of Table II", run, ORANGE)
    curves = [
        Curve("CF of Table IV", experiment(LOOSE, CF_RETUNED), BLUE),
        untuned,
        Curve("PD/PI of Table IV, halved (Fig. 8)", experiment(LOOSE, PD_PI_HALVED), PALE),
    ]
    inside = Inside(GAP, "angle [µrad]", rotor_ahead(run), untuned, 600.0)
    title = "Fig. 7: backlash in the joints, fractional-order control (CF); step of 1 N"
    return Outcome(table, lambda figure: draw(figure, title, curves, inside, 1200.0, 300.0))


def reproduce_fig8() -> Outcome:
    """Compare the responses of PD/PI to 1 N with the gains of Tables III and IV, as printed and halved."""
    first, printed, halved = (response(experiment(LOOSE, control)) for control in (PD_PI, PD_PI_PRINTED, PD_PI_HALVED))
    best = response(experiment(LOOSE, CF_RETUNED))
    table = [
        *rows("gains of Table III", first, 16, 83, 665),
        *rows("gains of Table IV as printed", printed, 7, 69, 146, _SWING),
        *rows("gains of Table IV, a_F and b_F a tenth", halved, 22, 86, 1467),
        unstable_row("III", experiment(LOOSE, PD_PI)),
        Row("a tenth: settling time, relative to Table III", SLOWER, halved.settling / first.settling),
        Row("a tenth: settling time, relative to CF of Fig. 7", SLOWER, halved.settling / best.settling),
    ]
    as_printed = Curve("PD/PI of Table IV as printed", experiment(LOOSE, PD_PI_PRINTED), ORANGE)
    curves = [
        Curve("PD/PI of Table IV, a_F and b_F a tenth", experiment(LOOSE, PD_PI_HALVED), BLUE),
        as_printed,
        Curve("PD/PI of Table III", experiment(LOOSE, PD_PI), SKY, "--"),
        Curve("CF of Table IV (Fig. 7)", experiment(LOOSE, CF_RETUNED), PALE),
    ]
    inside = Inside(GAP, "angle [µrad]", rotor_ahead(as_printed.run), as_printed, 600.0)
    title = "Fig. 8: backlash in the joints, PD and PI control; step of 1 N"
    return Outcome(table, lambda figure: draw(figure, title, curves, inside, 1600.0, 300.0))


# --- flexible joints ----------------------------------------------------------------------------------------------


def reproduce_fig9() -> Outcome:
    """Compare the response of CF to 1 N with the expected values and with PD/PI."""
    own, other = (CF, "CF", 3), (PD_PI, "PD/PI", 10)
    title = "Fig. 9: flexible joints, fractional-order control (CF); step of 1 N"
    return _flexible(own, other, (11, 4, 15), FASTER, title, (400.0, 60.0))


def reproduce_fig10() -> Outcome:
    """Compare the response of PD/PI to 1 N with the expected values and with CF."""
    own, other = (PD_PI, "PD/PI", 4), (CF, "CF", 9)
    title = "Fig. 10: flexible joints, PD and PI control; step of 1 N"
    return _flexible(own, other, (261, 1, 346), SLOWER, title, (1000.0, 120.0))


def _flexible(
    own: Shown, other: Shown, paper: tuple[float, float, float], ratio: Bound, title: str, spans: tuple[float, float]
) -> Outcome:
    """Compare the response with the `paper` (rise, overshoot, settling) and with the other controller.

    `spans` are the lengths of the long and the short time axis [ms].
    """
    law, name, _ = own
    table = [
        *rows(f"{name} with flexible joints", response(experiment(YIELDING, law)), *paper),
        *relative_rows(YIELDING, law, other, ratio),
    ]
    return Outcome(table, lambda figure: draw_joints(figure, title, YIELDING, ", flexible joints", own, other, spans))
