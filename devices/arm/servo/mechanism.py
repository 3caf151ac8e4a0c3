"""Linear model in continuous time of an arm held by a hand, at a steady motion.

Friction has its viscous slope, and the gearbox its stiffness under the friction of the joint. The motion between two
steps of a controller is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devices.arm.body import ArmBody
from devices.arm.servo.gains import exponential
from devices.arm.servo.servo import Pair, link_inertia

Array = NDArray[np.float64]

PLANT = 8
"""Number of state variables: angles and speeds of both links, then of both rotors, all seen at the joints."""


@dataclass(frozen=True)
class Grip:
    """Impedance of the hand on the handle: a spring [N/m] and a damper [N s/m]."""

    stiffness: float
    damping: float


class Mechanism:
    """Arm linearized at a pose, held by a hand at rest.

    Parameters
    ----------
    body : ArmBody
        The arm.
    grip : Grip
        Impedance of the hand.
    tick : float
        Time over which the measured inertial force of the handle is averaged [s].
    step : float
        Time for which the torques of the motors are held [s].
    pose : (float, float)
        Joint angles [rad].

    Attributes
    ----------
    jacobian : (2, 2) array
        Jacobian of the end effector.
    moved : (8, 10) array
        State after a step as a function of the state and of the torques of both motors.
    force : (2, 10) array
        Measured force as a function of the state and of the handle's velocity at the last tick [N].
    """

    def __init__(self, body: ArmBody, grip: Grip, tick: float, step: float, pose: Pair) -> None:
        self.jacobian = body.linkage.jacobians([pose])[0]
        self.moved = _sampled(_rates(body, grip, pose, body.kinetic_friction), step)
        self.force = np.zeros((2, PLANT + 2))
        self.force[:, :2] = -grip.stiffness * self.jacobian
        self.force[:, 2:4] = -(grip.damping + body.handle_mass / tick) * self.jacobian
        self.force[:, 8:] = body.handle_mass / tick * np.eye(2)


def _gear(body: ArmBody, torque: float) -> tuple[float, float]:
    """Return stiffness [N m/rad] and damping [N m s/rad] of the gearbox under `torque`; infinite if rigid."""
    drive = body.drives[0]
    if drive.coupling != "elastic":
        return math.inf, 0.0
    if drive.gear is None:
        return drive.stiffness, drive.damping
    return 1.0 / float(drive.gear.twist_derivatives(torque)[1]), drive.damping


def _rates(body: ArmBody, grip: Grip, pose: Pair, torque: float) -> Array:
    """Return the time derivative of the state, (8, 10), for the state and the held motor torques."""
    links, jacobian = link_inertia(body.links, pose, body.linkage), body.linkage.jacobians([pose])[0]
    rotor, (stiffness, damping) = body.rotor_inertia * body.reduction**2, _gear(body, torque)
    rates = np.zeros((PLANT, PLANT + 2))
    rates[:2, 2:4] = rates[4:6, 6:8] = np.eye(2)
    load = np.zeros((2, PLANT + 2))  # torques on the links
    load[:, :2] = -grip.stiffness * jacobian.T @ jacobian
    load[:, 2:4] = -grip.damping * jacobian.T @ jacobian - body.viscosity * np.eye(2)
    if stiffness == math.inf:
        load[:, 8:] = np.eye(2)
        rates[2:4] = rates[6:8] = np.linalg.solve(links + rotor * np.eye(2), load)
        return rates
    gear = np.zeros((2, PLANT + 2))
    gear[:, :4] = -np.hstack((stiffness * np.eye(2), damping * np.eye(2)))
    gear[:, 4:8] = -gear[:, :4]
    rates[2:4] = np.linalg.solve(links, load + gear)
    gear[:, 8:] -= np.eye(2)
    rates[6:8] = -gear / rotor
    return rates


def _sampled(rates: Array, period: float) -> Array:
    """Return the state after a period under held torques, (8, 10), as a function of state and torques."""
    field = np.zeros((PLANT + 2, PLANT + 2))
    field[:PLANT] = rates
    return exponential(period * field)[:PLANT]
