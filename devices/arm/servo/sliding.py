"""Arm under its servo, held by a hand, as one linear system per tick.

The model is linearized at a steady motion, without encoder quantization. The mechanism is the same as in
`devices.arm.servo.mechanism`. The servo is the same as in the stability check of the gains
(`devices.arm.servo.gains`), with reference and feed-forward in addition.

Every quantity is a row: its dependence on the state at the last tick and on the joint angles commanded since.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from devices.arm.body import ArmBody
from devices.arm.flatness.joint import ElasticJoint
from devices.arm.servo.chain import CHAIN_FIELDS, fill_chain
from devices.arm.servo.linear import KnownHand, LinearServo, load_of
from devices.arm.servo.mechanism import PLANT, Grip, Mechanism
from devices.arm.servo.servo import Pair, link_inertia
from devices.arm.servo.settings import ServoSettings
from haptics.design import SampledArm, sliding_mass_limit

Array = NDArray[np.float64]

_OWN = 16
"""State variables: plant, handle velocity at the tick, latest commanded angles, filtered hand torques and their rates.
"""


class _Loop:
    """System matrices of the arm, as rows of the state at the last tick and of the command since.

    The state consists of the plant, the handle's velocity at the last tick, the angles commanded then, the filtered
    hand torques and their rates, and the state of both servos.
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
        arm = Mechanism(body, grip, tick, self._period, pose)
        self._jacobian, self._moved = arm.jacobian, arm.moved
        self._size = _OWN + sum(joint.size for joint in self._joints)
        self._rows = np.eye(self._size, self._size + 2)
        self._hand = KnownHand(settings, self._rows[12:16], settings.period)
        self._force = np.zeros((2, self._size))
        self._force[:, : PLANT + 2] = arm.force

    def sampled(self) -> SampledArm:
        """Advance by a tick, and return the resulting system."""
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
        self._hand.step(hand)
        motions = [joint.refer(b, c, step) for joint, b, c in zip(self._joints, blocks, commands, strict=True)]
        torques = []
        for i, joint in enumerate(self._joints):
            load = load_of(i, joint, motions, self._between, self._hand)
            torques.append(joint.torque(blocks[i], motions[i], load, (x[i], x[4 + i])))
        x[:PLANT] = self._moved @ np.vstack((x[:PLANT], torques))


def sampled_arm(
    body: ArmBody,
    joints: tuple[ElasticJoint, ElasticJoint],
    settings: ServoSettings,
    grip: Grip,
    tick: float,
    pose: Pair,
) -> SampledArm:
    """Return the arm under its servo, held by a hand, from tick to tick, linearized at a pose.

    Parameters
    ----------
    body : ArmBody
        The arm.
    joints : (ElasticJoint, ElasticJoint)
        Model of its joints in its control.
    settings : ServoSettings
        Settings of its servo.
    grip : Grip
        Impedance of the hand.
    tick : float
        Period of a tick [s].
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
    """Return the smallest virtual mass with which a sliding contact does not destabilize the arm [kg].

    Parameters
    ----------
    body, joints, settings, grip, tick : ArmBody, its ``model_joints``, ServoSettings, Grip, float
        As for `sampled_arm`. The joints are an argument because a file from which they are read may change under the
        same name.
    places : tuple of (x, y)
        Positions of the end effector [m]; the result is the maximum over all of them.
    """
    return sliding_mass_limit(
        [sampled_arm(body, joints, settings, grip, tick, body.angles(*place)) for place in places]
    )
