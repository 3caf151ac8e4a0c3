"""Weigand et al. 2020: Figs. 2, 3, 7, 8 and 9 and Table 1.

The paper prints the joint's parameters (Table 2), but neither the inertia of its link nor the motion of its Fig. 6.
Here the link has 2500 kg m^2, and turns by 20 degrees and back in 2 s each way. This choice was made after seeing
results: 10 to 30 degrees give errors of 0.07 to 0.09 degrees and oscillations of 1000 to 1650 N m with the rigid feed-
forward; a link of 1000 kg m^2 gives 0.15 degrees and 680 N m, one of 3000 kg m^2 0.08 degrees and 2000 N m.

Figs. 2 and 3, friction of the joint; backlash, lost motion and stiffness of its gearbox. Fig. 2 is dry and viscous
friction with its smooth approximation, Fig. 3 the torque of the gearbox with two smooth approximations. The printed
branches of (6) are discontinuous, and (10) is not their inverse. Here branch 2 starts at the end of the backlash,
branch 3 at the end of branch 2, and (10) is their inverse. The smooth functions (9) and (11) are not inverse to each
other either: each is a separate law, and is inverted here itself. The stiffness of lost motion is not printed; a tenth
of the full stiffness is assumed.

Figs. 7 to 9, error of the link, motor torque and gear torque with both feed-forwards. Fig. 7: the paper finds an error
of 0 for the flatness-based feed-forward and up to 0.06 degrees for the rigid one, on a motion that it does not print.
According to its text both use the discontinuous friction (3), but the rigid one achieves this error only with the
smooth friction (4) of the joint. The errors depend on the motion, so those rows are guards. Not reproduced: that
feedback which neglects the elasticity makes the error ten times larger. With the rigid feed-forward the feedback makes
it three times smaller. Only with the flatness-based feed-forward, which has no error to feed back until its torque is
held, is the error larger, 2.7 times.

Fig. 8: the motor torques agree except where the gear torque changes its sign: there the motor has to cross the backlash
almost instantaneously. The rate of change of the torque there limits the method, as the paper says. It prints no
number. The feed-forwards themselves can be checked: against (20) computed from (25) by finite differences, and against
(27). Their difference depends on the motion, which is not printed either; those rows are guards.

Fig. 9: the oscillation of the gear torque with the rigid feed-forward, of about 1500 N m, depends on the motion and on
the inertia of the link. Neither is printed; both were chosen after seeing results, so that row is a guard.

Table 1, measured errors and a simulation. Unmodelled effects dominate the error of the robot. The simulation (joint 1
with its torque held for 0.8 ms) can only reproduce the ranking, and only with a correct model: the sign of an inertia
error of one per cent decides whether flatness-based or rigid feed-forward is better.

The feedback rows cannot be feedback alone with the gains of Table 2 as printed, which would leave errors of 11 deg. If
K_V is per degree instead of per radian, 57 times as much, the errors have the right magnitude.

The ratios that the text computes from its table are checked too; they do not depend on our results.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from apps.reproduce.outcome import Bound, Outcome, Row, derived, guard
from apps.reproduce.planar import Array
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, PALE, SKY, dress
from devices.arm.flatness.joint import (
    Circumstances,
    ElasticJoint,
    FeedForwardServo,
    JointRun,
    feed_forward,
    point_to_point,
    simulate_joint,
)
from devices.arm.flatness.laws import LostMotion, RampBacklash, SmoothBacklash, SmoothCoulomb, Stiffness

BACKLASH, LOST_MOTION = 0.15e-3, 0.15e-3
"""Half the backlash phi_B* and the lost motion phi_LM beyond it [rad]."""

EFFECTIVE = BACKLASH + LOST_MOTION
"""Effective half backlash phi_B [rad]."""

STIFFNESS, SMOOTHNESS = 8.4225e6, 0.02
COULOMB, VISCOSITY, STEEPNESS = 200.0, 800.0, 500.0

JOINT = ElasticJoint(
    SmoothCoulomb(COULOMB, VISCOSITY, STEEPNESS), SmoothBacklash(STIFFNESS, EFFECTIVE, SMOOTHNESS), 1798 / 7, 0.0138
)
"""Joint 1 with the inverse stiffness (11)."""

RAMP = RampBacklash(STIFFNESS, EFFECTIVE)
"""The stiffness (9) of joint 1."""

SLACK = RampBacklash(STIFFNESS, EFFECTIVE, 3e5)
"""(9) with the stiffness of (11) inside its backlash, so that a motor can follow it."""

DRY = replace(JOINT, friction=SmoothCoulomb(COULOMB, VISCOSITY, 1e9))
"""Joint 1 with practically the discontinuous friction (3)."""

INERTIA, TURN, DURATION = 2500.0, 20.0, 2.0
PERIOD = 4e-5
HELD = Circumstances(hold=round(0.8e-3 / PERIOD))
"""The motor torque changes every 0.8 ms, as on the robot."""

FLAT = FeedForwardServo("elastic", "none")
RIGID = FeedForwardServo("rigid", "none")


@functools.cache
def motion() -> Array:
    """Return the reference at every half period, (n, 5)."""
    time = np.arange(0.0, DURATION + PERIOD / 4, PERIOD / 2)
    end = math.radians(TURN)
    back = point_to_point(time, end, 0.0, DURATION)
    return np.vstack((point_to_point(time, 0.0, end, DURATION), back[1:]))


@functools.cache
def run(
    law: FeedForwardServo,
    joint: ElasticJoint = JOINT,
    model: ElasticJoint | None = None,
    circumstances: Circumstances | None = None,
    inertia: float = INERTIA,
) -> JointRun:
    """Simulate the motion."""
    return simulate_joint(joint, law, motion(), inertia, PERIOD, model=model, circumstances=circumstances)


def worst(result: JointRun) -> float:
    """Return the maximum error of the link [deg]."""
    return math.degrees(float(np.abs(result.error).max()))


def mean(result: JointRun) -> float:
    """Return the mean absolute error of the link [deg]."""
    return math.degrees(float(np.abs(result.error).mean()))


def oscillation(result: JointRun) -> float:
    """Return the maximum gear torque beyond the torque of the reference motion [N m]."""
    return float(np.abs(result.gear_torque - result.reference_gear_torque).max())


# --- Figs. 2 and 3 ---------------------------------------------------------------------------------------------------


FRICTION_LAW = JOINT.friction


def discontinuous(velocity: Array) -> Array:
    """Return the friction torque of (3) [N m]."""
    return np.asarray(VISCOSITY * velocity + COULOMB * np.sign(velocity))


def reproduce_fig2() -> Outcome:
    """Compare both laws, and the derivatives with finite differences."""
    velocity = np.linspace(-0.1, 0.1, 2001)
    values = FRICTION_LAW.derivatives(velocity)
    reach = 0.02
    apart = float(discontinuous(np.array(reach)) - FRICTION_LAW(reach))
    left = 2.0 * COULOMB / (1.0 + math.exp(STEEPNESS * reach))
    step = 1e-6
    first = (FRICTION_LAW(velocity + step) - FRICTION_LAW(velocity - step)) / (2.0 * step)
    slopes = FRICTION_LAW.derivatives(velocity[:, None] + step * np.array((-1.0, 1.0)))[..., 1]
    second = (slopes[:, 1] - slopes[:, 0]) / (2.0 * step)
    rest = VISCOSITY + 0.5 * COULOMB * STEEPNESS
    slope = float(FRICTION_LAW.derivatives(0.0)[1])
    level = 2.0 * COULOMB / (1.0 + np.exp(-STEEPNESS * velocity))
    printed = VISCOSITY * velocity + level - COULOMB
    rows = [
        Row("largest distance from (4)", 0.0, np.abs(values[:, 0] - printed).max(), 1e-12, "N m"),
        derived("slope at rest, f_v + f_c s_F/2", rest, slope, 1e-9, "N m s/rad"),
        derived(f"distance from (3) at {reach:g} rad/s, 2 f_c/(1 + exp(s_F v))", left, apart, 1e-9, "N m"),
        Row("torque at rest, where (3) jumps by 2 f_c", 0.0, float(FRICTION_LAW(0.0)), 0.0, "N m"),
    ]
    for name, found, exact in (("first", first, values[:, 1]), ("second", second, values[:, 2])):
        error = np.abs(found - exact).max() / np.abs(exact).max()
        rows.append(derived(f"{name} derivative against differences, of its largest value", 0.0, error, 1e-6))
    return Outcome(rows, _draw_fig2)


def _draw_fig2(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    for axes, reach, title in ((left, 0.5, "over the speeds of the robot"), (right, 0.03, "near rest")):
        velocity = np.linspace(-reach, reach, 4000)  # an even number, so that the jump is drawn as a vertical line
        axes.plot(velocity, discontinuous(velocity), color=ORANGE, linewidth=1.6, label="discontinuous, (3)")
        axes.plot(velocity, FRICTION_LAW(velocity), color=BLUE, linewidth=1.8, linestyle="--", label="smooth, (4)")
        axes.axhline(0.0, color=INK, linewidth=0.7)
        axes.axvline(0.0, color=INK, linewidth=0.7)
        dress(axes, "velocity of the link [rad/s]", "friction torque [N m]", title)
    left.legend(fontsize=10)
    figure.suptitle("Fig. 2: friction of joint 1 (f_c = 200 N m, f_v = 800 N m s/rad, s_F = 500 s/rad)", color=INK)


C, PLAY, LOST, PHI = STIFFNESS, BACKLASH, LOST_MOTION, EFFECTIVE
PIECES = LostMotion(C, C / 10.0, PLAY, LOST)
KNEE = JOINT.stiffness


def printed_pieces(twist: Array) -> Array:
    """Return the torque of (6) as printed [N m]."""
    size, sign = np.abs(twist), np.sign(twist)
    soft = PIECES.lost_motion_stiffness * (twist - 0.5 * LOST * sign)
    full = C * twist + PIECES.lost_motion_stiffness * LOST * sign
    return np.asarray(np.where(size <= PLAY, 0.0, np.where(size <= PHI, soft, full)))


def jump(law: object, at: float) -> float:
    """Return the jump of a function at a twist [N m]."""
    below, above = law(np.array((at * (1.0 - 1e-12), at * (1.0 + 1e-12))))  # type: ignore[operator]
    return float(above - below)


def round_trip(law: Stiffness) -> float:
    """Return the maximum relative error of a torque recomputed from its twist."""
    torques = np.geomspace(1.0, 1e4, 400)
    return float(np.abs(law.torque(law.twist(torques)) / torques - 1.0).max())


def reproduce_fig3() -> Outcome:
    """Compare the laws with the printed equations and with their own inverses."""
    torques = np.geomspace(1e-3, 1e4, 2000)
    lost = PIECES.lost_motion_stiffness * LOST
    # (10) as printed
    twist = np.where(
        np.abs(torques) <= lost,
        torques / PIECES.lost_motion_stiffness + 0.5 * PLAY * np.sign(torques),
        torques / C + PHI * np.sign(torques),
    )
    off = np.abs(twist - PIECES.twist(torques))
    apart = np.abs(RAMP.twist(torques) - KNEE.twist(torques)).max()
    # The equation (30) is y + 3 T y' + 3 T^2 y'' + T^3 y''' = c x with T = phi_B/3.
    x, T = np.linspace(0.0, 3.0 * PHI, 3001), PHI / 3.0
    y, y1, y2 = RAMP.torque_derivatives(x).T
    residual = y + 3.0 * T * y1 + 3.0 * T**2 * y2 + T**3 * np.gradient(y2, x) - C * x
    left = np.abs(residual[2:-2]).max() / (C * PHI)
    soft = 1.0 / (1.0 / C + 0.5 * PHI * SMOOTHNESS)  # derivative of (11) at zero torque
    rows = [
        derived("(6) as printed: jump at phi_B*", 63.2, jump(printed_pieces, PLAY), 0.1, "N m"),
        derived("(6) as printed: jump at phi_B", 2463.6, jump(printed_pieces, PHI), 0.1, "N m"),
        derived("(6) made continuous: jump at phi_B*", 0.0, jump(PIECES.torque, PLAY), 1e-6, "N m"),
        derived("(6) made continuous: jump at phi_B", 0.0, jump(PIECES.torque, PHI), 1e-6, "N m"),
        derived(
            "(10) as printed: off by, in lost motion", 0.075, float(off[torques <= lost].max()) * 1e3, 1e-9, "mrad"
        ),
        derived("(6) and (10), corrected: torque of its own twist, relative", 0.0, round_trip(PIECES), 1e-12),
        derived("(9) and its inverse: torque of its own twist, relative", 0.0, round_trip(RAMP), 1e-12),
        derived("(11) and its inverse: torque of its own twist, relative", 0.0, round_trip(KNEE), 1e-11),
        Row("(7) in its equation (30): residual, of c phi_B", 0.0, left, 1e-5),
        derived("torque of (9) at phi_B, of c phi_B", 0.224, float(RAMP.torque(PHI)) / (C * PHI), 5e-4),
        Row("slope of (9) far out, of c", 1.0, float(RAMP.torque_derivatives(0.01)[1]) / C, 1e-9),
        derived("(9) against (11): twist, of phi_B", _printed_apart(), float(apart) / PHI, 1e-4),
        derived("stiffness of (11) at rest", soft, KNEE.torque_derivatives(0.0)[1], 1e-3, "N m/rad"),
        derived("stiffness of (9) at rest", 0.0, RAMP.torque_derivatives(0.0)[1], 0.0, "N m/rad"),
    ]
    return Outcome(rows, _draw_fig3)


def _printed_apart() -> float:
    """Return the maximum distance between (9) and (11), implemented independently here, relative to phi_B.

    (9) is the response of the third-order equation (30) to a ramp. Comparing both twists along this ramp requires no
    inverse.
    """
    x = np.linspace(0.0, 10.0 * PHI, 100_001)
    z = 3.0 * x / PHI
    torque = C * (x - PHI + PHI / 3.0 * np.exp(-z) * (3.0 + 2.0 * z + 0.5 * z**2))
    knee = torque / C + 2.0 * PHI / (1.0 + np.exp(-SMOOTHNESS * torque)) - PHI
    return float(np.abs(x - knee).max() / PHI)


def _draw_fig3(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    for axes, reach, title in ((left, 1.1e-3, "torque over twist"), (right, 0.42e-3, "the play and what follows it")):
        twist = np.linspace(-reach, reach, 2000)
        mrad = twist * 1e3
        axes.axvspan(-PLAY * 1e3, PLAY * 1e3, color=PALE, alpha=0.25, linewidth=0.0, label="play, 2 phi_B*")
        axes.plot(mrad, printed_pieces(twist), color=PALE, linewidth=1.2, linestyle=":", label="(6) as printed")
        axes.plot(mrad, PIECES.torque(twist), color=ORANGE, linewidth=1.6, label="(6) made continuous")
        axes.plot(mrad, RAMP.torque(twist), color=BLUE, linewidth=1.8, label="(9)")
        axes.plot(mrad, KNEE.torque(twist), color=GREEN, linewidth=1.8, linestyle="--", label="inverse of (11)")
        axes.set_xlim(-reach * 1e3, reach * 1e3)
        dress(axes, "twist theta/u - q [mrad]", "torque in the gearbox [N m]", title)
    left.annotate("", (-PHI * 1e3, 1500.0), (PHI * 1e3, 1500.0), arrowprops={"arrowstyle": "<->", "color": INK})
    left.annotate("2 phi_B", (0.0, 1700.0), ha="center", fontsize=10)
    left.legend(fontsize=10, loc="lower right")
    right.set_ylim(-350.0, 350.0)
    figure.suptitle(
        "Fig. 3: gearbox of joint 1 (c_TR = 8.42 MN m/rad, phi_B* = phi_LM = 0.15 mrad; c_LM = c_TR/10 assumed)",
        color=INK,
    )


# --- Figs. 7 to 9 ----------------------------------------------------------------------------------------------------


_INERTIAS = (1000.0, 3000.0)


def reproduce_fig7() -> Outcome:
    """Simulate both feed-forwards, with correct and with incorrect models."""
    slack, ramp = (replace(JOINT, stiffness=stiffness) for stiffness in (SLACK, RAMP))
    lighter, window = Circumstances(inertia_ratio=0.9), Bound(0.03, 0.3)
    rows = [
        Row("flatness-based: largest error", 0.0, worst(run(FLAT)), 1e-5, "deg"),
        derived("flatness-based, play by (9): largest error", 0.0, worst(run(FLAT, slack)), 1e-5, "deg"),
        guard("rigid: largest error (0.06 deg in the paper)", window, worst(run(RIGID)), "deg"),
    ]
    for inertia in _INERTIAS:
        error = worst(run(RIGID, inertia=inertia))
        rows.append(guard(f"rigid, link of {inertia:g} kg m^2: largest error", window, error, "deg"))
    rows.append(guard("rigid with friction (3): largest error", Bound(0.3, 1.0), worst(run(RIGID, model=DRY)), "deg"))
    for name, law in (("flatness-based", FLAT), ("rigid", RIGID)):
        description = f"inertia off by 10 %, {name}: largest error (easily more than 1 deg in the paper)"
        rows.append(guard(description, Bound(minimum=1.0), worst(run(law, circumstances=lighter)), "deg"))
    mixed = worst(run(FLAT, ramp, JOINT))
    rows.append(guard("play by (9), feed-forward by (11): largest error", Bound(0.01, 0.1), mixed, "deg"))
    # each feedback is compared with the same feed-forward without feedback
    held = {feed: worst(run(FeedForwardServo(feed, "none"), circumstances=HELD)) for feed in ("elastic", "rigid")}
    cases = (
        ("flatness-based, conventional feedback", FeedForwardServo("elastic", "conventional"), Bound(1.5, 4.0)),
        ("flatness-based, model-based feedback", FeedForwardServo(), Bound(0.5, 2.0)),
        ("rigid, conventional feedback", FeedForwardServo("rigid", "conventional"), Bound(0.15, 0.6)),
    )
    description = "torque held for 0.8 ms, flatness-based: largest error"
    rows.append(guard(description, Bound(0.005, 0.02), held["elastic"], "deg"))
    for name, law, bound in cases:
        ratio = worst(run(law, circumstances=HELD)) / held[law.feed_forward]
        rows.append(guard(f"held 0.8 ms, {name}: error over that without feedback", bound, ratio))
    never = worst(run(FeedForwardServo("elastic", "conventional")))
    right = worst(run(FeedForwardServo()))
    rows += [
        guard("not held, flatness-based, conventional feedback: largest error", Bound(minimum=1e-3), never, "deg"),
        Row("not held, flatness-based, model-based feedback: largest error", 0.0, right, 1e-5, "deg"),
    ]
    return Outcome(rows, _draw_fig7)


def _draw_fig7(figure: Figure) -> None:
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(1.0, 2.2))
    flat, rigid = run(FLAT), run(RIGID)
    show = slice(None, None, 10)
    time = flat.time[show]
    top.plot(time, np.degrees(flat.position[show]), color=INK, linewidth=1.4)
    dress(top, "", "link angle [deg]", f"the motion: {TURN:g} degrees and back")
    play = math.degrees(BACKLASH)
    bottom.axhspan(-play, play, color=PALE, alpha=0.3, linewidth=0.0, label="play phi_B*")
    bottom.plot(time, np.degrees(rigid.error[show]), color=ORANGE, linewidth=1.3, label="rigid (R-FF)")
    bottom.plot(time, np.degrees(flat.error[show]), color=BLUE, linewidth=1.8, label="flatness-based (FB-FF)")
    dress(bottom, "time [s]", "error of the link [deg]", "no feedback, model and joint alike", legend="lower left")
    bottom.set_xlim(0.0, time[-1])
    figure.suptitle(f"Fig. 7: error of the link of joint 1 (M = {INERTIA:g} kg m^2)", color=INK)


STEP = 0.5 * PERIOD


def again() -> tuple[Array, Array]:
    """Recompute the motor torques of FB-FF and of R-FF, (n,) [N m].

    FB-FF is (20) with finite differences of (25), R-FF is (27).

    The first and the last value of FB-FF are missing.
    """
    joint, reference = JOINT, motion()
    load = VISCOSITY * reference[:, 1] + COULOMB * np.tanh(0.5 * STEEPNESS * reference[:, 1])
    gear = INERTIA * reference[:, 2] + load
    knee = 2.0 * EFFECTIVE / (1.0 + np.exp(-SMOOTHNESS * gear)) - EFFECTIVE
    angle = joint.gear_ratio * (gear / STIFFNESS + knee + reference[:, 0])
    flat = joint.motor_inertia * np.diff(angle, 2) / STEP**2 + gear[1:-1] / joint.gear_ratio
    rigid = joint.motor_inertia * joint.gear_ratio * reference[:, 2] + gear / joint.gear_ratio
    return np.asarray(flat), np.asarray(rigid)


def rate(torque: Array) -> float:
    """Return the maximum rate of change of a torque [N m/s]."""
    return float(np.abs(np.diff(torque)).max() / STEP)


def reproduce_fig8() -> Outcome:
    """Compute both feed-forwards and their difference."""
    elastic = feed_forward(JOINT, motion(), INERTIA)
    flat, gear = elastic.torque, elastic.gear_torque
    rigid = feed_forward(JOINT, motion(), INERTIA, rigid=True).torque
    apart = np.abs(flat - rigid)
    loaded = np.abs(gear) > 5.0 / SMOOTHNESS  # (11) is linear beyond
    share, largest = apart[loaded].max() / apart.max(), float(np.abs(rigid).max())
    again_flat, again_rigid = again()
    far = float(np.abs(flat[1:-1] - again_flat).max())
    rows = [
        derived("flatness-based: distance from (20) by differences of (25)", 0.0, far, 1e-3, "N m"),
        derived("rigid: distance from (27)", 0.0, np.abs(rigid - again_rigid).max(), 1e-9, "N m"),
        guard("largest torque, flatness-based over rigid", Bound(0.98, 1.02), float(np.abs(flat).max()) / largest),
        guard("mean difference, of the largest torque", Bound(maximum=0.02), float(apart.mean()) / largest),
        guard("difference where the play is taken up, over that anywhere", Bound(maximum=0.25), share),
        guard("fastest change, flatness-based over rigid", Bound(minimum=5.0), rate(flat) / rate(rigid)),
    ]
    return Outcome(rows, lambda figure: _draw_fig8(figure, flat, rigid, gear))


def _draw_fig8(figure: Figure, flat: Array, rigid: Array, gear: Array) -> None:
    axes = figure.subplot_mosaic([["all", "all"], ["near", "difference"]])
    show, time = slice(None, None, 10), STEP * np.arange(len(flat))
    first = int(np.argmax((gear[:-1] > 0.0) & (gear[1:] <= 0.0)))
    windows = {"all": show, "near": slice(first - 4000, first + 4000)}
    titles = {"all": "the whole motion", "near": "where the torque in the gearbox changes its sign"}
    for name, window in windows.items():
        axes[name].plot(time[window], rigid[window], color=ORANGE, linewidth=1.4, label="rigid (R-FF)")
        axes[name].plot(time[window], flat[window], color=BLUE, linewidth=1.6, label="flatness-based (FB-FF)")
        dress(axes[name], "time [s]", "torque of the motor [N m]", titles[name])
        axes[name].set_xlim(time[window][0], time[window][-1])
    axes["all"].legend(fontsize=10, loc="upper center")
    axes["difference"].plot(time[show], (flat - rigid)[show], color=GREEN, linewidth=1.4)
    axes["difference"].axhline(0.0, color=PALE, linewidth=0.8)
    axes["difference"].set_xlim(0.0, time[-1])
    dress(axes["difference"], "time [s]", "difference [N m]", "flatness-based less rigid")
    figure.suptitle("Fig. 8: feed-forward of joint 1 (u = 1798/7)", color=INK)


def reproduce_fig9() -> Outcome:
    """Simulate both feed-forwards and compare the gear torques."""
    flat, rigid, held = map(oscillation, (run(FLAT), run(RIGID), run(FLAT, circumstances=HELD)))
    rows = [
        Row("flatness-based: torque beyond the motion's", 0.0, flat, 1e-2, "N m"),
        guard("rigid: torque beyond the motion's (about 1500 N m)", Bound(1000.0, 2500.0), rigid, "N m"),
        guard("flatness-based, held for 0.8 ms: torque beyond the motion's", Bound(maximum=50.0), held, "N m"),
    ]
    return Outcome(rows, _draw_fig9)


def _draw_fig9(figure: Figure) -> None:
    top, bottom = figure.subplots(2, 1, sharex=True)
    flat, rigid = run(FLAT), run(RIGID)
    show = slice(None, None, 10)
    time = flat.time[show]
    top.plot(time, rigid.gear_torque[show], color=ORANGE, linewidth=1.0, label="rigid (R-FF)")
    top.plot(time, flat.gear_torque[show], color=BLUE, linewidth=1.6, label="flatness-based (FB-FF)")
    dress(top, "", "torque in the gearbox [N m]", "what the link is driven with", legend="upper right")
    for result, colour, width in ((rigid, ORANGE, 1.0), (flat, BLUE, 1.6)):
        beyond = result.gear_torque - result.reference_gear_torque
        bottom.plot(time, beyond[show], color=colour, linewidth=width)
    bottom.axhline(0.0, color=PALE, linewidth=0.6)
    bottom.set_xlim(0.0, time[-1])
    dress(bottom, "time [s]", "torque beyond it [N m]", "less what the motion itself asks for")
    figure.suptitle(f"Fig. 9: torque in the gearbox of joint 1 ({TURN:g} degrees and back)", color=INK)


# --- Table 1 ---------------------------------------------------------------------------------------------------------


MEASURED = {
    "C-FB": ((0.200, 0.062, 0.266), (0.087, 0.020, 0.106)),
    "MB-FB": ((0.184, 0.081, 0.245), (0.081, 0.019, 0.101)),
    "R-FF": ((0.135, 0.053, 0.080), (0.052, 0.018, 0.034)),
    "FB-FF": ((0.110, 0.073, 0.050), (0.044, 0.023, 0.024)),
}
"""Table 1: largest and mean error of joints 1, 2, 3 [deg]."""

COLOURS = dict(zip(MEASURED, (SKY, GREEN, ORANGE, BLUE), strict=True))

LAWS = {
    "C-FB": FeedForwardServo("none", "conventional"),
    "MB-FB": FeedForwardServo("none", "model-based"),
    "R-FF": FeedForwardServo("rigid", "conventional"),
    "FB-FF": FeedForwardServo("elastic", "model-based"),
}
"""Servo laws of the rows of Table 1, as far as the text describes them."""

PER_DEGREE = math.degrees(FeedForwardServo().velocity_gain)
"""K_V of Table 2 if its unit is N m s/deg [N m s/rad]."""

READINGS = {name: replace(law, velocity_gain=PER_DEGREE) for name, law in LAWS.items()}
"""The same servo laws with that gain."""

_OFF = {ratio: Circumstances(inertia_ratio=ratio, hold=HELD.hold) for ratio in (0.99, 1.01)}
"""True inertia one per cent below and above the inertia of the model."""


def saved(better: str, worse: str, joint: int) -> float:
    """Return the reduction of a joint's mean error [%]."""
    return 100.0 * (1.0 - MEASURED[better][1][joint] / MEASURED[worse][1][joint])


