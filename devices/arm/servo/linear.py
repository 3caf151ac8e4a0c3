"""Linear model of the servo of one joint: reference, feed-forward and feedback.

A row is the dependence of a quantity on the state of a loop at its last tick. The feedback is the same as in the
stability check of the gains (`devices.arm.servo.gains`). Reference and feed-forward are the same as in the kernels,
linearized at a steady motion: friction has its slope there, and the gearbox its stiffness under a torque.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.flatness.joint import ElasticJoint
from devices.arm.servo.gains import LOADED, TwoMasses, feedback, gains, memory_size
from devices.arm.servo.servo import Pair
from devices.arm.servo.settings import FLATNESS, LINEARISING, RIGID, ServoSettings

Array = NDArray[np.float64]

_STEADY = 1.0
"""Speed at which friction has only a viscous slope [rad/s]."""

_CHAIN = 6
"""State of a smooth reference besides the commands of a tick: mean, its rate, lag, and three of the chain."""


@dataclass(frozen=True)
class Motion:
    """Motion of a joint's reference: angle and four derivatives."""

    position: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    snap: Array


@dataclass(frozen=True)
class Load:
    """Load of a link besides its own inertia and friction, and its first two derivatives."""

    torque: Array
    rate: Array
    acceleration: Array


@dataclass(frozen=True)
class MotorReference:
    """Motor reference, seen at the joint: angle, speed and feed-forward torque."""

    angle: Array
    speed: Array
    torque: Array


class LinearReference:
    """Linear model of the reference of one joint and of the resulting motor reference.

    Parameters
    ----------
    settings : ServoSettings
        Selects the law.
    joint : ElasticJoint
        Model of the joint in the control.
    inertia : float
        Inertia of its link in the present pose [kg m^2].
    torque : float
        Torque in the gearbox [N m].
    chain : (1,) structured array
        With `CHAIN_FIELDS`.
    period : float
        Period of the steps [s].

    Attributes
    ----------
    feeds : bool
        Whether the law feeds forward the load of the link.
    """

    def __init__(
        self, settings: ServoSettings, joint: ElasticJoint, inertia: float, torque: float, chain: Any, period: float
    ) -> None:
        self._settings, self._chain, self._period = settings, chain[0], period
        self._inertia, self._rotor = inertia, joint.motor_inertia * joint.gear_ratio**2
        self._slope = float(joint.friction.derivatives(_STEADY)[1])
        self._twist = float(joint.stiffness.twist_derivatives(torque)[1])
        self._elastic = settings.kind in (FLATNESS, LINEARISING)
        self.feeds = self._elastic or settings.kind == RIGID

    @property
    def size(self) -> int:
        """Number of rows of its state."""
        return int(self._chain["window"]) + _CHAIN if self._settings.smooth else 1

    def refer(self, own: Array, command: Array, step: int) -> Motion:
        """Update the reference with the `command` of this step of the tick; `own` is modified in place."""
        T = self._period
        if not self._settings.smooth:
            velocity = (command - own[0]) / T
            own[0] = command
            none = np.zeros_like(command)
            return Motion(command, velocity, none, none, none)
        s, commands, past = self._chain, own[:-_CHAIN], own[-_CHAIN:]
        commands[step % len(commands)] = command
        mean = commands.mean(axis=0)
        v = (mean - past[0]) / T
        middle, acceleration = 0.5 * (mean + past[0]), (v - past[1]) / T
        error = s["transition"] @ np.vstack((past[2], past[3] - past[1], past[4] - acceleration, past[5]))
        past[0], past[1] = mean, v
        snap, q1, q2, h = s["steering"] @ error, v + error[1], acceleration + error[2], s["lead"]
        past[2], past[3], past[4], past[5] = error[0], q1, q2, error[3]
        return Motion(middle + error[0] + h * q1, q1 + h * q2, q2 + h * error[3], error[3] + h * snap, snap)

    def motor_reference(self, r: Motion, load: Load) -> MotorReference:
        """Return the motor reference for the motion `r` under `load`; (20), (25), (27)."""
        if not self.feeds:
            return MotorReference(r.position, r.velocity, load.torque)
        F, M, give = self._slope, self._inertia, self._twist if self._elastic else 0.0
        torque = M * r.acceleration + load.torque + F * r.velocity
        rate = M * r.jerk + load.rate + F * r.acceleration
        second = M * r.snap + load.acceleration + F * r.jerk
        motor = torque + self._rotor * (r.acceleration + give * second)
        return MotorReference(r.position + give * torque, r.velocity + give * rate, motor)


