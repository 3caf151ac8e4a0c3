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

from collections.abc import Mapping
from dataclasses import dataclass

from apps.verify.recorded import Floats, rounding


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

MODELS = ("A", "B", "C", "D")


def equations(model: str, step: Step, element: Element, T: float) -> list[Equation]:
    """Return the equations of a model.

    A is a mass on the surface (force in, velocity out), B a mass pulled through a spring and damper (velocity in, force
    out), C a spring and damper whose end slides (velocity in, force out), and D a mass on the end of model C.

    Raises
    ------
    KeyError
        If a parameter of the element is missing.
    """
    v, e, before, blur, found = step.velocity, step.stretch, step.stretch_before, step.blur, []
    if model != "C":  # M (v_k - v_{k-1})/T - h + f
        M = element["mass"]
        after, pull = step.output if model == "D" else v, step.output if model == "B" else step.given
        residual = M * (after - step.mass_before) / T - pull + step.force
        bound = rounding(M * after / T, M * step.mass_before / T, pull, step.force) + 2.0 * M / T * blur
        if model == "B":  # rounding in the equation that was solved
            solved = element["damping"] + T * element["stiffness"]
            bound = bound + rounding(solved * step.given, element["stiffness"] * before)
        words = "the mass does not move as the force and the friction say"
        found.append(Equation("balance of the mass", "N", words, residual, bound))
    if model == "A":
        words, bound = "the output is not the velocity of the contact", rounding(step.output, v) + blur
        found.append(Equation("velocity of the mass", "m/s", words, step.output - v, bound))
        return [*found, Equation("displacement", "m", "a rigid contact has no displacement", e, 0.0 * e)]
    K, B = element["stiffness"], element["damping"]
    u, force = step.output if model == "D" else step.given, step.output if model == "B" else step.force
    residual = force - K * e - B * (u - v)
    bound = rounding(force, K * e, K * before, B * u, B * v) + B * blur
    words = "the force is not that of the spring and damper at this displacement"
    found.append(Equation("spring and damper", "N", words, residual, bound))
    residual, bound = e - before - T * (u - v), rounding(e, before, T * u, T * v) + T * blur
    words = "the displacement does not go on from that of the tick before"
    found.append(Equation("displacement", "m", words, residual, bound))
    if model == "C":
        words = "the output is not the friction force"
        found.append(Equation("output", "N", words, step.output - step.force, 0.0 * step.force))
    return found


def mobility(model: str, element: Element, T: float) -> float:
    """Return the mobility Z [m/(N s)] with which an element evaluates its law; (13), (35), (38), (44)."""
    M, K, B = (element.get(name, 0.0) for name in ("mass", "stiffness", "damping"))
    if model == "A":
        return T / M
    if model == "B":
        return T / (M + T * B + T * T * K)
    return 1.0 / (B + T * K) + (T / M if model == "D" else 0.0)
