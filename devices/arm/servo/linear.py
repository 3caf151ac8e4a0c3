"""The servo of one joint on rows: reference, feed-forward and feedback as linear functions of a loop's state.

A row says how a quantity depends on the state of a loop at its last tick, whatever that holds. The feedback is the one
by which the gains are judged (`devices.arm.servo.gains`); reference and feed-forward are those of the kernels, round a
steady motion: friction has the slope it has there, the gearbox the stiffness that it has under a torque.
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
"""A speed at which friction is viscous only [rad/s]."""

_CHAIN = 6
"""What a smooth reference remembers besides the commands of a tick: mean, its rate, lag, and three of the chain."""


@dataclass(frozen=True)
class Motion:
    """What the reference of a joint does: angle and four derivatives."""

    position: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    snap: Array


@dataclass(frozen=True)
class Load:
    """What a link bears beside its own inertia and friction, and its first two derivatives."""

    torque: Array
    rate: Array
    acceleration: Array


@dataclass(frozen=True)
class Told:
    """What a motor is to do, seen at the joint: angle, speed, and the torque that it takes."""

    angle: Array
    speed: Array
    torque: Array


class LinearReference:
    """The reference of one joint on rows, and what its motor has to do for it.

    Parameters
    ----------
    settings : ServoSettings
        Which law.
    joint : ElasticJoint
        The model of the joint in the control.
    inertia : float
        Of its link in the present pose [kg m^2].
    torque : float
        In the gearbox [N m].
    chain : (1,) structured array
        With `CHAIN_FIELDS`.
    period : float
        From step to step [s].

    Attributes
    ----------
    feeds : bool
        Whether the law feeds forward what the load of the link does.
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
        """How many rows its memory has."""
        return int(self._chain["window"]) + _CHAIN if self._settings.smooth else 1

    def refer(self, own: Array, command: Array, step: int) -> Motion:
        """Bring the reference to the `command` of this step of the tick; `own` are its rows, changed in place."""
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

    def told(self, r: Motion, load: Load) -> Told:
        """Return what the motor has to do for the motion `r` under `load`; (20), (25), (27)."""
        if not self.feeds:
            return Told(r.position, r.velocity, load.torque)
        F, M, give = self._slope, self._inertia, self._twist if self._elastic else 0.0
        torque = M * r.acceleration + load.torque + F * r.velocity
        rate = M * r.jerk + load.rate + F * r.acceleration
        second = M * r.snap + load.acceleration + F * r.jerk
        motor = torque + self._rotor * (r.acceleration + give * second)
        return Told(r.position + give * torque, r.velocity + give * rate, motor)


class LinearServo(LinearReference):
    """The servo of one joint on rows: reference, feed-forward and feedback.

    Parameters
    ----------
    settings : ServoSettings
        Which law.
    encoder : str
        "motor", "joint" or "both": where the encoders are.
    joint : ElasticJoint
        The model of the joint in the control.
    inertias : (float, float)
        Of its link at home, for which the gains are, and in the present pose [kg m^2].
    torque : float
        In the gearbox [N m].
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
        """How many rows its memory has, that of the feedback first."""
        return self._memory + super().size

    def refer(self, own: Array, command: Array, step: int) -> Motion:
        """Bring the reference to the `command` of this step of the tick; `own` are its rows, changed in place."""
        return super().refer(own[self._memory :], command, step)

    def torque(self, rows: Array, r: Motion, load: Load, seen: tuple[Array, Array]) -> Array:
        """Return the motor's torque, seen at the joint, for the motion `r` under `load`; `seen` are link and motor."""
        told = self.told(r, load)
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
    """What a law knows of the hand's torques on the joints: values, rates and second derivatives, (2, n) each.

    Parameters
    ----------
    settings : ServoSettings
        Whether it knows them at all, and how fast.
    rows : (4, n) array
        Its memory, values and rates, changed in place.
    period : float
        From step to step [s].
    """

    def __init__(self, settings: ServoSettings, rows: Array, period: float) -> None:
        self._knows, self._pole = settings.knows_hand, 2.0 * math.pi * settings.hand_filter
        self.torques, self.rates, self._period = rows[:2], rows[2:], period
        self.accelerations = np.zeros_like(self.rates)

    def step(self, hand: Array) -> None:
        """Learn in the next step what the hand does: two poles, implicitly."""
        if not self._knows:
            return
        T, b, before = self._period, self._pole, self.rates.copy()
        self.rates[:] = (before + T * b * b * (hand - self.torques)) / (1.0 + T * b * (2.0 + T * b))
        self.torques += T * self.rates
        self.accelerations = (self.rates - before) / T


def load_of(i: int, joint: LinearReference, motions: Sequence[Motion], between: float, hand: KnownHand) -> Load:
    """Return what the law believes that the link of joint `i` bears: the other link by their inertia, and the hand."""
    other, h = motions[1 - i], between if joint.feeds else 0.0
    return Load(
        h * other.acceleration - hand.torques[i],
        h * other.jerk - hand.rates[i],
        h * other.snap - hand.accelerations[i],
    )
