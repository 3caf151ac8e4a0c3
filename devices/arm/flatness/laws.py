"""Smooth friction laws of a joint and stiffness laws of a gearbox, with exact derivatives, as kernels and as classes.

The feed-forward needs the friction torque and its first two derivatives with respect to the velocity. A smooth law
never sticks: at rest it creeps under any torque. The exact set-valued laws are in `haptics.friction.laws`.

====================  ===============================================================
`SmoothCoulomb`       Weigand et al. 2020, (4): dry and viscous friction
`AsymmetricFriction`  two dry parts of different steepness, and a constant offset
====================  ===============================================================

A stiffness law relates the torque in a gearbox to its twist, the motor angle at the link's side minus the link angle:
theta/u - q. A law is given in closed form in one direction. The other direction is its numerical inverse, to machine
precision, with the derivatives of an inverse function: D' = 1/E', D'' = -E''/E'^3. Both directions are therefore
consistent, which the paper's (9) and (11) are not: they differ by up to a third of the backlash. A feed-forward is
exact only if it uses the stiffness law of the joint.

==================  ==============================  ========  ==============================================
class               Weigand et al. 2020             given as  smooth enough for the feed-forward
==================  ==============================  ========  ==============================================
`SmoothBacklash`    (11)                            twist     yes
`RampBacklash`      (7), (8), (9)                   torque    only with some stiffness inside the play
`LostMotion`        (6), (10)                       both      no: its twist jumps where the torque changes sign
==================  ==============================  ========  ==============================================
"""

from __future__ import annotations

import functools
import math
from abc import ABC
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.errors import ConfigurationError
from haptics.jit import inlined_kernel, kernel
from haptics.records import Rows
from haptics.settings import bounded, check, documented

Values = NDArray[np.float64]
"""Float array."""

NUMBERS = 8
"""Maximum number of parameters of a law."""

SMOOTH = np.dtype([("kind", "<i8"), ("numbers", "<f8", (NUMBERS,))])
"""Kernel record of a smooth law: the kind of a stiffness law, and the parameters."""

KNEE, LAGGING, BROKEN = 0, 1, 2
"""Kinds of stiffness laws."""

_Triple = tuple[Any, Any, Any]  # value, first and second derivative


def finite(values: ArrayLike, name: str) -> Values:
    """Return `values` as a float array; raise `ConfigurationError` if they are not finite numbers."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if not np.isfinite(array).all():
        shown = f"of shape {array.shape}" if array.ndim else f"= {values!r}"
        raise ConfigurationError(f"{name} {shown}: must be finite numbers.")
    return array


@functools.cache
def _array_kernel(function: Callable[..., Any]) -> Callable[..., None]:
    """Return the kernel that evaluates `function` of a law.

    Its arguments are the law in the (1,) array `laws`, `arguments`, (n,), and `results`, (n, 3).
    """

    @kernel
    def fill(laws: Rows, arguments: Any, results: Any) -> None:
        for k in range(len(arguments)):
            results[k, 0], results[k, 1], results[k, 2] = function(laws[0], arguments[k])

    return fill


@dataclass(frozen=True)
class SmoothLaw(ABC):
    """Smooth law with up to eight parameters; its fields are its parameters."""

    kind: ClassVar[int] = 0
    prefix: ClassVar[str]
    """Name of the law in messages."""

    def __post_init__(self) -> None:
        check(self, self.prefix)

    @property
    def numbers(self) -> tuple[float, ...]:
        """Parameters of the law in the order in which the kernels read them."""
        return astuple(self)

    @property
    def record(self) -> NDArray[Any]:
        """Kernel record of the law, (1,) of dtype `SMOOTH`."""
        record = np.zeros(1, SMOOTH)
        record["kind"] = self.kind
        record["numbers"][0][: len(self.numbers)] = self.numbers
        return record

    def _evaluate(self, function: Callable[..., Any], arguments: Values) -> Values:
        """Return `function` of the law and its two derivatives, (..., 3)."""
        results = np.empty((arguments.size, 3))
        _array_kernel(function)(self.record, arguments.ravel(), results)
        return results.reshape(*arguments.shape, 3)


# --- friction ---------------------------------------------------------------------------------------------------------


@inlined_kernel
def saturation(x: Any) -> _Triple:
    """Return tanh(x) and its two derivatives, each with full relative precision for any x."""
    decay = math.exp(-2.0 * abs(x))
    t = math.tanh(x) if abs(x) < 0.3 else math.copysign((1.0 - decay) / (1.0 + decay), x)
    slope = 4.0 * decay / ((1.0 + decay) * (1.0 + decay))  # 1 - t^2 would cancel to 0 for a large x
    return t, slope, -2.0 * t * slope


@inlined_kernel
def evaluate_friction(law: Any, w: float) -> _Triple:
    """Return friction torque F [N m], F' [N m s/rad] and F'' [N m s^2/rad^2] at the velocity w [rad/s]."""
    p = law.numbers  # (a, D, b, o, a_2, b_2) of o + D w + a tanh(b w) + a_2 tanh(b_2 w)
    t, t1, t2 = saturation(p[2] * w)
    F = p[3] + p[1] * w + p[0] * t
    F1 = p[1] + p[0] * p[2] * t1
    F2 = p[0] * p[2] * p[2] * t2
    if p[4] != 0.0:
        t, t1, t2 = saturation(p[5] * w)
        F, F1, F2 = F + p[4] * t, F1 + p[4] * p[5] * t1, F2 + p[4] * p[5] * p[5] * t2
    return F, F1, F2


