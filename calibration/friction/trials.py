"""Simulated recordings of a joint with known friction: coverage of intervals, rate of warnings.

``python -m calibration.friction.trials`` prints the table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording, Source
from calibration.friction.fit import fit_friction
from calibration.friction.model import MODELS, Motion, Travel
from calibration.friction.samples import Samples, joined
from calibration.identification import AUTOMATIC, IdentificationOptions, identify, samples_of
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

TRUTH = {
    "coulomb": 0.85,
    "viscosity": 17.8,
    "static_forward": 1.27,
    "static_backward": 1.95,
    "stribeck_velocity": 0.0175,
}
"""Friction of a knee joint (Guedelha et al. 2018, Table 1 and Fig. 10); SI units."""
TRIALS = 100
_PERIOD, _DURATION, _NOISE = 0.01, 60.0, 0.1
_GROUPS = {
    "Coulomb, viscosity": ("coulomb", "viscosity"),
    "static levels": ("static_forward", "static_backward"),
    "Stribeck velocity": ("stribeck_velocity",),
    "presliding": ("presliding", "presliding_distance"),
    "offset": ("offset",),
}


@dataclass(frozen=True)
class Scenario:
    """Conditions of a recording.

    Attributes
    ----------
    name : str
        Description.
    truth : mapping
        Parameters that differ from `TRUTH`; None for a parameter that does not exist.
    memory : float
        Correlation of consecutive torque errors.
    step : float
        Step of the encoder whose positions are differentiated [rad]; 0 for exact velocities.
    drift : float
        Relative loss of levels and viscosity from the first to the last sample.
    recordings : int
        Number of recordings into which the time is divided.
    offsets : float
        Standard deviation of the offsets of the recordings [N m].
    clip : float
        Limit of the torque sensor [N m].
    made_by, model : str
        Model that generates the data, and model that is fitted (or ``auto``).
    """

    name: str
    truth: Mapping[str, float | None] = field(default_factory=dict)
    memory: float = 0.0
    step: float = 0.0
    drift: float = 0.0
    recordings: int = 1
    offsets: float = 0.0
    clip: float = np.inf
    made_by: str = "stribeck"
    model: str = "stribeck"

    @property
    def parameters(self) -> dict[str, float]:
        """True parameters."""
        return {name: value for name, value in (TRUTH | dict(self.truth)).items() if value is not None}


_NO_FALL = {"static_forward": None, "static_backward": None, "stribeck_velocity": None}

SCENARIOS = (
    Scenario("plain: white noise, exact velocity"),
    Scenario("Stribeck velocity 0.003 rad/s", {"stribeck_velocity": 0.003}),
    Scenario("Stribeck velocity 0.001 rad/s", {"stribeck_velocity": 0.001}),
    Scenario(
        "Stribeck velocity 0.003 rad/s, fitted without a Stribeck term",
        {"stribeck_velocity": 0.003},
        model="coulomb-viscous",
    ),
    Scenario("errors of the torque with a memory (0.97 from sample to sample)", memory=0.97),
    Scenario("encoder with steps of 0.05 degree", step=np.radians(0.05)),
    Scenario("friction falls by 20 % while recording", drift=0.2),
    Scenario(
        "bound active: no viscosity",
        {**_NO_FALL, "viscosity": 0.0},
        made_by="coulomb-viscous",
        model="coulomb-viscous",
    ),
    Scenario(
        "near the bound: viscosity of one standard error",
        {**_NO_FALL, "viscosity": 0.015},
        made_by="coulomb-viscous",
        model="coulomb-viscous",
    ),
    Scenario(
        "bounds active: no viscosity, static level forward as the Coulomb level",
        {"viscosity": 0.0, "static_forward": 0.85},
    ),
    Scenario(
        "friction falls over the speeds of the recording (Stribeck velocity 0.2 rad/s), no viscosity",
        {"viscosity": 0.0, "stribeck_velocity": 0.2},
    ),
    Scenario(
        "the same, with the model chosen automatically",
        {"viscosity": 0.0, "stribeck_velocity": 0.2},
        model=AUTOMATIC,
    ),
    Scenario(
        "friction falls linearly with speed, fitted with Coulomb friction and viscosity",
        {**_NO_FALL, "viscosity": -0.8},
        made_by="coulomb-viscous",
        model="coulomb-viscous",
    ),
    Scenario("three recordings with offsets of 0.5 N m", recordings=3, offsets=0.5, model="stribeck-offset"),
    Scenario("torque clipped at 2.5 N m", clip=2.5),
    Scenario(
        "presliding: 0.4 N m in 0.01 rad",
        {"presliding": 0.4, "presliding_distance": 0.01},
        made_by="stribeck-presliding",
        model="stribeck-presliding",
    ),
    Scenario(
        "presliding as above, three recordings with offsets of 0.5 N m, the model chosen automatically",
        {"presliding": 0.4, "presliding_distance": 0.01},
        recordings=3,
        offsets=0.5,
        made_by="stribeck-presliding",
        model=AUTOMATIC,
    ),
)


def recorded(scenario: Scenario, seed: int) -> list[JointRecording]:
    """Return the recordings of a joint that a hand moves back and forth, with random variations."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, _DURATION, _PERIOD)
    speeds = np.radians((12.0, 4.0, 8.0)) * rng.uniform(0.8, 1.2, 3)
    rates = 2.0 * np.pi * np.array((0.31, 0.53, 0.12)) * rng.uniform(0.9, 1.1, 3)
    phases = np.multiply.outer(time, rates) + rng.uniform(0.0, 2.0 * np.pi, 3)
    angle, velocity = np.sin(phases) @ (speeds / rates), np.cos(phases) @ speeds
    offsets = _offsets(scenario, seed)
    shocks = rng.standard_normal(len(time)) * np.sqrt(1.0 - scenario.memory**2)
    noise = np.empty_like(shocks)
    last = rng.standard_normal()
    for k, shock in enumerate(shocks):
        noise[k] = last = scenario.memory * last + shock
    fading = 1.0 - scenario.drift * (time / _DURATION - 0.5)
    found: list[JointRecording] = []
    for part, offset in zip(np.array_split(np.arange(len(time)), scenario.recordings), offsets, strict=True):
        motion = Motion(velocity[part], Travel.whole(angle[part]))
        friction = fading[part] * MODELS[scenario.made_by].evaluate(scenario.parameters, motion)
        effort = np.clip(-(friction + offset + _NOISE * noise[part]), -scenario.clip, scenario.clip)
        position = angle[part]
        if scenario.step:
            position = np.round(position / scenario.step) * scenario.step
        source = Source(f"knee{len(found) + 1}.csv", "0" * 64)
        # Positions are recorded only if the scenario needs them.
        needed = scenario.step or "presliding" in scenario.made_by
        found.append(
            JointRecording(
                "knee", True, time[part], velocity[part], effort, source, position=position if needed else None
            )
        )
    return found


