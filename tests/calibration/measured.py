"""Recordings of joints of known friction, and files of them."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibration.data.files import Source
from calibration.data.joint_recording import JointRecording
from tests.calibration.hand_moved import DEGREE, KNEE

Array = NDArray[np.float64]

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
