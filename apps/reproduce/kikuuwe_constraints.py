"""Kikuuwe et al. 2006, (26), (36), (38), (45): solution of the implicit equations, and passivity.

All four models receive the same kind of random planar input, with four laws. The residuals of their discrete equations
are then computed from their outputs, independently of the solution method of the models.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import haptics
from apps.reproduce.outcome import Bound, Outcome, Row, derived
from apps.reproduce.planar import Array, norms
from apps.reproduce.style import BLUE, GREEN, INK, ORANGE, PINK, dress

PERIOD, MASS, STIFFNESS, DAMPING = 1e-3, 0.3, 6000.0, 10.0
STEPS = 3000
EXACT = 2e-12

LAWS: tuple[haptics.Law, ...] = (
    haptics.Coulomb(4.0),
    haptics.CoulombViscous(4.0, 8.0),
    haptics.Stribeck(4.0, 5.0, 0.1),
    haptics.Stribeck(4.0, 5.0, 0.1, viscosity=3.0),
)
MODELS = ("A", "B", "C", "D")
EQUATIONS = {"A": "(12)", "B": "(29), (31)", "C": "(40)", "D": "(40), (41)"}
COLOURS = dict(zip(MODELS, (BLUE, GREEN, ORANGE, PINK), strict=True))


def element(model: str, law: haptics.Law, stiffness: float = STIFFNESS, mass: float = MASS) -> haptics.Element:
    """Create the element of a model."""
    if model == "A":
        return haptics.RigidAdmittance(law, mass, PERIOD)
    if model == "B":
        return haptics.InertialImpedance(law, mass, stiffness, DAMPING, PERIOD)
    if model == "C":
        return haptics.MasslessImpedance(law, stiffness, DAMPING, PERIOD)
    return haptics.CompliantAdmittance(law, mass, stiffness, DAMPING, PERIOD)


def wandering(model: str, seed: int) -> Array:
    """Return a random planar input (n, 2) under which `model` sticks and slides, [N] or [m/s]."""
    noise = np.random.default_rng(seed).standard_normal((STEPS, 2))
    smooth = np.zeros((STEPS, 2))
    for k in range(1, STEPS):
        smooth[k] = 0.98 * smooth[k - 1] + 0.2 * noise[k]
    swell = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(STEPS) / 600.0)
    return np.asarray((8.0 if model in "AD" else 0.08) * (swell[:, None] * smooth + 0.02 * noise))


def change(values: Array) -> Array:
    """Return the rate of change of `values` (n, 2), starting from zero."""
    return np.diff(values, axis=0, prepend=np.zeros((1, 2))) / PERIOD


def residuals(model: str, given: Array, run: haptics.Simulation) -> tuple[float, float]:
    """Return the maximum residuals of the motion and coupling [N], and of the sliding velocity [m/s]."""
    e, f, v = run.displacement, run.friction_force, run.velocity
    spring = STIFFNESS * e + DAMPING * change(e)
    if model == "A":
        return worst(MASS * change(v) - (given - f)), worst(run.output - v)
    if model == "B":
        balance = MASS * change(v) - (run.output - f)
        return max(worst(balance), worst(run.output - spring)), worst(given - change(e) - v)
    if model == "C":
        return max(worst(f - spring), worst(run.output - f)), worst(given - change(e) - v)
    balance = MASS * change(run.output) - (given - f)
    return max(worst(balance), worst(f - spring)), worst(run.output - change(e) - v)


def worst(rows: Array) -> float:
    """Return the norm of the longest row."""
    return float(norms(rows).max())


def inclusion(law: haptics.Law, run: haptics.Simulation) -> float:
    """Return the maximum distance of force and velocity from the law [N].

    While sliding, the force must be the law's force; at rest it must be at most F.
    """
    sliding = norms(run.friction_force - law(run.velocity))[~run.sticking]
    beyond = np.maximum(norms(run.friction_force)[run.sticking] - law.breakaway_force, 0.0)
    moved = norms(run.velocity)[run.sticking]
    return float(max(sliding.max(), beyond.max(), moved.max()))


def reproduce() -> Outcome:
    """Run all models with all laws, and check their equations and energies."""
    rows: list[Row] = []
    energies: dict[str, Array] = {}
    for model in MODELS:
        motion, speed, law_error, lowest, power = 0.0, 0.0, 0.0, np.inf, np.inf
        for seed, law in enumerate(LAWS):
            given = wandering(model, seed)
            run = haptics.simulate(element(model, law), given)
            found = residuals(model, given, run)
            motion, speed = max(motion, found[0]), max(speed, found[1])
            law_error = max(law_error, inclusion(law, run))
            energy = np.cumsum(PERIOD * np.sum(given * run.output, axis=1))  # supplied up to every step
            lowest = min(lowest, float(energy.min()))
            power = min(power, float(np.sum(run.friction_force * run.velocity, axis=1).min()))
            energies.setdefault(model, energy)
        where = f"model {model}, 4 laws, {STEPS} steps each"
        rows += [
            Row(f"{where}: worst residual of {EQUATIONS[model]}", 0.0, motion, EXACT, "N"),
            Row(f"{where}: sliding velocity against its definition", 0.0, speed, EXACT, "m/s"),
            Row(f"{where}: worst distance of force and velocity from the law", 0.0, law_error, EXACT, "N"),
            derived(f"{where}: least energy taken in so far", Bound(minimum=0.0), lowest, 1e-15, "J"),
            Row(f"{where}: least power of the friction", Bound(minimum=0.0), power, 0.0, "W"),
        ]
    given = wandering("A", 0)
    rigid = haptics.simulate(element("A", LAWS[0]), given).output
    stiffnesses = [10.0**exponent for exponent in range(5, 11)]
    distances = {k: worst(haptics.simulate(element("D", LAWS[0], k), given).output - rigid) for k in stiffnesses}
    given = wandering("B", 0)
    massless = haptics.simulate(element("C", LAWS[0]), given).output
    without_mass = haptics.simulate(element("B", LAWS[0], mass=0.0), given).output
    rows += [
        Row("model D with K = 1e10 N/m against model A", 0.0, distances[1e10], 1e-6, "m/s"),
        derived(
            "model D against model A: gain from ten times the stiffness", 10.0, distances[1e9] / distances[1e10], 0.5
        ),
        Row("model B without mass against model C", 0.0, worst(massless - without_mass), 1e-14, "N"),
    ]
    return Outcome(rows, lambda figure: _draw(figure, energies, distances))


def _draw(figure: Figure, energies: dict[str, Array], distances: dict[float, float]) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(1.4, 1.0))
    time = PERIOD * np.arange(1, STEPS + 1)
    for model, energy in energies.items():
        left.plot(
            time, energy / energy[-1], color=COLOURS[model], linewidth=1.4, label=f"model {model}: {energy[-1]:.2g} J"
        )
    left.axhline(0.0, color=INK, linewidth=0.7)
    left.legend(fontsize=10, title="all of it")
    dress(
        left, "time [s]", "energy taken in, as a part of all", "random input: energy goes in, none comes out on balance"
    )
    right.loglog(list(distances), list(distances.values()), "o-", color=BLUE)
    dress(
        right, "stiffness K of model D [N/m]", "largest difference of the velocities [m/s]", "model D becomes model A"
    )
    figure.suptitle("the four models under a random planar input (Coulomb friction of 4 N)", color=INK)
