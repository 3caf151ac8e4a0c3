"""Pictures of Figs. 3 to 10 of Machado et al. 2002, with a common layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.machado_cases import BACKLASH, FORCE, response, time_of
from apps.reproduce.planar import Array
from apps.reproduce.style import INK, PALE, dress
from devices.arm.hybrid import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    axes = figure.subplots(2, 2)
    _forces(axes[0, 0], curves, shown, "force on the surface")
    _forces(axes[0, 1], curves, zoom, "its beginning")
    for curve in reversed([curve for curve in curves if not curve.run.ran_away]):
        _line(axes[1, 0], curve, 1e3 * curve.run.rows["along"])
    axes[1, 0].set_xlim(0.0, shown)
    dress(axes[1, 0], "time [ms]", "y - y$_d$ [mm]", "deviation along the surface")
    _joints(axes[1, 1], inside)
    lines, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines[::-1], labels[::-1], loc="outside lower center", ncols=2, fontsize=10.5, frameon=False)
    figure.suptitle(title, color=INK)


def _line(axes: Axes, curve: Curve, values: Array) -> None:
    axes.plot(time_of(curve.run), values, curve.line, color=curve.colour, linewidth=1.3, label=_label(curve))


def _label(curve: Curve) -> str:
    if curve.run.ran_away:
        return f"{curve.name}: unstable"
    found = response(curve.run)
    return f"{curve.name}: rises {found.rise:.0f} ms, over {found.overshoot:.0f} %, settles {found.settling:.0f} ms"


def _forces(axes: Axes, curves: list[Curve], end: float, title: str) -> None:
    axes.axhspan(0.95 * FORCE, 1.05 * FORCE, color=PALE, alpha=0.18, linewidth=0.0)
    for curve in reversed(curves):
        _line(axes, curve, curve.run.rows["force"])
    axes.set_xlim(0.0, end)
    axes.set_ylim(-0.05, 2.05)
    dress(axes, "time [ms]", "force [N]", f"{title}; grey: 1 N ± 5 %")


def _joints(axes: Axes, inside: Inside) -> None:
    shown = time_of(inside.curve.run) <= inside.shown
    for joint, (line, colour) in enumerate((("-", inside.curve.colour), ("--", INK))):
        x, y = time_of(inside.curve.run)[shown], inside.values[shown, joint]
        axes.plot(x, y, line, color=colour, linewidth=1.1, label=f"joint {joint + 1}")
    axes.set_xlim(0.0, inside.shown)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.2 * (high - low))  # room for the legend
    axes.legend(loc="upper right", ncols=2, fontsize=10, frameon=False)
    dress(axes, "time [ms]", inside.unit, f"{inside.title}; {inside.curve.name}")


def added_torque(run: Run) -> Array:
    """Return the torques (n, 2) [N m] less their final values, which hold the weight and the force."""
    return np.asarray(run.rows["torque"] - run.rows["torque"][-200:].mean(axis=0))


def rotor_ahead(run: Run) -> Array:
    """Return the angles by which the rotors are ahead of their joints (n, 2) [µrad]."""
    return np.asarray(1e6 * (run.rows["rotor"] - run.rows["angle"]))
