"""Equations of the classic models; see `docs/classic_models.md`.

Models without a bristle:

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

The rows contain the velocity of the mass only in part. Usually it is the recorded sliding velocity. Karnopp's model
sets the sliding velocity to zero below the threshold while the momentum persists. There the velocity is integrated from
the balance of forces since the last tick above the threshold.

Models with a bristle, with deflection z and friction force:

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

Iwan's model consists of parallel elements of model C, which are simulated because the rows contain only means. Each of
n elements has the stiffness K/n and the share c/n of the law's force; c increases in equal steps from 1 - spread to 1 +
spread (Iwan 1966; Kikuuwe et al. 2006, section VI). With a ``stiff_share`` q, an additional element has a separate
stiffness and the share q, and the others share 1 - q. The damping is divided in the same way. An element of stiffness k
and damping b has the mobility z = 1/(b + T k). With displacement e, its free velocity is x = u + k z e. With the share
w, its force f is w times the force of the law at x with the mobility w z (`apps.verify.laws`). While it sticks, T
u adds to its displacement; otherwise e_k = z (b e_(k-1) + T f). Displacement and slip in the rows are means weighted by
stiffness.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from apps.verify.envelope import History
from apps.verify.laws import Isotropic, Law, implicit, length, level_force, units
from apps.verify.models import Element, Equation, Step
from apps.verify.recorded import EPS, Flag, Floats, Mask, Stretch, rounding

RIGID_MODELS = ("explicit-coulomb", "viscous-ramp", "karnopp", "quinn")
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
    return Equation(name, unit, words, residual, rounding(*terms) + slack)


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
        speed = length(velocity)
        reach = np.maximum(speed, eps)
        value = column(level.level(reach) / reach) * velocity
        return Force(value, column(steepness(level, reach)), speed <= eps, np.abs(speed - eps) <= 16.0 * EPS * eps)
    if model == "quinn":
        return _quinn(level, velocity, pull, eps)
    sliding, size, speed = _looked_up(level, velocity), length(pull), length(velocity)
    held = pull * column(np.minimum(level.static / np.maximum(size, 1e-300), 1.0))
    below = speed <= eps
    near = np.abs(speed - eps) <= 16.0 * EPS * eps + blur[:, 0]
    slack = np.where(column(below), 0.0, sliding.slack) + column(np.where(near, size + length(sliding.value), 0.0))
    rests = below & (size <= level.static)
    unsure = near | (np.abs(size - level.static) <= rounding(size))
    return Force(np.where(column(below), held, sliding.value), slack, rests, unsure)


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
class MassVelocities:
    """Velocities of a mass before and after each tick, (n, 2) [m/s], and their error bound, (n, 1)."""

    before: Floats
    after: Floats
    blur: Floats


def with_mass(
    model: str, law: Law, step: Step, element: Element, T: float, masses: MassVelocities, pulled: bool
) -> Outcome:
    """Evaluate the equations of a model with mass.

    `pulled` adds the spring and damper of impedance devices.
    """
    M, K, before, after = element["mass"], element.get("stiffness", 0.0), masses.before, masses.after
    blur, pull = masses.blur, step.given
    equations: list[Equation] = []
    if pulled:
        K, B, u, pull = element["stiffness"], element["damping"], step.given, step.output
        w = moving(model, before, element)
        way = step.stretch - step.stretch_before - T * (u - w)
        terms = (step.stretch, step.stretch_before, T * u, T * w)
        spring = step.output - K * step.stretch - B * (u - w)
        forces = (step.output, K * step.stretch, K * step.stretch_before, B * u, B * w)
        equations += [
            equation("displacement", "m", way, *terms, slack=T * blur),
            equation("spring and damper", "N", spring, *forces, slack=(B + K * T) * blur),
        ]
    force = _force(model, law, before, pull, element, blur)
    speed = np.maximum(length(before), 1e-300)
    turned = column(np.where(length(before) > 0.0, 4.0 * law.static / speed, 0.0)) * blur
    balance = M * (after - before) / T - pull + step.force
    terms = (M * after / T, M * before / T, pull, step.force)
    shown, slack = moving(model, after, element), 2.0 * blur
    if model == "karnopp":
        near = np.abs(length(after) - element["threshold"]) <= 16.0 * EPS + blur[:, 0]
        slack = slack + column(np.where(near, length(after), 0.0))
    equations += [
        equation("friction force", "N", step.force - force.value, step.force, pull, slack=force.slack + turned),
        equation("balance of the mass", "N", balance, *terms, slack=4.0 * M / T * blur),
        equation("sliding velocity", "m/s", step.velocity - shown, step.velocity, shown, slack=slack),
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


class Momentum:
    """Tracks the velocity of the mass over consecutive stretches."""

    def __init__(self) -> None:
        self._velocity, self._blur = np.zeros(2), 0.0

    def masses(self, stretch: Stretch, history: History, step: Step, model: str, element: Element) -> MassVelocities:
        """Return the velocities of the mass in the ticks of a stretch."""
        run, rows = stretch.run, stretch.rows
        anew = history.fresh[rows] | (history.after_bad[rows] > 0)  # the mass starts with a prescribed velocity
        given, pull = step.given, step.output
        if not run.impedance:
            limits = Flag.LIMITED | Flag.SLEW | Flag.ENERGY | Flag.WORKSPACE
            kept = (stretch.back("command", 1) == stretch.back("command_unlimited", 1)).all(axis=1)
            # A limit may act by less than the rounding of the references.
            kept &= (stretch.back("status", 1) & limits) == 0
            anew = anew | ~kept | (np.arange(stretch.start, stretch.stop) == 0)
            given, pull = stretch.last, step.given
        if model != "karnopp" or element.get("residual", 0.0) == 1.0:
            before = np.where(anew[:, None], given, stretch.back("sliding_velocity", 1))
            return MassVelocities(before, step.velocity, step.blur)
        change = run.period * (pull - step.force) / element["mass"]
        shown = length(step.velocity) > element["threshold"] * (1.0 + 16.0 * EPS)
        before, after, blur = np.zeros_like(change), np.zeros_like(change), np.zeros((len(change), 1))
        for k in range(len(change)):
            if anew[k]:
                self._velocity, self._blur = given[k], float(step.blur[k, 0])
            before[k], blur[k] = self._velocity, self._blur
            after[k] = step.velocity[k] if shown[k] else before[k] + change[k]
            self._velocity = after[k]
            size = float(np.abs(after[k]).max() + np.abs(change[k]).max())
            self._blur = 0.0 if shown[k] else self._blur + 8.0 * EPS * size
        return MassVelocities(before, after, blur + step.blur)


class Bristle:
    """Quantities of a bristle that the equations share, for several ticks."""

    def __init__(self, any_law: Law, step: Step, element: Element, T: float) -> None:
        law = level_of(any_law)
        self.step, self.T, self.element = step, T, element
        self.K, self.B = element["stiffness"], element.get("damping", 0.0)
        self.u, self.z, self.before = step.given, step.stretch, step.stretch_before
        self.speed = length(self.u)
        level = law.level(self.speed)
        bends = np.minimum(level, law.static)
        self.off = steepness(law, self.speed) + rounding(level)
        self.limit = bends / self.K
        self.viscosity = np.divide(level - bends, self.speed, out=np.zeros_like(level), where=self.speed > 0.0)
        self.x = self.before + T * self.u
        self.size = rounding(length(self.before), T * self.speed, self.limit) + self.off / self.K

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
        blur = rounding(*rough) / self.T
        terms = (self.step.force, self.K * self.z, self.B * rate, column(self.viscosity) * self.u)
        v = self.step.velocity - (self.u - rate)
        return [
            equation("friction force", "N", f, *terms, slack=self.B * blur + column(self.off)),
            equation("sliding velocity", "m/s", v, self.step.velocity, self.u, rate, slack=blur),
            equation("output", "N", self.step.output - self.step.force),
        ]

    def outcome(self, equations: list[Equation], sticks: Mask, unsure: Mask) -> Outcome:
        """Return the outcome, with the energy that the bristle stores."""
        return Outcome(equations, sticks, unsure, 0.5 * self.K * (self.z**2).sum(axis=1))


def _yielding(b: Bristle) -> Outcome:
    """Return the equations of Dahl's model and of LuGre."""
    way = np.divide(b.T * b.speed, b.limit, out=np.full_like(b.limit, np.inf), where=b.limit > 0.0)
    share = column(np.where(b.speed > 0.0, -np.expm1(-way), 0.0))
    expected = b.before + share * (column(b.limit) * units(b.u) - b.before)
    never = np.zeros(len(b.u), bool)
    slip = length(b.u - (b.z - b.before) / b.T)
    blur = rounding(b.speed) + b.size / b.T
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
    b: Bristle, m: Floats, alpha_of: Callable[[Floats, float], tuple[Floats, Floats]], k: float
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
    slack = steep * rounding(part, b.size) + 2.0 * steep * relative * np.abs(part)
    return np.stack((residual, across), axis=1), slack


