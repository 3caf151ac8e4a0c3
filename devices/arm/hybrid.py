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

from devices.arm.mechanics.drive import RIGID, Drive, encoder_angle
from devices.arm.mechanics.dynamics import Links, centrifugal, frame_jacobian, gravity
from devices.arm.mechanics.linkage import PlacedLinkage
from devices.arm.mechanics.plant import (
    PLANT_FIELDS,
    Surface,
    contact_motion,
    frame_position,
    mobilities,
    mobility,
    new_plant,
    step_plant,
)
from devices.arm.servo.fractional import MAX_ORDER, weighted_past, weights
from haptics.errors import ConfigurationError
from haptics.friction.laws import warn_if_ambiguous
from haptics.jit import kernel
from haptics.records import Rows, fields
from haptics.settings import bounded, check, documented, flag, unknown_name

CONTROL_FIELDS: list[tuple[Any, ...]] = [
    *fields("<f8", "period target_force target_along position_integral force_integral"),
    ("holds_weight", "<i8"),
    *fields("<f8", "position_sum force_sum", 2),
    *fields("<i8", "position_now force_now"),
    ("measured_angle", "<f8", (2,)),
    ("measured_force", "<f8"),
    ("torque", "<f8", (2,)),
]
"""Fields of the controller: settings, state, and the latest measurements and torques. The laws are separate arrays."""


class ControlLaw(ABC):
    """Linear control law: from a sampled error to a torque."""

    def __post_init__(self) -> None:
        check(self, "law")

    @abstractmethod
    def weights(self, period: float) -> NDArray[np.float64]:
        """Return the weights of the present and of each earlier sample, (n,), at the sampling `period` [s]."""


@documented
@dataclass(frozen=True)
class FractionalLaw(ControlLaw):
    """K_0 D^order, over a limited history (Machado et al. 2002, (7))."""

    gain: float = bounded(
        minimum=0.0, maximum=1e12, doc="continuous gain K_0; the sum of (7) has the factor K_0 T^-order"
    )
    order: float = bounded(
        minimum=-MAX_ORDER, maximum=MAX_ORDER, doc="order of the derivative; negative for an integral"
    )
    terms: int = bounded(17, minimum=0, maximum=100_000, doc="samples r of the past that count besides the present one")

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

    def weights(self, period: float) -> NDArray[np.float64]:  # noqa: D102 (inherited)
        slope = self.derivative / period
        return np.array([self.proportional + slope, -slope])


@documented
@dataclass(frozen=True)
class ProportionalIntegral(ControlLaw):
    """PI: proportional and integral (9b)."""

    integral: float = bounded(minimum=0.0, maximum=1e12, doc="gain a_F of the integral")
    proportional: float = bounded(minimum=0.0, maximum=1e12, doc="gain b_F of the error itself")

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
    holds_weight: bool = flag(True, doc="whether it adds G(q), which holds the arm's weight; the paper does not say")

    def __post_init__(self) -> None:
        check(self, "control")


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
    t1 = weighted_past(weights, past[0], s.position_now, e1) + s.position_integral * s.position_sum[0]
    t2 = weighted_past(weights, past[1], s.position_now, e2) + s.position_integral * s.position_sum[1]
    if s.holds_weight:
        g1, g2 = gravity(s.links, q1, q2)
        return t1 + g1, t2 + g2
    return t1, t2


ELASTIC_FORCE, SAMPLED_FORCE, SOLVED_FORCE = 0, 1, 2

SENSORS = {"elastic": ELASTIC_FORCE, "sampled": SAMPLED_FORCE, "solved": SOLVED_FORCE}
"""Force feedback of F = M x'' + B x' + K x: B x' + K x only, all terms with the x'' of the last step, or all terms with
the x'' that the torque of the present sample causes.
"""

_RUNAWAY = 1e3  # joint speed at which a run ends [rad/s]

LONGEST, MOST_SUBSTEPS, LEAST_BEND = 3600.0, 100_000, 1e-3

LOOP = np.dtype([*PLANT_FIELDS, *CONTROL_FIELDS, ("sensor", "<i8"), ("substeps", "<i8"), ("start_along", "<f8")])
"""Record of arm, controller and loop."""

RESULT = np.dtype(
    [
        *fields("<f8", "time force contact_force depth along"),
        *fields("<f8", "torque angle rotor speed load friction", 2),
        ("sticking", "<i8", (2,)),
    ]
)
"""Row of a run at every sample: the force that is fed back and the true force [N], depth in the surface and deviation
along it [m], torques of controller, coupling and friction [N m], angles [rad] and speeds [rad/s] of the joints.
"""


