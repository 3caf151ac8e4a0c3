"""Kinds and step kernels of the classic friction models.

`haptics.elements.classic.models` defines the classes. The steps are implemented in
`haptics.elements.classic.rigid_kernels` and `haptics.elements.classic.bristle_kernels`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from haptics.elements.classic.bristle_kernels import step_bristle, step_creep, step_elastoplastic, step_iwan, step_reset
from haptics.elements.classic.rigid_kernels import EXPLICIT, KARNOPP, QUINN, RAMP, step_applied, step_mass, step_pulled
from haptics.jit import kernel

FIRST_CLASSIC = 10
"""First kind of a classic model; smaller numbers are reserved for models A to D."""

CLASSIC_NUMBERS = 8
"""Maximum number of additional parameters of a classic model."""

MEMORY = 32
"""Maximum number of additional state variables of a classic model."""

EXPLICIT_ADMITTANCE = FIRST_CLASSIC + EXPLICIT
RAMP_ADMITTANCE = FIRST_CLASSIC + RAMP
KARNOPP_ADMITTANCE = FIRST_CLASSIC + KARNOPP
QUINN_ADMITTANCE = FIRST_CLASSIC + QUINN

EXPLICIT_IMPEDANCE = 14 + EXPLICIT
RAMP_IMPEDANCE = 14 + RAMP
KARNOPP_IMPEDANCE = 14 + KARNOPP
QUINN_IMPEDANCE = 14 + QUINN

BRISTLE = 18
ELASTOPLASTIC = 19
HAYWARD_ARMSTRONG = 20
RESET_INTEGRATOR = 21
IWAN = 22


def _of_rule(step: Callable[..., None], rule: int) -> Callable[..., None]:
    """Return the step kernel for one of the rules that depend on velocity and force."""

    @kernel
    def step_rule(s: Any, x: float, y: float) -> None:
        step(s, rule, x, y)

    return step_rule


CLASSIC_STEPS: dict[int, Callable[..., None]] = {
    EXPLICIT_ADMITTANCE: _of_rule(step_mass, EXPLICIT),
    RAMP_ADMITTANCE: _of_rule(step_mass, RAMP),
    KARNOPP_ADMITTANCE: _of_rule(step_mass, KARNOPP),
    QUINN_ADMITTANCE: _of_rule(step_mass, QUINN),
    EXPLICIT_IMPEDANCE: _of_rule(step_applied, EXPLICIT),
    RAMP_IMPEDANCE: _of_rule(step_applied, RAMP),
    KARNOPP_IMPEDANCE: _of_rule(step_pulled, KARNOPP),
    QUINN_IMPEDANCE: _of_rule(step_pulled, QUINN),
    BRISTLE: step_bristle,
    ELASTOPLASTIC: step_elastoplastic,
    HAYWARD_ARMSTRONG: step_creep,
    RESET_INTEGRATOR: step_reset,
    IWAN: step_iwan,
}
"""Step kernel ``(record, x, y)`` of every classic model, which advances it by one period."""
