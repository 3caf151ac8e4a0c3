"""An arm in a hand as a linear system in time: links, rotors and gears round a steady motion, and its force sensor.

Friction has its viscous slope there, and the gearbox the stiffness that it has under the friction of the joint. Between
two steps of a controller the motion is exact.
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
"""Angles and speeds of both links, then of both rotors, all seen at the joints."""


@dataclass(frozen=True)
class Grip:
    """The hand on the handle: a spring [N/m] and a damper [N s/m]."""

    stiffness: float
    damping: float


class Mechanism:
    """An arm about a pose, in the grip of a hand that holds still.

    Parameters
    ----------
    body : ArmBody
        The arm.
    grip : Grip
        Of the hand.
    tick : float
        The force sensor shows the inertia of the handle as its mean over this time [s].
    step : float
        The torques of the motors are held for so long [s].
    pose : (float, float)
        Joint angles [rad].

    Attributes
    ----------
    jacobian : (2, 2) array
        Of the end effector.
    moved : (8, 10) array
        What a step makes of the plant and the torques of both motors.
    force : (2, 10) array
        What the sensor shows of the plant and of the handle's velocity at the last tick [N].
    """

    def __init__(self, body: ArmBody, grip: Grip, tick: float, step: float, pose: Pair) -> None:
        self.jacobian = body.linkage.jacobians([pose])[0]
        self.moved = _sampled(_rates(body, grip, pose, body.kinetic_friction), step)
        self.force = np.zeros((2, PLANT + 2))
        self.force[:, :2] = -grip.stiffness * self.jacobian
        self.force[:, 2:4] = -(grip.damping + body.handle_mass / tick) * self.jacobian
        self.force[:, 8:] = body.handle_mass / tick * np.eye(2)


def _gear(body: ArmBody, torque: float) -> tuple[float, float]:
    """Return stiffness [N m/rad] and damping [N m s/rad] of the true gearbox under `torque`; infinite if rigid."""
    drive = body.drives[0]
    if drive.coupling != "elastic":
        return math.inf, 0.0
    if drive.gear is None:
        return drive.stiffness, drive.damping
    return 1.0 / float(drive.gear.twist_derivatives(torque)[1]), drive.damping


def _rates(body: ArmBody, grip: Grip, pose: Pair, torque: float) -> Array:
    """Return the time derivative of the plant's state under held motor torques, (8, 10): of the eight and of both."""
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
    """Return what a period does to the state under held torques, (8, 10)."""
    field = np.zeros((PLANT + 2, PLANT + 2))
    field[:PLANT] = rates
    return exponential(period * field)[:PLANT]
