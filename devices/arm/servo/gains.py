"""Gains of the servo from a bandwidth, and stability of the sampled joint with them.

A joint is modelled as two masses, link and rotor with the gearbox between them, sampled with a zero-order hold, and
with the filters and states of the servo. This loop is linear, and stable if no eigenvalue of a period has a magnitude
above 1. The damping ratio of a gearbox is assumed to be 2 %. A gearbox so stiff that its resonance exceeds the sampling
frequency counts as rigid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from devices.arm.flatness.joint import ElasticJoint
from devices.arm.servo.fractional import weights
from devices.arm.servo.settings import FRACTIONAL, LINEARISING, ServoSettings
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

Feedback = Callable[[Array, Array, Array, Array], tuple[Array, Array]]

MEMORY = 6
"""State of the feedback: errors of link and motor, their filtered rates, integrator and its trim."""

_LOSS = 0.02  # damping ratio of a gearbox

_MARGIN = 1e-9  # tolerance for rounding of an eigenvalue

LOADED = 1e3
"""Torque beyond any play [N m]."""

_BANDWIDTHS = tuple(np.geomspace(0.5, 500.0, 100).tolist())  # bandwidths [Hz] that are tried to suggest a stable one


@dataclass(frozen=True)
class Gains:
    """Gains seen at the joint.

    Attributes
    ----------
    position, velocity, integral : float
        Gains [N m/rad], [N m s/rad], [N m/(rad s)].
    fractional : float
        Gain of the derivative of the law's order, [N m s^order/rad].
    proportional : float
        Additional proportional gain of the fractional law [N m/rad].
    """

    position: float = 0.0
    velocity: float = 0.0
    integral: float = 0.0
    fractional: float = 0.0
    proportional: float = 0.0


@dataclass(frozen=True)
class TwoMasses:
    """Model of a joint for the servo, with all quantities seen at the joint.

    Attributes
    ----------
    link, rotor : float
        Inertias [kg m^2].
    stiffness : float
        Stiffness of the gearbox [N m/rad], may be infinite.
    drag : float
        Slope of the friction on the link [N m s/rad].
    """

    link: float
    rotor: float
    stiffness: float
    drag: float

    @classmethod
    def of(cls, joint: ElasticJoint, inertia: float, period: float, *, torque: float, drag: float) -> TwoMasses:
        """Return the joint with a link of `inertia` [kg m^2], linearized at a `torque` in its gearbox [N m]."""
        rotor = joint.motor_inertia * joint.gear_ratio**2
        slope = float(joint.stiffness.twist_derivatives(torque)[1])
        stiffness = 1.0 / slope if slope > 0.0 else math.inf
        if not stiffness * (1.0 / inertia + 1.0 / rotor) * period**2 < math.pi**2:
            stiffness = math.inf
        return cls(inertia, rotor, stiffness, drag)

    @property
    def total(self) -> float:
        """Total inertia [kg m^2]."""
        return self.link + self.rotor

    def sampled(self, period: float) -> tuple[Array, Array]:
        """Return the sampled system (zero-order hold): (4, 4) for (q, q', rotor, rotor'), (4,) for the torque."""
        rates = np.zeros((5, 5))  # of the four states and of the constant torque
        rates[0, 1] = rates[2, 3] = 1.0
        if self.stiffness == math.inf:
            rates[(1, 3), 1] = -self.drag / self.total
            rates[(1, 3), 4] = 1.0 / self.total
        else:
            reduced = 1.0 / (1.0 / self.link + 1.0 / self.rotor)
            spring = np.array([self.stiffness, 2.0 * _LOSS * math.sqrt(self.stiffness * reduced)])
            rates[1, :4] = np.concatenate((-spring, spring)) / self.link
            rates[3, :4] = np.concatenate((spring, -spring)) / self.rotor
            rates[1, 1] -= self.drag / self.link
            rates[3, 4] = 1.0 / self.rotor
        moved = exponential(period * rates)
        return moved[:4, :4], moved[:4, 4]


def exponential(matrix: Array) -> Array:
    """Return the exponential of a small square matrix, by scaling and squaring of its series."""
    halvings = max(0, math.ceil(math.log2(max(float(abs(matrix).sum(axis=1).max()), 1e-300))) + 2)
    part, term = matrix / 2.0**halvings, np.eye(len(matrix))
    result: Array = term
    for k in range(1, 16):
        term = term @ part / k
        result = result + term
    for _ in range(halvings):
        result = result @ result
    return result


def gains(settings: ServoSettings, inertia: float) -> Gains:
    """Return the gains for a joint with the total `inertia` [kg m^2] of link and rotor."""
    law, own, b = settings.kind, settings.position_gain, 2.0 * math.pi * settings.bandwidth
    if law == LINEARISING:
        return Gains()
    if law == FRACTIONAL:
        gain = own if own > 0.0 else inertia * b ** (2.0 - settings.order)
        return Gains(fractional=gain, proportional=settings.proportional)
    if own > 0.0:
        return Gains(own, settings.velocity_gain, settings.integral_gain)
    z, k = settings.damping_ratio, settings.integral
    return Gains(inertia * b * b * (1.0 + 2.0 * z * k), inertia * b * (2.0 * z + k), inertia * k * b**3)


def stiffness(settings: ServoSettings, plant: TwoMasses) -> float:
    """Return the static stiffness of the servo against an unknown torque on the joint [N m/rad].

    It excludes the integrator and refers to the motor behind the gearbox. Exact linearisation interprets the twist
    caused by the torque as an acceleration of the link and reacts to it: the stiffness is positive, and the loop
    stable, only where 6 b^2 > c/M.
    """
    own = gains(settings, plant.total)
    if settings.kind == LINEARISING:
        b = 2.0 * math.pi * settings.bandwidth
        spring = plant.stiffness / plant.link
        return plant.link * b**4 / (6.0 * b**2 - spring) if spring < math.inf else plant.total * b**2
    return own.position + own.proportional + own.fractional * float(law_weights(settings).sum())


def filter_share(settings: ServoSettings) -> float:
    """Return the coefficient of the low-pass filter of the speed for one period."""
    return 1.0 - math.exp(-2.0 * math.pi * settings.speed_filter * settings.period)


def trim_share(settings: ServoSettings, own: Gains) -> float:
    """Return the coefficient with which the integrator's trim follows the link in a period."""
    return 1.0 - math.exp(-settings.period * own.integral / own.position) if own.position > 0.0 else 0.0


