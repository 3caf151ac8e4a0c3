r"""Friction laws and their exact implicit counterparts, in two dimensions.

A law :math:`\Phi` gives the friction force of a sliding contact, in the direction of the velocity; at rest the force
may be anything up to the break-away level. Its *implicit counterpart* :math:`\Phi_Z` solves
:math:`f = \Phi(x - Z f)` for ``f`` (Kikuuwe et al. 2006, Theorem 1 and (16), (52)): what an element of mobility ``Z``
[m/(N s)] needs at every tick. All solutions here are exact; none uses the approximation (46).

The laws are isotropic: with a level :math:`g(s)` at sliding speed ``s``, :math:`\Phi(v) = g(|v|)\,v/|v|`, and the
vector problem reduces to the scalar one :math:`s + Z g(s) = |x|`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from haptics._jit import kernel
from haptics.device import Vector
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check

LAW_PARAMETERS = 8
"""Room for a law's numbers in a kernel's record; the first is always the break-away force."""

VISCOUS = 0
STRIBECK = 1


# --- kernels ----------------------------------------------------------------------------------------------------


@kernel
def sliding_level(kind: int, p: Any, s: float) -> Any:
    """Return the friction level g(s) [N] at sliding speed s > 0 [m/s]; (24), and the exponential Stribeck law."""
    if kind == STRIBECK:
        return p[1] + (p[0] - p[1]) * math.exp(-s / p[2]) + p[3] * s
    return p[0] + p[1] * s


@kernel
def lambert_w0(z: float) -> float:
    """Return the principal branch of Lambert's W for -1/e <= z <= 0, the range that friction needs."""
    q = math.e * z + 1.0
    if q <= 0.0:
        return -1.0
    p = math.sqrt(2.0 * q)
    w = -1.0 + p * (1.0 - p / 3.0 + 11.0 / 72.0 * p * p) if q < 0.5 else z * (1.0 - z)
    for _ in range(8):
        e = math.exp(w)
        residual = w * e - z
        step = residual / (e * (w + 1.0) - (w + 2.0) * residual / (2.0 * w + 2.0))
        w -= step
        if abs(step) <= 1e-15:
            break
    return w


@kernel
def _stribeck_ratio(d: float, q: float) -> float:
    """Solve t + q (exp(-t) - 1) = d for t = s/v_s > 0, with d > 0 and 0 <= q < 1.

    The closed form t = x + W0(-q exp(-x)), x = d + q, loses digits where t is small; two Newton steps on the
    well-conditioned form (convex and increasing, hence safe) restore them.
    """
    x = d + q
    t = x + lambert_w0(-q * math.exp(-x))
    for _ in range(2):
        t = min(max(t, d), x)
        t -= (t + q * math.expm1(-t) - d) / (1.0 - q * math.exp(-t))
    return min(max(t, d), x)


@kernel
def implicit_sliding(kind: int, p: Any, r: float, Z: float) -> tuple[float, float]:
    """Return (g, s): level and speed solving s + Z g(s) = r for r > Z p[0], i.e. while sliding; (25), Lambert W."""
    if kind == STRIBECK:
        a = 1.0 + Z * p[3]
        q = Z * (p[0] - p[1]) / (a * p[2])
        s = p[2] * _stribeck_ratio((r - Z * p[0]) / (a * p[2]), q)
        return sliding_level(kind, p, s), s
    return (p[0] + p[1] * r) / (1.0 + Z * p[1]), (r - Z * p[0]) / (1.0 + Z * p[1])


@kernel
def implicit_force(kind: int, p: Any, x: float, y: float, Z: float) -> tuple[float, float, float, float, bool]:
    """Return (fx, fy, vx, vy, sticking): f = Phi_Z((x, y)) and v = (x, y) - Z f, exactly zero when sticking; (52).

    The velocity is built from the scalar solution, not by subtraction: it can then neither point backwards nor be
    almost zero where it should be zero.
    """
    r = math.hypot(x, y)
    if r <= Z * p[0]:
        return x / Z, y / Z, 0.0, 0.0, True
    g, s = implicit_sliding(kind, p, r, Z)
    return g * (x / r), g * (y / r), s * (x / r), s * (y / r), False


# --- laws -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Law(ABC):
    """A friction law: level as a function of sliding speed, and what an element needs to solve it."""

    kind: ClassVar[int]
    name: ClassVar[str]

    def __post_init__(self) -> None:
        check(self, "law")

    @property
    @abstractmethod
    def parameters(self) -> Vector:
        """The numbers the kernels read, (`LAW_PARAMETERS`,) float array, break-away force first."""

    @property
    @abstractmethod
    def breakaway_force(self) -> float:
        """Largest friction force at rest, |Phi(+0)| [N]."""

    @property
    def mobility_limit(self) -> float:
        """Supremum of the mobilities Z [m/(N s)] for which condition (15) gives a unique solution."""
        return math.inf

    def __call__(self, velocity: ArrayLike) -> Vector:
        """Return the friction force Phi(v), (2,) [N], at a non-zero `velocity`, (2,) [m/s]; at rest zeros.

        At rest the law only bounds the force by `breakaway_force`; zero is the force of a body left alone.
        """
        v = np.array(velocity, dtype=np.float64)
        speed = math.hypot(v[0], v[1])
        if speed == 0.0:
            return np.zeros(2)
        return np.asarray(sliding_level(self.kind, self.parameters, speed) / speed * v)

    def implicit(self, x: ArrayLike, mobility: float) -> Vector:
        """Return Phi_Z(x), (2,) [N], for `x`, (2,) [m/s], and the `mobility` Z [m/(N s)]; (16), (52).

        Raises
        ------
        ConfigurationError
            If condition (15) fails, so that the solution is not unique.
        """
        require_solvable(self, mobility)
        px, py = np.asarray(x, dtype=np.float64)
        fx, fy, *_ = implicit_force(self.kind, self.parameters, px, py, mobility)
        return np.array((fx, fy))