def reproduce_table1() -> Outcome:
    """Simulate the four servo laws, and check the text against the table.

    With K_V per degree and without feed-forward, the simulated errors of joint 1 agree within a factor of two. With
    feed-forward they are far too small, because the simulated model is exact. The last row is a ranking that the text
    reverses.
    """

    def over(better: str, worse: str, circumstances: Circumstances) -> float:
        own, other = (worst(run(LAWS[name], circumstances=circumstances)) for name in (better, worse))
        return own / other

    exact, less, more = (over("FB-FF", "R-FF", where) for where in (HELD, *_OFF.values()))
    without, unaided = over("C-FB", "R-FF", HELD), worst(run(LAWS["C-FB"], circumstances=HELD))
    rows = [
        Row("simulated, right model: error of FB-FF over R-FF", Bound(maximum=1.0), exact),
        Row("simulated, right model: error of R-FF over C-FB", Bound(maximum=1.0), 1.0 / without),
        guard("simulated, real inertia 1 % less: error of FB-FF over R-FF", Bound(0.5, 1.0), less),
        guard("simulated, real inertia 1 % more: error of FB-FF over R-FF", Bound(1.0, 1.6), more),
        guard("simulated, no feed-forward, K_V as printed: largest error", Bound(8.0, 15.0), unaided, "deg"),
    ]

    for name, law in READINGS.items():
        result = run(law, circumstances=HELD)
        for description, ours, of_joints in zip(
            ("largest", "mean"), (worst(result), mean(result)), MEASURED[name], strict=True
        ):
            least = 0.5 * of_joints[0] if law.feed_forward == "none" else 0.0
            words = f"K_V read per degree: {name}, {description} error ({of_joints[0]:.3f} deg measured)"
            rows.append(guard(words, Bound(least, 2.0 * of_joints[0]), ours, "deg"))
    stated = (
        ("FB-FF", "C-FB", 0, 49.0),
        ("FB-FF", "C-FB", 2, 77.0),
        ("FB-FF", "R-FF", 0, 15.0),
        ("FB-FF", "R-FF", 2, 29.0),
    )
    for better, worse, joint, printed in stated:
        words = f"text against table, joint {joint + 1}: mean error saved by {better} over {worse}"
        rows.append(guard(words, printed, saved(better, worse, joint), "%", 0.5))
    words = "text against table, joint 2: mean error saved by FB-FF over R-FF, which the text puts at 0 or more"
    rows.append(guard(words, -27.8, saved("FB-FF", "R-FF", 1), "%", 0.1))
    return Outcome(rows, _draw_table1)


