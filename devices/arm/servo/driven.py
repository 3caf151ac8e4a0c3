"""Arm with motors controlled by a drive, held by a hand, as one linear system per tick.

The drive is a cascade like in ODrives, with eight steps per millisecond: the position error determines a speed, the
speed error a torque and an integral, and a tracking loop estimates both from the encoder, whose quantization is
ignored. The drive gets an angle, a speed and a torque once per tick and holds them until the next arrive. The time
between a sample and the arrival of the reference computed from it is modelled as one delay. The mechanism is the same
as in `devices.arm.servo.mechanism`.

Every quantity is a row: its dependence on the state at the last tick and on the joint angles commanded since.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devices.arm.body import ArmBody
from devices.arm.flatness.joint import ElasticJoint
from devices.arm.motors.settings import DriveGains
from devices.arm.servo.chain import CHAIN_FIELDS, fill_chain
from devices.arm.servo.linear import KnownHand, LinearReference, load_of
from devices.arm.servo.mechanism import PLANT, Grip, Mechanism
from devices.arm.servo.servo import Pair, link_inertia
from devices.arm.servo.settings import ServoSettings
from haptics.design import SampledArm, sliding_mass_limit

Array = NDArray[np.float64]

RATE = 8000.0
"""Control iterations of the drive per second [Hz]."""

TRACKING = 1000.0
"""Bandwidth of its tracking loop with default settings [rad/s]."""

_LONGEST = 0.02
"""Upper bound of the delay in the model [s]: a sample that old ends the run."""

_TOLD = 6
"""Number of commanded quantities: angles, speeds and torques of both motors, seen at the joints."""

_OWN = PLANT + 2 + 6 + 4
"""State variables: plant, handle velocity at the tick, estimates and integrals of the drive, hand motion estimates."""


@dataclass(frozen=True)
class DrivenArm:
    """Arm and the drive of its motors.

    Attributes
    ----------
    body : ArmBody
        The arm.
    joints : (ElasticJoint, ElasticJoint)
        Its ``model_joints``.
    settings : ServoSettings
        Settings of the references.
    gains : DriveGains
        Gains of the drive.
    reductions : (float, float)
        Turns of each motor per turn of its joint.
    delay : float
        Time from a sample to the arrival of the reference computed from it [s].
    """

    body: ArmBody
    joints: tuple[ElasticJoint, ElasticJoint]
    settings: ServoSettings
    gains: DriveGains
    reductions: Pair
    delay: float

    def sampled(self, grip: Grip, tick: float, pose: Pair) -> SampledArm:
        """Return the system with a hand, from tick to tick [s], linearized at a pose, (2,) [rad]."""
        return _Loop(self, grip, tick, pose).sampled()


class _Loop:
    """System matrices of the arm, as rows of the state at the last tick and of the command since.

    The state consists of the plant, the handle's velocity at the last tick, the drive's estimates of angles and speeds
    and its integrals, the hand motion estimates, recent commands to the drive, and the state of both references.
    """

    def __init__(self, own: DrivenArm, grip: Grip, tick: float, pose: Pair) -> None:
        body, settings = own.body, own.settings
        self._tick, self._count = tick, max(round(tick * RATE), 1)
        self._period, self._delay = tick / self._count, min(own.delay, _LONGEST)
        believed = link_inertia(body.model_links, pose, body.linkage)
        self._between = float(believed[0, 1])
        chain = np.zeros(1, CHAIN_FIELDS)
        fill_chain(chain, settings.reference_frequency, tick, tick)
        self._joints = [
            LinearReference(settings, joint, float(inertia), body.kinetic_friction, chain, tick)
            for joint, inertia in zip(own.joints, np.diag(believed), strict=True)
        ]
        # from a torque per turn at a motor to a torque per radian at the joint
        turns = np.square(own.reductions) / math.tau
        self._gains = own.gains.position, own.gains.speed * turns[:, None], own.gains.integrator * turns[:, None]
        self._arm = Mechanism(body, grip, tick, self._period, pose)
        self._late = math.ceil(self._delay / tick - 1e-9)
        self._past = _OWN + _TOLD * self._late
        self._size = self._past + sum(joint.size for joint in self._joints)
        self._rows = np.eye(self._size, self._size + 2)
        self._hand = KnownHand(settings, self._rows[_OWN - 4 : _OWN], tick)
        self._force = np.zeros((2, self._size))
        self._force[:, : PLANT + 2] = self._arm.force

    def sampled(self) -> SampledArm:
        """Advance by a tick, and return the resulting system."""
        x, size, arm = self._rows, self._size, self._arm
        self._hand.step(arm.jacobian.T @ self._force @ x[:size])
        told = self._drive_commands(np.eye(2, size + 2, size))
        arrived = np.vstack((told, x[_OWN : self._past]))  # newest first
        x[PLANT : PLANT + 2] = arm.jacobian @ x[2:4]
        for step in range(self._count):
            waiting = math.ceil((self._delay - step * self._period) / self._tick - 1e-9)
            first = _TOLD * max(waiting, 0)
            self._step(arrived[first : first + _TOLD])
        x[_OWN : self._past] = arrived[: _TOLD * self._late]
        return SampledArm(x[:, :size], x[:, size:] @ np.linalg.inv(arm.jacobian), self._force, self._tick)

    def _drive_commands(self, commands: Array) -> Array:
        """Return the commands to the drive for commanded angles: angles, speeds and torques, (6, n)."""
        blocks, start = [], self._past
        for joint in self._joints:
            blocks.append(self._rows[start : start + joint.size])
            start += joint.size
        motions = [joint.refer(b, c, 0) for joint, b, c in zip(self._joints, blocks, commands, strict=True)]
        told = [
            joint.motor_reference(motions[i], load_of(i, joint, motions, self._between, self._hand))
            for i, joint in enumerate(self._joints)
        ]
        return np.stack([part for name in ("angle", "speed", "torque") for part in (getattr(t, name) for t in told)])

    def _step(self, told: Array) -> None:
        """Advance by one iteration of the drive."""
        x, h, (k, b, i) = self._rows, self._period, self._gains
        rotors, angles, speeds, integrals = x[4:6], x[10:12], x[12:14], x[14:16]
        angles += h * speeds
        error = rotors - angles
        angles += 2.0 * h * TRACKING * error
        speeds += h * TRACKING**2 * error
        error = told[2:4] + k * (told[:2] - angles) - speeds
        torques = told[4:] + b * error + integrals
        integrals += h * i * error
        x[:PLANT] = self._arm.moved @ np.vstack((x[:PLANT], torques))


@functools.lru_cache(maxsize=64)
def least_mass(arm: DrivenArm, grip: Grip, tick: float, places: tuple[Pair, ...]) -> float:
    """Return the smallest virtual mass with which a sliding contact does not destabilize the arm [kg].

    Parameters
    ----------
    arm, grip, tick : DrivenArm, Grip, float
        As for `DrivenArm.sampled`.
    places : tuple of (x, y)
        Positions of the end effector [m]; the result is the maximum over all of them.
    """
    return sliding_mass_limit([arm.sampled(grip, tick, arm.body.angles(*place)) for place in places])
