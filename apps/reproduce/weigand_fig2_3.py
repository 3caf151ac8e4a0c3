"""Weigand et al. 2020, Figs. 2 and 3: friction of the joint; backlash, lost motion and stiffness of its gearbox.

Fig. 2 is dry and viscous friction with its smooth approximation, Fig. 3 the torque of the gearbox with two smooth
approximations. The printed branches of (6) are discontinuous, and (10) is not their inverse. Here branch 2 starts at
the end of the backlash, branch 3 at the end of branch 2, and (10) is their inverse. The smooth functions (9) and (11)
are not inverse to each other either: each is a separate law, and is inverted here itself. The stiffness of lost motion
is not printed; a tenth of the full stiffness is assumed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce import weigand
from apps.reproduce.outcome import Outcome, Row
from apps.reproduce.planar import Array
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, PALE, dress
from devices.arm.flatness.laws import LostMotion, Stiffness

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FRICTION_LAW = weigand.JOINT.friction


def discontinuous(velocity: Array) -> Array:
    """Return the friction torque of (3) [N m]."""
    return np.asarray(weigand.VISCOSITY * velocity + weigand.COULOMB * np.sign(velocity))


def printed_friction(velocity: Array) -> Array:
    """Return the friction torque of (4) as printed [N m]."""
    level = 2.0 * weigand.COULOMB / (1.0 + np.exp(-weigand.STEEPNESS * velocity))
    return np.asarray(weigand.VISCOSITY * velocity + level - weigand.COULOMB)


def reproduce_fig2() -> Outcome:
    """Compare both laws, and the derivatives with finite differences."""
    velocity = np.linspace(-0.1, 0.1, 2001)
    values = FRICTION_LAW.derivatives(velocity)
    reach = 0.02
    apart = float(discontinuous(np.array(reach)) - FRICTION_LAW(reach))
    left = 2.0 * weigand.COULOMB / (1.0 + math.exp(weigand.STEEPNESS * reach))
    step = 1e-6
    first = (FRICTION_LAW(velocity + step) - FRICTION_LAW(velocity - step)) / (2.0 * step)
    slopes = FRICTION_LAW.derivatives(velocity[:, None] + step * np.array((-1.0, 1.0)))[..., 1]
    second = (slopes[:, 1] - slopes[:, 0]) / (2.0 * step)
    rest = weigand.VISCOSITY + 0.5 * weigand.COULOMB * weigand.STEEPNESS
    slope = float(FRICTION_LAW.derivatives(0.0)[1])
    distance = float(np.abs(values[:, 0] - printed_friction(velocity)).max())
    rows = [
        Row("largest distance from (4)", 0.0, distance, 1e-12, "N m"),
        Row("slope at rest, f_v + f_c s_F/2", rest, slope, 1e-9, "N m s/rad", "derived"),
        Row(f"distance from (3) at {reach:g} rad/s, 2 f_c/(1 + exp(s_F v))", left, apart, 1e-9, "N m", "derived"),
        Row("torque at rest, where (3) jumps by 2 f_c", 0.0, float(FRICTION_LAW(0.0)), 0.0, "N m"),
        Row(
            "first derivative against differences, of its largest value",
            0.0,
            float(np.abs(first - values[:, 1]).max() / np.abs(values[:, 1]).max()),
            1e-6,
            "",
            "derived",
        ),
        Row(
            "second derivative against differences, of its largest value",
            0.0,
            float(np.abs(second - values[:, 2]).max() / np.abs(values[:, 2]).max()),
            1e-6,
            "",
            "derived",
        ),
    ]
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


C, PLAY, LOST, PHI = weigand.STIFFNESS, weigand.BACKLASH, weigand.LOST_MOTION, weigand.EFFECTIVE
PIECES = LostMotion(C, C / 10.0, PLAY, LOST)
RAMP, KNEE = weigand.RAMP, weigand.JOINT.stiffness


def printed_pieces(twist: Array) -> Array:
    """Return the torque of (6) as printed [N m]."""
    size, sign = np.abs(twist), np.sign(twist)
    soft = PIECES.lost_motion_stiffness * (twist - 0.5 * LOST * sign)
    full = C * twist + PIECES.lost_motion_stiffness * LOST * sign
    return np.asarray(np.where(size <= PLAY, 0.0, np.where(size <= PHI, soft, full)))


def printed_inverse(torque: Array) -> Array:
    """Return the twist of (10) as printed [rad]."""
    sign, lost = np.sign(torque), PIECES.lost_motion_stiffness * LOST
    soft = torque / PIECES.lost_motion_stiffness + 0.5 * PLAY * sign
    return np.asarray(np.where(np.abs(torque) <= lost, soft, torque / C + PHI * sign))


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
    off = np.abs(printed_inverse(torques) - PIECES.twist(torques))
    apart = np.abs(RAMP.twist(torques) - KNEE.twist(torques)).max()
    soft = 1.0 / (1.0 / C + 0.5 * PHI * weigand.SMOOTHNESS)  # derivative of (11) at zero torque
    rows = [
        Row("(6) as printed: jump at phi_B*", 63.2, jump(printed_pieces, PLAY), 0.1, "N m", "derived"),
        Row("(6) as printed: jump at phi_B", 2463.6, jump(printed_pieces, PHI), 0.1, "N m", "derived"),
        Row("(6) made continuous: jump at phi_B*", 0.0, jump(PIECES.torque, PLAY), 1e-6, "N m", "derived"),
        Row("(6) made continuous: jump at phi_B", 0.0, jump(PIECES.torque, PHI), 1e-6, "N m", "derived"),
        Row(
            "(10) as printed: off by, in lost motion",
            0.075,
            float(off[torques <= lost].max()) * 1e3,
            1e-9,
            "mrad",
            "derived",
        ),
        Row(
            "(6) and (10), corrected: torque of its own twist, relative", 0.0, round_trip(PIECES), 1e-12, "", "derived"
        ),
        Row("(9) and its inverse: torque of its own twist, relative", 0.0, round_trip(RAMP), 1e-12, "", "derived"),
        Row("(11) and its inverse: torque of its own twist, relative", 0.0, round_trip(KNEE), 1e-11, "", "derived"),
        Row("(7) in its equation (30): residual, of c phi_B", 0.0, _residual(), 1e-5, "", "paper"),
        Row("torque of (9) at phi_B, of c phi_B", 0.224, float(RAMP.torque(PHI)) / (C * PHI), 5e-4, "", "derived"),
        Row("slope of (9) far out, of c", 1.0, float(RAMP.torque_derivatives(0.01)[1]) / C, 1e-9, "", "paper"),
        Row("(9) against (11): twist, of phi_B", _printed_apart(), float(apart) / PHI, 1e-4, "", "derived"),
        Row("stiffness of (11) at rest", soft, float(KNEE.torque_derivatives(0.0)[1]), 1e-3, "N m/rad", "derived"),
        Row("stiffness of (9) at rest", 0.0, float(RAMP.torque_derivatives(0.0)[1]), 0.0, "N m/rad", "derived"),
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
    knee = torque / C + 2.0 * PHI / (1.0 + np.exp(-weigand.SMOOTHNESS * torque)) - PHI
    return float(np.abs(x - knee).max() / PHI)


def _residual() -> float:
    """Return the maximum residual of (30) with the torque of (9), relative to c phi_B.

    The equation is y + 3 T y' + 3 T^2 y'' + T^3 y''' = c x with T = phi_B/3.
    """
    x, T = np.linspace(0.0, 3.0 * PHI, 3001), PHI / 3.0
    y, y1, y2 = RAMP.torque_derivatives(x).T
    y3 = np.gradient(y2, x)
    residual = y + 3.0 * T * y1 + 3.0 * T**2 * y2 + T**3 * y3 - C * x
    return float(np.abs(residual[2:-2]).max() / (C * PHI))


def _draw_fig3(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    _curves(left, 1.1e-3, "torque over twist")
    left.annotate("", (-PHI * 1e3, 1500.0), (PHI * 1e3, 1500.0), arrowprops={"arrowstyle": "<->", "color": INK})
    left.annotate("2 phi_B", (0.0, 1700.0), ha="center", fontsize=10)
    left.legend(fontsize=10, loc="lower right")
    _curves(right, 0.42e-3, "the play and what follows it")
    right.set_ylim(-350.0, 350.0)
    figure.suptitle(
        "Fig. 3: gearbox of joint 1 (c_TR = 8.42 MN m/rad, phi_B* = phi_LM = 0.15 mrad; c_LM = c_TR/10 assumed)",
        color=INK,
    )


def _curves(axes: Axes, reach: float, title: str) -> None:
    twist = np.linspace(-reach, reach, 2000)
    mrad = twist * 1e3
    axes.axvspan(-PLAY * 1e3, PLAY * 1e3, color=PALE, alpha=0.25, linewidth=0.0, label="play, 2 phi_B*")
    axes.plot(mrad, printed_pieces(twist), color=PALE, linewidth=1.2, linestyle=":", label="(6) as printed")
    axes.plot(mrad, PIECES.torque(twist), color=ORANGE, linewidth=1.6, label="(6) made continuous")
    axes.plot(mrad, RAMP.torque(twist), color=BLUE, linewidth=1.8, label="(9)")
    axes.plot(mrad, KNEE.torque(twist), color=GREEN, linewidth=1.8, linestyle="--", label="inverse of (11)")
    axes.set_xlim(-reach * 1e3, reach * 1e3)
    dress(axes, "twist theta/u - q [mrad]", "torque in the gearbox [N m]", title)