def _draw_table1(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    places = np.arange(3)
    for k, (name, (largest, average)) in enumerate(MEASURED.items()):
        at = places + 0.2 * (k - 1.5)
        left.bar(at, largest, 0.18, color=COLOURS[name], alpha=0.35)
        left.bar(at, average, 0.18, color=COLOURS[name], label=name)
    left.set_xticks(places, ["joint 1", "joint 2", "joint 3"])
    dress(left, "", "error of the link [deg]", "measured on the robot: mean, and largest (pale)", legend="upper center")
    cases = ((HELD, "-", "right model"), (_OFF[0.99], "--", "real inertia 1 % less"), (_OFF[1.01], ":", "1 % more"))
    for name, (circumstances, style, words) in itertools.product(("R-FF", "FB-FF"), cases):
        result = run(LAWS[name], circumstances=circumstances)
        error = np.degrees(result.error[::20])
        time = PERIOD * 20 * np.arange(len(error))
        right.plot(time, error, color=COLOURS[name], linestyle=style, linewidth=1.3, label=f"{name}, {words}")
    right.set_ylim(-0.125, 0.085)
    right.legend(fontsize=10, loc="lower center", ncols=2)
    dress(right, "time [s]", "error of the link [deg]", "simulated: joint 1, with feedback every 0.8 ms")
    figure.suptitle("Table 1: errors of the link", color=INK)
