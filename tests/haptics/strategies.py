"""What the friction tests share: elements solved by other means, their constraints, hypothesis strategies.

The reference never uses the recursions of the paper. It writes the discrete equations of each model as one linear
system, finds from it how the sliding velocity depends on the friction force, and leaves the friction law to
`references`. Symbols are those of Kikuuwe et al. 2006, sections III-A to III-D.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from haptics import (
    Asymmetric,
    CompliantAdmittance,
    Coulomb,
    CoulombViscous,
    DeadZoneViscous,
    Elliptic,
    GaussianStribeck,
    InertialImpedance,
    Law,
    MasslessImpedance,
    RigidAdmittance,
    Stribeck,
)

from .references import Array, fullness, norms, reference_implicit, rubber

Element = RigidAdmittance | InertialImpedance | MasslessImpedance | CompliantAdmittance

KINDS = ("A", "B", "C", "D")
LAWS: dict[str, Law] = {
    "coulomb": Coulomb(4.0),
    "viscous": CoulombViscous(4.0, 8.0),
    "stribeck": Stribeck(4.0, 5.0, 0.1, 3.0),
    "gaussian": GaussianStribeck(4.0, 5.0, 0.1, 3.0),
    "dead-zone": DeadZoneViscous(4.0, 8.0, 0.05),
    "custom": rubber(static=5.0, kinetic=4.0, width=0.1, viscosity=3.0),
}
"""Isotropic laws, one of each kind, that every model of the grip below can solve."""

PLANAR: dict[str, Law] = {
    "elliptic": Elliptic(5.0, 3.0, 0.4, 2.0),
    "asymmetric": Asymmetric(5.0, 3.0, 4.0, -0.3, 1.0),
}
"""Laws that exist in the plane only."""

PHYSICS = settings(deadline=None, max_examples=25, derandomize=True)


@dataclass(frozen=True)
class Grip:
    """Mass [kg], stiffness [N/m], damping [N s/m] and period [s] of an element; a model takes what it needs."""

    mass: float = 0.3
    stiffness: float = 6000.0
    damping: float = 10.0
    period: float = 1e-3


def make(kind: str, law: Law, grip: Grip | None = None) -> Element:
    """Build the element under test for the paper's model letter `kind`."""
    g = grip or Grip()
    if kind == "A":
        return RigidAdmittance(law, g.mass, g.period)
    if kind == "B":
        return InertialImpedance(law, g.mass, g.stiffness, g.damping, g.period)
    if kind == "C":
        return MasslessImpedance(law, g.stiffness, g.damping, g.period)
    return CompliantAdmittance(law, g.mass, g.stiffness, g.damping, g.period)


@dataclass(frozen=True)
class Run:
    """A trajectory: (n, 2) arrays and the (n,) array `sticking`."""

    output: Array
    friction_force: Array
    displacement: Array
    velocity: Array
    sticking: NDArray[np.bool_]


def stepped(element: Element, inputs: Array) -> Run:
    """Step `element` through `inputs` and collect everything it shows after each step."""
    rows = []
    for value in inputs:
        output = element.step(value)
        rows.append(
            (
                np.array(output),
                np.array(element.friction_force),
                np.array(element.displacement),
                np.array(element.velocity),
                bool(element.sticking),
            )
        )
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Run(columns[0], columns[1], columns[2], columns[3], columns[4])


def _system(kind: str, g: Grip) -> tuple[Array, Array]:
    """Return the matrix of the unknowns (v, e, w) and the column of f; w is h for B and u for D, idle otherwise."""
    rate = 1.0 / g.period
    spring = g.stiffness + g.damping * rate
    idle = [0.0, 0.0, 1.0]
    if kind == "A":  # (12)
        return np.array([[g.mass * rate, 0, 0], [0, 1, 0], idle]), np.array([-1.0, 0, 0])
    if kind == "B":  # (31) with (30) inserted, (30), (29)
        return np.array([[g.mass * rate, 0, -1], [1, rate, 0], [0, -spring, 1]]), np.array([-1.0, 0, 0])
    if kind == "C":  # (40), definition of v in (39)
        return np.array([[0, spring, 0], [1, rate, 0], idle]), np.array([1.0, 0, 0])
    return np.array([[0, spring, 0], [1, rate, -1], [0, 0, g.mass * rate]]), np.array([1.0, 0, -1])  # (40) (39) (41)


def _known(kind: str, g: Grip, state: Array, value: Array) -> Array:
    """Return the right-hand side (3, 2) of `_system` for the last (v, e, w) and this input."""
    rate = 1.0 / g.period
    v, e, w = state
    memory = g.damping * rate * e
    zero = np.zeros(2)
    if kind == "A":
        return np.array([value + g.mass * rate * v, zero, zero])
    if kind == "B":
        return np.array([g.mass * rate * v, value + rate * e, -memory])
    if kind == "C":
        return np.array([memory, value + rate * e, zero])
    return np.array([memory, rate * e, value + g.mass * rate * w])


