"""Joints of known friction that a hand moves to and fro: the knee and the other joints of Guedelha et al. 2018."""

import numpy as np

from calibration.friction import MODELS, Motion, Samples, Travel

DEGREE = np.pi / 180.0
PERIOD = 0.01

TABLE_1 = {
    "hip pitch": (1.31, 2.24, 1.16),
    "hip roll": (2.49, 0.96, 0.50),
    "hip yaw": (1.30, 2.58, 1.22),
    "knee": (1.27, 1.95, 0.69),
    "ankle pitch": (2.90, 0.71, 1.32),
    "ankle roll": (2.05, 1.29, 1.20),
}
"""Static levels forward and backward [N m] and viscosity [N m s/deg]; a Coulomb level is given for the knee alone."""

KNEE = {
    "coulomb": 0.85,
    "viscosity": 0.31 / DEGREE,
    "static_forward": 1.27,
    "static_backward": 1.95,
    "stribeck_velocity": 1.0 * DEGREE,
}
"""As in the paper's Fig. 10; the speed is the unit that its (26) leaves out."""


def joint(name: str) -> dict[str, float]:
    forward, backward, viscosity = TABLE_1[name]
    coulomb = 0.85 if name == "knee" else 0.6 * min(forward, backward)
    levels = {"coulomb": coulomb, "static_forward": forward, "static_backward": backward}
    return {**levels, "viscosity": viscosity / DEGREE, "stribeck_velocity": DEGREE}


def hand(seed: int, duration: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times, angles [rad] and velocities of a joint that is moved to and fro, never twice in the same way."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, duration, PERIOD)
    speeds = np.array((12.0, 4.0, 8.0)) * DEGREE * rng.uniform(0.8, 1.2, 3)
    rates = 2.0 * np.pi * np.array((0.31, 0.53, 0.12)) * rng.uniform(0.9, 1.1, 3)
    phases = np.multiply.outer(time, rates) + rng.uniform(0.0, 2.0 * np.pi, 3)
    return time, np.sin(phases) @ (speeds / rates), np.cos(phases) @ speeds


def measured(
    truth: dict[str, float], seed: int = 0, duration: float = 60.0, torque_noise: float = 0.0, model: str = "stribeck"
) -> Samples:
    """Return samples of a joint of known friction with exact velocities and positions.

    The harmonics are those of a shaft that turns eight times as far as the joint: within the range of the joint they
    could not be told from an offset.
    """
    time, angle, velocity = hand(seed, duration)
    noise = torque_noise * np.random.default_rng(seed + 1000).standard_normal(len(time))
    motion = Motion(velocity, Travel.whole(angle), 8.0 * angle)
    friction = MODELS[model].evaluate(truth, motion) + noise
    return Samples(time, velocity, friction, travel=motion.travel, angle=motion.angle)


def encoded(seed: int, duration: float, counts: float, encoder_noise: float, torque_noise: float) -> Samples:
    """Return what was measured of the knee with an encoder: steps of `counts` and white noise, both in radians."""
    time, angle, velocity = hand(seed, duration)
    rng = np.random.default_rng(seed + 1000)
    seen = angle + encoder_noise * rng.standard_normal(len(time))
    torque = -MODELS["stribeck"].evaluate(KNEE, velocity) + torque_noise * rng.standard_normal(len(time))
    return Samples.from_positions(time, np.round(seen / counts) * counts, torque, cutoff=4.0)
