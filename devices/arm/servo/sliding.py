"""An arm under its servo in a hand, as one linear system per tick: servo law, filters, gears, links, sensor, grip.

Everything is linear round a steady motion: friction has its viscous slope, the gearbox the stiffness that it has under
the friction of the joint, encoders have no steps. Between two steps of the servo the motion is exact. The servo's part
is the one by which its gains are judged (`devices.arm.servo.gains`), with the reference and the feed-forward besides.

Every quantity is a row: how it depends on the state at the last tick and on the joint angles commanded since.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devices.arm.body import ArmBody
from devices.arm.flatness.joint import ElasticJoint
from devices.arm.servo.chain import CHAIN_FIELDS, fill_chain
from devices.arm.servo.gains import exponential
from devices.arm.servo.linear import LinearServo, Load
from devices.arm.servo.servo import Pair, link_inertia
from devices.arm.servo.settings import ServoSettings
from haptics.design import SampledArm, sliding_mass_limit

Array = NDArray[np.float64]

_PLANT = 8
"""Angles and speeds of both links, then of both rotors."""

_OWN = 16
"""These, the handle's velocity at the tick, the angles commanded last, the hand's torques and their rates as known."""


@dataclass(frozen=True)
class Grip:
    """The hand on the handle: a spring [N/m] and a damper [N s/m]."""

    stiffness: float
    damping: float


# --- the mechanism ------------------------------------------------------------------------------------------------


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
    rates = np.zeros((_PLANT, _PLANT + 2))
    rates[:2, 2:4] = rates[4:6, 6:8] = np.eye(2)
    load = np.zeros((2, _PLANT + 2))  # torques on the links
    load[:, :2] = -grip.stiffness * jacobian.T @ jacobian
    load[:, 2:4] = -grip.damping * jacobian.T @ jacobian - body.viscosity * np.eye(2)
    if stiffness == math.inf:
        load[:, 8:] = np.eye(2)
        rates[2:4] = rates[6:8] = np.linalg.solve(links + rotor * np.eye(2), load)
        return rates
    gear = np.zeros((2, _PLANT + 2))
    gear[:, :4] = -np.hstack((stiffness * np.eye(2), damping * np.eye(2)))
    gear[:, 4:8] = -gear[:, :4]
    rates[2:4] = np.linalg.solve(links, load + gear)
    gear[:, 8:] -= np.eye(2)
    rates[6:8] = -gear / rotor
    return rates


def _sampled(rates: Array, period: float) -> Array:
    """Return what a period does to the state under held torques, (8, 10)."""
    field = np.zeros((_PLANT + 2, _PLANT + 2))
    field[:_PLANT] = rates
    return exponential(period * field)[:_PLANT]


# --- the whole of it ------------------------------------------------------------------------------------------------


class _Loop:
    """The arm on rows of its state at the last tick and of the command since.

    The state: the plant, the handle's velocity at the last tick, the angles commanded then, what is known of the hand's
    torques and their rates, and the memory of both servos.
    """

    def __init__(
        self,
        body: ArmBody,
        joints: tuple[ElasticJoint, ElasticJoint],
        settings: ServoSettings,
        grip: Grip,
        tick: float,
        pose: Pair,
    ) -> None:
        self._settings, self._body = settings, body
        self._count = max(round(tick / settings.period), 1)
        self._period, self._tick = tick / self._count, tick
        torque, believed = body.kinetic_friction, link_inertia(body.model_links, pose, body.linkage)
        self._between = float(believed[0, 1])
        chain = np.zeros(1, CHAIN_FIELDS)
        fill_chain(chain, settings.reference_frequency, settings.period, tick)
        home = np.diag(link_inertia(body.model_links, body.linkage.home, body.linkage))
        self._joints = [
            LinearServo(settings, body.encoder, joint, (float(at_home), float(here)), torque, chain)
            for joint, at_home, here in zip(joints, home, np.diag(believed), strict=True)
        ]
        self._jacobian = body.linkage.jacobians([pose])[0]
        self._moved = _sampled(_rates(body, grip, pose, torque), self._period)
        self._size = _OWN + sum(joint.size for joint in self._joints)
        self._rows = np.eye(self._size, self._size + 2)
        self._force = self._sensed(grip)

    def _sensed(self, grip: Grip) -> Array:
        """Return what the force sensor shows of the state: the grip's force, less what the handle's inertia takes."""
        force = np.zeros((2, self._size))
        force[:, :2] = -grip.stiffness * self._jacobian
        force[:, 2:4] = -(grip.damping + self._body.handle_mass / self._tick) * self._jacobian
        force[:, 8:10] = self._body.handle_mass / self._tick * np.eye(2)
        return force

    def sampled(self) -> SampledArm:
        """Advance by a tick, and return what that does."""
        x, size, hand = self._rows, self._size, self._jacobian.T @ self._force @ self._rows[: self._size]
        before, after = x[10:12].copy(), np.eye(2, size + 2, size)
        x[8:10], x[10:12] = self._jacobian @ x[2:4], after
        for step in range(self._count):
            self._step(step, before + step / self._count * (after - before), hand)
        to_angles = np.linalg.inv(self._jacobian)
        return SampledArm(x[:, :size], x[:, size:] @ to_angles, self._force, self._tick)

    def _step(self, step: int, commands: Array, hand: Array) -> None:
        """Advance by one period of the servo."""
        x, blocks, start = self._rows, [], _OWN
        for joint in self._joints:
            blocks.append(x[start : start + joint.size])
            start += joint.size
        if self._settings.knows_hand:
            acceleration = self._know(hand)
        else:
            acceleration = np.zeros_like(hand)
        motions = [joint.refer(b, c, step) for joint, b, c in zip(self._joints, blocks, commands, strict=True)]
        torques = []
        for i, joint in enumerate(self._joints):
            other, h = motions[1 - i], self._between
            load = Load(-x[12 + i], -acceleration[i])
            if joint.feeds:
                load = Load(h * other.acceleration - x[12 + i], h * other.snap - acceleration[i])
            torques.append(joint.torque(blocks[i], motions[i], load, (x[i], x[4 + i])))
        x[:_PLANT] = self._moved @ np.vstack((x[:_PLANT], torques))

    def _know(self, hand: Array) -> Array:
        """Advance what is known of the hand's torques by a period; return their second derivatives."""
        known, rates, T = self._rows[12:14], self._rows[14:16], self._settings.period
        b = 2.0 * math.pi * self._settings.hand_filter
        before = rates.copy()
        rates[:] = (before + T * b * b * (hand - known)) / (1.0 + T * b * (2.0 + T * b))
        known += T * rates
        return (rates - before) / T


