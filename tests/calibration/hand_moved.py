"""A joint of known friction that a hand moves to and fro: the knee of Guedelha et al. 2018."""

import numpy as np

from calibration.friction import MODELS, Motion, Samples, Travel

DEGREE = np.pi / 180.0
PERIOD = 0.01


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
    time = np.arange(0.0, duration, PERIOD)
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
