"""Machado et al. 2002, Figs. 3 to 10: force steps of an arm under fractional-order (CF) and PD/PI control.

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

import math
from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.machado import (
    CF,
    CF_RETUNED,
    DURATION,
    FORCE,
    GAP,
    HOLDING,
    IDEAL,
    LINKS,
    LOOSE,
    PD_PI,
    PD_PI_HALVED,
    PD_PI_PRINTED,
    PERIOD,
    RESTITUTION,
    RUBBING,
    START,
    TERMS,
    WEIGHTLESS,
    YIELDING,
    Curve,
    Inside,
    added_torque,
    draw,
    error_row,
    experiment,
    feed_through,
    last_swing,
    response,
    rotor_ahead,
    rows,
    unheld,
    unstable_row,
)
from apps.reproduce.outcome import Bound, Outcome, Row, guard
from apps.reproduce.style import BLUE, GREEN, ORANGE, PALE, SKY
from devices.arm.hybrid import Hybrid
from devices.arm.mechanics.drive import collide
from devices.arm.servo.fractional import weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GAINS = {0.5: 0.1358, -0.2: 1.9328, 0.2: 0.4851}
"""Static gain of the truncated sum of (6), by order."""

_SWING = 22.0
"""Half a period of the force oscillation with the gains of Table IV [ms]."""

_ELASTIC = "B x' + K x fed back"

Shown = tuple[Hybrid, str, int]
"""Controller, its name, and the figure of the paper that shows it under the compared condition."""


# --- ideal arm ----------------------------------------------------------------------------------------------------


def reproduce_fig3() -> Outcome:
    """Compare the response of CF to 1 N for the three readings of the fed-back force."""
    plain, solved = response(experiment(IDEAL, CF)), response(experiment(IDEAL, CF, "solved"))
    other = response(experiment(IDEAL, PD_PI))
    static = FORCE / (1.0 + float(CF.force.weights(PERIOD).sum()))
    sampled = experiment(IDEAL, CF, "sampled")
    sideways = 1e3 * float(unheld(CF).rows["along"][-1])
    description = "sum of the weights c_0 .. c_17 of order"
    sums = [
        Row(f"{description} {order:g}", gain, float(np.sum(weights(order, TERMS))), 5e-5, "", "derived")
        for order, gain in _GAINS.items()
    ]
    table = [
        *sums,
        *rows(_ELASTIC, plain, 4, 82, 324),
        error_row(_ELASTIC, static, plain, 1e-5),
        Row(f"{_ELASTIC}: motion along the surface", 1.1, plain.deviation, 0.11, "mm", "derived"),
        *rows("M x'' too, loop solved in the sample", solved, 6, 13, 119),
        error_row("M x'' too, loop solved in the sample", static, solved, 1e-5),
        Row("gain around the force loop through M x''", 3.05, feed_through(CF), 0.305, "", "derived"),
        Row("M x'' too, sampled: unstable (1 = yes)", 1, int(sampled.ran_away), 0.0, "", "derived"),
        Row("weight not held: y - y_d at the end", -1.35, sideways, 0.135, "mm", "derived"),
        Row("rise time, relative to PD/PI of Fig. 4", Bound(maximum=1.0), plain.rise / other.rise),
        Row("settling time, relative to PD/PI of Fig. 4", Bound(maximum=1.0), plain.settling / other.settling),
    ]
    title = "Fig. 3: ideal arm under fractional-order control (CF); step of 1 N"
    return Outcome(table, lambda figure: _draw_readings(figure, title, CF, (PD_PI, "PD/PI", 4), 60.0))


def reproduce_fig4() -> Outcome:
    """Compare the response of PD/PI to 1 N for the three readings of the fed-back force."""
    runs = {sensor: experiment(IDEAL, PD_PI, sensor) for sensor in ("elastic", "sampled", "solved")}
    plain, sampled, solved = (response(run) for run in runs.values())
    best = response(experiment(IDEAL, CF))
    # The integral part removes the error of the proportional part, 1/(1 + b_F), with the time constant (1 + b_F)/a_F.
    left = FORCE / 101.0 * math.exp(-(DURATION - 0.1) / (101.0 / 25.0))
    free = unheld(PD_PI)
    table = [
        *rows(_ELASTIC, plain, 16, 82, 667),
        error_row(_ELASTIC, left, plain, 1e-5),
        Row(f"{_ELASTIC}: motion along the surface", 0.032, plain.deviation, 0.0032, "mm", "derived"),
        *rows("M x'' too, sampled", sampled, 22, 61, 763),
        *rows("M x'' too, loop solved in the sample", solved, 24, 63, 868),
        Row("gain around the force loop through M x''", 0.31, feed_through(PD_PI), 0.031, "", "derived"),
        Row("weight not held: y - y_d at the end", -0.73, 1e3 * float(free.rows["along"][-1]), 0.073, "mm", "derived"),
        Row("weight not held: settling time", 2260.0, response(free).settling, 226.0, "ms", "derived"),
        error_row("weight not held", 0.10, response(free), 0.01),
        Row("rise time, relative to CF of Fig. 3", Bound(minimum=1.0), plain.rise / best.rise),
        Row("settling time, relative to CF of Fig. 3", Bound(minimum=1.0), plain.settling / best.settling),
    ]
    title = "Fig. 4: ideal arm under PD and PI control; step of 1 N"
    return Outcome(table, lambda figure: _draw_readings(figure, title, PD_PI, (CF, "CF", 3), 120.0))


def _draw_readings(figure: Figure, title: str, law: Hybrid, other: Shown, zoom: float) -> None:
    other_law, other_name, number = other
    plain = Curve(_ELASTIC, experiment(IDEAL, law), BLUE)
    curves = [
        plain,
        Curve("M x'' too, loop solved", experiment(IDEAL, law, "solved"), GREEN),
        Curve("M x'' too, sampled", experiment(IDEAL, law, "sampled"), ORANGE, "-" if law == CF else ":"),
        Curve(f"{other_name} (Fig. {number})", experiment(IDEAL, other_law), PALE),
    ]
    inside = Inside("torque beyond that at the end", "torque [N m]", added_torque(plain.run), plain, 1000.0)
    draw(figure, title, curves, inside, 1000.0, zoom)


# --- joint friction -----------------------------------------------------------------------------------------------


def reproduce_fig5() -> Outcome:
    """Compare the response of CF to 1 N with the expected values and with PD/PI."""
    run = experiment(RUBBING, CF)
    found, other = response(run), response(experiment(RUBBING, PD_PI))
    gain = float(CF.force.weights(PERIOD).sum())
    band = (FORCE + HOLDING / abs(float(LINKS.terms(START)["jacobian"][0, 0, 0]))) / (1.0 + gain)
    speed = float(np.abs(run.rows["speed"][-200:]).max())
    table = [
        *rows("CF with friction", found, 4, 81, 260),
        Row("CF with friction: force missing at the end", Bound(-band, band), found.error, 0.0, "N", "derived"),
        Row("speed of the joints in the last 0.2 s", 0.0, speed, 0.0, "rad/s", "derived"),
        Row("rise time, relative to PD/PI of Fig. 6", Bound(maximum=1.0), found.rise / other.rise),
        Row("settling time, relative to PD/PI of Fig. 6", Bound(maximum=1.0), found.settling / other.settling),
        Row("force missing, relative to PD/PI of Fig. 6", Bound(-1.0, 1.0), found.error / other.error),
    ]
    title = "Fig. 5: friction in the joints, fractional-order control (CF); step of 1 N"
    return Outcome(table, lambda figure: _draw_friction(figure, title, (CF, "CF", 3), (PD_PI, "PD/PI", 6), 60.0))


def reproduce_fig6() -> Outcome:
    """Compare the response of PD/PI to 1 N with the expected values and with CF."""
    found, best = response(experiment(RUBBING, PD_PI)), response(experiment(RUBBING, CF))
    table = [
        *rows("PD/PI with friction", found, 16, 80, 347),
        error_row("PD/PI with friction", 0.0197, found, 0.00197),
        Row("rise time, relative to CF of Fig. 5", Bound(minimum=1.0), found.rise / best.rise),
        Row("settling time, relative to CF of Fig. 5", Bound(minimum=1.0), found.settling / best.settling),
    ]
    title = "Fig. 6: friction in the joints, PD and PI control; step of 1 N"
    return Outcome(table, lambda figure: _draw_friction(figure, title, (PD_PI, "PD/PI", 4), (CF, "CF", 5), 120.0))


def _draw_friction(figure: Figure, title: str, own: Shown, other: Shown, zoom: float) -> None:
    (law, name, ideal), (other_law, other_name, number) = own, other
    curve = Curve(f"{name} with friction", experiment(RUBBING, law), BLUE)
    curves = [
        curve,
        Curve(f"{name}, ideal joints (Fig. {ideal})", experiment(IDEAL, law), SKY, "--"),
        Curve(f"{other_name} with friction (Fig. {number})", experiment(RUBBING, other_law), PALE),
    ]
    inside = Inside("friction", "torque [N m]", curve.run.rows["friction"], curve, 600.0)
    draw(figure, title, curves, inside, 600.0, zoom)


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
        Row("settling time, relative to halved PD/PI", Bound(maximum=1.0), retuned.settling / slower.settling),
    ]
    return Outcome(table, _draw_fig7)


def _draw_fig7(figure: Figure) -> None:
    first = Curve("CF of Table II", experiment(LOOSE, CF), ORANGE)
    curves = [
        Curve("CF of Table IV", experiment(LOOSE, CF_RETUNED), BLUE),
        first,
        Curve("PD/PI of Table IV, halved (Fig. 8)", experiment(LOOSE, PD_PI_HALVED), PALE),
    ]
    inside = Inside(GAP, "angle [µrad]", rotor_ahead(first.run), first, 600.0)
    title = "Fig. 7: backlash in the joints, fractional-order control (CF); step of 1 N"
    draw(figure, title, curves, inside, 1200.0, 300.0)


def reproduce_fig8() -> Outcome:
    """Compare the responses of PD/PI to 1 N with the gains of Tables III and IV, as printed and halved."""
    first, printed, halved = (response(experiment(LOOSE, control)) for control in (PD_PI, PD_PI_PRINTED, PD_PI_HALVED))
    best = response(experiment(LOOSE, CF_RETUNED))
    table = [
        *rows("gains of Table III", first, 16, 83, 665),
        *rows("gains of Table IV as printed", printed, 7, 69, 146, _SWING),
        *rows("gains of Table IV, a_F and b_F a tenth", halved, 22, 86, 1467),
        unstable_row("III", experiment(LOOSE, PD_PI)),
        Row("a tenth: settling time, relative to Table III", Bound(minimum=1.0), halved.settling / first.settling),
        Row("a tenth: settling time, relative to CF of Fig. 7", Bound(minimum=1.0), halved.settling / best.settling),
    ]
    return Outcome(table, _draw_fig8)


def _draw_fig8(figure: Figure) -> None:
    printed = Curve("PD/PI of Table IV as printed", experiment(LOOSE, PD_PI_PRINTED), ORANGE)
    curves = [
        Curve("PD/PI of Table IV, a_F and b_F a tenth", experiment(LOOSE, PD_PI_HALVED), BLUE),
        printed,
        Curve("PD/PI of Table III", experiment(LOOSE, PD_PI), SKY, "--"),
        Curve("CF of Table IV (Fig. 7)", experiment(LOOSE, CF_RETUNED), PALE),
    ]
    inside = Inside(GAP, "angle [µrad]", rotor_ahead(printed.run), printed, 600.0)
    draw(figure, "Fig. 8: backlash in the joints, PD and PI control; step of 1 N", curves, inside, 1600.0, 300.0)


# --- flexible joints ----------------------------------------------------------------------------------------------


def reproduce_fig9() -> Outcome:
    """Compare the response of CF to 1 N with the expected values and with PD/PI."""
    own, other = (CF, "CF", 3), (PD_PI, "PD/PI", 10)
    title = "Fig. 9: flexible joints, fractional-order control (CF); step of 1 N"
    return _flexible(own, other, (11, 4, 15), Bound(maximum=1.0), title, (400.0, 60.0))


def reproduce_fig10() -> Outcome:
    """Compare the response of PD/PI to 1 N with the expected values and with CF."""
    own, other = (PD_PI, "PD/PI", 4), (CF, "CF", 9)
    title = "Fig. 10: flexible joints, PD and PI control; step of 1 N"
    return _flexible(own, other, (261, 1, 346), Bound(minimum=1.0), title, (1000.0, 120.0))


def _flexible(
    own: Shown, other: Shown, paper: tuple[float, float, float], ratio: Bound, title: str, spans: tuple[float, float]
) -> Outcome:
    """Compare the response with the `paper` (rise, overshoot, settling) and with the other controller.

    `spans` are the lengths of the long and the short time axis [ms].
    """
    (law, name, ideal), (other_law, other_name, number) = own, other
    found, beside = response(experiment(YIELDING, law)), response(experiment(YIELDING, other_law))
    relative = f"relative to {other_name} of Fig. {number}"
    table = [
        *rows(f"{name} with flexible joints", found, *paper),
        Row(f"rise time, {relative}", ratio, found.rise / beside.rise),
        Row(f"settling time, {relative}", ratio, found.settling / beside.settling),
    ]

    def drawn(figure: Figure) -> None:
        curve = Curve(f"{name}, flexible joints", experiment(YIELDING, law), BLUE)
        curves = [
            curve,
            Curve(f"{name}, ideal joints (Fig. {ideal})", experiment(IDEAL, law), SKY, "--"),
            Curve(f"{other_name}, flexible joints (Fig. {number})", experiment(YIELDING, other_law), PALE),
        ]
        twist = curve.run.rows["rotor"] - curve.run.rows["angle"]
        inside = Inside("twist beyond that at the end", "angle [µrad]", 1e6 * (twist - twist[-1]), curve, 30.0)
        draw(figure, title, curves, inside, *spans)

    return Outcome(table, drawn)