def _offsets(scenario: Scenario, seed: int) -> Array:
    return scenario.offsets * np.random.default_rng((seed, 1)).standard_normal(scenario.recordings)


def samples(scenario: Scenario, seed: int) -> list[Samples]:
    """Return the samples of the recordings."""
    return [samples_of(one, _options(scenario)) for one in recorded(scenario, seed)]


def _options(scenario: Scenario) -> IdentificationOptions:
    return IdentificationOptions(scenario.model, AUTOMATIC if scenario.step else None)


@dataclass(frozen=True)
class Coverage:
    """Results of the trials of a scenario.

    Attributes
    ----------
    scenario : Scenario
    held : tuple of dict
        For each trial, the intervals that contain the true value.
    doubted : tuple of bool
        For each trial, whether the fit failed or warned that intervals may be too narrow.
    """

    scenario: Scenario
    held: tuple[dict[str, bool], ...]
    doubted: tuple[bool, ...]

    def row(self) -> str:
        """Return the row of the table."""
        count = len(self.held)

        def share(names: Iterable[str]) -> str:
            known = [one[name] for one in self.held for name in names if name in one]
            return f"{sum(known) / len(known):.2f}" if known else ""

        silent = sum(not all(one.values()) and not doubt for one, doubt in zip(self.held, self.doubted, strict=True))
        shares = " | ".join(share(names) for names in _GROUPS.values())
        return f"| {self.scenario.name} | {shares} | {sum(self.doubted)} of {count} | {silent} |"


def coverage(scenario: Scenario, trials: int = TRIALS) -> Coverage:
    """Fit the trials of a scenario."""
    held: list[dict[str, bool]] = []
    doubted: list[bool] = []
    for seed in range(trials):
        truth = scenario.parameters | {"offset": float(_offsets(scenario, seed).mean())}
        try:
            if scenario.model == AUTOMATIC:
                fit = identify(recorded(scenario, seed), _options(scenario)).fit
            else:
                fit = fit_friction(joined(samples(scenario, seed)), scenario.model)
        except ConfigurationError:
            held.append({})
            doubted.append(True)
            continue
        held.append({name: low <= truth[name] <= high for name, (low, high) in fit.intervals.items() if name in truth})
        doubted.append(any(doubt.spoils_intervals for doubt in fit.doubts))
    return Coverage(scenario, tuple(held), tuple(doubted))


def table(scenarios: Iterable[Scenario] = SCENARIOS, trials: int = TRIALS) -> Iterator[str]:
    """Yield the lines of the table of all scenarios as Markdown."""
    yield f"| recording | {' | '.join(_GROUPS)} | warned | missed in silence |"
    yield "|---" * (len(_GROUPS) + 3) + "|"
    for scenario in scenarios:
        yield coverage(scenario, trials).row()


if __name__ == "__main__":
    for line in table():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