def reference_mobility(kind: str, grip: Grip) -> float:
    """How far the sliding velocity falls per newton of friction, Z [m/(N s)], from the linear equations alone."""
    matrix, column = _system(kind, grip)
    return -float(np.linalg.solve(matrix, column)[0])


def reference_run(kind: str, law: Law, grip: Grip, inputs: Array, velocity: ArrayLike = (0.0, 0.0)) -> Run:
    """Trajectory of model `kind` from rest length and the given initial velocity of its mass."""
    matrix, column = _system(kind, grip)
    inverse = np.linalg.inv(matrix)
    per_force = inverse @ column
    initial = np.asarray(velocity, dtype=float)
    state = np.array([initial, np.zeros(2), initial])
    rows = []
    for value in inputs:
        free = inverse @ _known(kind, grip, state, value)
        force = reference_implicit(law, free[0], -per_force[0])
        state = free + per_force[:, None] * force
        sticking = fullness(law, free[0] / -per_force[0]) <= 1.0
        if sticking:
            state[0] = 0.0
        output = {"A": state[0], "B": state[2], "C": force, "D": state[2]}[kind]
        rows.append((output, force, state[1], state[0], sticking))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Run(columns[0], columns[1], columns[2], columns[3], columns[4])


def before(rows: Array, initial: Array | None = None) -> Array:
    """Rows one step earlier."""
    return np.vstack([np.zeros((1, 2)) if initial is None else initial[None], rows[:-1]])


def equations(kind: str, g: Grip, inputs: Array, run: Run, v0: Array) -> list[Array]:
    """Return what is left over of each equation of the model [N or m/s], (n, 2) each, from rest length and `v0`."""
    e, f, rate = run.displacement, run.friction_force, 1.0 / g.period
    stretch = (e - before(e)) * rate
    spring = g.stiffness * e + g.damping * stretch
    if kind == "A":
        v = run.output
        return [g.mass * rate * (v - before(v, v0)) - (inputs - f), v - run.velocity, e]  # (12)
    if kind == "B":
        v = inputs - stretch  # (30)
        pull = g.mass * rate * (v - before(v, v0))  # left side of (31)
        return [run.output - spring, pull - (run.output - f), v - run.velocity]  # (29), (31)
    if kind == "C":
        return [f - spring, run.output - f, inputs - stretch - run.velocity]  # (40)
    pull = g.mass * rate * (run.output - before(run.output, v0))
    return [f - spring, pull - (inputs - f), run.output - stretch - run.velocity]  # (40), (41)


def largest(rows: Array) -> float:
    """Largest length of the rows."""
    return float(norms(rows).max())


def wandering(kind: str, count: int = 3000, seed: int = 1) -> Array:
    """Random smooth planar input (count, 2) that makes `kind` stick and slide: forces [N] or velocities [m/s]."""
    generator = np.random.default_rng(seed)
    noise = generator.standard_normal((count, 2))
    smooth = np.zeros((count, 2))
    for k in range(1, count):
        smooth[k] = 0.98 * smooth[k - 1] + 0.2 * noise[k]
    envelope = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(count) / 600.0)
    scale = 8.0 if kind in "AD" else 0.08
    return np.asarray(scale * envelope[:, None] * smooth + 0.02 * scale * noise)


def log_floats(low: float, high: float) -> st.SearchStrategy[float]:
    """Floats whose logarithm is spread over [low, high]."""
    return st.floats(np.log10(low), np.log10(high)).map(lambda exponent: float(10.0**exponent))


def vectors(lengths: st.SearchStrategy[float]) -> st.SearchStrategy[Array]:
    """Planar vectors of the given lengths in any direction."""
    angles = st.floats(-np.pi, np.pi)
    return st.builds(lambda length, a: length * np.array([np.cos(a), np.sin(a)]), lengths, angles)


_FORCE, _SPEED = log_floats(0.05, 50.0), log_floats(1e-3, 1.0)
_VISCOSITY, _RATIO = st.just(0.0) | log_floats(0.01, 100.0), st.just(1.0) | st.floats(1.0, 3.0)
FAMILIES: dict[str, st.SearchStrategy[Law]] = {
    "coulomb": st.builds(Coulomb, _FORCE),
    "viscous": st.builds(CoulombViscous, _FORCE, _VISCOSITY),
    "dead-zone": st.builds(DeadZoneViscous, _FORCE, _VISCOSITY, _SPEED),
    "stribeck": st.builds(lambda f, q, v, d: Stribeck(f, f * q, v, d), _FORCE, _RATIO, _SPEED, _VISCOSITY),
    "gaussian": st.builds(lambda f, q, v, d: GaussianStribeck(f, f * q, v, d), _FORCE, _RATIO, _SPEED, _VISCOSITY),
    "custom": st.builds(
        lambda f, q, w, d: rubber(static=f * q, kinetic=f, width=w, viscosity=d), _FORCE, _RATIO, _SPEED, _VISCOSITY
    ),
}
"""Isotropic laws by their kind, with parameters of the physical world."""


def laws() -> st.SearchStrategy[Law]:
    """Any isotropic law."""
    return st.one_of(*FAMILIES.values())
