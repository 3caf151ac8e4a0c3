"""Equations of the classic models without a bristle: explicit Coulomb, viscous ramp, Karnopp, Quinn.

See `docs/classic_models.md`.

====================  ========================================================================================
model                 friction force at a known velocity v, under the force h of everything else
====================  ========================================================================================
``explicit-coulomb``  Phi(v); zero at rest
``viscous-ramp``      g(s)/s v with s = max(|v|, eps)
``karnopp``           Phi(v) beyond the threshold eps; below it h, at most the force at rest
``quinn``             g/max(|q|, eps) q with q = v + eps h/g, h/g at most 1, and less of it across v
====================  ========================================================================================

Without a mass, v is the velocity of the end effector. A mass moves by the explicit Euler method, ``M (w_k - w_(k-1))/T
= h - f``, with its velocity w before the tick. On an impedance device it is pulled by ``h = K e + B (u - w)`` with
``e_k = e_(k-1) + T (u - w)``. The velocity of Karnopp's mass is not recorded below the threshold, where it follows from
the forces alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.contact.inclusion import length, level_force, units
from apps.verify.contact.laws import Isotropic, Law
from apps.verify.contact.models import Element, Equation, Step
from apps.verify.facts import EPS, rounding

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MODELS = ("explicit-coulomb", "viscous-ramp", "karnopp", "quinn")
NEAR = 1.0 + 8.0 * EPS


@dataclass
class Outcome:
    """Result of evaluating the equations of a classic model.

    Attributes
    ----------
    equations : list of Equation
        Residuals of the equations.
    sticks, unsure : (n,) array
        Whether the contact sticks, and where rounding decides that.
    stored : (n,) array
        Energy stored by the element [J].
    """

    equations: list[Equation]
    sticks: Mask
    unsure: Mask
    stored: Floats


@dataclass
class Force:
    """Friction force, (n, 2) [N], its error bound, (n, 1), and whether the contact sticks or may stick."""

    value: Floats
    slack: Floats
    sticks: Mask
    unsure: Mask


def column(values: Any) -> Any:
    """Return (n,) values as (n, 1)."""
    return values[:, None]


def equation(name: str, unit: str, residual: Floats, *terms: Floats, slack: Floats | float = 0.0) -> Equation:
    """Return an equation whose residual is a sum of terms, (n, 2) each."""
    words = f"the {name} is not what the model's rule gives"
    return Equation(name, unit, words, residual, np.asarray(rounding(*terms)) + slack)


def level_of(law: Law) -> Isotropic:
    """Return the law if it is isotropic; raise `KeyError` otherwise, because these models need a level."""
    if not isinstance(law, Isotropic):
        raise KeyError("a law that is the same in all directions")
    return law


def steepness(law: Isotropic, speed: Floats) -> Floats:
    """Return the error bound of a level, (n,) [N], due to the rounding of the speed and its own accuracy."""
    level = law.level(speed)
    return np.asarray(np.abs(law.level(speed * NEAR) - level) + law.loose * level)


# --- the rules ----------------------------------------------------------------------------------------------------


def _looked_up(law: Law, velocity: Floats) -> Force:
    moves = np.asarray(velocity.any(axis=1))
    force = np.where(column(moves), level_force(law, velocity), 0.0)
    slack = length(level_force(law, velocity * NEAR) - force)
    slack = slack + (law.loose * length(force) if isinstance(law, Isotropic) else 0.0)
    return Force(force, column(np.where(moves, slack, 0.0)), ~moves, np.zeros(len(moves), bool))


def _ramp(law: Isotropic, velocity: Floats, eps: float) -> Force:
    speed = length(velocity)
    reach = np.maximum(speed, eps)
    value = column(law.level(reach) / reach) * velocity
    return Force(value, column(steepness(law, reach)), speed <= eps, np.abs(speed - eps) <= 16.0 * EPS * eps)


def _karnopp(law: Isotropic, velocity: Floats, pull: Floats, eps: float, blur: Floats) -> Force:
    sliding, size, speed = _looked_up(law, velocity), length(pull), length(velocity)
    held = pull * column(np.minimum(law.static / np.maximum(size, 1e-300), 1.0))
    below = speed <= eps
    near = np.abs(speed - eps) <= 16.0 * EPS * eps + blur[:, 0]
    slack = np.where(column(below), 0.0, sliding.slack) + column(np.where(near, size + length(sliding.value), 0.0))
    rests = below & (size <= law.static)
    unsure = near | (np.abs(size - law.static) <= np.asarray(rounding(size)))
    return Force(np.where(column(below), held, sliding.value), slack, rests, unsure)


def _quinn(law: Isotropic, velocity: Floats, pull: Floats, eps: float) -> Force:
    speed, along = length(velocity), units(velocity)
    level = law.level(speed)
    share = pull / column(np.maximum(level, 1e-300))
    share = share / column(np.maximum(length(share), 1.0))
    across = (share[:, 1] * along[:, 0] - share[:, 0] * along[:, 1]) * np.minimum(0.5 * speed / eps, 1.0)
    share = share + column(across) * np.stack((along[:, 1], -along[:, 0]), axis=1)
    mixed = velocity + eps * share
    size = length(mixed)
    value = np.where(column(level > 0.0), column(level / np.maximum(size, eps)) * mixed, 0.0)
    slack = steepness(law, speed) * (1.0 + 2.0 * length(pull) / np.maximum(level, 1e-300)) + rounding(level)
    near = np.abs(size - eps) <= 64.0 * EPS * (eps + speed)
    return Force(value, column(slack), (size <= eps) & (level > 0.0), near)


def _force(model: str, law: Law, velocity: Floats, pull: Floats, element: Element, blur: Floats) -> Force:
    if model == "explicit-coulomb":
        return _looked_up(law, velocity)
    eps, level = element["threshold"], level_of(law)
    if model == "viscous-ramp":
        return _ramp(level, velocity, eps)
    if model == "karnopp":
        return _karnopp(level, velocity, pull, eps, blur)
    return _quinn(level, velocity, pull, eps)


# --- elements -----------------------------------------------------------------------------------------------------


def without_mass(model: str, law: Law, step: Step, element: Element) -> Outcome:
    """Evaluate the equations of a model without mass at the velocity of the end effector."""
    none = np.zeros((len(step.force), 1))
    force = _force(model, law, step.given, step.force, element, none)
    equations = [
        equation("friction force", "N", step.force - force.value, step.force, slack=force.slack),
        equation("output", "N", step.output - step.force),
        equation("sliding velocity", "m/s", step.velocity - step.given),
    ]
    return Outcome(equations, force.sticks, force.unsure, np.zeros(len(step.force)))


@dataclass
class Masses:
    """Velocities of a mass before and after each tick, (n, 2) [m/s], and their error bound, (n, 1)."""

    before: Floats
    after: Floats
    blur: Floats


def with_mass(model: str, law: Law, step: Step, element: Element, T: float, masses: Masses, pulled: bool) -> Outcome:
    """Evaluate the equations of a model with mass.

    `pulled` adds the spring and damper of impedance devices.
    """
    M, K, before, after = element["mass"], element.get("stiffness", 0.0), masses.before, masses.after
    equations, pull = _pulled(model, step, element, T, masses) if pulled else ([], step.given)
    force = _force(model, law, before, pull, element, masses.blur)
    speed = np.maximum(length(before), 1e-300)
    turned = column(np.where(length(before) > 0.0, 4.0 * law.static / speed, 0.0)) * masses.blur
    balance = M * (after - before) / T - pull + step.force
    terms = (M * after / T, M * before / T, pull, step.force)
    equations += [
        equation("friction force", "N", step.force - force.value, step.force, pull, slack=force.slack + turned),
        equation("balance of the mass", "N", balance, *terms, slack=4.0 * M / T * masses.blur),
        _shown(model, step, element, masses),
    ]
    if not pulled:
        slide = step.output - step.velocity
        equations.append(equation("velocity of the mass", "m/s", slide, step.output, step.velocity, slack=step.blur))
    stored = 0.5 * K * (step.stretch**2).sum(axis=1) + 0.5 * M * (after**2).sum(axis=1)
    return Outcome(equations, force.sticks, force.unsure, stored)


def moving(model: str, velocity: Floats, element: Element) -> Floats:
    """Return the velocity of a mass.

    Below the threshold, Karnopp's mass moves with a fraction of its velocity.
    """
    if model != "karnopp":
        return velocity
    below = column(length(velocity) <= element["threshold"])
    return np.where(below, element.get("residual", 0.0) * velocity, velocity)


def _shown(model: str, step: Step, element: Element, masses: Masses) -> Equation:
    """Return the equation of the recorded sliding velocity."""
    shown = moving(model, masses.after, element)
    slack = 2.0 * masses.blur
    if model == "karnopp":
        near = np.abs(length(masses.after) - element["threshold"]) <= 16.0 * EPS + masses.blur[:, 0]
        slack = slack + column(np.where(near, length(masses.after), 0.0))
    return equation("sliding velocity", "m/s", step.velocity - shown, step.velocity, shown, slack=slack)


def _pulled(model: str, step: Step, element: Element, T: float, masses: Masses) -> tuple[list[Equation], Floats]:
    """Return the equations of the spring and damper that pull a mass, and their force."""
    K, B, u = element["stiffness"], element["damping"], step.given
    w = moving(model, masses.before, element)
    way = step.stretch - step.stretch_before - T * (u - w)
    terms = (step.stretch, step.stretch_before, T * u, T * w)
    force = step.output - K * step.stretch - B * (u - w)
    forces = (step.output, K * step.stretch, K * step.stretch_before, B * u, B * w)
    return [
        equation("displacement", "m", way, *terms, slack=T * masses.blur),
        equation("spring and damper", "N", force, *forces, slack=(B + K * T) * masses.blur),
    ], step.output
