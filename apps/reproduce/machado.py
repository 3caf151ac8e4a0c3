"""Cases and pictures of Machado et al. 2002: arm, drives, controllers, and measures of the step response.

All numbers of section IV and of Tables I to IV are defined here. The paper leaves three points open: whether the weight
of the arm is compensated (here it is, by G(q)), which part of the contact force is measured (here B x' + K x unless
stated otherwise), and the time axes of its figures. The figures have no numbers, so only the ranking of the controllers
can be compared with the paper. The expected numbers in the tables follow from its equations and were computed
independently.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from apps.reproduce.outcome import Row
from apps.reproduce.planar import Array
from apps.reproduce.style import INK, PALE, dress
from devices.arm.hybrid import FractionalLaw, Hybrid, ProportionalDerivative, ProportionalIntegral, Run, simulate_hybrid
from devices.arm.mechanics.drive import Drive, Motor
from devices.arm.mechanics.dynamics import TwoLinks
from devices.arm.mechanics.plant import Surface
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
    final : float
        Final force, the mean of the last 0.2 s [N].
    rise : float
        Time from 10 % to 90 % of the final force [ms].
    overshoot : float
        Overshoot over the final force [%].
    settling : float
        Time after which the force stays within 5 % of the final force [ms].
    error : float
        Steady-state error, desired less final force [N].
    deviation : float
        Largest motion along the surface [mm].
    """

    final: float
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
        final,
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
        Row(f"{label}: rise time", rise, found.rise, max(0.1 * rise, 1e3 * PERIOD), "ms", "derived"),
        Row(f"{label}: overshoot", overshoot, found.overshoot, max(0.1 * overshoot, 1.0), "%", "derived"),
        Row(f"{label}: settling time", settling, found.settling, max(0.1 * settling, within), "ms", "derived"),
    ]


def error_row(label: str, expected: float, found: Response, tolerance: float) -> Row:
    """Compare the steady-state error of the force with an expected value."""
    return Row(f"{label}: force missing at the end", expected, found.error, tolerance, "N", "derived")


def unstable_row(table: str, run: Run) -> Row:
    """Return the row of a statement of the paper that is not reproduced."""
    label = f"gains of Table {table}: unstable, as the paper says it was (1 = yes)"
    return Row(label, 0, int(run.ran_away), 0.0, "", "derived")


def last_swing(run: Run) -> float:
    """Return the peak-to-peak force in the last 0.5 s [N]."""
    return float(np.ptp(run.rows["force"][-500:]))


def time_of(run: Run) -> Array:
    """Return the sample times of a run [ms]."""
    return np.asarray(1e3 * run.rows["time"])


def feed_through(control: Hybrid) -> float:
    """Return the gain of the force loop through the surface's mass; unstable above 1.

    The gain is K_F M J_x H^-1 J_x^T.
    """
    terms = LINKS.terms(START)[0]
    across = terms["jacobian"][0]  # the plane is vertical: x_c is x
    inertia = terms["inertia"] + np.eye(2) * IDEAL.motor.inertia + SURFACE.mass * np.outer(across, across)
    return float(control.force.weights(PERIOD)[0] * SURFACE.mass * across @ np.linalg.solve(inertia, across))


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
    label = f"{curve.name}: unstable"
    if not curve.run.ran_away:
        found = response(curve.run)
        measures = f"rises {found.rise:.0f} ms, over {found.overshoot:.0f} %, settles {found.settling:.0f} ms"
        label = f"{curve.name}: {measures}"
    axes.plot(time_of(curve.run), values, curve.line, color=curve.colour, linewidth=1.3, label=label)


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
