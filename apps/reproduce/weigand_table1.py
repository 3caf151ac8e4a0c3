"""Weigand et al. 2020, Table 1: errors measured on the robot, what its text makes of them, and the ranking simulated.

The robot's error is dominated by what no model knew. The simulation shares with it the ranking alone: joint 1 with its
torque held for 0.8 ms and an inertia that is off by a percent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, SKY, dress
from apps.reproduce.weigand import HELD, PERIOD, mean, run, worst
from devices.arm.flatness.control import FeedForwardServo
from devices.arm.flatness.simulation import Circumstances

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "errors measured and simulated, by servo law (Weigand et al. 2020, Table 1)"

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
"""What the rows of Table 1 stand for, as far as the text says it."""

_OFF = Circumstances(inertia_ratio=0.99, hold=HELD.hold)


def saved(better: str, worse: str, joint: int) -> float:
    """Return by how much the mean error of a joint is smaller [%]."""
    return 100.0 * (1.0 - MEASURED[better][1][joint] / MEASURED[worse][1][joint])


def reproduce() -> Outcome:
    """Check the text against the table, and simulate the same four servo laws."""
    ours = {
        name: (worst(run(law, circumstances=_OFF)), mean(run(law, circumstances=_OFF))) for name, law in LAWS.items()
    }
    exact = {name: worst(run(LAWS[name], circumstances=HELD)) for name in ("R-FF", "FB-FF")}
    rows = [
        Row("joint 1: mean error saved by FB-FF over C-FB", 49.0, saved("FB-FF", "C-FB", 0), 0.5, "%"),
        Row("joint 3: mean error saved by FB-FF over C-FB", 77.0, saved("FB-FF", "C-FB", 2), 0.5, "%"),
        Row("joint 1: mean error saved by FB-FF over R-FF", 15.0, saved("FB-FF", "R-FF", 0), 0.5, "%"),
        Row("joint 3: mean error saved by FB-FF over R-FF", 29.0, saved("FB-FF", "R-FF", 2), 0.5, "%"),
        Row(
            "joint 2: mean error saved by FB-FF over R-FF, which the text puts at 0 or more",
            -27.8,
            saved("FB-FF", "R-FF", 1),
            0.1,
            "%",
            "derived",
        ),
        Row(
            "simulated, right model: error of FB-FF over R-FF",
            Bound(maximum=0.8),
            exact["FB-FF"] / exact["R-FF"],
            0.0,
            "",
        ),
        Row(
            "simulated, inertia 1 % off: error of FB-FF over R-FF",
            Bound(maximum=1.1),
            ours["FB-FF"][0] / ours["R-FF"][0],
            0.0,
            "",
            "derived",
        ),
        Row(
            "simulated, no feed-forward: error over R-FF",
            Bound(minimum=2.0),
            ours["C-FB"][0] / ours["R-FF"][0],
            0.0,
            "",
            "derived",
        ),
    ]
    return Outcome(rows, lambda figure: _draw(figure, ours))


def _draw(figure: Figure, ours: dict[str, tuple[float, float]]) -> None:
    left, right = figure.subplots(1, 2)
    _bars(left)
    _curves(right)
    figure.suptitle("Table 1: errors of the link", color=INK)


def _bars(axes: Axes) -> None:
    places = np.arange(3)
    for k, (name, (largest, average)) in enumerate(MEASURED.items()):
        at = places + 0.2 * (k - 1.5)
        axes.bar(at, largest, 0.18, color=COLOURS[name], alpha=0.35)
        axes.bar(at, average, 0.18, color=COLOURS[name], label=name)
    axes.set_xticks(places, ["joint 1", "joint 2", "joint 3"])
    axes.legend(fontsize=10, loc="upper center")
    dress(axes, "", "error of the link [deg]", "measured on the robot: mean, and largest (pale)")


def _curves(axes: Axes) -> None:
    for name in ("R-FF", "FB-FF"):
        for circumstances, style, words in ((HELD, "-", "right model"), (_OFF, "--", "inertia 1 % off")):
            result = run(LAWS[name], circumstances=circumstances)
            error = np.degrees(result.error[::20])
            time = PERIOD * 20 * np.arange(len(error))
            axes.plot(time, error, color=COLOURS[name], linestyle=style, linewidth=1.3, label=f"{name}, {words}")
    axes.legend(fontsize=10, loc="upper left")
    dress(axes, "time [s]", "error of the link [deg]", "simulated: joint 1, with feedback every 0.8 ms")
