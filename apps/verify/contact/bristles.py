"""Equations of the classic models with a bristle: deflection z and friction force.

See `docs/classic_models.md`.

The level of the law at the end effector's speed |u| is divided. The part up to the static force, g, bends the bristle
by at most g/K; the excess acts as a viscosity D. With w = (z_k - z_(k-1))/T, or w = u while the bristle follows the
motion, ``f = K z_k + B w + D u`` and ``v = u - w``; x is z_(k-1) + T u.

=====================  ===================================================================================
model                  deflection
=====================  ===================================================================================
``dahl``, ``lugre``    z approaches g/K u/|u| by the fraction 1 - exp(-T |u| K/g)
``elastoplastic``      z = s x: |z| + m alpha(|z|) |z| = |x|, m = max(T u.x/|x|, 0) K/g; x where m = 0
``hayward-armstrong``  the same with m = creep T |u| K/g, and |z| at most g/K
``reset-integrator``   x, at most g/K long; f = K (1 + a) z + (B + D) u at rest, K z + D u while it slips
=====================  ===================================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from apps.verify.contact.inclusion import length, units
from apps.verify.contact.laws import Isotropic, Law
from apps.verify.contact.models import Element, Equation, Step
from apps.verify.contact.rigid import Outcome, column, equation, level_of, steepness
from apps.verify.facts import rounding

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class _Bristle:
    """Quantities of a bristle that the equations share, for several ticks."""

    def __init__(self, law: Isotropic, step: Step, element: Element, T: float) -> None:
        self.step, self.T, self.element = step, T, element
        self.K, self.B = element["stiffness"], element.get("damping", 0.0)
        self.u, self.z, self.before = step.given, step.stretch, step.stretch_before
        self.speed = length(self.u)
        level = law.level(self.speed)
        bends = np.minimum(level, law.static)
        self.off = steepness(law, self.speed) + np.asarray(rounding(level))
        self.limit = bends / self.K
        self.viscosity = np.divide(level - bends, self.speed, out=np.zeros_like(level), where=self.speed > 0.0)
        self.x = self.before + T * self.u
        self.size = np.asarray(rounding(length(self.before), T * self.speed, self.limit)) + self.off / self.K

    def deflection(self, residual: Floats, slack: Floats | None = None) -> Equation:
        """Return the equation of the deflection z; its residual is (n, 2) [m]."""
        bound = column(self.size if slack is None else self.size + slack)
        return equation("deflection", "m", residual, slack=bound)

    def rest(self, follows: Mask) -> list[Equation]:
        """Return the equations of force and slip.

        Where the bristle `follows`, the whole motion bends it.
        """
        rate = np.where(column(follows), self.u, (self.z - self.before) / self.T)
        rough = (self.z, self.before)
        f = self.step.force - self.K * self.z - self.B * rate - column(self.viscosity) * self.u
        blur = np.asarray(rounding(*rough)) / self.T
        terms = (self.step.force, self.K * self.z, self.B * rate, column(self.viscosity) * self.u)
        v = self.step.velocity - (self.u - rate)
        return [
            equation("friction force", "N", f, *terms, slack=self.B * blur + column(self.off)),
            equation("sliding velocity", "m/s", v, self.step.velocity, self.u, rate, slack=blur),
            equation("output", "N", self.step.output - self.step.force),
        ]

    def outcome(self, equations: list[Equation], sticks: Mask, unsure: Mask) -> Outcome:
        return Outcome(equations, sticks, unsure, 0.5 * self.K * (self.z**2).sum(axis=1))


def _yielding(b: _Bristle) -> Outcome:
    """Return the equations of Dahl's model and of LuGre."""
    way = np.divide(b.T * b.speed, b.limit, out=np.full_like(b.limit, np.inf), where=b.limit > 0.0)
    share = column(np.where(b.speed > 0.0, -np.expm1(-way), 0.0))
    expected = b.before + share * (column(b.limit) * units(b.u) - b.before)
    never = np.zeros(len(b.u), bool)
    slip = length(b.u - (b.z - b.before) / b.T)
    blur = np.asarray(rounding(b.speed)) + b.size / b.T
    equations = [b.deflection(b.z - expected), *b.rest(never)]
    return b.outcome(equations, slip <= 0.5 * b.speed, np.abs(slip - 0.5 * b.speed) <= blur)


def _sine(y: Floats, k: float) -> tuple[Floats, Floats]:
    """Return alpha of the elastoplastic model and its derivative (Dupont et al. 2002)."""
    turn = np.pi / (1.0 - k)
    angle = turn * (y - 0.5 * (1.0 + k))
    within = (y > k) & (y < 1.0)
    alpha = np.where(within, 0.5 + 0.5 * np.sin(angle), np.where(y >= 1.0, 1.0, 0.0))
    return alpha, np.where(within, 0.5 * turn * np.cos(angle), 0.0)


