"""State matrices of the sampled loop of element and device, with zero-order hold, for one period.

As long as a contact stays in one phase, the loop is linear. From one sample to the next its state is multiplied by a
matrix, and it decays if and only if every eigenvalue is inside the unit circle. Between samples the device follows its
differential equation under a known command, so that the matrix exponential is exact, also for a delay that ends within
a period.

Two loops limit the parameters. On an impedance device it is the *sticking* contact: the element is then a spring and
damper, computed from the position of the last sample and its backward difference. On an admittance device it is the
*sliding* contact: then only the mass of the element limits the response of the arm to the force of the hand.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from haptics.device import DeviceSpec
from haptics.settings import Checked, bounded, documented, flag

Matrix = NDArray[np.float64]

MAX_DELAY = 40
"""Longest modelled delay, in periods; longer delays are truncated, which makes limits optimistic."""

FIRM_GRIP = (1000.0, 20.0)
"""Stiffness [N/m] and damping [N s/m] of a firm grip, assumed for devices that do not state a grip."""


@documented
@dataclass(frozen=True)
class Coupling(Checked, section="coupling"):
    """Sampled spring and damper, the model of a sticking contact."""

    stiffness: float = bounded(minimum=0.0, unit="N/m", doc="stiffness K of the virtual coupling")
    damping: float = bounded(minimum=0.0, unit="N s/m", doc="damping B of the virtual coupling")
    period: float = bounded(1e-3, above=0.0, maximum=1.0, unit="s", doc="time T between two samples")


@documented
@dataclass(frozen=True)
class Handle(Checked, section="handle"):
    """Handle of an impedance device, without the hand, which usually adds damping."""

    mass: float = bounded(above=0.0, unit="kg", doc="moving mass")
    damping: float = bounded(0.0, minimum=0.0, unit="N s/m", doc="own viscous damping")
    delay: float = bounded(
        0.0, minimum=0.0, unit="s", doc="time from a sample to its force, without that of the velocity estimator"
    )
    resolution: float = bounded(0.0, minimum=0.0, unit="m", doc="step of the encoder")
    velocity_lag: float = bounded(
        0.0, minimum=0.0, unit="s", doc="delay of the velocity relative to a backward difference"
    )

    @classmethod
    def of(cls, spec: DeviceSpec) -> Self | None:
        """Return the handle that the data sheet describes, or None if it does not state the mass.

        Unstated damping, delay and resolution count as 0.
        """
        if not spec.mass:
            return None
        return cls(
            spec.mass, spec.damping or 0.0, spec.delay or 0.0, spec.position_resolution or 0.0, spec.velocity_lag
        )

    @property
    def total_delay(self) -> float:
        """Delay of the loop, including the velocity estimator [s]."""
        return self.delay + self.velocity_lag


@documented
@dataclass(frozen=True)
class PositionServo(Checked, section="servo"):
    r"""Position-controlled arm of an admittance device, held by a hand.

    The arm obeys :math:`\ddot x = w^2 (r - x) + 2 z w (s \dot r - \dot x)` and is too stiff for the hand to deflect it.
    The reference r moves linearly from one command to the next.
    """

    frequency: float = bounded(above=0.0, unit="Hz", doc="natural frequency w/(2 pi) of the servo")
    damping_ratio: float = bounded(1.0, above=0.0, doc="damping ratio z; 1 is critical")
    knows_velocity: bool = flag(
        False, doc="whether s is 1: the servo receives the velocity of the reference; otherwise the arm lags"
    )
    delay: float = bounded(0.0, minimum=0.0, unit="s", doc="time from a sample to the reference computed from it")
    grip_stiffness: float = bounded(
        FIRM_GRIP[0], minimum=0.0, unit="N/m", doc="stiffness of the grip between the arm and a hand that holds still"
    )
    grip_damping: float = bounded(FIRM_GRIP[1], minimum=0.0, unit="N s/m", doc="damping of the grip")
    handle_mass: float = bounded(
        0.0, minimum=0.0, unit="kg", doc="mass beyond the force sensor, which shows its inertia as a force"
    )

    @classmethod
    def of(cls, spec: DeviceSpec) -> Self | None:
        """Return the servo that the data sheet describes, or None if it does not state a servo frequency.

        A firm grip is assumed where the data sheet states no grip.
        """
        if not spec.servo_frequency:
            return None
        grip = spec.grip_stiffness, spec.grip_damping
        stiffness, damping = (given if given is not None else firm for given, firm in zip(grip, FIRM_GRIP, strict=True))
        ratio = spec.servo_damping_ratio or 1.0
        known, late, handle = spec.servo_knows_velocity, spec.delay or 0.0, spec.handle_mass or 0.0
        return cls(spec.servo_frequency, ratio, known, late, stiffness, damping, handle)


# --- matrices -----------------------------------------------------------------------------------------------------


def stuck_matrix(coupling: Coupling, handle: Handle) -> Matrix:
    r"""Return the matrix of one period of a handle held by a sticking contact, (n, n).

    Between the samples :math:`m \dot v = -b v - f`, where f is the force :math:`f_k = K e_k + B u_k` of the newest
    sample whose delay is over, with :math:`u_k = (x_k - x_{k-1}) / T` and :math:`e_k = e_{k-1} + T u_k` (Kikuuwe et al.
    2006, (61), (62)). Models B and C are identical while they stick. The state is position, velocity, the last position
    and the last forces.
    """
    K, B, T = coupling.stiffness, coupling.damping, coupling.period
    free, early, late, whole = _handle_flow(handle.mass, handle.damping, handle.total_delay, T)
    size = 4 + whole
    force = np.zeros(size)
    force[0], force[2] = K + B / T, -B / T
    matrix = np.zeros((size, size))
    matrix[:2, :2] = free
    matrix[:2, 3 + whole] += early
    if whole == 0:
        matrix[:2] += np.outer(late, force)
    else:
        matrix[:2, 2 + whole] += late
    matrix[2, 0] = 1.0
    matrix[3] = force
    matrix[np.arange(4, size), np.arange(3, size - 1)] = 1.0
    return matrix


def sliding_matrix(mass: float, servo: PositionServo, period: float) -> Matrix:
    r"""Return the matrix of one period of a mass that slides on a servo-driven arm, (n, n).

    The hand that holds the arm is motionless. While models A and D slide under friction of constant level,
    :math:`u_k = u_{k-1} + T h_k / M` (Kikuuwe et al. 2006, (12)) and the reference is :math:`r_k = r_{k-1} + T u_k`.
    The force sensor measures :math:`h = -k x - b \dot x - m\,\Delta\dot x / T`: the force of the hand minus the
    inertial force of the handle's mass m over the last period. The state is the position and velocity of the arm, the
    velocity of the mass, the last references, and the last velocity of the arm.
    """
    first, second, whole = _servo_flow(servo, period)
    size = 6 + whole
    references = np.zeros((whole + 3, size))  # newest first
    references[np.arange(1, whole + 3), np.arange(3, size - 1)] = 1.0
    matrix = np.zeros((size, size))
    matrix[2, 0] = -period * servo.grip_stiffness / mass
    matrix[2, 1] = -(period * servo.grip_damping + servo.handle_mass) / mass
    matrix[2, 2], matrix[2, -1] = 1.0, servo.handle_mass / mass
    references[0] = references[1] + period * matrix[2]
    matrix[3] = references[0]
    matrix[np.arange(4, size - 1), np.arange(3, size - 2)] = 1.0
    matrix[-1, 1] = 1.0
    arm = np.eye(2, size)
    for flow, newest in ((first, whole + 1), (second, whole)):
        arm = flow @ np.vstack((arm, references[newest + 1], references[newest]))
    matrix[:2] = arm
    return matrix


def growth(matrix: Matrix) -> float:
    """Return the spectral radius: the factor by which the slowest motion changes per period."""
    return float(np.abs(np.linalg.eigvals(matrix)).max())


# --- motion of a device between two samples -------------------------------------------------------------------------


def _exponential(matrix: Matrix) -> Matrix:
    """Return the exponential of a small matrix by scaling and squaring of its series."""
    halvings = max(0, math.ceil(math.log2(max(float(np.abs(matrix).sum(axis=1).max()), 1e-300))) + 1)
    part = matrix / 2.0**halvings  # norm at most 1/2: 16 terms are exact to double precision
    term = result = np.eye(len(matrix))
    for order in range(1, 17):
        term = term @ part / order
        result = result + term
    for _ in range(halvings):
        result = result @ result
    return result


def _split(delay: float, period: float) -> tuple[int, float]:
    """Split a delay into whole periods and the remaining fraction of a period."""
    periods = min(delay / period, float(MAX_DELAY))
    whole = math.floor(periods + 1e-9)
    return whole, max(periods - whole, 0.0)


@functools.lru_cache(maxsize=64)
def _handle_flow(mass: float, damping: float, delay: float, period: float) -> tuple[Matrix, Matrix, Matrix, int]:
    """Return the propagation of (x, v) over one period, and the number of whole periods of delay.

    The matrices are the free motion, the effect of the force before the delay ends, and the effect of the force after
    it.
    """
    whole, fraction = _split(delay, period)
    field = np.zeros((3, 3))  # of x, v and a constant force against the motion
    field[0, 1], field[1, 1], field[1, 2] = 1.0, -damping / mass, -1.0 / mass
    before, after = _exponential(field * fraction * period), _exponential(field * (1.0 - fraction) * period)
    free = after[:2, :2] @ before[:2, :2]
    return free, after[:2, :2] @ before[:2, 2], after[:2, 2], whole


@functools.lru_cache(maxsize=64)
def _servo_flow(servo: PositionServo, period: float) -> tuple[Matrix, Matrix, int]:
    """Return the maps from (x, v, older, newer reference) to (x, v) for the two parts of a period.

    The third value is the number of whole periods of delay.
    """
    whole, fraction = _split(servo.delay, period)
    w = 2.0 * math.pi * servo.frequency
    damping = 2.0 * servo.damping_ratio * w
    field = np.zeros((4, 4))  # of x, v, the reference and its velocity
    field[0, 1] = 1.0
    field[1] = -w * w, -damping, w * w, damping if servo.knows_velocity else 0.0
    field[2, 3] = 1.0
    parts = []
    for start, length in ((1.0 - fraction, fraction), (0.0, 1.0 - fraction)):
        ramp = np.eye(4)  # from two references to the reference at the start of the part, and its velocity
        ramp[2, 2:] = 1.0 - start, start
        ramp[3, 2:] = -1.0 / period, 1.0 / period
        parts.append((_exponential(field * length * period) @ ramp)[:2])
    return parts[0], parts[1], whole


# --- minimum mass on an arm -------------------------------------------------------------------------------------------
#
# Minimum virtual mass of a sliding contact on an arm that is known as a linear system.
#
# A device with a model of its servo, gears and force sensor describes them, together with the hand that holds it, as
# one linear system per tick (`SampledArm`). While model A or D slides under friction of constant level, its mass is an
# admittance 1/(M s) between the measured force and the reference, and closes the loop. The handle is the usual limit:
# its inertia is beyond the force sensor, which measures it as a force against the motion, delayed by the lag of the
# arm.


@dataclass(frozen=True, eq=False)
class SampledArm:
    """Servo-controlled arm in a motionless hand: s_(k+1) = transition s_k + command r_k, h_k = force s_k.

    Attributes
    ----------
    transition : (n, n) array
        State transition over one tick.
    command : (n, 2) array
        Input matrix of the position reference r [1/m].
    force : (2, n) array
        Output matrix of the force sensor [N].
    period : float
        Duration of a tick [s].
    """

    transition: Matrix
    command: Matrix
    force: Matrix
    period: float

    def sliding(self, mass: float) -> Matrix:
        """Return the matrix of one tick of a sliding mass M [kg] on this arm, (n + 4, n + 4).

        Under friction of constant level :math:`u_k = u_{k-1} + T h_k / M` (Kikuuwe et al. 2006, (12)) and
        :math:`r_k = r_{k-1} + T u_k`. The state is s, u and r. The slope of the friction law is neglected: at the
        frequencies at which arms oscillate it is small compared with M times the angular frequency.
        """
        n, T = len(self.transition), self.period
        matrix = np.zeros((n + 4, n + 4))
        velocity, eye = matrix[n : n + 2], np.eye(2)
        velocity[:, :n], velocity[:, n : n + 2] = T / mass * self.force, eye
        matrix[n + 2 :] = T * velocity
        matrix[n + 2 :, n + 2 :] += eye
        matrix[:n] = self.command @ matrix[n + 2 :]
        matrix[:n, :n] += self.transition
        return matrix
