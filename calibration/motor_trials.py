"""Simulated recordings of a joint and its motor with known parameters.

They measure the coverage of the interval of a motor's gain and the frequency of warnings, with the friction from the
file and with a changed friction. ``python -m calibration.motor_trials`` prints the table of the manual.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording, Source
from calibration.friction import MODELS
from calibration.friction.trials import TRUTH
from calibration.identification import IdentificationOptions, identify
from calibration.motor import MotorFit, identify_motor
from calibration.parameters import JointParameters, friction_change, friction_spread

Array = NDArray[np.float64]

GAIN, OFFSET = 0.2, 0.8
"""True torque per percent of PWM, and true offset [N m]."""
_RATE, _NOISE, _PWM = 100.0, 0.1, 60.0
"""Sampling rate [Hz], standard deviation of the torque noise [N m], maximum drive [percent]."""


@dataclass(frozen=True)
class Scenario:
    """Conditions of a recording of a driven motor.

    Attributes
    ----------
    name : str
        Description.
    warm : float
        Levels and viscosity in the recording, relative to those in the friction file.
    warming : float
        Relative loss of levels and viscosity from the first to the last sample.
    in_phase : float
        Fraction of the drive that follows the velocity, 0 to 1; the rest is independent of it.
    speed : float
        Top speed relative to the friction recording.
    memory : float
        Correlation of consecutive torque errors.
    with_file : bool
        Whether the friction is read from a file; otherwise it is modelled as a hysteresis.
    model : str
        Model of the friction in the file.
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
    """Return the friction of the joint as identified from 60 s of motion by hand."""
    rng = np.random.default_rng([seed, 1])
    time, velocity = _by_hand(rng, 60.0)
    torque = -MODELS["stribeck"].evaluate(TRUTH, velocity) + _noise(rng, len(time), 0.0)
    return identify([_recording(time, velocity, torque)], IdentificationOptions(model)).parameters()


def driven(scenario: Scenario, seed: int, duration: float = 40.0) -> JointRecording:
    """Return a simulated recording of the joint while its motor is driven."""
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
    """Return the result of `identify_motor`, with the arguments of the command line tool."""
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
    """Return times and velocities of a joint that is moved back and forth by hand."""
    time = np.arange(0.0, duration, 1.0 / _RATE)
    speeds = np.radians((12.0, 4.0, 8.0)) * rng.uniform(0.8, 1.2, 3)
    rates = 2.0 * np.pi * np.array((0.31, 0.53, 0.12)) * rng.uniform(0.9, 1.1, 3)
    phases = np.multiply.outer(time, rates) + rng.uniform(0.0, 2.0 * np.pi, 3)
    return time, np.asarray(np.cos(phases) @ speeds)


def _noise(rng: np.random.Generator, samples: int, memory: float) -> Array:
    """Return autocorrelated errors of the torque with constant variance."""
    white = rng.standard_normal(samples)
    errors = np.empty(samples)
    error = white[0]
    for place, fresh in enumerate(white.tolist()):
        error = memory * error + (1.0 - memory**2) ** 0.5 * fresh
        errors[place] = error
    return _NOISE * errors


def _recording(time: Array, velocity: Array, torque: Array) -> JointRecording:
    return JointRecording("knee", True, time, velocity, torque, Source("simulated", "0" * 64))


TRIALS = 20


@dataclass(frozen=True)
class Coverage:
    """Results of the trials of one scenario.

    Attributes
    ----------
    scenario : Scenario
        Conditions of the recordings.
    errors : tuple of float
        Error of the gain in each trial, relative to the true gain.
    held : tuple of bool
        Whether the interval contained the true gain.
    warned : tuple of bool
        Whether there was a warning.
    """

    scenario: Scenario
    errors: tuple[float, ...]
    held: tuple[bool, ...]
    warned: tuple[bool, ...]

    @property
    def silent_misses(self) -> int:
        """Number of trials in which the interval missed the true gain without a warning."""
        return sum(not held and not warned for held, warned in zip(self.held, self.warned, strict=True))

    def row(self) -> str:
        """Return the row of the table."""
        count, sizes = len(self.errors), np.abs(self.errors)
        return (
            f"| {self.scenario.name} | {np.median(self.errors):+.1%} | {self.errors[int(np.argmax(sizes))]:+.1%} "
            f"| {sum(self.held)} of {count} | {sum(self.warned)} of {count} | {self.silent_misses} |"
        )


def coverage(scenario: Scenario, trials: int = TRIALS) -> Coverage:
    """Run the trials of a scenario."""
    fits = [fitted(scenario, seed) for seed in range(trials)]
    intervals = [fit.intervals["gain"] for fit in fits]
    return Coverage(
        scenario,
        tuple(fit.values["gain"] / GAIN - 1.0 for fit in fits),
        tuple(low <= GAIN <= high for low, high in intervals),
        tuple(bool(fit.found().warnings) for fit in fits),
    )


def table(scenarios: Iterable[Scenario] = SCENARIOS, trials: int = TRIALS) -> str:
    """Return the table of all scenarios as Markdown."""
    rows = [coverage(scenario, trials).row() for scenario in scenarios]
    head = "| recording | gain: median error | worst | interval holds it | warned | missed in silence |"
    return "\n".join([head, "|---|---|---|---|---|---|", *rows])


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
