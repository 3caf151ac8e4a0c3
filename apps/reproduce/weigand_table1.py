"""Weigand et al. 2020, Table 1: measured errors, the text's statements, and a simulation.

Unmodelled effects dominate the error of the robot. The simulation (joint 1 with its torque held for 0.8 ms) can only
reproduce the ranking, and only with a correct model: the sign of an inertia error of one per cent decides whether
flatness-based or rigid feed-forward is better.

The feedback rows cannot be feedback alone with the gains of Table 2 as printed, which would leave errors of 11 deg. If
K_V is per degree instead of per radian, 57 times as much, the errors have the right magnitude.

The ratios that the text computes from its table are checked too; they do not depend on our results.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.outcome import Bound, Outcome, Row, guard
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, SKY, dress
from apps.reproduce.weigand import HELD, PERIOD, mean, run, worst
from devices.arm.flatness.control import FeedForwardServo
from devices.arm.flatness.simulation import Circumstances

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def reproduce() -> Outcome:
    """Check the text against the table, and simulate the four servo laws."""
    return Outcome([*_ranking_rows(), *_reading_rows(), *_text_rows()], _draw)


def over(better: str, worse: str, circumstances: Circumstances) -> float:
    """Return the ratio of the largest errors of two servo laws."""
    return worst(run(LAWS[better], circumstances=circumstances)) / worst(run(LAWS[worse], circumstances=circumstances))


def _ranking_rows() -> list[Row]:
    """Return the rows of the ranking of joint 1, with correct and with incorrect models."""
    exact, less, more = (over("FB-FF", "R-FF", where) for where in (HELD, *_OFF.values()))
    without = over("C-FB", "R-FF", HELD)
    return [
        Row("simulated, right model: error of FB-FF over R-FF", Bound(maximum=1.0), exact),
        Row("simulated, right model: error of R-FF over C-FB", Bound(maximum=1.0), 1.0 / without),
        guard("simulated, real inertia 1 % less: error of FB-FF over R-FF", Bound(0.5, 1.0), less),
        guard("simulated, real inertia 1 % more: error of FB-FF over R-FF", Bound(1.0, 1.6), more),
        guard(
            "simulated, no feed-forward, K_V as printed: largest error",
            Bound(8.0, 15.0),
            worst(run(LAWS["C-FB"], circumstances=HELD)),
            "deg",
        ),
    ]


def _reading_rows() -> list[Row]:
    """Return the rows for K_V per degree.

    Without feed-forward, the simulated errors of joint 1 agree within a factor of two. With feed-forward they are far
    too small, because the simulated model is exact.
    """
    rows = []
    for name, law in READINGS.items():
        result = run(law, circumstances=HELD)
        for description, ours, of_joints in zip(
            ("largest", "mean"), (worst(result), mean(result)), MEASURED[name], strict=True
        ):
            least = 0.5 * of_joints[0] if law.feed_forward == "none" else 0.0
            words = f"K_V read per degree: {name}, {description} error ({of_joints[0]:.3f} deg measured)"
            rows.append(guard(words, Bound(least, 2.0 * of_joints[0]), ours, "deg"))
    return rows


def _text_rows() -> list[Row]:
    """Return the rows of the text's statements about the table.

    The last row is a ranking that the text reverses.
    """
    stated = (
        ("FB-FF", "C-FB", 0, 49.0),
        ("FB-FF", "C-FB", 2, 77.0),
        ("FB-FF", "R-FF", 0, 15.0),
        ("FB-FF", "R-FF", 2, 29.0),
    )
    rows = [
        guard(
            f"text against table, joint {joint + 1}: mean error saved by {better} over {worse}",
            printed,
            saved(better, worse, joint),
            "%",
            0.5,
        )
        for better, worse, joint, printed in stated
    ]
    description = "text against table, joint 2: mean error saved by FB-FF over R-FF, which the text puts at 0 or more"
    return [*rows, guard(description, -27.8, saved("FB-FF", "R-FF", 1), "%", 0.1)]


def _draw(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    places = np.arange(3)
    for k, (name, (largest, average)) in enumerate(MEASURED.items()):
        at = places + 0.2 * (k - 1.5)
        left.bar(at, largest, 0.18, color=COLOURS[name], alpha=0.35)
        left.bar(at, average, 0.18, color=COLOURS[name], label=name)
    left.set_xticks(places, ["joint 1", "joint 2", "joint 3"])
    left.legend(fontsize=10, loc="upper center")
    dress(left, "", "error of the link [deg]", "measured on the robot: mean, and largest (pale)")
    _curves(right)
    figure.suptitle("Table 1: errors of the link", color=INK)


def _curves(axes: Axes) -> None:
    for name in ("R-FF", "FB-FF"):
        cases = ((HELD, "-", "right model"), (_OFF[0.99], "--", "real inertia 1 % less"), (_OFF[1.01], ":", "1 % more"))
        for circumstances, style, words in cases:
            result = run(LAWS[name], circumstances=circumstances)
            error = np.degrees(result.error[::20])
            time = PERIOD * 20 * np.arange(len(error))
            axes.plot(time, error, color=COLOURS[name], linestyle=style, linewidth=1.3, label=f"{name}, {words}")
    axes.set_ylim(-0.125, 0.085)
    axes.legend(fontsize=10, loc="lower center", ncols=2)
    dress(axes, "time [s]", "error of the link [deg]", "simulated: joint 1, with feedback every 0.8 ms")