@kernel
def _torque_to_force(s: Any, drives: Rows) -> tuple[float, float, float]:
    """Return (F, a, b): the contact force is F + a t_1 + b t_2 [N] under the drive torques t [N m]; (3)."""
    q1, q2, w1, w2 = s.angle[0], s.angle[1], s.speed[0], s.speed[1]
    m11, m12, m22 = mobility(s, drives, 0.0)
    jx, jy, _, _ = frame_jacobian(s.links, s.plane, q1, q2)
    c1, c2 = centrifugal(s.links, q1, q2, w1, w2)
    g1, g2 = gravity(s.links, q1, q2)
    x, v, turning = contact_motion(s)
    F = s.contact_mass * turning + s.contact_damping * v + s.contact_stiffness * x
    t1, t2 = -c1 - g1 - jx * F, -c2 - g2 - jy * F
    a, b = s.contact_mass * (jx * m11 + jy * m12), s.contact_mass * (jx * m12 + jy * m22)
    # The torque of a rigid drive acts on the joint at once. Other drives transmit the present torque of the coupling.
    if drives[0].coupling != RIGID:
        t1 += s.load[0]
    if drives[1].coupling != RIGID:
        t2 += s.load[1]
    F += a * t1 + b * t2
    return F, a if drives[0].coupling == RIGID else 0.0, b if drives[1].coupling == RIGID else 0.0


@kernel
def run_loop(loop: Rows, drives: Rows, wp: Any, past_p: Any, wf: Any, past_f: Any, results: Rows) -> int:
    """Run the loop `loop[0]` for up to ``len(results)`` samples; return the number of samples completed.

    The arm is held at its measured position along the surface. The run ends early when a joint is faster than
    1000 rad/s. ``wp``, (n,), and ``wf``, (m,), are the weights of the laws; ``past_p``, (2, n), and ``past_f``, (2, m),
    their histories.

    The torque of C_F, (7b) and (9), is t + k (F_d - F): t from the past errors [N m], and the factors k of the present
    error [m] separate, because the present force F may depend on the present torque.
    """
    s = loop[0]
    u, w = np.zeros(2), np.zeros(4)
    for k in range(len(results)):
        for i in range(2):
            s.measured_angle[i] = encoder_angle(drives[i], s.angle[i], s.rotor[i])
        q1, q2 = s.measured_angle[0], s.measured_angle[1]
        if k == 0:
            s.target_along = frame_position(s, q1, q2)[1]
            s.start_along = frame_position(s, s.angle[0], s.angle[1])[1]
        p1, p2 = control_position(s, wp, past_p)
        t1 = p1 + (weighted_past(wf, past_f[0], s.force_now, 0.0) + s.force_integral * s.force_sum[0])
        t2 = p2 + (weighted_past(wf, past_f[1], s.force_now, 0.0) + s.force_integral * s.force_sum[1])
        jx, jy, _, _ = frame_jacobian(s.links, s.plane, q1, q2)
        gain = wf[0] + s.force_integral * s.period
        k1, k2 = gain * jx, gain * jy
        if s.sensor == SAMPLED_FORCE:
            s.measured_force = s.contact_force
        elif s.sensor == SOLVED_FORCE:
            F, a, b = _torque_to_force(s, drives)
            through = a * k1 + b * k2
            s.measured_force = (F + a * t1 + b * t2 + through * s.target_force) / (1.0 + through)
        else:
            x, v, _ = contact_motion(s)
            s.measured_force = s.contact_damping * v + s.contact_stiffness * x
        error = s.target_force - s.measured_force
        past_f[0, s.force_now], past_f[1, s.force_now] = jx * error, jy * error
        s.force_sum[0] += s.period * jx * error
        s.force_sum[1] += s.period * jy * error
        s.torque[0], s.torque[1] = t1 + k1 * error, t2 + k2 * error
        s.position_now = s.position_now + 1 if s.position_now + 1 < len(wp) else 0
        s.force_now = s.force_now + 1 if s.force_now + 1 < len(wf) else 0
        r = results[k]
        r.time, r.force, r.contact_force, r.depth = (
            k * s.period,
            s.measured_force,
            s.contact_force,
            contact_motion(s)[0],
        )
        r.along = frame_position(s, s.angle[0], s.angle[1])[1] - s.start_along
        for i in range(2):
            r.torque[i], r.angle[i], r.rotor[i], r.speed[i] = s.torque[i], s.angle[i], s.rotor[i], s.speed[i]
            r.load[i], r.friction[i], r.sticking[i] = s.load[i], s.friction[i], s.sticking[i]
            u[i] = s.torque[i] / drives[i].ratio
        for _ in range(s.substeps):
            step_plant(s, drives, u, w)
        if not max(abs(s.speed[0]), abs(s.speed[1])) < _RUNAWAY:
            return k + 1
    return len(results)


