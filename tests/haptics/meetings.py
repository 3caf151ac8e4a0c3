"""Laws and the mobilities at which elements meet them: random cases for the tests of laws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from haptics import Asymmetric, Elliptic, Law, RigidAdmittance

from .references import EPS, Array, fullness, steepest
from .strategies import FAMILIES, PHYSICS, log_floats

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


_FORCE, _SHARE, _ANGLE = log_floats(0.5, 50.0), st.just(1.0) | log_floats(0.1, 1.0), st.floats(-6.2, 6.2)
_VISCOSITY = st.just(0.0) | log_floats(0.01, 100.0)
PLANAR_FAMILIES: dict[str, st.SearchStrategy[Law]] = {
    "elliptic": st.builds(lambda f, q, a, d: Elliptic(f, f * q, a, d), _FORCE, _SHARE, _ANGLE, _VISCOSITY),
    "upright": st.builds(lambda f, q, d: Elliptic(f * q, f, 0.0, d), _FORCE, _SHARE, _VISCOSITY),
    "asymmetric": st.builds(
        lambda f, q, p, a, d: Asymmetric(f * q, f, f * p, a, d), _FORCE, _SHARE, _SHARE, _ANGLE, _VISCOSITY
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
    def mobility(self) -> float:
        """The Z [m/(N s)] with which the mass meets the law."""
        return 1e-3 / self.mass

    def arguments(self, dimensions: int = 2) -> Array:
        """Arguments of Phi_Z [m/s] from deep stick to fast slip, (m, dimensions), the edge of stick included."""
        directions = np.random.default_rng(1).normal(size=(len(REACHES), dimensions))
        directions[: 2 * dimensions] = np.vstack([np.eye(dimensions), -np.eye(dimensions)])
        directions = np.random.default_rng(2).permutation(directions)
        fullnesses = [fullness(self.law, d) for d in directions]
        return np.asarray(REACHES[:, None] * self.mobility * directions / np.array(fullnesses)[:, None])

    def answers(self, arguments: Array) -> Contact:
        """Let a rigid mass meet the law at each of the (m, 2) `arguments`."""
        element = RigidAdmittance(self.law, self.mass)
        rows = []
        for x in arguments:
            element.reset(velocity=x)
            element.step((0.0, 0.0))
            rows.append((element.friction_force, element.velocity, element.sticking))
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        return Contact(columns[0], columns[1], columns[2])


@st.composite
def meetings(draw: st.DrawFn, family: str, share: float = 0.9) -> Meeting:
    """Draw a law of a `family`, and a mobility up to `share` of the limit of (15)."""
    law = draw(ALL_FAMILIES[family])
    ceiling = min(1.0, share * steepest(law))
    return Meeting(law, 1e-3 / draw(log_floats(min(1e-5, 0.5 * ceiling), ceiling)))
