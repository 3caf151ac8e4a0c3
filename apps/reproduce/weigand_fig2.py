"""Weigand et al. 2020, Fig. 2: dry and viscous friction, and its smooth approximation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce import weigand
from apps.reproduce.outcome import Outcome, Row
from apps.reproduce.planar import Array
from apps.reproduce.style import BLUE, INK, ORANGE, dress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "joint friction, discontinuous and smooth (Weigand et al. 2020, Fig. 2, (3), (4))"

LAW = weigand.JOINT.friction


def discontinuous(velocity: Array) -> Array:
    """Return the friction torque of (3) [N m]."""
    return np.asarray(weigand.VISCOSITY * velocity + weigand.COULOMB * np.sign(velocity))


def printed(velocity: Array) -> Array:
    """Return the friction torque of (4) as printed [N m]."""
    level = 2.0 * weigand.COULOMB / (1.0 + np.exp(-weigand.STEEPNESS * velocity))
    return np.asarray(weigand.VISCOSITY * velocity + level - weigand.COULOMB)


def reproduce() -> Outcome:
    """Compare both laws, and the derivatives with finite differences."""
    velocity = np.linspace(-0.1, 0.1, 2001)
    values = LAW.derivatives(velocity)
    reach = 0.02
    apart = float(discontinuous(np.array(reach)) - LAW(reach))
    left = 2.0 * weigand.COULOMB / (1.0 + math.exp(weigand.STEEPNESS * reach))
    step = 1e-6
    first = (LAW(velocity + step) - LAW(velocity - step)) / (2.0 * step)
    slopes = LAW.derivatives(velocity[:, None] + step * np.array((-1.0, 1.0)))[..., 1]
    second = (slopes[:, 1] - slopes[:, 0]) / (2.0 * step)
    rest = weigand.VISCOSITY + 0.5 * weigand.COULOMB * weigand.STEEPNESS
    rows = [
        Row("largest distance from (4)", 0.0, float(np.abs(values[:, 0] - printed(velocity)).max()), 1e-12, "N m"),
        Row("slope at rest, f_v + f_c s_F/2", rest, float(LAW.derivatives(0.0)[1]), 1e-9, "N m s/rad", "derived"),
        Row(f"distance from (3) at {reach:g} rad/s, 2 f_c/(1 + exp(s_F v))", left, apart, 1e-9, "N m", "derived"),
        Row("torque at rest, where (3) jumps by 2 f_c", 0.0, float(LAW(0.0)), 0.0, "N m"),
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
    return Outcome(rows, _draw)


def _draw(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    for axes, reach, title in ((left, 0.5, "over the speeds of the robot"), (right, 0.03, "near rest")):
        velocity = np.linspace(-reach, reach, 4000)  # an even number, so that the jump is drawn as a vertical line
        axes.plot(velocity, discontinuous(velocity), color=ORANGE, linewidth=1.6, label="discontinuous, (3)")
        axes.plot(velocity, LAW(velocity), color=BLUE, linewidth=1.8, linestyle="--", label="smooth, (4)")
        axes.axhline(0.0, color=INK, linewidth=0.7)
        axes.axvline(0.0, color=INK, linewidth=0.7)
        dress(axes, "velocity of the link [rad/s]", "friction torque [N m]", title)
    left.legend(fontsize=10)
    figure.suptitle("Fig. 2: friction of joint 1 (f_c = 200 N m, f_v = 800 N m s/rad, s_F = 500 s/rad)", color=INK)