def sampled_arm(
    body: ArmBody,
    joints: tuple[ElasticJoint, ElasticJoint],
    settings: ServoSettings,
    grip: Grip,
    tick: float,
    pose: Pair,
) -> SampledArm:
    """Return the arm under its servo in a hand, from tick to tick, about a pose.

    Parameters
    ----------
    body : ArmBody
        The arm.
    joints : (ElasticJoint, ElasticJoint)
        The model of its joints in its control.
    settings : ServoSettings
        Its servo.
    grip : Grip
        Of the hand.
    tick : float
        [s].
    pose : (float, float)
        Joint angles [rad].
    """
    return _Loop(body, joints, settings, grip, tick, pose).sampled()


@functools.lru_cache(maxsize=64)
def least_mass(
    body: ArmBody,
    joints: tuple[ElasticJoint, ElasticJoint],
    settings: ServoSettings,
    grip: Grip,
    tick: float,
    places: tuple[Pair, ...],
) -> float:
    """Return the smallest virtual mass with which a contact that slides does not shake the arm [kg].

    Parameters
    ----------
    body, joints, settings, grip, tick : ArmBody, its ``model_joints``, ServoSettings, Grip, float
        As for `sampled_arm`; a file that joints are read from may have changed while its name has not.
    places : tuple of (x, y)
        Where the end effector may be [m]; one near that needs most counts.
    """
    return sliding_mass_limit(
        [sampled_arm(body, joints, settings, grip, tick, body.angles(*place)) for place in places]
    )
