"""Constraints and hypothesis strategies for the tests of laws and elements.

Symbols follow Kikuuwe et al. 2006, sections III-A to III-D.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from haptics import Asymmetric, Elliptic, Law, Simulation
from haptics.elements.models import CompliantAdmittance, InertialImpedance, MasslessImpedance, RigidAdmittance
from haptics.friction.laws import Coulomb, CoulombViscous, DeadZoneViscous, GaussianStribeck, Stribeck
from tests.haptics.references import EPS, Array, fullness, norms, rubber, steepest

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
PLANAR: dict[str, Law] = {"elliptic": Elliptic(5.0, 3.0, 0.4, 2.0), "asymmetric": Asymmetric(5.0, 3.0, 4.0, -0.3, 1.0)}
"""Laws that exist in the plane only."""
PHYSICS = settings(deadline=None, max_examples=25, derandomize=True)


@dataclass(frozen=True)
class Grip:
    """Mass [kg], stiffness [N/m], damping [N s/m] and period [s] of an element; each model uses its own subset."""

    mass: float = 0.3
    stiffness: float = 6000.0
    damping: float = 10.0
    period: float = 1e-3


def make(kind, law, grip=None):
    """Build the element under test for the paper's model letter `kind`."""
    g = grip or Grip()
    if kind == "A":
        return RigidAdmittance(law, g.mass, g.period)
    if kind == "B":
        return InertialImpedance(law, g.mass, g.stiffness, g.damping, g.period)
    if kind == "C":
        return MasslessImpedance(law, g.stiffness, g.damping, g.period)
    return CompliantAdmittance(law, g.mass, g.stiffness, g.damping, g.period)


def stepped(element, inputs):
    """Step `element` through `inputs` and collect its state after each step."""
    rows = [
        (element.step(value), element.friction_force, element.displacement, element.velocity, element.sticking)
        for value in inputs
    ]
    return Simulation(*map(np.array, zip(*rows, strict=True)))


def before(rows, initial=None):
    """Rows one step earlier."""
    return np.vstack([np.zeros((1, 2)) if initial is None else initial[None], rows[:-1]])


def equations(kind, g, inputs, run, v0):
    """Return the residual of each equation of the model [N or m/s], (n, 2) each, from rest length and `v0`."""
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


def largest(rows):
    """Largest length of the rows."""
    return float(norms(rows).max())


def energy_balance(kind, g, inputs, run):
    """Energy taken in less energy stored after each step, (n,) [J], divided by the stored energy above 1 J."""
    taken = np.cumsum((inputs * run.output).sum(axis=1)) * g.period
    mass_velocity = {"A": run.output, "B": run.velocity, "C": 0.0 * inputs, "D": run.output}[kind]
    held = 0.5 * g.stiffness * norms(run.displacement) ** 2 + 0.5 * g.mass * norms(mass_velocity) ** 2
    return np.asarray((taken - held) / np.maximum(1.0, held))


def wandering(kind, count=3000, seed=1):
    """Random smooth planar input (count, 2) that makes `kind` stick and slide: forces [N] or velocities [m/s]."""
    generator = np.random.default_rng(seed)
    noise = generator.standard_normal((count, 2))
    smooth = np.zeros((count, 2))
    for k in range(1, count):
        smooth[k] = 0.98 * smooth[k - 1] + 0.2 * noise[k]
    envelope = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(count) / 600.0)
    scale = 8.0 if kind in "AD" else 0.08
    return np.asarray(scale * envelope[:, None] * smooth + 0.02 * scale * noise)


def log_floats(low, high):
    """Floats whose logarithm is spread over [low, high]."""
    return st.floats(np.log10(low), np.log10(high)).map(lambda exponent: float(10.0**exponent))


def vectors(lengths):
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


def laws():
    """Any isotropic law."""
    return st.one_of(*FAMILIES.values())


EACH = settings(PHYSICS, max_examples=7)
"""Enough for tests that try all `REACHES` in each example, once for each family of laws."""
_BESIDE_THE_EDGE = (EPS, 1e-12, 1e-9, 1e-6, 1e-3)
REACHES = np.array(
    [
        *(0.0, 1e-12, 1e-6, 0.2, 0.7, 0.95),
        *(1.0 - distance for distance in _BESIDE_THE_EDGE),
        *(1.0 + distance for distance in _BESIDE_THE_EDGE),
        *(1.05, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, 1e4, 1e6),
    ]
)
"""How far arguments of Phi_Z reach, from deep stick to fast slip; 1 is the edge of stick."""
_SHARE, _ANGLE = st.just(1.0) | log_floats(0.1, 1.0), st.floats(-6.2, 6.2)
_STRONG = log_floats(0.5, 50.0)
PLANAR_FAMILIES: dict[str, st.SearchStrategy[Law]] = {
    "elliptic": st.builds(lambda f, q, a, d: Elliptic(f, f * q, a, d), _STRONG, _SHARE, _ANGLE, _VISCOSITY),
    "upright": st.builds(lambda f, q, d: Elliptic(f * q, f, 0.0, d), _STRONG, _SHARE, _VISCOSITY),
    "asymmetric": st.builds(
        lambda f, q, p, a, d: Asymmetric(f * q, f, f * p, a, d), _STRONG, _SHARE, _SHARE, _ANGLE, _VISCOSITY
    ),
}
"""Laws of the plane by their kind; their axes differ by up to ten."""
ALL_FAMILIES = FAMILIES | PLANAR_FAMILIES
every_family = pytest.mark.parametrize("family", ALL_FAMILIES)
isotropic_family = pytest.mark.parametrize("family", FAMILIES)
planar_family = pytest.mark.parametrize("family", PLANAR_FAMILIES)


@dataclass(frozen=True)
class Contact:
    """Friction forces (m, 2), sliding velocities (m, 2) and whether they stick (m,)."""

    force: Array
    velocity: Array
    sticking: NDArray[np.bool_]


@dataclass(frozen=True)
class Meeting:
    """A law and a mass [kg] that slides on it, stepped every millisecond."""

    law: Law
    mass: float

    @property
    def mobility(self):
        """The Z [m/(N s)] with which the mass meets the law."""
        return 1e-3 / self.mass

    def arguments(self, dimensions=2):
        """Arguments of Phi_Z [m/s] from deep stick to fast slip, (m, dimensions), the edge of stick included."""
        directions = np.random.default_rng(1).normal(size=(len(REACHES), dimensions))
        directions[: 2 * dimensions] = np.vstack([np.eye(dimensions), -np.eye(dimensions)])
        directions = np.random.default_rng(2).permutation(directions)
        fullnesses = [fullness(self.law, d) for d in directions]
        return np.asarray(REACHES[:, None] * self.mobility * directions / np.array(fullnesses)[:, None])

    def answers(self, arguments):
        """Let a rigid mass meet the law at each of the (m, 2) `arguments`."""
        element = RigidAdmittance(self.law, self.mass)
        rows = []
        for x in arguments:
            element.reset(velocity=x)
            element.step((0.0, 0.0))
            rows.append((element.friction_force, element.velocity, element.sticking))
        return Contact(*map(np.array, zip(*rows, strict=True)))


@st.composite
def meetings(draw, family, share=0.9):
    """Draw a law of a `family`, and a mobility up to `share` of the limit of (15)."""
    law = draw(ALL_FAMILIES[family])
    ceiling = min(1.0, share * steepest(law))
    return Meeting(law, 1e-3 / draw(log_floats(min(1e-5, 0.5 * ceiling), ceiling)))