@dataclass(frozen=True)
class SmoothFriction(SmoothLaw):
    """A friction torque that is twice continuously differentiable over the velocity."""

    prefix: ClassVar[str] = "friction"

    def derivatives(self, velocity: ArrayLike) -> Values:
        """Return torque [N m], slope [N m s/rad] and curvature [N m s^2/rad^2], (..., 3).

        Parameters
        ----------
        velocity : array
            Joint velocity [rad/s].

        Raises
        ------
        ConfigurationError
            If a velocity is not finite.
        """
        return self._evaluate(evaluate_friction, finite(velocity, "velocity"))

    def __call__(self, velocity: ArrayLike) -> Values:
        """Return the friction torque [N m] at `velocity` [rad/s], in the direction of the velocity."""
        return np.asarray(self.derivatives(velocity)[..., 0])[()]


@documented
@dataclass(frozen=True)
class SmoothCoulomb(SmoothFriction):
    """Dry and viscous friction, smoothed (Weigand et al. 2020, (4)).

    The law is f_v w + 2 f_c/(1 + exp(-s_F w)) - f_c.
    """

    coulomb: float = bounded(minimum=0.0, unit="N m", doc="dry friction f_c")
    viscosity: float = bounded(minimum=0.0, unit="N m s/rad", doc="viscosity f_v")
    smoothness: float = bounded(above=0.0, unit="s/rad", doc="steepness s_F at rest; larger is closer to dry friction")

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return self.coulomb, self.viscosity, 0.5 * self.smoothness


@documented
@dataclass(frozen=True)
class AsymmetricFriction(SmoothFriction):
    """Viscous friction, two dry parts and an offset: o + D w + a tanh(b w) + a_2 tanh(b_2 w)."""

    coulomb: float = bounded(unit="N m", doc="first dry part a")
    viscosity: float = bounded(minimum=0.0, unit="N m s/rad", doc="viscosity D")
    steepness: float = bounded(minimum=0.0, unit="s/rad", doc="steepness b of the first dry part")
    offset: float = bounded(0.0, unit="N m", doc="torque o at any velocity: the friction is larger in one direction")
    second_coulomb: float = bounded(0.0, unit="N m", doc="second dry part, as a rule much steeper")
    second_steepness: float = bounded(0.0, minimum=0.0, unit="s/rad", doc="steepness of the second dry part")


# --- stiffness --------------------------------------------------------------------------------------------------------


@inlined_kernel
def _knee_twist(law: Any, tau: float) -> _Triple:
    """Return tau/c + phi tanh(s tau/2) and its derivatives, p = (c, phi, s); Weigand et al. 2020, (11)."""
    p = law.numbers
    t, t1, t2 = saturation(0.5 * p[2] * tau)
    half = 0.5 * p[2]
    return tau / p[0] + p[1] * t, 1.0 / p[0] + p[1] * half * t1, p[1] * half * half * t2


@kernel
def _ramp_response(z: float) -> _Triple:
    """Return h = z - 3 + exp(-z) (3 + 2 z + z^2/2) for z >= 0 and derivatives; (7) in units of phi_B/3.

    Below 3 the terms of the closed form cancel. There, h and h' are exp(-z) times the sums of (k - 3) z^k/k! for k >= 4
    and of z^k/k! for k >= 3: the power series without the terms that cancel. No term of these sums is negative.
    """
    decay = math.exp(-z)
    h2 = 0.5 * z * z * decay
    if z >= 3.0:
        return z - 3.0 + decay * (3.0 + z * (2.0 + 0.5 * z)), 1.0 - decay * (1.0 + z * (1.0 + 0.5 * z)), h2
    term = z * z * z / 6.0
    h, h1, k = 0.0, term, 3.0
    while (k - 2.0) * term > 1e-18 * h:
        k += 1.0
        term *= z / k
        h1 += term
        h += (k - 3.0) * term
    return decay * h, decay * h1, h2