def _power(y: Floats, k: float) -> tuple[Floats, Floats]:
    """Return alpha of Hayward and Armstrong (2000) and its derivative; constant beyond the limit."""
    inner = np.minimum(y, 1.0)
    power = (inner / k) ** 8
    slope = 8.0 * power / (np.maximum(inner, 1e-300) * (1.0 + power) ** 2)
    return power / (1.0 + power), np.where(y < 1.0, slope, 0.0)


def _relaxed(
    b: _Bristle, m: Floats, alpha_of: Callable[[Floats, float], tuple[Floats, Floats]], k: float
) -> tuple[Floats, Floats]:
    """Return the residual of |z| + m alpha |z| = |x| and its slack.

    The residual, (n, 2) [m], has the component along x and the component across it.
    """
    along = units(b.x)
    part = (b.z * along).sum(axis=1)
    across = b.z[:, 0] * along[:, 1] - b.z[:, 1] * along[:, 0]
    y = np.abs(part) / np.maximum(b.limit, 1e-300)
    alpha, slope = alpha_of(y, k)
    residual = part * (1.0 + m * alpha) - length(b.x)
    steep = 1.0 + m * (alpha + y * slope) * 2.0
    relative = b.off / np.maximum(b.K * b.limit, 1e-300)  # relative to the limit, and therefore to m and y
    slack = steep * np.asarray(rounding(part, b.size)) + 2.0 * steep * relative * np.abs(part)
    return np.stack((residual, across), axis=1), slack


def _elastoplastic(b: _Bristle) -> Outcome:
    k, r = b.element["elastic_share"], length(b.x)
    toward = b.T * (b.u * units(b.x)).sum(axis=1)
    loaded = np.where(r > k * b.limit, np.maximum(toward, 0.0), 0.0)
    follows = loaded == 0.0
    m = np.divide(loaded, b.limit, out=np.zeros_like(b.limit), where=b.limit > 0.0)
    residual, slack = _relaxed(b, m, _sine, k)
    none = column(~follows & (b.limit == 0.0))
    residual = np.where(none, b.z, np.where(column(follows), b.z - b.x, residual))
    unsure = (np.abs(toward) <= b.size) | (np.abs(r - k * b.limit) <= b.size)
    slack = np.where(unsure, slack + np.abs(loaded) + b.size, slack)
    equations = [b.deflection(residual, slack), *b.rest(follows)]
    return b.outcome(equations, follows, unsure)


def _creeping(b: _Bristle) -> Outcome:
    k, r = b.element["stick_share"], length(b.x)
    way = b.element["creep"] * b.T * b.speed
    m = np.divide(way, b.limit, out=np.zeros_like(b.limit), where=b.limit > 0.0)
    residual, slack = _relaxed(b, m, _power, k)
    longest = r / (1.0 + m * _power(np.ones(1), k)[0])  # beyond the limit, alpha keeps its value at the limit
    beyond = longest > b.limit
    cut = b.z - column(b.limit) * units(b.x)
    residual = np.where(column(beyond), cut, np.where(column(r > 0.0), residual, b.z))
    unsure = np.abs(longest - b.limit) <= b.size
    slack = np.where(unsure, slack + b.size, slack)
    equations = [b.deflection(residual, slack), *b.rest(~beyond & (way == 0.0))]
    return b.outcome(equations, ~beyond, unsure)


def _reset(b: _Bristle) -> Outcome:
    r = length(b.x)
    inside = r <= b.limit
    expected = np.where(column(inside), b.x, column(b.limit) * units(b.x))
    power = (b.u * b.x).sum(axis=1)
    sticks = inside | (power <= 0.0)
    unsure = (np.abs(r - b.limit) <= b.size) | (np.abs(power) <= np.asarray(rounding(b.speed * r)))
    gain = np.where(sticks, b.K * (1.0 + b.element["stiction"]), b.K)
    damping = b.viscosity + np.where(sticks, b.B, 0.0)
    rate = np.where(column(inside), b.u, (expected - b.before) / b.T)
    f = b.step.force - column(gain) * b.z - column(damping) * b.u
    torn = np.where(unsure, b.K * b.element["stiction"] * length(b.z) + b.B * b.speed, 0.0) + b.off
    v = b.step.velocity - (b.u - rate)
    blur = b.size / b.T + np.where(unsure, b.speed, 0.0)
    equations = [
        b.deflection(b.z - expected),
        equation("friction force", "N", f, b.step.force, column(gain) * b.z, column(damping) * b.u, slack=column(torn)),
        equation("sliding velocity", "m/s", v, b.step.velocity, b.u, rate, slack=column(blur)),
        equation("output", "N", b.step.output - b.step.force),
    ]
    return b.outcome(equations, sticks, unsure)


_MODELS: dict[str, Callable[[_Bristle], Outcome]] = {
    "dahl": _yielding,
    "lugre": _yielding,
    "elastoplastic": _elastoplastic,
    "hayward-armstrong": _creeping,
    "reset-integrator": _reset,
}

MODELS = tuple(_MODELS)


def bristle(model: str, law: Law, step: Step, element: Element, T: float) -> Outcome:
    """Evaluate the equations of a model with a bristle."""
    return _MODELS[model](_Bristle(level_of(law), step, element, T))
