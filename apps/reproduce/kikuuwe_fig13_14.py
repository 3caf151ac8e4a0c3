"""Kikuuwe et al. 2006, Figs. 12 to 14: models B and D, and their simpler alternatives with one step of delay.

The paper warns of both alternatives, Figs. 12(a) and (b). They have the same characteristic polynomial, z^2 - (2 - a -
b) z + (1 - b) with a = T^2 K/M and b = T B/M: the first while it slides, the second while it sticks, (63). Both loops
are implemented here without a device, because the step of delay between their parts is the effect to show.

Fig. 13 is model B on a velocity ramp. Its caption prints the damping as B = 2 sqrt(K/M); the critical damping of
section IV-C is B = 2 sqrt(K M). At 1 kg both are equal. Fig. 14 is model D sliding to rest.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from apps.reproduce.outcome import Bound, Outcome, Row, derived
from apps.reproduce.planar import Array, along_x
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, dress
from haptics import CompliantAdmittance, Coulomb, InertialImpedance, MasslessImpedance, RigidAdmittance, simulate

MASS, FRICTION, PERIOD, RAMP = 1.0, 10.0, 1e-3, 0.1
STIFFNESSES = (8.3e4, 2.5e5, 7.5e5)
COLOURS = dict(zip(STIFFNESSES, (GREEN, BLUE, ORANGE), strict=True))
COUNT = 500

_PEAKS = dict(zip(STIFFNESSES, (10.488, 10.456, 10.403), strict=True))
_GROWTH = {0.2: 84.0, 0.3: 126.0, 0.4: 168.0, 0.5: 211.0}
"""Peak-to-peak force [N] of the stiff alternative in the 0.1 s before each time [s]."""


def critical_damping(stiffness: float) -> float:
    """Return the critical damping B = 2 sqrt(K M) [N s/m]."""
    return 2.0 * math.sqrt(stiffness * MASS)


def reproduce_fig13() -> Outcome:
    """Apply the same ramp to model B and its alternative."""
    pull = along_x(RAMP * PERIOD * np.arange(1, COUNT + 1))
    ours: dict[float, Array] = {}
    alternative: dict[float, Array] = {}
    rows: list[Row] = []
    for stiffness in STIFFNESSES:
        damping = critical_damping(stiffness)
        run = simulate(InertialImpedance(Coulomb(FRICTION), MASS, stiffness, damping, PERIOD), pull)
        force = ours[stiffness] = run.output[:, 0]
        first = (int(np.argmin(run.sticking)) + 1) * PERIOD
        # Until break-away the spring-damper has the force K a t^2/2 + B a t on the ramp u = a t.
        breakaway = (math.sqrt(damping**2 + 2.0 * stiffness * FRICTION / RAMP) - damping) / stiffness
        end, last = FRICTION + MASS * RAMP, force[-100:]
        where = f"model B, K = {stiffness:.1e} N/m"
        rows += [
            derived(f"{where}: time of the step at which it breaks away", breakaway, first, PERIOD, "s"),
            derived(f"{where}: peak force", _PEAKS[stiffness], force.max(), 5e-4, "N"),
            derived(f"{where}: force in the last 0.1 s, F + M a", end, last[np.argmax(np.abs(last - end))], 1e-9, "N"),
            Row(f"{where}: peak to peak in the last 0.1 s", 0.0, np.ptp(last), 5e-13, "N"),
        ]
        body = RigidAdmittance(Coulomb(FRICTION), MASS, PERIOD)
        alternative[stiffness] = pulled_mass(body, stiffness, damping, pull)[0][:, 0]
    for stiffness in STIFFNESSES[:2]:
        swing = float(np.ptp(alternative[stiffness][-100:]))
        rows.append(Row(f"alternative, K = {stiffness:.1e} N/m: peak to peak in the last 0.1 s", 0.0, swing, 1e-9, "N"))
    stiff = alternative[STIFFNESSES[2]]
    where = f"alternative, K = {STIFFNESSES[2]:.1e} N/m"
    rows.append(Row(f"{where}: peak to peak before 0.4 s", Bound(minimum=100.0), np.ptp(stiff[300:400]), 0.0, "N"))
    for time, expected in _GROWTH.items():
        stop = round(time / PERIOD)
        swing = float(np.ptp(stiff[stop - 100 : stop]))
        rows.append(derived(f"{where}: peak to peak in the 0.1 s before {time:g} s", expected, swing, 1.0, "N"))
    return Outcome(rows, lambda figure: _draw_fig13(figure, ours, alternative))


def _draw_fig13(figure: Figure, ours: dict[float, Array], alternative: dict[float, Array]) -> None:
    axes = figure.subplots(2, 2)
    pairs = ((ours, "model B"), (alternative, "alternative, Fig. 12(a): spring-damper and model A, one step late"))
    for (above, below), (forces, title) in zip(axes.T, pairs, strict=True):
        for panel, end, extent, words in (
            (above, 0.1, (0.0, 32.0), title),
            (below, COUNT * PERIOD, (-115.0, 125.0), "the whole of it"),
        ):
            _curves(panel, PERIOD * np.arange(1, COUNT + 1), forces, "force h [N]", words)
            panel.set_xlim(0.0, end)
            panel.set_ylim(extent)
    axes[0, 0].axhline(FRICTION + MASS * RAMP, color=INK, linewidth=0.8, linestyle=":")
    place = (0.099, FRICTION + MASS * RAMP)
    axes[0, 0].annotate("F + M a = 10.1 N", place, (0, 6), textcoords="offset points", ha="right", fontsize=10)
    axes[0, 0].legend(loc="upper right", fontsize=10)
    figure.suptitle(
        "Fig. 13: force on the puller; u = 0.1 t m/s, F = 10 N, M = 1 kg, B = 2 sqrt(K M), T = 1 ms", color=INK
    )


def _curves(axes: Axes, time: ArrayLike, values: dict[float, Array], label: str, title: str) -> None:
    for stiffness in reversed(STIFFNESSES):
        axes.plot(time, values[stiffness], color=COLOURS[stiffness], linewidth=1.1, label=f"K = {stiffness:.1e} N/m")
    dress(axes, "time [s]", label, title)


REST_FRICTION, START = 7.0, 1.0
REST_COUNT = 400

_UNDERSHOOTS = dict(zip(STIFFNESSES, (-7.9e-3, -4.2e-3, -2.1e-3), strict=True))
_SWING = dict(zip(STIFFNESSES, (0.0, 0.0, 7e-3), strict=True))


def reproduce_fig14() -> Outcome:
    """Simulate model D and its alternative sliding from 1 m/s."""
    exact = MASS * START / REST_FRICTION
    ours: dict[float, Array] = {}
    alternative: dict[float, Array] = {}
    rows: list[Row] = []
    for stiffness in STIFFNESSES:
        damping = critical_damping(stiffness)
        element = CompliantAdmittance(Coulomb(REST_FRICTION), MASS, stiffness, damping, PERIOD)
        element.reset(velocity=(START, 0.0))
        velocity = ours[stiffness] = simulate(element, np.zeros((REST_COUNT, 2))).output[:, 0]
        slow = (int(np.argmax(np.abs(velocity) < 1e-3)) + 1) * PERIOD
        where = f"model D, K = {stiffness:.1e} N/m"
        rows += [
            derived(f"{where}: slower than 1 mm/s for the first time (rigid body: M u/F)", exact, slow, PERIOD, "s"),
            derived(f"{where}: the same, to the step", 0.143, slow, 1e-9, "s"),
            derived(f"{where}: undershoot", _UNDERSHOOTS[stiffness], velocity.min(), 6e-5, "m/s"),
            Row(f"{where}: largest speed in the last 0.1 s", 0.0, np.abs(velocity[-100:]).max(), 1e-8, "m/s"),
        ]
        contact = MasslessImpedance(Coulomb(REST_FRICTION), stiffness, damping, PERIOD)
        alternative[stiffness] = mass_on_contact(contact, MASS, START, REST_COUNT)
    for stiffness, expected in _SWING.items():
        last, where = alternative[stiffness][-100:], f"alternative, K = {stiffness:.1e} N/m"
        tolerance = 5e-4 if expected else 1e-9
        rows.append(derived(f"{where}: peak to peak in the last 0.1 s", expected, np.ptp(last), tolerance, "m/s"))
        if expected:
            turns = int(np.count_nonzero(np.diff(np.sign(last))))
            rows.append(derived(f"{where}: changes of sign in the last 0.1 s", 99, turns))
    return Outcome(rows, lambda figure: _draw_fig14(figure, ours, alternative))


def _draw_fig14(figure: Figure, ours: dict[float, Array], alternative: dict[float, Array]) -> None:
    axes = figure.subplots(2, 2, sharex="row", sharey="row")
    for column, (title, speeds) in enumerate(
        (("model D", ours), ("alternative, Fig. 12(b): mass and model C, one step late", alternative))
    ):
        for panel, scale, unit, words in zip(
            axes[:, column], (1.0, 1e3), ("m/s", "mm/s"), (title, "the end of it, enlarged"), strict=True
        ):
            scaled = {stiffness: scale * np.append(START, velocity) for stiffness, velocity in speeds.items()}
            _curves(panel, PERIOD * np.arange(REST_COUNT + 1), scaled, f"velocity u [{unit}]", words)
    axes[0, 0].set_xlim(0.0, 0.25)
    axes[1, 0].set(xlim=(0.135, 0.25), ylim=(-10.0, 20.0))
    axes[0, 0].legend(loc="upper right", fontsize=10)
    figure.suptitle("Fig. 14: from u = 1 m/s with h = 0; F = 7 N, M = 1 kg, B = 2 sqrt(K M), T = 1 ms", color=INK)


def pulled_mass(body: RigidAdmittance, stiffness: float, damping: float, pull: Array) -> tuple[Array, Array]:
    """Simulate Fig. 12(a), the alternative of model B: a spring-damper and model A, one step late.

    Parameters
    ----------
    body : RigidAdmittance
        Body, stepped from its present state.
    stiffness, damping : float
        Parameters of the spring-damper [N/m], [N s/m].
    pull : (n, 2) array
        Velocity of its other end [m/s].

    Returns
    -------
    force, velocity : (n, 2) arrays
        Force of the spring-damper [N] and velocity of the body [m/s] at every step.
    """
    stretch, velocity = np.zeros(2), body.velocity
    forces, velocities = np.empty_like(pull), np.empty_like(pull)
    for k, u in enumerate(pull):
        relative = u - velocity
        stretch = stretch + body.period * relative
        forces[k] = stiffness * stretch + damping * relative
        velocities[k] = velocity = body.step(forces[k])
    return forces, velocities


def mass_on_contact(contact: MasslessImpedance, mass: float, velocity: float, count: int) -> Array:
    """Simulate Fig. 12(b) and (60), the alternative of model D: a free mass with model C one step late.

    Parameters
    ----------
    contact : MasslessImpedance
        Contact, stepped from its present state. Its present force acts on the mass in the first step.
    mass : float
        Mass [kg].
    velocity : float
        Initial velocity along x [m/s].
    count : int
        Number of steps n.

    Returns
    -------
    (n,) array
        Velocity along x after every step [m/s].
    """
    u, friction = np.array((velocity, 0.0)), contact.friction_force
    speeds = np.empty(count)
    for k in range(count):
        u = u - contact.period / mass * friction
        friction = contact.step(u)
        speeds[k] = u[0]
    return speeds