@kernel
def _lagging_torque(law: Any, x: float) -> _Triple:
    """Return sgn(x) c phi/3 h(3|x|/phi) + c_0 x and its derivatives, p = (c, phi, c_0); (7), (8).

    The odd continuation is itself three times continuously differentiable: (9) with s_E1 to infinity.
    """
    p = law.numbers
    h, h1, h2 = _ramp_response(3.0 * abs(x) / p[1])
    return (
        math.copysign(p[0] * p[1] / 3.0 * h, x) + p[2] * x,
        p[0] * h1 + p[2],
        math.copysign(3.0 * p[0] / p[1] * h2, x),
    )


@kernel
def _broken_torque(law: Any, x: float) -> _Triple:
    """Return the piecewise linear torque, p = (c_TR, c_LM, phi_B*, phi_LM); (6) made continuous."""
    p = law.numbers
    r = abs(x)
    if r <= p[2]:
        return 0.0, 0.0, 0.0
    if r <= p[2] + p[3]:
        return math.copysign(p[1] * (r - p[2]), x), p[1], 0.0
    return math.copysign(p[0] * (r - p[2] - p[3]) + p[1] * p[3], x), p[0], 0.0


@kernel
def _broken_twist(law: Any, tau: float) -> _Triple:
    """Return the inverse of the piecewise linear law, 0 within the backlash; (10) corrected."""
    p = law.numbers
    r, lost = abs(tau), p[1] * p[3]
    if r == 0.0:
        return 0.0, math.inf, 0.0
    if r <= lost:
        return tau / p[1] + math.copysign(p[2], tau), 1.0 / p[1], 0.0
    return (tau - math.copysign(lost, tau)) / p[0] + math.copysign(p[2] + p[3], tau), 1.0 / p[0], 0.0


@kernel
def _inverse(law: Any, y: float) -> _Triple:
    """Return the x with y = f(x) of an increasing function and its derivatives, to machine precision.

    Newton's method inside a bracket that every step narrows. Steps are not limited until both sides are bracketed.
    """
    p, x = law.numbers, 0.0
    if law.kind == KNEE:  # left of the root of a concave function
        x = math.copysign(p[0] * max(abs(y) - p[1], 0.0), y)
    elif law.kind == LAGGING:
        r = 3.0 * abs(y) / (p[0] * p[1])
        x = (r + 3.0 if r > 0.5 else math.sqrt(math.sqrt(24.0 * r))) * p[1] / 3.0
        x = math.copysign(min(x, abs(y) / p[2]) if p[2] > 0.0 else x, y)
    low, high, last = -math.inf, math.inf, math.inf
    for _ in range(200):
        f, f1, _f2 = _knee_twist(law, x) if law.kind == KNEE else _lagging_torque(law, x)
        if f == y or math.isnan(f):
            break
        if f < y:
            low = x
        else:
            high = x
        step = (y - f) / f1 if f1 > 0.0 else math.inf
        bracketed = low > -math.inf and high < math.inf
        if abs(step) <= 1.2e-16 * abs(x):
            break
        if not low < x + step < high or (bracketed and abs(step) > 0.5 * last):
            step = 0.5 * (low + high) - x if bracketed else math.copysign(2.0 * abs(x) + 1e-9, y - f)
        if not low < x + step < high:  # no floating-point number left inside the bracket
            break
        last = abs(step)
        x += step
    _f, f1, f2 = _knee_twist(law, x) if law.kind == KNEE else _lagging_torque(law, x)
    if f1 == 0.0:
        return x, math.inf, 0.0
    return x, 1.0 / f1, -f2 / (f1 * f1 * f1)


@inlined_kernel
def gear_twist(law: Any, tau: float) -> _Triple:
    """Return twist D [rad], D' [rad/(N m)] and D'' [rad/(N m)^2] under the torque tau [N m].

    The laws are (11) and the inverses of the others.
    """
    if law.kind == KNEE:
        return _knee_twist(law, tau)
    if law.kind == BROKEN:
        return _broken_twist(law, tau)
    return _inverse(law, tau)


