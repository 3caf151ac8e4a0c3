"""Joints of known friction that a hand or a robot moves, their recordings, and files of them."""

from dataclasses import replace

import numpy as np

from calibration.data.joint_recording import JointRecording, Source
from calibration.friction import MODELS, Motion, Samples, Travel
from calibration.terms.model import dahl

# --- the knee of Guedelha et al. 2018, moved to and fro by a hand -----------------------------------------------------

DEGREE = np.pi / 180.0
HAND_PERIOD = 0.01


KNEE = {
    "coulomb": 0.85,
    "viscosity": 0.31 / DEGREE,
    "static_forward": 1.27,
    "static_backward": 1.95,
    "stribeck_velocity": 1.0 * DEGREE,
}
"""Parameters of Fig. 10 of the paper; the Stribeck velocity is the unit that its (26) omits."""


def hand(seed, duration):
    """Return times, angles [rad] and velocities of a joint that is moved to and fro irregularly."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, duration, HAND_PERIOD)
    speeds = np.array((12.0, 4.0, 8.0)) * DEGREE * rng.uniform(0.8, 1.2, 3)
    rates = 2.0 * np.pi * np.array((0.31, 0.53, 0.12)) * rng.uniform(0.9, 1.1, 3)
    phases = np.multiply.outer(time, rates) + rng.uniform(0.0, 2.0 * np.pi, 3)
    return time, np.sin(phases) @ (speeds / rates), np.cos(phases) @ speeds


def measured(truth, seed=0, duration=60.0, torque_noise=0.0, model="stribeck"):
    """Return samples of a joint of known friction with exact velocities and positions.

    The harmonics belong to a shaft that turns eight times as far as the joint: within the range of the joint they
    could not be separated from an offset.
    """
    time, angle, velocity = hand(seed, duration)
    noise = torque_noise * np.random.default_rng(seed + 1000).standard_normal(len(time))
    motion = Motion(velocity, Travel.whole(angle), 8.0 * angle)
    friction = MODELS[model].evaluate(truth, motion) + noise
    return Samples(time, velocity, friction, travel=motion.travel, angle=motion.angle)


def encoded(seed, duration, counts, encoder_noise, torque_noise):
    """Return samples of the knee from an encoder with steps of `counts` and white noise, both in radians."""
    time, angle, velocity = hand(seed, duration)
    rng = np.random.default_rng(seed + 1000)
    seen = angle + encoder_noise * rng.standard_normal(len(time))
    torque = -MODELS["stribeck"].evaluate(KNEE, velocity) + torque_noise * rng.standard_normal(len(time))
    return Samples.from_positions(time, np.round(seen / counts) * counts, torque, cutoff=4.0)


# --- the knee, swung by a motor ---------------------------------------------------------------------------------------

SOURCE = Source("knee.csv", "0" * 64)


def friction(velocity, law=KNEE):
    """Return the friction in the direction of the velocity; no friction at rest."""
    speed = np.abs(velocity)
    fall = np.exp(-speed / law["stribeck_velocity"])
    static = np.where(velocity > 0.0, law["static_forward"], law["static_backward"])
    level = law["coulomb"] + law["viscosity"] * speed + (static - law["coulomb"]) * fall
    return np.asarray(np.sign(velocity) * level)


def swinging(amplitude=20.0 * DEGREE, duration=60.0, rate=100.0):
    """Return time, position, velocity and acceleration of a joint that is swung with changing amplitude."""
    time = np.arange(0.0, duration, 1.0 / rate)
    phase, envelope = 0.9 * time, 0.55 + 0.45 * np.cos(0.13 * time)
    velocity = amplitude * envelope * np.sin(phase)
    position = np.concatenate(([0.0], np.cumsum((velocity[1:] + velocity[:-1]) / 2.0 / rate)))
    return time, position, velocity, np.gradient(velocity, time)


def idle(noise=0.0, seed=1, duration=60.0, joint="knee"):
    """Return a recording of the knee with an idle motor."""
    time, position, velocity, acceleration = swinging(duration=duration)
    torque = -friction(velocity) + noise * np.random.default_rng(seed).standard_normal(len(time))
    return JointRecording(joint, True, time, velocity, torque, SOURCE, acceleration, position)


def driven(gain=0.05, offset=0.8, noise=0.0, inertia=0.0):
    """Return a recording of the knee whose motor is driven by a PWM [percent] that rises and falls."""
    still = idle(duration=40.0)
    drive = 60.0 * np.sin(0.37 * still.time + 0.4)
    noisy = noise * np.random.default_rng(2).standard_normal(len(still))
    acceleration = 0.0 if still.acceleration is None else still.acceleration
    torque = gain * drive + offset - friction(still.velocity) - inertia * acceleration + noisy
    return replace(still, effort=torque, drive=drive, drive_unit="percent")


def through_stuck_gear(driving, static):
    """Return the torque that a gear transmits to a held joint, with the hysteresis of its static friction."""
    passed = np.zeros(len(driving))
    for k, torque in enumerate(driving):
        passed[k] = min(max(passed[k - 1], torque - static), torque + static)
    return passed


def write_csv(path, **columns):
    """Write columns as CSV; two underscores in a name become the dot after the name of a joint."""
    names = [name.replace("__", ".") for name in columns]
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(names), comments="")
    return path


def write_idle(path, noise=0.1, seed=1, duration=60.0):
    """Write the recording `idle` with the columns of the contract."""
    knee = idle(noise, seed, duration)
    return write_csv(path, time_s=knee.time, velocity_rad_per_s=knee.velocity, torque_nm=knee.effort)


# --- a joint of a robot with presliding -------------------------------------------------------------------------------

PERIOD = 0.004


def recorded(time, velocity, friction, position=None, acceleration=None, rotary=True):
    """Return a recording of a joint with this friction."""
    source = Source("elbow.csv", "0" * 64)
    return JointRecording("joint", rotary, time, velocity, -np.asarray(friction), source, acceleration, position)


def motion(duration=12.0, seed=0, rest=0.6, speed=0.8):
    """Return times, positions, velocities and accelerations of a smooth motion that begins at rest."""
    random = np.random.default_rng(seed)
    time = PERIOD * np.arange(round(duration / PERIOD))
    along = np.clip(time - rest, 0.0, None)
    begin = np.where(along < 1.0, along**3 * (10.0 - 15.0 * along + 6.0 * along**2), 1.0)
    frequencies, phases = random.uniform(0.1, 0.9, 4), random.uniform(0.0, 2.0 * np.pi, 4)
    velocity = begin * sum(np.sin(2.0 * np.pi * f * along + p) for f, p in zip(frequencies, phases, strict=True))
    velocity *= speed / np.abs(velocity).max()
    position = np.concatenate(([0.0], np.cumsum(0.5 * (velocity[1:] + velocity[:-1]) * PERIOD)))
    return time, position, velocity, np.gradient(velocity, PERIOD)


def joint(seed=0, noise=2.0, offset=-15.0, viscosity=60.0, sliding=25.0, length=1e-3, inertia=0.0, duration=12.0):
    """Return a recording of a joint with viscous friction and presliding, and perhaps of a wrong inertia."""
    time, position, velocity, acceleration = motion(duration, seed)
    friction = offset + viscosity * velocity + sliding * dahl(position, length) + inertia * acceleration
    friction = friction + noise * np.random.default_rng(seed + 100).standard_normal(len(time))
    return recorded(time, velocity, friction, position, acceleration)
