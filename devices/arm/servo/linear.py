"""Linear models of an arm held by a hand, per tick, and the virtual mass below which a sliding contact destabilizes it.

The arm is linearized at a steady motion: friction has its viscous slope, and the gearbox its stiffness under the
friction of the joint. Encoder quantization is ignored. The motion between two steps of a controller is exact. The
controller is one of two:

- `ServoedArm`: the servo law computes the torques (`devices.arm.servo.kernels`). The feedback is the same as in the
  stability check of the gains (`devices.arm.servo.servo`), with reference and feed-forward in addition.
- `DrivenArm`: a drive controls the motors. It is a cascade like in ODrives, with eight steps per millisecond: the
  position error determines a speed, the speed error a torque and an integral, and a tracking loop estimates both from
  the encoder. It gets an angle, a speed and a torque once per tick and holds them until the next arrive. The time
  between a sample and the arrival of the reference computed from it is modelled as one delay.

Every quantity is a row: its dependence on the state at the last tick and on the joint angles commanded since.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devices.arm.body import ArmBody
from devices.arm.flatness.joint import ElasticJoint
from devices.arm.motors.settings import DriveGains
from devices.arm.servo.kernels import CHAIN_FIELDS, fill_chain
from devices.arm.servo.servo import LOADED, TwoMasses, exponential, feedback, gains, memory_size
from devices.arm.servo.settings import FLATNESS, LINEARISING, RIGID, ServoSettings
from haptics.design import SampledArm, sliding_mass_limit

Array = NDArray[np.float64]
Pair = tuple[float, float]

PLANT = 8
"""Number of state variables: angles and speeds of both links, then of both rotors, all seen at the joints."""

RATE = 8000.0
"""Control iterations of a drive per second [Hz]."""

_TRACKING = 1000.0  # bandwidth of its tracking loop with default settings [rad/s]

_LONGEST = 0.02  # upper bound of the delay in the model [s]: a sample that old ends the run

_STEADY = 1.0  # speed at which friction has only a viscous slope [rad/s]

_CHAIN = 6  # state of a smooth reference besides the commands of a tick: mean, its rate, lag, and three of the chain


# --- mechanism --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grip:
    """Impedance of the hand on the handle: a spring [N/m] and a damper [N s/m]."""

    stiffness: float
    damping: float


def _mechanism(body: ArmBody, grip: Grip, tick: float, step: float, pose: Pair) -> tuple[Array, Array, Array]:
    """Linearize the arm at a pose, held by a hand at rest.

    The handle's inertial force is a mean over a `tick` [s], torques hold for a `step` [s].

    Returns
    -------
    jacobian : (2, 2) array
        Jacobian of the end effector.
    moved : (8, 10) array
        State after a step as a function of the state and of the torques of both motors.
    force : (2, 10) array
        Measured force as a function of the state and of the handle's velocity at the last tick [N].
    """
    links = body.links.terms(pose, placed=body.linkage)["inertia"][0]
    jacobian = body.linkage.jacobians([pose])[0]
    rotor, drive = body.rotor_inertia * body.reduction**2, body.drives[0]
    stiffness, damping = (drive.stiffness, drive.damping) if drive.coupling == "elastic" else (math.inf, 0.0)
    if drive.gear is not None:
        stiffness = 1.0 / float(drive.gear.twist_derivatives(body.kinetic_friction)[1])
    field = np.zeros((PLANT + 2, PLANT + 2))  # time derivative of the state and of the held motor torques
    field[:2, 2:4] = field[4:6, 6:8] = np.eye(2)
    load = np.zeros((2, PLANT + 2))  # torques on the links
    load[:, :2] = -grip.stiffness * jacobian.T @ jacobian
    load[:, 2:4] = -grip.damping * jacobian.T @ jacobian - body.viscosity * np.eye(2)
    if stiffness == math.inf:
        load[:, 8:] = np.eye(2)
        field[2:4] = field[6:8] = np.linalg.solve(links + rotor * np.eye(2), load)
    else:
        gear = np.zeros((2, PLANT + 2))
        gear[:, :4] = -np.hstack((stiffness * np.eye(2), damping * np.eye(2)))
        gear[:, 4:8] = -gear[:, :4]
        field[2:4] = np.linalg.solve(links, load + gear)
        gear[:, 8:] -= np.eye(2)
        field[6:8] = -gear / rotor
    force = np.zeros((2, PLANT + 2))
    force[:, :2] = -grip.stiffness * jacobian
    force[:, 2:4] = -(grip.damping + body.handle_mass / tick) * jacobian
    force[:, 8:] = body.handle_mass / tick * np.eye(2)
    return jacobian, exponential(step * field)[:PLANT], force


# --- reference and servo of a joint -----------------------------------------------------------------------------------


_Motion = tuple[Array, Array, Array, Array, Array]  # of a joint's reference: angle and four derivatives
_Load = tuple[Array, Array, Array]  # of a link besides its inertia and friction: torque and two derivatives


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
    period, tick : float
        Periods of the steps and of the commands [s].
    memory : int
        Number of state variables of the feedback.

    Attributes
    ----------
    feeds : bool
        Whether the law feeds forward the load of the link.
    size : int
        Number of rows of its state, with the feedback's rows first.
    """

    def __init__(
        self,
        settings: ServoSettings,
        joint: ElasticJoint,
        inertia: float,
        torque: float,
        period: float,
        tick: float,
        memory: int = 0,
    ) -> None:
        chain = np.zeros(1, CHAIN_FIELDS)
        fill_chain(chain, settings.reference_frequency, period, tick)
        self._settings, self._chain, self._period, self._memory = settings, chain[0], period, memory
        self._inertia, self._rotor = inertia, joint.motor_inertia * joint.gear_ratio**2
        self._slope = float(joint.friction.derivatives(_STEADY)[1])
        self._twist = float(joint.stiffness.twist_derivatives(torque)[1])
        self._elastic = settings.kind in (FLATNESS, LINEARISING)
        self.feeds = self._elastic or settings.kind == RIGID
        self.size = memory + (int(self._chain["window"]) + _CHAIN if settings.smooth else 1)

    def refer(self, rows: Array, command: Array, step: int) -> _Motion:
        """Update the reference with the `command` of this step of the tick; `rows` is modified in place."""
        T, own = self._period, rows[self._memory :]
        if not self._settings.smooth:
            velocity = (command - own[0]) / T
            own[0] = command
            none = np.zeros_like(command)
            return command, velocity, none, none, none
        s, commands, past = self._chain, own[:-_CHAIN], own[-_CHAIN:]
        commands[step % len(commands)] = command
        mean = commands.mean(axis=0)
        v = (mean - past[0]) / T
        middle, acceleration = 0.5 * (mean + past[0]), (v - past[1]) / T
        error = s["transition"] @ np.vstack((past[2], past[3] - past[1], past[4] - acceleration, past[5]))
        past[0], past[1] = mean, v
        snap, q1, q2, h = s["steering"] @ error, v + error[1], acceleration + error[2], s["lead"]
        past[2], past[3], past[4], past[5] = error[0], q1, q2, error[3]
        return middle + error[0] + h * q1, q1 + h * q2, q2 + h * error[3], error[3] + h * snap, snap

    def motor_reference(self, motion: _Motion, load: _Load) -> tuple[Array, Array, Array]:
        """Return angle, speed and torque of the motor, seen at the joint, for a motion; (20), (25), (27)."""
        q, q1, q2, q3, q4 = motion
        if not self.feeds:
            return q, q1, load[0]
        F, M, give = self._slope, self._inertia, self._twist if self._elastic else 0.0
        torque = M * q2 + load[0] + F * q1
        rate = M * q3 + load[1] + F * q2
        second = M * q4 + load[2] + F * q3
        return q + give * torque, q1 + give * rate, torque + self._rotor * (q2 + give * second)


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
    tick : float
        Period of the commands [s].
    """

    def __init__(
        self, settings: ServoSettings, encoder: str, joint: ElasticJoint, inertias: Pair, torque: float, tick: float
    ) -> None:
        super().__init__(settings, joint, inertias[1], torque, settings.period, tick, memory_size(settings))
        plant = TwoMasses.of(joint, inertias[0], settings.period, torque=LOADED, drag=0.0)
        here = TwoMasses.of(joint, inertias[1], settings.period, torque=torque, drag=0.0)
        self._feedback = feedback(settings, here, gains(settings, plant.total))
        by_model = settings.kind == FLATNESS and settings.feedback == "model-based"
        self._encoder, self._conventional = encoder, settings.kind != LINEARISING and not by_model

    def torque(self, rows: Array, motion: _Motion, load: _Load, measured: tuple[Array, Array]) -> Array:
        """Return the motor torque, seen at the joint, for a motion; `measured` are the angles of link and motor."""
        angle, _, feed_forward = self.motor_reference(motion, load)
        twist = angle - motion[0]
        link, motor = measured[0] - motion[0], measured[1] - angle
        if self._encoder == "joint":
            motor = link
        elif self._encoder == "motor":
            link = motor
        turning = motor + twist if self._conventional else motor
        torque, rows[: self._memory] = self._feedback(link, motor, turning, rows[: self._memory])
        return feed_forward + torque


def _loads(
    settings: ServoSettings,
    joints: Sequence[LinearReference],
    motions: Sequence[_Motion],
    between: float,
    rows: Array,
    hand: Array,
    period: float,
) -> list[_Load]:
    """Return the modelled loads of both links: coupling `between` them [kg m^2], and the hand.

    The torques of the hand on the joints are filtered by two poles, implicit, if the servo knows them. The rows of
    their values and rates, (4, n), are modified in place.
    """
    torques, rates, before = rows[:2], rows[2:], rows[2:].copy()
    if settings.knows_hand:
        T, b = period, 2.0 * math.pi * settings.hand_filter
        rates[:] = (before + T * b * b * (hand - torques)) / (1.0 + T * b * (2.0 + T * b))
        torques += T * rates
    loads: list[_Load] = []
    for i, joint in enumerate(joints):
        (_, _, q2, q3, q4), h = motions[1 - i], between if joint.feeds else 0.0
        loads.append((h * q2 - torques[i], h * q3 - rates[i], h * q4 - (rates[i] - before[i]) / period))
    return loads


# --- the arm per tick -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ServoedArm:
    """Arm under its servo.

    Attributes
    ----------
    body : ArmBody
        The arm.
    joints : (ElasticJoint, ElasticJoint)
        Its ``model_joints``; a separate attribute because a file from which they are read may change under the same
        name.
    settings : ServoSettings
        Settings of its servo.
    """

    body: ArmBody
    joints: tuple[ElasticJoint, ElasticJoint]
    settings: ServoSettings

    def sampled(self, grip: Grip, tick: float, pose: Pair) -> SampledArm:
        """Return the system with a hand, from tick to tick [s], linearized at a pose, (2,) [rad].

        Its state consists of the plant, the handle's velocity at the last tick, the angles commanded then, the filtered
        hand torques and their rates, and the state of both servos.
        """
        body, settings = self.body, self.settings
        count = max(round(tick / settings.period), 1)
        jacobian, moved, measured = _mechanism(body, grip, tick, tick / count, pose)
        inertia_matrix = self._inertia(pose)
        between = float(inertia_matrix[0, 1])
        joints = [
            LinearServo(settings, body.encoder, joint, (float(home), float(here)), body.kinetic_friction, tick)
            for joint, home, here in zip(
                self.joints, np.diag(self._inertia(body.linkage.home)), np.diag(inertia_matrix), strict=True
            )
        ]
        x, force, blocks = _rows(measured, joints, PLANT + 8)
        size = len(x)
        pushed = jacobian.T @ force @ x
        before, after = x[10:12].copy(), np.eye(2, size + 2, size)
        x[8:10], x[10:12] = jacobian @ x[2:4], after
        for step in range(count):
            commands = before + step / count * (after - before)
            motions = [joint.refer(b, c, step) for joint, b, c in zip(joints, blocks, commands, strict=True)]
            loads = _loads(settings, joints, motions, between, x[12:16], pushed, settings.period)
            ends = zip(joints, blocks, motions, loads, zip(x[:2], x[4:6], strict=True), strict=True)
            torques = [joint.torque(rows, motion, load, angles) for joint, rows, motion, load, angles in ends]
            x[:PLANT] = moved @ np.vstack((x[:PLANT], torques))
        return SampledArm(x[:, :size], x[:, size:] @ np.linalg.inv(jacobian), force, tick)

    def _inertia(self, pose: Pair) -> Array:
        """Return the inertia matrix of the links in the model of the control, (2, 2) [kg m^2]."""
        return np.asarray(self.body.model_links.terms(pose, placed=self.body.linkage)["inertia"][0])


@dataclass(frozen=True)
class DrivenArm(ServoedArm):
    """Arm and the drive of its motors; `settings` are those of the references.

    Attributes
    ----------
    gains : DriveGains
        Gains of the drive.
    reductions : (float, float)
        Turns of each motor per turn of its joint.
    delay : float
        Time from a sample to the arrival of the reference computed from it [s].
    """

    gains: DriveGains
    reductions: Pair
    delay: float

    def sampled(self, grip: Grip, tick: float, pose: Pair) -> SampledArm:
        """Return the system with a hand, from tick to tick [s], linearized at a pose, (2,) [rad].

        Its state consists of the plant, the handle's velocity at the last tick, the drive's estimates of angles and
        speeds and its integrals, the hand motion estimates, recent commands to the drive, and the state of both
        references.
        """
        body, settings = self.body, self.settings
        count = max(round(tick * RATE), 1)
        period, delay = tick / count, min(self.delay, _LONGEST)
        jacobian, moved, measured = _mechanism(body, grip, tick, period, pose)
        inertia_matrix = self._inertia(pose)
        joints = [
            LinearReference(settings, joint, float(inertia), body.kinetic_friction, tick, tick)
            for joint, inertia in zip(self.joints, np.diag(inertia_matrix), strict=True)
        ]
        # from a torque per turn at a motor to a torque per radian at the joint
        turns = (np.square(self.reductions) / math.tau)[:, None]
        k, b, i = self.gains.position, self.gains.speed * turns, self.gains.integrator * turns
        own, late = PLANT + 2 + 6 + 4, math.ceil(delay / tick - 1e-9)
        past = own + 6 * late  # a command: angles, speeds and torques of both motors, seen at the joints
        x, force, blocks = _rows(measured, joints, past)
        size, pushed = len(x), jacobian.T @ force @ x
        commands = np.eye(2, size + 2, size)
        motions = [joint.refer(rows, c, 0) for joint, rows, c in zip(joints, blocks, commands, strict=True)]
        loads = _loads(settings, joints, motions, float(inertia_matrix[0, 1]), x[own - 4 : own], pushed, tick)
        motors = [joint.motor_reference(r, load) for joint, r, load in zip(joints, motions, loads, strict=True)]
        sent = [part for both in zip(*motors, strict=True) for part in both]
        arrived = np.vstack((np.stack(sent), x[own:past]))  # newest first
        x[8:10] = jacobian @ x[2:4]
        rotors, angles, speeds, integrals = x[4:6], x[10:12], x[12:14], x[14:16]
        for step in range(count):
            first = 6 * max(math.ceil((delay - step * period) / tick - 1e-9), 0)
            command = arrived[first : first + 6]
            angles += period * speeds
            error = rotors - angles
            angles += 2.0 * period * _TRACKING * error
            speeds += period * _TRACKING**2 * error
            error = command[2:4] + k * (command[:2] - angles) - speeds
            torques = command[4:] + b * error + integrals
            integrals += period * i * error
            x[:PLANT] = moved @ np.vstack((x[:PLANT], torques))
        x[own:past] = arrived[: 6 * late]
        return SampledArm(x[:, :size], x[:, size:] @ np.linalg.inv(jacobian), force, tick)


def _rows(measured: Array, joints: Sequence[LinearReference], own: int) -> tuple[Array, Array, list[Array]]:
    """Return the rows of the state, the measured force, and the rows of each joint, which follow `own` others."""
    size = own + sum(joint.size for joint in joints)
    x, force = np.eye(size, size + 2), np.zeros((2, size))
    force[:, : PLANT + 2] = measured
    return x, force, [x[own : own + joints[0].size], x[own + joints[0].size :]]


@functools.lru_cache(maxsize=128)
def least_mass(arm: ServoedArm, grip: Grip, tick: float, places: tuple[Pair, ...]) -> float:
    """Return the smallest virtual mass with which a sliding contact does not destabilize the arm [kg].

    Parameters
    ----------
    arm, grip, tick : ServoedArm, Grip, float
        As for `ServoedArm.sampled`.
    places : tuple of (x, y)
        Positions of the end effector [m]; the result is the maximum over all of them.
    """
    return sliding_mass_limit([arm.sampled(grip, tick, arm.body.angles(*place)) for place in places])
