r"""Hybrid control of an arm on a surface: position along it, force normal to it.

The controller of Raibert and Craig in the form of Machado et al. 2002 (Fig. 2, (7) to (9)). Its laws are of integer or
fractional order. With ``J_c`` the Jacobian in the directions normal to (x_c) and along (y_c) the plane,

.. math::
    \tau = C_P\bigl[J_c^{-1} (0, y_d - y)\bigr] + C_F\bigl[J_c^T (F_d - F, 0)\bigr] + G(q)

where F is the force that the arm exerts, and each law C is a weighted sum of the present and past samples plus an
integral. `FractionalLaw` is (7), `ProportionalDerivative` (8b), `ProportionalIntegral` (9b).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.mechanics.dynamics import frame_jacobian, gravity
from devices.arm.mechanics.surface import frame_position
from devices.arm.servo.fractional import MAX_ORDER, weighted_past, weights
from haptics.jit import kernel
from haptics.settings import bounded, check, documented, flag

CONTROL_FIELDS: list[tuple[Any, ...]] = [
    ("period", "<f8"),
    ("target_force", "<f8"),
    ("target_along", "<f8"),
    ("position_integral", "<f8"),
    ("force_integral", "<f8"),
    ("holds_weight", "<i8"),
    ("position_sum", "<f8", (2,)),
    ("force_sum", "<f8", (2,)),
    ("position_now", "<i8"),
    ("force_now", "<i8"),
    ("measured_angle", "<f8", (2,)),
    ("measured_force", "<f8"),
    ("torque", "<f8", (2,)),
]
"""Fields of the controller: settings, state, and the latest measurements and torques. The laws are separate arrays."""


class ControlLaw(ABC):
    """Linear control law: from a sampled error to a torque."""

    integral_gain: float = 0.0

    @abstractmethod
    def weights(self, period: float) -> NDArray[np.float64]:
        """Return the weights of the present and of each earlier sample, (n,), at the sampling `period` [s]."""


@documented
@dataclass(frozen=True)
class FractionalLaw(ControlLaw):
    """K_0 D^order, over a limited history (Machado et al. 2002, (7))."""

    gain: float = bounded(
        minimum=0.0, maximum=1e12, doc="gain K_0 of the continuous law; the sum of (7) has K_0 T^-order in front of it"
    )
    order: float = bounded(
        minimum=-MAX_ORDER, maximum=MAX_ORDER, doc="order of the derivative; negative for an integral"
    )
    terms: int = bounded(17, minimum=0, maximum=100_000, doc="samples r of the past that count besides the present one")

    def __post_init__(self) -> None:
        check(self, "law")

    @classmethod
    def sampled(cls, gain: float, order: float, terms: int, period: float) -> FractionalLaw:
        """Return the law whose sum has the factor `gain` at the sampling `period` [s]: K_P, K_F of Table II."""
        return cls(gain * period**order, order, terms)

    def weights(self, period: float) -> NDArray[np.float64]:  # noqa: D102 (inherited)
        return np.asarray(self.gain * period**-self.order * weights(self.order, self.terms))


@documented
@dataclass(frozen=True)
class ProportionalDerivative(ControlLaw):
    """PD: proportional and derivative; the derivative is the difference of two samples (8b)."""

    derivative: float = bounded(minimum=0.0, maximum=1e12, doc="gain a_P of the derivative")
    proportional: float = bounded(minimum=0.0, maximum=1e12, doc="gain b_P of the error itself")

    def __post_init__(self) -> None:
        check(self, "law")

    def weights(self, period: float) -> NDArray[np.float64]:  # noqa: D102 (inherited)
        slope = self.derivative / period
        return np.array([self.proportional + slope, -slope])


@documented
@dataclass(frozen=True)
class ProportionalIntegral(ControlLaw):
    """PI: proportional and integral (9b)."""

    integral: float = bounded(minimum=0.0, maximum=1e12, doc="gain a_F of the integral")
    proportional: float = bounded(minimum=0.0, maximum=1e12, doc="gain b_F of the error itself")

    def __post_init__(self) -> None:
        check(self, "law")

    @property
    def integral_gain(self) -> float:  # type: ignore[override]  # noqa: D102 (inherited)
        return self.integral

    def weights(self, period: float) -> NDArray[np.float64]:  # noqa: D102 (inherited)
        return np.array([self.proportional])


@documented
@dataclass(frozen=True)
class Hybrid:
    """Hybrid controller: one law for the position along the plane, one for the force normal to it.

    Attributes
    ----------
    position, force : ControlLaw
        Laws of both loops.
    """

    position: ControlLaw
    force: ControlLaw
    period: float = bounded(1e-3, minimum=1e-6, maximum=1.0, unit="s", doc="sampling period T")
    holds_weight: bool = flag(
        True, doc="whether it adds the torques G(q) that hold the arm against its weight; the paper does not say"
    )

    def __post_init__(self) -> None:
        check(self, "control")

    def fill(self, record: NDArray[Any]) -> None:
        """Write the controller into a record, (1,), that has `CONTROL_FIELDS`; other fields are unchanged."""
        record["period"], record["holds_weight"] = self.period, self.holds_weight
        record["position_integral"] = self.position.integral_gain
        record["force_integral"] = self.force.integral_gain


@kernel
def _apply(weights: Any, past: Any, now: int, x1: float, x2: float) -> tuple[float, float]:
    return weighted_past(weights, past[0], now, x1), weighted_past(weights, past[1], now, x2)


@kernel
def control_position(s: Any, weights: Any, past: Any) -> tuple[float, float]:
    """Return C_P[J_c^-1 (0, y_d - y)] and G at the measured angles [N m]; (7a), (8). `past` is (2, n)."""
    q1, q2 = s.measured_angle[0], s.measured_angle[1]
    error = s.target_along - frame_position(s, q1, q2)[1]
    a, b, c, d = frame_jacobian(s.links, s.plane, q1, q2)
    determinant = a * d - b * c
    e1, e2 = -b * error / determinant, a * error / determinant
    s.position_sum[0] += s.period * e1
    s.position_sum[1] += s.period * e2
    t1, t2 = _apply(weights, past, s.position_now, e1, e2)
    t1 += s.position_integral * s.position_sum[0]
    t2 += s.position_integral * s.position_sum[1]
    if s.holds_weight:
        g1, g2 = gravity(s.links, q1, q2)
        return t1 + g1, t2 + g2
    return t1, t2


@kernel
def recall_force(s: Any, weights: Any, past: Any) -> tuple[float, float, float, float]:
    """Return the torque of C_F from past errors [N m] and the factors of the present error [m]; (7b), (9).

    The two parts are separate for loops in which the present force depends on the present torque.
    """
    t1, t2 = _apply(weights, past, s.force_now, 0.0, 0.0)
    t1 += s.force_integral * s.force_sum[0]
    t2 += s.force_integral * s.force_sum[1]
    a, b, _, _ = frame_jacobian(s.links, s.plane, s.measured_angle[0], s.measured_angle[1])
    gain = weights[0] + s.force_integral * s.period
    return t1, t2, gain * a, gain * b


@kernel
def remember_force(s: Any, past: Any) -> None:
    """Store the present force error in the history of C_F."""
    error = s.target_force - s.measured_force
    a, b, _, _ = frame_jacobian(s.links, s.plane, s.measured_angle[0], s.measured_angle[1])
    past[0, s.force_now], past[1, s.force_now] = a * error, b * error
    s.force_sum[0] += s.period * a * error
    s.force_sum[1] += s.period * b * error


@kernel
def advance_rings(s: Any, position_terms: int, force_terms: int) -> None:
    """Advance the ring buffers of both laws to the next sample."""
    s.position_now = s.position_now + 1 if s.position_now + 1 < position_terms else 0
    s.force_now = s.force_now + 1 if s.force_now + 1 < force_terms else 0