def _elastoplastic(b: Bristle) -> Outcome:
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


def _creeping(b: Bristle) -> Outcome:
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


def _reset(b: Bristle) -> Outcome:
    r = length(b.x)
    inside = r <= b.limit
    expected = np.where(column(inside), b.x, column(b.limit) * units(b.x))
    power = (b.u * b.x).sum(axis=1)
    sticks = inside | (power <= 0.0)
    unsure = (np.abs(r - b.limit) <= b.size) | (np.abs(power) <= rounding(b.speed * r))
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


BRISTLES: dict[str, Callable[[Bristle], Outcome]] = {
    "dahl": _yielding,
    "lugre": _yielding,
    "elastoplastic": _elastoplastic,
    "hayward-armstrong": _creeping,
    "reset-integrator": _reset,
}

IWAN = "iwan"

_MOST = 12
"""Maximum number of equally stiff elements. Elements that are added later start without displacement."""


class Elements:
    """Tracks the displacements of the elements over consecutive stretches."""

    def __init__(self) -> None:
        self._stretched, self._blur = np.zeros((_MOST + 1, 2)), 0.0

    def outcome(self, law: Law, stretch: Stretch, step: Step, element: Element, T: float, history: History) -> Outcome:
        """Return the equations of the mean force, displacement and slip.

        Raises
        ------
        KeyError
            If a setting is missing.
        """
        # State index, share of the law, stiffness and damping of the elements, the stiff one last.
        n, stiff = int(element["count"]), element.get("stiff_share", 0.0)
        rise = element["spread"] * (2.0 * np.arange(n) / max(n - 1, 1) - 1.0) if n > 1 else np.zeros(1)
        place_of, share = np.arange(n), (1.0 - stiff) * (1.0 + rise) / n
        K, B = np.full(n, element["stiffness"] / n), np.full(n, (1.0 - stiff) * element["damping"] / n)
        if stiff > 0.0:
            place_of, share = np.append(place_of, _MOST), np.append(share, stiff)
            K, B = np.append(K, element["stiff_stiffness"]), np.append(B, stiff * element["damping"])
        rough, weight, count = 8.0 * EPS * law.slender, (K / K.sum())[:, None], len(stretch)
        force, slip, place = (np.zeros((count, 2)) for _ in range(3))
        sticks, unsure = np.zeros(count, bool), np.zeros(count, bool)
        blur, stored = np.zeros(count), np.zeros(count)
        fresh, good = history.fresh[stretch.rows], stretch.good
        z = 1.0 / (B + T * K)
        for k, u in enumerate(step.given):
            if fresh[k]:
                self._stretched[:], self._blur = 0.0, 0.0
            if good[k]:
                before = self._stretched[place_of]
                found, rests, near = implicit(law, u + (K * z)[:, None] * before, share * z)
                forces = share[:, None] * found
                e = np.where(rests[:, None], before + T * u, z[:, None] * (B[:, None] * before + T * forces))
                self._blur += rough * float(np.abs(e).max() + T * np.abs(u).max())
                self._stretched[:] = 0.0
                self._stretched[place_of] = e
                force[k], sticks[k], unsure[k] = forces.sum(axis=0), rests.all(), near.any()
                slip[k] = u - (weight * (e - before)).sum(axis=0) / T
                stored[k] = 0.5 * float((K[:, None] * e**2).sum())
            place[k], blur[k] = (weight * self._stretched[place_of]).sum(axis=0), self._blur
        # The error bound of the law's force due to the rounding of the velocity.
        if isinstance(law, Isotropic):
            turned = steepness(law, length(step.given))
        else:
            turned = length(level_force(law, step.given * NEAR) - level_force(law, step.given))
            turned = turned + rounding(law.static) * law.slender
        steep = float(K.sum() + B.sum() / T)
        slack = column(steep * blur + turned + rounding(length(force)))
        off = column(blur + rounding(length(place))) + slack / steep
        equations = [
            equation("friction force", "N", step.force - force, step.force, force, slack=slack),
            equation("displacement", "m", step.stretch - place, step.stretch, place, slack=off),
            equation("sliding velocity", "m/s", step.velocity - slip, step.velocity, slip, slack=off / T),
            equation("output", "N", step.output - step.force),
        ]
        return Outcome(equations, sticks, unsure, stored)
