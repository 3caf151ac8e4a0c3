"""Simulated recordings of a joint of known friction: how often intervals hold it, and how often there is a warning.

``python -m calibration.friction.trials`` prints the table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.friction.fit import fit_friction
from calibration.friction.model import MODELS
from calibration.friction.result import FrictionFit
from calibration.friction.samples import Samples

Array = NDArray[np.float64]

TRUTH = {
    "coulomb": 0.85,
    "viscosity": 17.8,
    "static_forward": 1.27,
    "static_backward": 1.95,
    "stribeck_velocity": 0.0175,
}
"""A knee (Guedelha et al. 2018, Table 1 and Fig. 10); SI units."""
TRIALS = 30
_PERIOD, _DURATION, _NOISE = 0.01, 60.0, 0.1


@dataclass(frozen=True)
class Scenario:
    """What a recording is like.

    Attributes
    ----------
    name : str
        In words.
    stribeck_velocity : float
        Truth [rad/s]; the top speed is about 0.4 rad/s.
    memory : float
        Correlation of an error of the torque with the next.
    step : float
        Of the encoder [rad], whose positions are differentiated; 0 for exact velocities.
    drift : float
        How much of the levels and of the viscosity is lost from the first sample to the last.
    model : str
        That is fitted.
    """

    name: str
    stribeck_velocity: float = TRUTH["stribeck_velocity"]
    memory: float = 0.0
    step: float = 0.0
    drift: float = 0.0
    model: str = "stribeck"


SCENARIOS = (
    Scenario("plain: white noise, exact velocity"),
    Scenario("Stribeck velocity 0.003 rad/s", stribeck_velocity=0.003),
    Scenario("Stribeck velocity 0.001 rad/s", stribeck_velocity=0.001),
    Scenario("Stribeck velocity 0.003 rad/s, fitted without a Stribeck term", 0.003, model="coulomb-viscous"),
    Scenario("errors of the torque with a memory (0.97 from sample to sample)", memory=0.97),
    Scenario("encoder with steps of 0.05 degree", step=np.radians(0.05)),
    Scenario("friction falls by 20 % while recording", drift=0.2),
)


def recorded(scenario: Scenario, seed: int) -> Samples:
    """Return what was measured of a joint that a hand moves to and fro, never twice in the same way."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, _DURATION, _PERIOD)
    speeds = np.radians((12.0, 4.0, 8.0)) * rng.uniform(0.8, 1.2, 3)
    rates = 2.0 * np.pi * np.array((0.31, 0.53, 0.12)) * rng.uniform(0.9, 1.1, 3)
    phases = np.multiply.outer(time, rates) + rng.uniform(0.0, 2.0 * np.pi, 3)
    angle, velocity = np.sin(phases) @ (speeds / rates), np.cos(phases) @ speeds
    shocks = rng.standard_normal(len(time)) * np.sqrt(1.0 - scenario.memory**2)
    noise = np.empty_like(shocks)
    last = rng.standard_normal()
    for k, shock in enumerate(shocks):
        noise[k] = last = scenario.memory * last + shock
    truth = TRUTH | {"stribeck_velocity": scenario.stribeck_velocity}
    fading = 1.0 - scenario.drift * (time / _DURATION - 0.5)
    friction = fading * MODELS["stribeck"].evaluate(truth, velocity) + _NOISE * noise
    if scenario.step == 0.0:
        return Samples(time, velocity, friction)
    return Samples.from_positions(time, np.round(angle / scenario.step) * scenario.step, -friction)


@dataclass(frozen=True)
class Coverage:
    """What came of the trials of a scenario: for each, what its intervals hold, and whether they are doubted."""

    scenario: Scenario
    held: tuple[dict[str, bool], ...]
    doubted: tuple[bool, ...]

    def row(self) -> str:
        """Return the line of the table."""
        count = len(self.held)

        def of(*names: str) -> str:
            known = [one[name] for one in self.held for name in names if name in one]
            return f"{sum(known) / len(known):.2f}" if known else "none"

        silent = sum(not all(one.values()) and not doubt for one, doubt in zip(self.held, self.doubted, strict=True))
        static = of("static_forward", "static_backward")
        return (
            f"| {self.scenario.name} | {of('coulomb', 'viscosity')} | {static} | {of('stribeck_velocity')} "
            f"| {sum(self.doubted)} of {count} | {silent} |"
        )


def coverage(scenario: Scenario, trials: int = TRIALS) -> Coverage:
    """Fit the trials of a scenario."""
    fits = [fit_friction(recorded(scenario, seed), scenario.model) for seed in range(trials)]
    truth = TRUTH | {"stribeck_velocity": scenario.stribeck_velocity}
    return Coverage(scenario, tuple(_held(fit, truth) for fit in fits), tuple(map(_doubted, fits)))


def _held(fit: FrictionFit, truth: dict[str, float]) -> dict[str, bool]:
    return {name: low <= truth[name] <= high for name, (low, high) in fit.intervals.items()}


def _doubted(fit: FrictionFit) -> bool:
    return any(doubt.spoils_intervals for doubt in fit.doubts)


def table(scenarios: Iterable[Scenario] = SCENARIOS, trials: int = TRIALS) -> str:
    """Return the table of all scenarios, as Markdown."""
    head = "| recording | Coulomb, viscosity | static levels | Stribeck velocity | warned | missed in silence |"
    return "\n".join([head, "|---|---|---|---|---|---|", *(coverage(one, trials).row() for one in scenarios)])


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
