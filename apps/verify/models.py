r"""Residuals of the discrete equations of the elements A to D at recorded ticks (Kikuuwe et al. 2006).

Symbols: period T, mass M, stiffness K, damping B, velocity of the end effector u, sliding velocity v, displacement e,
friction force f and external force h. The implicit Euler method requires at every tick k:

=====  ==========================  ==========================================================================
model  equations                   residuals
=====  ==========================  ==========================================================================
A      (12), (13), (26)            M (v_k - v_{k-1})/T - h_k + f_k
B      (29)-(36)                   M (v_k - v_{k-1})/T - h_k + f_k; h_k - K e_k - B (u_k - v_k);
                                   e_k - e_{k-1} - T (u_k - v_k)
C      (38)                        f_k - K e_k - B (u_k - v_k); e_k - e_{k-1} - T (u_k - v_k)
D      (39)-(45)                   M (u_k - u_{k-1})/T - h_k + f_k; f_k - K e_k - B (u_k - v_k);
                                   e_k - e_{k-1} - T (u_k - v_k)
=====  ==========================  ==========================================================================

In all models, f_k must be a force that the law allows at v_k (`apps.verify.laws.inclusion`). The bound of each residual
is `apps.verify.recorded.ROUNDINGS` eps times the sum of its terms' magnitudes. The velocity of an admittance device's
reference is not recorded. It is a difference of references c over a period, which adds a few eps |c|/T to the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.recorded import rounding

Floats = NDArray[np.float64]


@dataclass
class Step:
    """Quantities of an element in several ticks, each (n, 2), before and after the tick.

    Attributes
    ----------
    given : array
        Input of the element: velocity of the end effector [m/s], or applied force [N].
    output : array
        Output of the element: force [N], or velocity of its mass [m/s].
    blur : array
        Error bound of velocities that are differences of references [m/s], (n, 1); zero for impedances.
    mass_before : array
        Velocity of the mass before the tick [m/s]; nan if the element has no mass or it is not recorded.
    stretch_before, stretch : array
        Displacement e before and after [m].
    force, velocity : array
        Friction force [N] and sliding velocity [m/s].
    """

    given: Floats
    output: Floats
    blur: Floats
    mass_before: Floats
    stretch_before: Floats
    stretch: Floats
    force: Floats
    velocity: Floats


@dataclass(frozen=True)
class Equation:
    """Residual of an equation and its rounding bound, (n, 2) each.

    Attributes
    ----------
    name, unit, words : str
        Name, unit, and message for a violation.
    residual, bound : (n, 2) array
        Residual and rounding bound.
    """

    name: str
    unit: str
    words: str
    residual: Floats
    bound: Floats


Element = Mapping[str, float]
Model = Callable[[Step, Element, float], list[Equation]]


def _mass(step: Step, M: float, T: float, after: Floats, pull: Floats, *, blurred: bool) -> Equation:
    """Return the residual of M (v_k - v_{k-1})/T - h + f."""
    residual = M * (after - step.mass_before) / T - pull + step.force
    bound = rounding(M * after / T, M * step.mass_before / T, pull, step.force)
    if blurred:
        bound = bound + 2.0 * M / T * step.blur
    return Equation(
        "balance of the mass", "N", "the mass does not move as the force and the friction say", residual, bound
    )


def _spring(step: Step, K: float, B: float, speed: Floats, force: Floats, blur: Any = 0.0) -> Equation:
    """Return the residual of F - K e_k - B (u_k - v_k)."""
    v, e = step.velocity, step.stretch
    residual = force - K * e - B * (speed - v)
    bound = rounding(force, K * e, K * step.stretch_before, B * speed, B * v) + B * blur
    return Equation(
        "spring and damper", "N", "the force is not that of the spring and damper at this displacement", residual, bound
    )


def _displacement(step: Step, T: float, speed: Floats, blur: Any = 0.0) -> Equation:
    """Return the residual of e_k - e_{k-1} - T (u_k - v_k)."""
    e, before, v = step.stretch, step.stretch_before, step.velocity
    residual = e - before - T * (speed - v)
    bound = rounding(e, before, T * speed, T * v) + T * blur
    return Equation(
        "displacement", "m", "the displacement does not go on from that of the tick before", residual, bound
    )


def model_a(step: Step, element: Element, T: float) -> list[Equation]:
    """Return the equations of model A: a mass on the surface; force in, velocity out."""
    slides = step.output - step.velocity
    same = Equation(
        "velocity of the mass",
        "m/s",
        "the output is not the velocity of the contact",
        slides,
        rounding(step.output, step.velocity) + step.blur,
    )
    words = "a rigid contact has no displacement"
    rigid = Equation("displacement", "m", words, step.stretch, 0.0 * step.stretch)
    return [_mass(step, element["mass"], T, step.velocity, step.given, blurred=True), same, rigid]


def model_b(step: Step, element: Element, T: float) -> list[Equation]:
    """Return the equations of model B: a mass pulled through a spring and damper; velocity in, force out."""
    M, K, B = element["mass"], element["stiffness"], element["damping"]
    mass = _mass(step, M, T, step.velocity, step.output, blurred=False)
    solved = rounding((B + T * K) * step.given, K * step.stretch_before)  # rounding in the equation that was solved
    return [
        Equation(mass.name, mass.unit, mass.words, mass.residual, mass.bound + solved),
        _spring(step, K, B, step.given, step.output),
        _displacement(step, T, step.given),
    ]


def model_c(step: Step, element: Element, T: float) -> list[Equation]:
    """Return the equations of model C: a spring and damper whose end slides; velocity in, force out."""
    K, B = element["stiffness"], element["damping"]
    same = Equation("output", "N", "the output is not the friction force", step.output - step.force, 0.0 * step.force)
    return [_spring(step, K, B, step.given, step.force), _displacement(step, T, step.given), same]


def model_d(step: Step, element: Element, T: float) -> list[Equation]:
    """Return the equations of model D: a mass on the end of model C; force in, velocity out."""
    M, K, B = element["mass"], element["stiffness"], element["damping"]
    return [
        _mass(step, M, T, step.output, step.given, blurred=True),
        _spring(step, K, B, step.output, step.force, step.blur),
        _displacement(step, T, step.output, step.blur),
    ]


MODELS: dict[str, Model] = {"A": model_a, "B": model_b, "C": model_c, "D": model_d}


def mobility(model: str, element: Element, T: float) -> float:
    """Return the mobility Z [m/(N s)] with which an element evaluates its law; (13), (35), (38), (44)."""
    M, K, B = (element.get(name, 0.0) for name in ("mass", "stiffness", "damping"))
    if model == "A":
        return T / M
    if model == "B":
        return T / (M + T * B + T * T * K)
    return 1.0 / (B + T * K) + (T / M if model == "D" else 0.0)
