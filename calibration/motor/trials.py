"""Simulated recordings of a joint and its motor, with all that is true of them known.

They show how often an interval of `calibration.motor.gain` holds the truth, and how often there is a warning: where the
friction is that of its file, and where it is not. ``python -m calibration.motor.coverage`` prints the table.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.data.files import Source
from calibration.data.joint_recording import JointRecording
from calibration.friction import MODELS
from calibration.friction.trials import TRUTH
from calibration.identification import Wishes, identify
from calibration.motor.gain import MotorFit, identify_motor
from calibration.parameters.parameters import JointParameters
from calibration.parameters.spread import friction_change, friction_spread

Array = NDArray[np.float64]

GAIN, OFFSET = 0.2, 0.8
"""Truth: torque per percent of PWM, and without any [N m]."""
_RATE, _NOISE, _PWM = 100.0, 0.1, 60.0
"""Samples a second, standard deviation of the torque's noise [N m], greatest drive [percent]."""


@dataclass(frozen=True)
class Scenario:
    """What a recording of a driven motor is like.

    Attributes
    ----------
    name : str
        In words.
    warm : float
        Levels and viscosity in the recording, relative to those of the file of frictions.
    warming : float
        How much of them is lost from the first sample to the last.
    in_phase : float
        Part of the drive that follows the velocity, 0 to 1; the rest is independent of it.
    speed : float
        Top speed relative to that of the recording of the friction.
    memory : float
        Correlation of an error of the torque with the next.
    with_file : bool
        Whether the friction is read from a file; else it is taken for a hysteresis.
    model : str
        Of the friction in the file.
    """

    name: str
    warm: float = 1.0
    warming: float = 0.0
    in_phase: float = 0.0
    speed: float = 1.0
    memory: float = 0.0
    with_file: bool = True
    model: str = "stribeck"


SCENARIOS = (
    Scenario("plain: independent drive, friction as in its file"),
    Scenario("errors of the torque with a memory (0.97 from sample to sample)", memory=0.97),
    Scenario("friction 25 % lower (warm)", warm=0.75),
    Scenario("drive in phase with the velocity", in_phase=0.8),
    Scenario("half in phase, friction 10 % lower", in_phase=0.5, warm=0.9),
    Scenario("in phase, friction 25 % lower", in_phase=0.8, warm=0.75),
    Scenario("wholly in phase, friction 25 % lower", in_phase=1.0, warm=0.75),
    Scenario("friction falls by 30 % while recording", warming=0.3),
    Scenario("in phase, friction falls by 30 % while recording", in_phase=0.8, warming=0.3),
    Scenario("slow: half of it in the dead band of the file", speed=0.02),
    Scenario("creeping: all of it in the dead band of the file", speed=0.006),
    Scenario("slow and in phase, friction 25 % lower", speed=0.02, in_phase=0.8, warm=0.75),
    Scenario("slow and in phase; its file knows no Stribeck zone", speed=0.05, in_phase=0.8, model="coulomb-viscous"),
    Scenario("no file of frictions", with_file=False),
    Scenario("no file of frictions, in phase", with_file=False, in_phase=0.8),
)


@functools.cache
def joint_of(seed: int, model: str = "stribeck") -> JointParameters:
    """Return the friction of the joint as `identify` finds it in 60 s of motion by hand."""
    rng = np.random.default_rng([seed, 1])
    time, velocity = _by_hand(rng, 60.0)
    torque = -MODELS["stribeck"].evaluate(TRUTH, velocity) + _noise(rng, len(time), 0.0)
    return identify([_recording(time, velocity, torque)], Wishes(model)).parameters()


def driven(scenario: Scenario, seed: int, duration: float = 40.0) -> JointRecording:
    """Return a recording of the joint while its motor is driven."""
    rng = np.random.default_rng([seed, 2])
    time, velocity = _by_hand(rng, duration)
    velocity = scenario.speed * velocity
    rates, phases = rng.uniform(1.5, 3.5, 2), rng.uniform(0.0, 2.0 * np.pi, 2)
    free = np.sin(np.multiply.outer(time, rates) + phases).sum(axis=1) / 2.0
    mixed = scenario.in_phase * velocity / np.abs(velocity).max() + (1.0 - scenario.in_phase) * free
    drive = _PWM * mixed
    level = scenario.warm * (1.0 - scenario.warming * time / time[-1])
    torque = GAIN * drive + OFFSET - level * MODELS["stribeck"].evaluate(TRUTH, velocity)
    torque = torque + _noise(rng, len(time), scenario.memory)
    return replace(_recording(time, velocity, torque), drive=drive, drive_unit="percent")


def fitted(scenario: Scenario, seed: int) -> MotorFit:
    """Return what `identify_motor` finds in a recording, as the command calls it."""
    recording = driven(scenario, seed)
    if not scenario.with_file:
        return identify_motor(recording)
    joint = joint_of(seed, scenario.model)
    return identify_motor(
        recording,
        joint.friction_at,
        rest=joint.dead_band,
        friction_spread=friction_spread(joint, recording.velocity),
        friction_change=friction_change(joint, recording.velocity),
    )


def _by_hand(rng: np.random.Generator, duration: float) -> tuple[Array, Array]:
    """Return times and velocities of a joint that somebody moves to and fro."""
    time = np.arange(0.0, duration, 1.0 / _RATE)
    speeds = np.radians((12.0, 4.0, 8.0)) * rng.uniform(0.8, 1.2, 3)
    rates = 2.0 * np.pi * np.array((0.31, 0.53, 0.12)) * rng.uniform(0.9, 1.1, 3)
    phases = np.multiply.outer(time, rates) + rng.uniform(0.0, 2.0 * np.pi, 3)
    return time, np.asarray(np.cos(phases) @ speeds)


def _noise(rng: np.random.Generator, samples: int, memory: float) -> Array:
    """Return errors of the torque, each resembling the last, all of the same size."""
    white = rng.standard_normal(samples)
    errors = np.empty(samples)
    error = white[0]
    for place, fresh in enumerate(white.tolist()):
        error = memory * error + (1.0 - memory**2) ** 0.5 * fresh
        errors[place] = error
    return _NOISE * errors


def _recording(time: Array, velocity: Array, torque: Array) -> JointRecording:
    return JointRecording("knee", True, time, velocity, torque, Source("simulated", "0" * 64))