@dataclass(frozen=True)
class Run:
    """Result of a simulation of hybrid control.

    Attributes
    ----------
    rows : (n,) structured array
        One row of dtype `RESULT` for every sample of the controller, from time 0 on; it ends where the arm ran away.
    ran_away : bool
        Whether a joint became faster than 1000 rad/s, which ended the run.
    """

    rows: Rows
    ran_away: bool


def simulate_hybrid(
    links: Links,
    drives: tuple[Drive, Drive],
    surface: Surface,
    control: Hybrid,
    *,
    start: tuple[float, float],
    force: float,
    duration: float,
    sensor: str = "elastic",
    substeps: int = 50,
) -> Run:
    """Simulate a force step from time 0 on an arm at rest on a surface.

    The position along the surface is held.

    Parameters
    ----------
    links, drives, surface, control
        The parts of the loop. At the start the surface is unloaded and the arm at rest. If the controller compensates
        gravity, elastic couplings start at their static deflection.
    start : (float, float)
        Joint angles [rad].
    force : float
        F_d [N].
    duration : float
        Duration [s].
    sensor : str
        Kind of force feedback, see `SENSORS`. "solved" requires joints without friction.
    substeps : int
        Steps of the simulation per sample of the controller.

    Returns
    -------
    Run

    Raises
    ------
    ConfigurationError
        If an argument is invalid.

    Warns
    -----
    AmbiguousLawWarning
        If a friction law falls so steeply that the torque is not unique at this step size.
    """
    if not np.isfinite((*start, force, duration)).all() or not 0.0 < duration <= LONGEST:
        raise ConfigurationError(
            f"start = {start!r}, force = {force!r}, duration = {duration!r}: must be two finite angles [rad], a finite "
            f"force [N] and a time up to {LONGEST:g} s."
        )
    if sensor not in SENSORS:
        raise unknown_name("sensor", sensor, SENSORS)
    if not 1 <= substeps <= MOST_SUBSTEPS:
        raise ConfigurationError(f"substeps = {substeps!r}: must be a whole number from 1 to {MOST_SUBSTEPS}.")
    frictions = (law for drive in drives for law in (drive.friction, drive.backward_friction, drive.motor.friction))
    if sensor == "solved" and any(law is not None for law in frictions):
        raise ConfigurationError("sensor = 'solved': needs drives without friction; choose 'elastic' or 'sampled'.")
    if not (PlacedLinkage(links.linkage).clearance(start) >= LEAST_BEND).all():
        raise ConfigurationError(
            f"start = {start!r}: the links are in one line there; hybrid control cannot hold that."
        )
    loop = np.zeros(1, LOOP)
    rows = new_plant(loop, links, drives, surface, start, control.holds_weight)
    loop["period"], loop["holds_weight"], loop["target_force"] = control.period, control.holds_weight, force
    loop["position_integral"] = getattr(control.position, "integral", 0.0)
    loop["force_integral"] = getattr(control.force, "integral", 0.0)
    loop["sensor"], loop["substeps"], loop["step"] = SENSORS[sensor], substeps, control.period / substeps
    for drive, joint in zip(drives, mobilities(loop, rows), strict=True):
        motor = drive.motor
        shaft = joint * drive.ratio**2 if drive.coupling == "rigid" else control.period / substeps / motor.inertia
        laws = (drive.friction, joint), (drive.backward_friction, joint)
        for law, give in (*laws, (motor.friction, shaft)):
            if law is not None:
                warn_if_ambiguous(law, give, "more substeps")
    wp, wf = control.position.weights(control.period), control.force.weights(control.period)
    results = np.zeros(round(duration / control.period), RESULT)
    count = run_loop(loop, rows, wp, np.zeros((2, len(wp))), wf, np.zeros((2, len(wf))), results)
    return Run(results[:count], bool(count < len(results)))