@inlined_kernel
def gear_torque(law: Any, twist: float) -> _Triple:
    """Return torque E [N m], E' [N m/rad] and E'' [N m/rad^2] at a twist [rad].

    The laws are (6), (9) and the inverse of (11).
    """
    if law.kind == LAGGING:
        return _lagging_torque(law, twist)
    if law.kind == BROKEN:
        return _broken_torque(law, twist)
    return _inverse(law, twist)


TWISTS: dict[int, Callable[..., Any]] = {KNEE: _knee_twist, LAGGING: _inverse, BROKEN: _broken_twist}
TORQUES: dict[int, Callable[..., Any]] = {KNEE: _inverse, LAGGING: _lagging_torque, BROKEN: _broken_torque}
"""`gear_twist` and `gear_torque` by kind of the law; each compiles in a fraction of the time."""


@dataclass(frozen=True)
class Stiffness(SmoothLaw):
    """Torque in a gearbox as an increasing function of its twist, and the inverse function."""

    prefix: ClassVar[str] = "stiffness"

    def torque_derivatives(self, twist: ArrayLike) -> Values:
        """Return torque [N m] and its two derivatives [N m/rad], [N m/rad^2], (..., 3), at `twist` [rad]."""
        return self._evaluate(TORQUES[self.kind], finite(twist, "twist"))

    def twist_derivatives(self, torque: ArrayLike) -> Values:
        """Return twist [rad] and its two derivatives [rad/(N m)], [rad/(N m)^2], (..., 3), at `torque` [N m]."""
        return self._evaluate(TWISTS[self.kind], finite(torque, "torque"))

    def torque(self, twist: ArrayLike) -> Values:
        """Return the torque in the gearbox [N m] at `twist` [rad]."""
        return np.asarray(self.torque_derivatives(twist)[..., 0])[()]

    def twist(self, torque: ArrayLike) -> Values:
        """Return the twist of the gearbox [rad] under `torque` [N m]."""
        return np.asarray(self.twist_derivatives(torque)[..., 0])[()]


@documented
@dataclass(frozen=True)
class SmoothBacklash(Stiffness):
    """Stiffness with a soft knee: twist tau/c + 2 phi/(1 + exp(-s tau)) - phi (Weigand et al. 2020, (11))."""

    kind: ClassVar[int] = KNEE
    stiffness: float = bounded(above=0.0, unit="N m/rad", doc="stiffness c of the loaded gearbox")
    backlash: float = bounded(
        minimum=0.0, unit="rad", doc="half the play phi, lost motion included; with 0 the gearbox is a linear spring"
    )
    smoothness: float = bounded(1.0, above=0.0, unit="1/(N m)", doc="s: a torque of about 4/s takes up the play")


@documented
@dataclass(frozen=True)
class RampBacklash(Stiffness):
    """Stiffness that increases like the response of three equal lags to a ramp.

    See Weigand et al. 2020, (7) to (9). The odd continuation of (7) is itself three times continuously differentiable.
    The tanh of (9) only approximates it: this law is (9) for an infinite slope factor.
    """

    kind: ClassVar[int] = LAGGING
    stiffness: float = bounded(above=0.0, unit="N m/rad", doc="stiffness c of the loaded gearbox")
    backlash: float = bounded(above=0.0, unit="rad", doc="half the play phi, lost motion included")
    slack_stiffness: float = bounded(
        0.0,
        minimum=0.0,
        unit="N m/rad",
        doc="stiffness in the middle of the play, added everywhere; without any, as in the paper, the twist rises "
        "infinitely steeply at zero torque, which no motor can follow",
    )


@documented
@dataclass(frozen=True)
class LostMotion(Stiffness):
    """Play, lost motion and full contact as a piecewise linear law (Weigand et al. 2020, (6), (10)).

    As printed, (6) and (10) are discontinuous. Here they are continuous and inverse to each other. Without torque, any
    twist within the play is possible; 0 is returned.
    """

    kind: ClassVar[int] = BROKEN
    stiffness: float = bounded(above=0.0, unit="N m/rad", doc="stiffness c_TR in full contact")
    lost_motion_stiffness: float = bounded(above=0.0, unit="N m/rad", doc="stiffness c_LM while not all teeth touch")
    backlash: float = bounded(minimum=0.0, unit="rad", doc="half the play phi_B*")
    lost_motion: float = bounded(minimum=0.0, unit="rad", doc="further twist phi_LM until all teeth touch")