class LinearServo(LinearReference):
    """Linear model of the servo of one joint: reference, feed-forward and feedback.

    Parameters
    ----------
    settings : ServoSettings
        Selects the law.
    encoder : str
        Mounting place of the encoders: "motor", "joint" or "both".
    joint : ElasticJoint
        Model of the joint in the control.
    inertias : (float, float)
        Inertia of its link at home, which determines the gains, and in the present pose [kg m^2].
    torque : float
        Torque in the gearbox [N m].
    chain : (1,) structured array
        With `CHAIN_FIELDS`.
    """

    def __init__(
        self, settings: ServoSettings, encoder: str, joint: ElasticJoint, inertias: Pair, torque: float, chain: Any
    ) -> None:
        super().__init__(settings, joint, inertias[1], torque, chain, settings.period)
        plant = TwoMasses.of(joint, inertias[0], settings.period, torque=LOADED, drag=0.0)
        here = TwoMasses.of(joint, inertias[1], settings.period, torque=torque, drag=0.0)
        self._feedback = feedback(settings, here, gains(settings, plant.total))
        self._encoder, self._memory = encoder, memory_size(settings)
        by_model = settings.kind == FLATNESS and settings.feedback == "model-based"
        self._conventional = settings.kind != LINEARISING and not by_model

    @property
    def size(self) -> int:
        """Number of rows of its state, with the feedback's rows first."""
        return self._memory + super().size

    def refer(self, own: Array, command: Array, step: int) -> Motion:
        """Update the reference with the `command` of this step of the tick; `own` is modified in place."""
        return super().refer(own[self._memory :], command, step)

    def torque(self, rows: Array, r: Motion, load: Load, seen: tuple[Array, Array]) -> Array:
        """Return the motor torque, seen at the joint, for the motion `r` under `load`.

        `seen` are the measured angles of link and motor.
        """
        told = self.motor_reference(r, load)
        twist = told.angle - r.position
        link, motor = seen[0] - r.position, seen[1] - told.angle
        if self._encoder == "joint":
            motor = link
        elif self._encoder == "motor":
            link = motor
        turning = motor + twist if self._conventional else motor
        torque, rows[: self._memory] = self._feedback(link, motor, turning, rows[: self._memory])
        return told.torque + torque


class KnownHand:
    """Estimates of the hand's torques on the joints: values, rates and second derivatives, (2, n) each.

    Parameters
    ----------
    settings : ServoSettings
        Whether the law uses the hand's torques, and the filter.
    rows : (4, n) array
        State, values and rates, modified in place.
    period : float
        Period of the steps [s].
    """

    def __init__(self, settings: ServoSettings, rows: Array, period: float) -> None:
        self._knows, self._pole = settings.knows_hand, 2.0 * math.pi * settings.hand_filter
        self.torques, self.rates, self._period = rows[:2], rows[2:], period
        self.accelerations = np.zeros_like(self.rates)

    def step(self, hand: Array) -> None:
        """Filter the hand's torques for the next step: two poles, implicit."""
        if not self._knows:
            return
        T, b, before = self._period, self._pole, self.rates.copy()
        self.rates[:] = (before + T * b * b * (hand - self.torques)) / (1.0 + T * b * (2.0 + T * b))
        self.torques += T * self.rates
        self.accelerations = (self.rates - before) / T


def load_of(i: int, joint: LinearReference, motions: Sequence[Motion], between: float, hand: KnownHand) -> Load:
    """Return the modelled load of the link of joint `i`: coupling with the other link, and the hand."""
    other, h = motions[1 - i], between if joint.feeds else 0.0
    return Load(
        h * other.acceleration - hand.torques[i],
        h * other.jerk - hand.rates[i],
        h * other.snap - hand.accelerations[i],
    )
