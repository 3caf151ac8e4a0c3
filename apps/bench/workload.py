"""Measured elements, and their input: strokes and rests like those made by a hand."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.elements.classic import CLASSICS
from haptics.elements.models import (
    CompliantAdmittance,
    Element,
    InertialImpedance,
    MasslessImpedance,
    RigidAdmittance,
)
from haptics.friction.custom_law import friction_law
from haptics.friction.laws import Coulomb, Law, Stribeck

STEPS = 4000
"""Number of steps of a run. The results take several hundred kilobytes and stay in the cache of a core."""

PERIOD = 1e-3
"""Time between two steps [s]."""

_PEAK = {Causality.ADMITTANCE: 7.0, Causality.IMPEDANCE: 0.06}
"""Largest input: force [N] or velocity [m/s]."""

COULOMB = Coulomb(4.0)
"""Default law."""


def rubber(speed: float, static: float = 4.0, kinetic: float = 3.0, width: float = 0.3) -> float:
    """Return the level of a law that decreases with the reciprocal of the speed; also in ``reference.c``."""
    return kinetic + (static - kinetic) / (1.0 + speed / width)


@functools.cache
def laws() -> tuple[Law, ...]:
    """Return the measured laws.

    The law `rubber` is compiled here.
    """
    return COULOMB, Stribeck(3.0, 4.0, 0.3), friction_law(rubber)()


def elements() -> list[Element]:
    """Return all combinations of the four elements and the laws."""
    return [element for law in laws() for element in _elements_under(law)]


def plainest(causality: Causality) -> Element:
    """Return the simplest of the four elements of a causality with Coulomb's law: model A or C."""
    found = (element for element in _elements_under(COULOMB) if element.causality is causality)
    return next(element for element in found if element.model in {"A", "C"})


def _elements_under(law: Law) -> list[Element]:
    mass, coupling = 2.0, {"stiffness": 6000.0, "damping": 10.0}
    return [
        RigidAdmittance(law, mass),
        InertialImpedance(law, mass=0.3, **coupling),
        MasslessImpedance(law, **coupling),
        CompliantAdmittance(law, mass, **coupling),
    ]


def classic_elements() -> list[Element]:
    """Return all classic models with Coulomb's law and their default parameters."""
    return [cls(COULOMB) for forms in CLASSICS.values() for cls in forms.values()]  # type: ignore[call-arg]


def stroke(time: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a motion between -1 and 1 at `time` [s].

    It oscillates once per second, with a quarter of the time at rest.

    It oscillates once per second, with a quarter of the time at rest.
    """
    wave = np.sin(2.0 * np.pi * time)
    return np.asarray(np.sign(wave) * np.maximum(np.abs(wave) - 0.38, 0.0) / 0.62)


def inputs(causality: Causality) -> NDArray[np.float64]:
    """Return the input of a run, (`STEPS`, 2): forces [N] or velocities [m/s] of changing direction."""
    time = PERIOD * np.arange(STEPS, dtype=np.float64)
    angle = 0.3 + 0.5 * time
    size = _PEAK[causality] * stroke(time)
    return np.stack((size * np.cos(angle), size * np.sin(angle)), axis=1)