def require_solvable(law: Law, mobility: float, remedy: str = "a smaller mobility") -> None:
    """Raise `ConfigurationError` unless condition (15), ``slope of the law > -1/Z``, holds for `law`."""
    if not mobility > 0.0 or not math.isfinite(mobility):
        raise ConfigurationError(f"mobility = {mobility!r}: must be a finite number greater than 0 m/(N s).")
    if mobility >= law.mobility_limit:
        raise ConfigurationError(
            f"law {law} falls too steeply for this element: its mobility is {mobility:.4g} m/(N s) and must be less "
            f"than {law.mobility_limit:.4g} (condition 15); choose a larger law.stribeck_velocity or {remedy}."
        )


def _packed(*numbers: float) -> Vector:
    packed = np.zeros(LAW_PARAMETERS)
    packed[: len(numbers)] = numbers
    return packed


@dataclass(frozen=True)
class Coulomb(Law):
    """Dry friction of constant level: F v/|v| (Kikuuwe et al. 2006, (2); counterpart (23), (53)).

    Attributes
    ----------
    force : float
        Friction force F [N], at least 0.
    """

    kind: ClassVar[int] = VISCOUS
    name: ClassVar[str] = "coulomb"
    force: float = bounded(minimum=0.0, unit="N", doc="friction force")

    @property
    def parameters(self) -> Vector:  # noqa: D102 (inherited)
        return _packed(self.force, 0.0)

    @property
    def breakaway_force(self) -> float:  # noqa: D102 (inherited)
        return self.force


@dataclass(frozen=True)
class CoulombViscous(Law):
    """Dry and viscous friction: F v/|v| + D v (Kikuuwe et al. 2006, (24), (54); counterpart (25), (55)).

    Attributes
    ----------
    force : float
        Friction force F at vanishing speed [N], at least 0.
    viscosity : float
        Viscosity D [N s/m], at least 0.
    """

    kind: ClassVar[int] = VISCOUS
    name: ClassVar[str] = "coulomb-viscous"
    force: float = bounded(minimum=0.0, unit="N", doc="friction force at vanishing speed")
    viscosity: float = bounded(minimum=0.0, unit="N s/m", doc="viscosity")

    @property
    def parameters(self) -> Vector:  # noqa: D102 (inherited)
        return _packed(self.force, self.viscosity)

    @property
    def breakaway_force(self) -> float:  # noqa: D102 (inherited)
        return self.force


@dataclass(frozen=True)
class Stribeck(Law):
    r"""Friction that falls from a static to a kinetic level: :math:`F_c + (F_s - F_c) e^{-s/v_s} + D s`.

    Solved exactly through Lambert's W. The law falls at ``(F_s - F_c)/v_s - D`` at zero speed; where that is positive,
    condition (15) bounds the mobility of the element in front of it.

    Attributes
    ----------
    kinetic_force : float
        Level F_c towards high speed, without viscosity [N], at least 0.
    static_force : float
        Break-away level F_s [N], at least `kinetic_force`.
    stribeck_velocity : float
        Speed v_s over which the level falls [m/s], greater than 0.
    viscosity : float
        Viscosity D [N s/m], at least 0.
    """

    kind: ClassVar[int] = STRIBECK
    name: ClassVar[str] = "stribeck"
    kinetic_force: float = bounded(minimum=0.0, unit="N", doc="friction force towards high speed")
    static_force: float = bounded(minimum=0.0, unit="N", doc="break-away force")
    stribeck_velocity: float = bounded(above=0.0, unit="m/s", doc="speed over which the friction falls")
    viscosity: float = bounded(0.0, minimum=0.0, unit="N s/m", doc="viscosity")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.static_force < self.kinetic_force:
            raise ConfigurationError(
                f"law.static_force = {self.static_force!r}: must be at least law.kinetic_force = "
                f"{self.kinetic_force!r} N."
            )

    @property
    def parameters(self) -> Vector:  # noqa: D102 (inherited)
        return _packed(self.static_force, self.kinetic_force, self.stribeck_velocity, self.viscosity)

    @property
    def breakaway_force(self) -> float:  # noqa: D102 (inherited)
        return self.static_force

    @property
    def mobility_limit(self) -> float:
        """Inverse of the steepest fall of the law, at zero speed [m/(N s)]; infinite if it never falls."""
        fall = (self.static_force - self.kinetic_force) / self.stribeck_velocity - self.viscosity
        return 1.0 / fall if fall > 0.0 else math.inf


LAWS: dict[str, type[Law]] = {law.name: law for law in (Coulomb, CoulombViscous, Stribeck)}
"""Every law by the name used in settings."""
