"""Weigand et al. 2020, Fig. 8: motor torque of both feed-forwards.

The torques agree except where the gear torque changes its sign: there the motor has to cross the backlash almost
instantaneously. The rate of change of the torque there limits the method, as the paper says. It prints no number. The
feed-forwards themselves can be checked: against (20) computed from (25) by finite differences, and against (27). Their
difference depends on the motion, which is not printed either; those rows are guards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce import weigand
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.planar import Array
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, PALE, dress
from devices.arm.flatness.joint import feed_forward

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "torque of the motor by flatness-based and by rigid feed-forward (Weigand et al. 2020, Fig. 8)"

STEP = 0.5 * weigand.PERIOD


def torques() -> tuple[Array, Array, Array]:
    """Return the motor torques of FB-FF and R-FF, and the gear torque, all (n,) [N m]."""
    flat = feed_forward(weigand.JOINT, weigand.motion(), weigand.INERTIA)
    rigid = feed_forward(weigand.JOINT, weigand.motion(), weigand.INERTIA, rigid=True)
    return flat.torque, rigid.torque, flat.gear_torque


def again() -> tuple[Array, Array]:
    """Recompute the motor torques of FB-FF and of R-FF, (n,) [N m].

    FB-FF is (20) with finite differences of (25), R-FF is (27).

    The first and the last value of FB-FF are missing.
    """
    joint, motion = weigand.JOINT, weigand.motion()
    load = weigand.VISCOSITY * motion[:, 1] + weigand.COULOMB * np.tanh(0.5 * weigand.STEEPNESS * motion[:, 1])
    gear = weigand.INERTIA * motion[:, 2] + load
    knee = 2.0 * weigand.EFFECTIVE / (1.0 + np.exp(-weigand.SMOOTHNESS * gear)) - weigand.EFFECTIVE
    angle = joint.gear_ratio * (gear / weigand.STIFFNESS + knee + motion[:, 0])
    flat = joint.motor_inertia * np.diff(angle, 2) / STEP**2 + gear[1:-1] / joint.gear_ratio
    rigid = joint.motor_inertia * joint.gear_ratio * motion[:, 2] + gear / joint.gear_ratio
    return np.asarray(flat), np.asarray(rigid)


def rate(torque: Array) -> float:
    """Return the maximum rate of change of a torque [N m/s]."""
    return float(np.abs(np.diff(torque)).max() / STEP)


def reproduce() -> Outcome:
    """Compute both feed-forwards and their difference."""
    flat, rigid, gear = torques()
    apart = np.abs(flat - rigid)
    loaded = np.abs(gear) > 5.0 / weigand.SMOOTHNESS  # (11) is linear beyond
    largest = float(np.abs(rigid).max())
    again_flat, again_rigid = again()
    far = float(np.abs(flat[1:-1] - again_flat).max())
    rows = [
        Row("flatness-based: distance from (20) by differences of (25)", 0.0, far, 1e-3, "N m", "derived"),
        Row("rigid: distance from (27)", 0.0, float(np.abs(rigid - again_rigid).max()), 1e-9, "N m", "derived"),
        _guard("largest torque, flatness-based over rigid", Bound(0.98, 1.02), float(np.abs(flat).max()) / largest),
        _guard("mean difference, of the largest torque", Bound(maximum=0.02), float(apart.mean()) / largest),
        _guard(
            "difference where the play is taken up, over that anywhere",
            Bound(maximum=0.25),
            float(apart[loaded].max() / apart.max()),
        ),
        _guard("fastest change, flatness-based over rigid", Bound(minimum=5.0), rate(flat) / rate(rigid)),
    ]
    return Outcome(rows, lambda figure: _draw(figure, flat, rigid, gear))


def _guard(what: str, bound: Bound, ours: float) -> Row:
    return Row(what, bound, ours, 0.0, "", "guard")


def _draw(figure: Figure, flat: Array, rigid: Array, gear: Array) -> None:
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
