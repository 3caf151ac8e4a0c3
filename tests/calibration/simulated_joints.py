"""Joints of known friction in smooth motions of a hand or a robot."""

import numpy as np

from calibration.data.files import Source
from calibration.data.joint_recording import JointRecording
from calibration.terms.terms import dahl

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