def law_weights(settings: ServoSettings) -> Array:
    """Return the weights of the present and past samples in the fractional law, (terms + 1,) [s^-order]."""
    return np.asarray(weights(settings.order, settings.terms) * settings.period**-settings.order)


def feedback(settings: ServoSettings, plant: TwoMasses, own: Gains) -> Feedback:
    """Return the linear feedback of the servo as a function of rows and its state.

    It returns torque and new state.

    A row is the dependence of a quantity on the state of a loop. The arguments are (link, motor, turning, memory): the
    deviations of link, motor and, for the speed feedback, motor from the reference, and the servo's state, (6, n) or
    for the fractional law (6 + terms + 1, n), which starts with zeros.
    """
    T, share, c = settings.period, filter_share(settings), law_weights(settings)
    trimming = trim_share(settings, own)
    b = 2.0 * math.pi * settings.bandwidth

    def linearised(q: Array, w: Array, m: Array, wm: Array) -> Array:
        if plant.stiffness == math.inf:
            return -plant.total * b * (2.0 * w + b * q)
        rate = plant.stiffness / plant.link
        a, jerk = rate * (m - q), rate * (wm - w)
        snap = -b * (4.0 * jerk + b * (6.0 * a + b * (4.0 * w + b * q)))
        return plant.rotor * (a + snap / rate) + plant.link * a

    def step(link: Array, motor: Array, turning: Array, memory: Array) -> tuple[Array, Array]:
        link_rate = memory[2] + share * ((link - memory[0]) / T - memory[2])
        motor_rate = memory[3] + share * ((turning - memory[1]) / T - memory[3])
        trim = memory[5] + trimming * (link - motor - memory[5])
        integral = memory[4] + T * own.integral * (motor + trim)
        past = np.vstack((motor, memory[6:-1])) if len(memory) > MEMORY else memory[6:]
        after = np.vstack((link, turning, link_rate, motor_rate, integral, trim, past))
        if settings.kind == LINEARISING:
            return linearised(link, link_rate, motor, motor_rate), after
        if settings.kind == FRACTIONAL:
            return -own.fractional * (c @ past) - own.proportional * motor, after
        return -own.position * motor - own.velocity * motor_rate - integral, after

    return step


def memory_size(settings: ServoSettings) -> int:
    """Return the number of state variables of a joint's servo, without its reference."""
    return MEMORY + (settings.terms + 1 if settings.kind == FRACTIONAL else 0)


def growth(settings: ServoSettings, plant: TwoMasses, encoders: str) -> float:
    """Return the largest magnitude of an eigenvalue of one period of the loop: below 1 it is stable."""
    moved, pushed = plant.sampled(settings.period)
    own = gains(settings, plant.total)
    link, rotor = np.eye(4)[0], np.eye(4)[2]
    sees = {"motor": (rotor, rotor), "joint": (link, link), "both": (link, rotor)}[encoders]
    count = 4 + memory_size(settings)
    x = np.eye(count)
    link, motor = sees[0] @ x[:4], sees[1] @ x[:4]
    torque, memory = feedback(settings, plant, own)(link, motor, motor, x[4:])
    loop = np.vstack((moved @ x[:4] + np.outer(pushed, torque), memory))
    # an integrator without gain has the eigenvalue 1
    used = [k for k in range(count) if k not in (8, 9) or own.integral > 0.0]
    return float(abs(np.linalg.eigvals(loop[np.ix_(used, used)])).max())


def require_stable(settings: ServoSettings, joint: ElasticJoint, inertia: float, encoders: str, number: int) -> None:
    """Raise `ConfigurationError` unless joint `number` with a link of `inertia` [kg m^2] is stable.

    It must be stable within the play of its gearbox and under load, for a sliding link and for a link near rest.
    """
    rotor, rest = joint.motor_inertia * joint.gear_ratio**2, float(joint.friction.derivatives(0.0)[1])
    plants = [
        TwoMasses.of(joint, inertia, settings.period, torque=torque, drag=drag)
        for torque in (0.0, LOADED)
        for drag in (0.0, rest)
    ]

    def stable(tried: ServoSettings) -> bool:
        return all(growth(tried, plant, encoders) < 1.0 + _MARGIN for plant in plants)

    if stable(settings):
        return
    where = f"joint {number} (link of {inertia:.4g} and rotor of {rotor:.4g} kg m^2, {settings.period:g} s period)"
    if settings.position_gain > 0.0:
        raise ConfigurationError(f"device.servo.position_gain = {settings.position_gain!r}: unstable at {where}.")
    others = [b for b in _BANDWIDTHS if stable(replace(settings, bandwidth=b))]
    nearest = min(others, key=lambda b: abs(math.log(b / settings.bandwidth)), default=0.0)
    bound = "most" if nearest < settings.bandwidth else "least"
    advice = f"must be at {bound} {nearest:.3g} Hz" if others else "no other would be stable either"
    raise ConfigurationError(f"device.servo.bandwidth = {settings.bandwidth!r}: unstable at {where}; {advice}.")
