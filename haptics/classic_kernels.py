"""The steps of the classic friction models as kernels; `haptics.classic` has the classes and their sources.

Here is only the numbering; the steps are in `haptics.classic_rigid_kernels` and `haptics.classic_bristle_kernels`.
"""

from __future__ import annotations

from typing import Any

from haptics._jit import kernel
from haptics.classic_bristle_kernels import step_bristle, step_creep, step_elastoplastic, step_iwan, step_reset
from haptics.classic_rigid_kernels import EXPLICIT, KARNOPP, QUINN, RAMP, step_applied, step_mass, step_pulled

FIRST_CLASSIC = 10
"""The kinds of the classic models begin here; below are models A to D."""

CLASSIC_NUMBERS = 8
"""Room for the parameters that only a classic model has."""

MEMORY = 32
"""Room for the state that only a classic model has."""

EXPLICIT_ADMITTANCE = FIRST_CLASSIC + EXPLICIT
RAMP_ADMITTANCE = FIRST_CLASSIC + RAMP
KARNOPP_ADMITTANCE = FIRST_CLASSIC + KARNOPP
QUINN_ADMITTANCE = FIRST_CLASSIC + QUINN

_FIRST_IMPEDANCE = 14
EXPLICIT_IMPEDANCE = _FIRST_IMPEDANCE + EXPLICIT
RAMP_IMPEDANCE = _FIRST_IMPEDANCE + RAMP
KARNOPP_IMPEDANCE = _FIRST_IMPEDANCE + KARNOPP
QUINN_IMPEDANCE = _FIRST_IMPEDANCE + QUINN

BRISTLE = 18
ELASTOPLASTIC = 19
HAYWARD_ARMSTRONG = 20
RESET_INTEGRATOR = 21
IWAN = 22


@kernel
def step_classic(s: Any, x: float, y: float) -> None:
    """Advance the classic element in record `s` by one period under the input (x, y)."""
    kind = s.model
    if kind < _FIRST_IMPEDANCE:
        step_mass(s, kind - FIRST_CLASSIC, x, y)
    elif kind <= RAMP_IMPEDANCE:
        step_applied(s, kind - _FIRST_IMPEDANCE, x, y)
    elif kind <= QUINN_IMPEDANCE:
        step_pulled(s, kind - _FIRST_IMPEDANCE, x, y)
    elif kind == BRISTLE:
        step_bristle(s, x, y)
    elif kind == ELASTOPLASTIC:
        step_elastoplastic(s, x, y)
    elif kind == HAYWARD_ARMSTRONG:
        step_creep(s, x, y)
    elif kind == RESET_INTEGRATOR:
        step_reset(s, x, y)
    else:
        step_iwan(s, x, y)
