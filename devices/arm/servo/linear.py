"""The servo of one joint on rows: reference, feed-forward and feedback as linear functions of a loop's state.

A row says how a quantity depends on the state of a loop at its last tick, whatever that holds. The feedback is the one
by which the gains are judged (`devices.arm.servo.gains`); reference and feed-forward are those of the kernels, round a
steady motion: friction has the slope it has there, the gearbox the stiffness that it has under a torque.
"""

from __future__ import annotations

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
    """What a link bears beside its own inertia and friction, and its second derivative."""

    torque: Array
    acceleration: Array


class LinearServo:
    """The servo of one joint on rows; `rows` are its memory, changed in place.

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
        plant = TwoMasses.of(joint, inertias[0], settings.period, torque=LOADED, drag=0.0)
        here = TwoMasses.of(joint, inertias[1], settings.period, torque=torque, drag=0.0)
        self._feedback = feedback(settings, here, gains(settings, plant.total))
        self._settings, self._chain, self._encoder = settings, chain[0], encoder
        self._inertia, self._rotor, self._memory = inertias[1], plant.rotor, memory_size(settings)
        self._slope = float(joint.friction.derivatives(_STEADY)[1])
        self._twist = float(joint.stiffness.twist_derivatives(torque)[1])
        self._elastic = settings.kind in (FLATNESS, LINEARISING)
        self.feeds = self._elastic or settings.kind == RIGID
        by_model = settings.kind == FLATNESS and settings.feedback == "model-based"
        self._conventional = settings.kind != LINEARISING and not by_model

    @property
    def size(self) -> int:
        """How many rows its memory has."""
        return self._memory + (int(self._chain["window"]) + _CHAIN if self._settings.smooth else 1)

    def refer(self, rows: Array, command: Array, step: int) -> Motion:
        """Bring the reference to the `command` of this step of the tick."""
        own, T = rows[self._memory :], self._settings.period
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

    def torque(self, rows: Array, r: Motion, load: Load, seen: tuple[Array, Array]) -> Array:
        """Return the motor's torque, seen at the joint, for the motion `r` under `load`; `seen` are link and motor."""
        feed, twist = self._feed_forward(r, load)
        link, motor = seen[0] - r.position, seen[1] - r.position - twist
        if self._encoder == "joint":
            motor = link
        elif self._encoder == "motor":
            link = motor
        turning = motor + twist if self._conventional else motor
        torque, rows[: self._memory] = self._feedback(link, motor, turning, rows[: self._memory])
        return feed + torque

    def _feed_forward(self, r: Motion, load: Load) -> tuple[Array, Array]:
        """Return the torque fed forward, and the twist of the gearbox that the law expects; (20), (27)."""
        if not self.feeds:
            return load.torque, np.zeros_like(r.position)
        F, M, give = self._slope, self._inertia, self._twist if self._elastic else 0.0
        torque = M * r.acceleration + load.torque + F * r.velocity
        second = M * r.snap + load.acceleration + F * r.jerk
        return torque + self._rotor * (r.acceleration + give * second), give * torque
