"""Simulated recordings with known parameters: coverage of intervals, rate of warnings.

``python -m calibration.trials friction``, ``motor`` or ``handle`` prints a table of the manual.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording, Source
from calibration.friction import MODELS, FitSettings, FrictionFit, Motion, Samples, Travel, fit_friction, joined
from calibration.identification import AUTOMATIC, IdentificationOptions, identify, samples_of
from calibration.motions import Mover
from calibration.motions.excitation import Excitation, HandleExcitation
from calibration.motor import MotorFit, identify_joint_motor, identify_motor
from calibration.parameters import JointParameters
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
FRICTION_TRIALS = 100
_PERIOD, _DURATION, _NOISE = 0.01, 60.0, 0.1
"""Sampling period [s] and duration of a friction recording [s], standard deviation of the torque noise [N m]."""
_GROUPS = {
    "Coulomb, viscosity": ("coulomb", "viscosity"),
    "static levels": ("static_forward", "static_backward"),
    "Stribeck velocity": ("stribeck_velocity",),
    "presliding": ("presliding", "presliding_distance"),
    "offset": ("offset",),
}


@dataclass(frozen=True)
class FrictionScenario:
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

    @property
    def options(self) -> IdentificationOptions:
        """Options of the identification."""
        return IdentificationOptions(self.model, AUTOMATIC if self.step else None)

    def offsets_of(self, seed: int) -> Array:
        """Return the true offset of each recording [N m]."""
        return self.offsets * np.random.default_rng((seed, 1)).standard_normal(self.recordings)


_NO_FALL = {"static_forward": None, "static_backward": None, "stribeck_velocity": None}
_WIDE, _PRESLIDING = {"viscosity": 0.0, "stribeck_velocity": 0.2}, {"presliding": 0.4, "presliding_distance": 0.01}
_plain = functools.partial(FrictionScenario, made_by="coulomb-viscous", model="coulomb-viscous")
_presliding = functools.partial(FrictionScenario, truth=_PRESLIDING, made_by="stribeck-presliding")

FRICTION_SCENARIOS = (
    FrictionScenario("plain: white noise, exact velocity"),
    FrictionScenario("Stribeck velocity 0.003 rad/s", {"stribeck_velocity": 0.003}),
    FrictionScenario("Stribeck velocity 0.001 rad/s", {"stribeck_velocity": 0.001}),
    FrictionScenario(
        "Stribeck velocity 0.003 rad/s, fitted without a Stribeck term",
        {"stribeck_velocity": 0.003},
        model="coulomb-viscous",
    ),
    FrictionScenario("errors of the torque with a memory (0.97 from sample to sample)", memory=0.97),
    FrictionScenario("encoder with steps of 0.05 degree", step=np.radians(0.05)),
    FrictionScenario("friction falls by 20 % while recording", drift=0.2),
    _plain("bound active: no viscosity", {**_NO_FALL, "viscosity": 0.0}),
    _plain("near the bound: viscosity of one standard error", {**_NO_FALL, "viscosity": 0.015}),
    FrictionScenario(
        "bounds active: no viscosity, static level forward as the Coulomb level",
        {"viscosity": 0.0, "static_forward": 0.85},
    ),
    FrictionScenario(
        "friction falls over the speeds of the recording (Stribeck velocity 0.2 rad/s), no viscosity", _WIDE
    ),
    FrictionScenario("the same, with the model chosen automatically", _WIDE, model=AUTOMATIC),
    _plain(
        "friction falls linearly with speed, fitted with Coulomb friction and viscosity",
        {**_NO_FALL, "viscosity": -0.8},
    ),
    FrictionScenario("three recordings with offsets of 0.5 N m", recordings=3, offsets=0.5, model="stribeck-offset"),
    FrictionScenario("torque clipped at 2.5 N m", clip=2.5),
    _presliding("presliding: 0.4 N m in 0.01 rad", model="stribeck-presliding"),
    _presliding(
        "presliding as above, three recordings with offsets of 0.5 N m, the model chosen automatically",
        recordings=3,
        offsets=0.5,
        model=AUTOMATIC,
    ),
)


def _by_hand(rng: np.random.Generator, duration: float) -> tuple[Array, Array, Array]:
    """Return times, angles and velocities of a joint that is moved back and forth by hand."""
    time = np.arange(0.0, duration, _PERIOD)
    speeds = np.radians((12.0, 4.0, 8.0)) * rng.uniform(0.8, 1.2, 3)
    rates = 2.0 * np.pi * np.array((0.31, 0.53, 0.12)) * rng.uniform(0.9, 1.1, 3)
    phases = np.multiply.outer(time, rates) + rng.uniform(0.0, 2.0 * np.pi, 3)
    return time, np.asarray(np.sin(phases) @ (speeds / rates)), np.asarray(np.cos(phases) @ speeds)


def recorded(scenario: FrictionScenario, seed: int) -> list[JointRecording]:
    """Return the recordings of a joint that a hand moves back and forth, with random variations."""
    rng = np.random.default_rng(seed)
    time, angle, velocity = _by_hand(rng, _DURATION)
    shocks = rng.standard_normal(len(time)) * np.sqrt(1.0 - scenario.memory**2)
    noise = np.empty_like(shocks)
    last = rng.standard_normal()
    for k, shock in enumerate(shocks):
        noise[k] = last = scenario.memory * last + shock
    fading = 1.0 - scenario.drift * (time / _DURATION - 0.5)
    parts = np.array_split(np.arange(len(time)), scenario.recordings)
    found: list[JointRecording] = []
    for part, offset in zip(parts, scenario.offsets_of(seed), strict=True):
        motion = Motion(velocity[part], Travel.whole(angle[part]))
        friction = fading[part] * MODELS[scenario.made_by].evaluate(scenario.parameters, motion)
        effort = np.clip(-(friction + offset + _NOISE * noise[part]), -scenario.clip, scenario.clip)
        position = None  # positions are recorded only if the scenario needs them
        if scenario.step or "presliding" in scenario.made_by:
            position = np.round(angle[part] / scenario.step) * scenario.step if scenario.step else angle[part]
        source = Source(f"knee{len(found) + 1}.csv", "0" * 64)
        found.append(JointRecording("knee", True, time[part], velocity[part], effort, source, position=position))
    return found


def scenario_samples(scenario: FrictionScenario, seed: int) -> list[Samples]:
    """Return the samples of the recordings."""
    return [samples_of(one, scenario.options) for one in recorded(scenario, seed)]


@dataclass(frozen=True)
class FrictionCoverage:
    """Results of the trials of a scenario.

    Attributes
    ----------
    held : tuple of dict
        For each trial, the intervals that contain the true value.
    doubted : tuple of bool
        For each trial, whether the fit failed or warned that intervals may be too narrow.
    """

    held: tuple[dict[str, bool], ...]
    doubted: tuple[bool, ...]


def friction_coverage(scenario: FrictionScenario, trials: int = FRICTION_TRIALS) -> FrictionCoverage:
    """Fit the trials of a scenario."""
    held: list[dict[str, bool]] = []
    doubted: list[bool] = []
    for seed in range(trials):
        truth = scenario.parameters | {"offset": float(scenario.offsets_of(seed).mean())}
        try:
            if scenario.model == AUTOMATIC:
                fit = identify(recorded(scenario, seed), scenario.options).fit
            else:
                fit = fit_friction(joined(scenario_samples(scenario, seed)), scenario.model)
        except ConfigurationError:
            held.append({})
            doubted.append(True)
            continue
        held.append({name: low <= truth[name] <= high for name, (low, high) in fit.intervals.items() if name in truth})
        doubted.append(any(doubt.spoils_intervals for doubt in fit.doubts))
    return FrictionCoverage(tuple(held), tuple(doubted))


def friction_table() -> Iterator[str]:
    """Yield the lines of the table of all scenarios as Markdown."""
    yield f"| recording | {' | '.join(_GROUPS)} | warned | missed in silence |"
    yield "|---" * (len(_GROUPS) + 3) + "|"
    for scenario in FRICTION_SCENARIOS:
        of, shares = friction_coverage(scenario), []
        for names in _GROUPS.values():
            known = [one[name] for one in of.held for name in names if name in one]
            shares.append(f"{sum(known) / len(known):.2f}" if known else "")
        silent = sum(not all(one.values()) and not doubt for one, doubt in zip(of.held, of.doubted, strict=True))
        yield f"| {scenario.name} | {' | '.join(shares)} | {sum(of.doubted)} of {FRICTION_TRIALS} | {silent} |"


# --- motors -----------------------------------------------------------------------------------------------------------

GAIN, OFFSET = 0.2, 0.8
"""True torque per percent of PWM, and true offset [N m]."""
_PWM = 60.0
"""Maximum drive [percent]."""


@dataclass(frozen=True)
class MotorScenario:
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


MOTOR_SCENARIOS = (
    MotorScenario("plain: independent drive, friction as in its file"),
    MotorScenario("errors of the torque with a memory (0.97 from sample to sample)", memory=0.97),
    MotorScenario("friction 25 % lower (warm)", warm=0.75),
    MotorScenario("drive in phase with the velocity", in_phase=0.8),
    MotorScenario("half in phase, friction 10 % lower", in_phase=0.5, warm=0.9),
    MotorScenario("in phase, friction 25 % lower", in_phase=0.8, warm=0.75),
    MotorScenario("wholly in phase, friction 25 % lower", in_phase=1.0, warm=0.75),
    MotorScenario("friction falls by 30 % while recording", warming=0.3),
    MotorScenario("in phase, friction falls by 30 % while recording", in_phase=0.8, warming=0.3),
    MotorScenario("slow: half of it in the dead band of the file", speed=0.02),
    MotorScenario("creeping: all of it in the dead band of the file", speed=0.006),
    MotorScenario("slow and in phase, friction 25 % lower", speed=0.02, in_phase=0.8, warm=0.75),
    MotorScenario(
        "slow and in phase; its file knows no Stribeck zone", speed=0.05, in_phase=0.8, model="coulomb-viscous"
    ),
    MotorScenario("no file of frictions", with_file=False),
    MotorScenario("no file of frictions, in phase", with_file=False, in_phase=0.8),
)


@functools.cache
def joint_of(seed: int, model: str = "stribeck") -> JointParameters:
    """Return the friction of the joint as identified from 60 s of motion by hand."""
    rng = np.random.default_rng([seed, 1])
    time, _, velocity = _by_hand(rng, 60.0)
    torque = -MODELS["stribeck"].evaluate(TRUTH, velocity) + _noise(rng, len(time), 0.0)
    return identify([_recording(time, velocity, torque)], IdentificationOptions(model)).parameters()


def driven(scenario: MotorScenario, seed: int) -> JointRecording:
    """Return a simulated recording of the joint while its motor is driven."""
    rng = np.random.default_rng([seed, 2])
    time, _, velocity = _by_hand(rng, 40.0)
    velocity = scenario.speed * velocity
    rates, phases = rng.uniform(1.5, 3.5, 2), rng.uniform(0.0, 2.0 * np.pi, 2)
    free = np.sin(np.multiply.outer(time, rates) + phases).sum(axis=1) / 2.0
    mixed = scenario.in_phase * velocity / np.abs(velocity).max() + (1.0 - scenario.in_phase) * free
    drive = _PWM * mixed
    level = scenario.warm * (1.0 - scenario.warming * time / time[-1])
    torque = GAIN * drive + OFFSET - level * MODELS["stribeck"].evaluate(TRUTH, velocity)
    torque = torque + _noise(rng, len(time), scenario.memory)
    return replace(_recording(time, velocity, torque), drive=drive, drive_unit="percent")


def fitted(scenario: MotorScenario, seed: int) -> MotorFit:
    """Return the result of `identify_motor`, with the arguments of the command line tool."""
    recording = driven(scenario, seed)
    if not scenario.with_file:
        return identify_motor(recording)
    return identify_joint_motor(recording, joint_of(seed, scenario.model))


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


MOTOR_TRIALS = 20


@dataclass(frozen=True)
class MotorCoverage:
    """Results of the trials of one scenario.

    Attributes
    ----------
    errors : tuple of float
        Error of the gain in each trial, relative to the true gain.
    held : tuple of bool
        Whether the interval contained the true gain.
    warned : tuple of bool
        Whether there was a warning.
    """

    errors: tuple[float, ...]
    held: tuple[bool, ...]
    warned: tuple[bool, ...]

    @property
    def silent_misses(self) -> int:
        """Number of trials in which the interval missed the true gain without a warning."""
        return sum(not held and not warned for held, warned in zip(self.held, self.warned, strict=True))


def motor_coverage(scenario: MotorScenario, trials: int = MOTOR_TRIALS) -> MotorCoverage:
    """Run the trials of a scenario."""
    fits = [fitted(scenario, seed) for seed in range(trials)]
    errors = tuple(fit.values["gain"] / GAIN - 1.0 for fit in fits)
    held = tuple(low <= GAIN <= high for low, high in (fit.intervals["gain"] for fit in fits))
    return MotorCoverage(errors, held, tuple(bool(fit.found().warnings) for fit in fits))


def motor_table() -> Iterator[str]:
    """Yield the lines of the table of all scenarios as Markdown."""
    yield "| recording | gain: median error | worst | interval holds it | warned | missed in silence |"
    yield "|---|---|---|---|---|---|"
    for scenario in MOTOR_SCENARIOS:
        of = motor_coverage(scenario)
        worst = of.errors[int(np.argmax(np.abs(of.errors)))]
        yield (
            f"| {scenario.name} | {np.median(of.errors):+.1%} | {worst:+.1%} | {sum(of.held)} of {MOTOR_TRIALS} "
            f"| {sum(of.warned)} of {MOTOR_TRIALS} | {of.silent_misses} |"
        )


# --- handles ----------------------------------------------------------------------------------------------------------

HANDLE_TRIALS = 30
HANDLE_TRUTH = {"inertia": 0.2, "viscosity": 1.0}
"""True parameters of the virtual joystick."""

_USUAL = Excitation()
_NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
_HANDLE_OPTIONS = IdentificationOptions(smooth=AUTOMATIC, settings=FitSettings(fit_inertia=True))


@dataclass(frozen=True)
class Handle:
    """Handle, and the model fitted to it.

    Attributes
    ----------
    name : str
        Description.
    coulomb : float
        Dry friction [N].
    model : str
        Fitted model.
    """

    name: str
    coulomb: float
    model: str

    @property
    def truth(self) -> dict[str, float]:
        """True parameters."""
        return HANDLE_TRUTH | ({"coulomb": self.coulomb} if self.coulomb else {})


HANDLES = (Handle("no dry friction", 0.0, "viscous"), Handle("0.3 N of dry friction", 0.3, "coulomb-viscous"))


def varied(excitation: Excitation, seed: int) -> Excitation:
    """Return an excitation with settings varied by up to a fifth."""
    names = ("slowest", "fastest", "stroke_time", "acceleration")
    factors = np.random.default_rng(seed).uniform(0.8, 1.2, len(names)).tolist()
    varied = {name: getattr(excitation, name) * factor for name, factor in zip(names, factors, strict=True)}
    return replace(excitation, **varied)


def fits_of(handle: Handle, seed: int, excitation: Excitation = _USUAL) -> list[FrictionFit]:
    """Move a handle and return the fits of its axes."""
    level = {"coulomb_forward": handle.coulomb, "coulomb_backward": handle.coulomb}
    friction = {"friction": {"x": level, "y": level}} if handle.coulomb else {}
    mover = Mover.of("virtual-joystick", {"hand": _NOBODY, **friction})
    with tempfile.TemporaryDirectory() as place:
        measured = HandleExcitation(varied(excitation, seed)).run(mover, Path(place) / "run")
    samples = [joined([samples_of(one, _HANDLE_OPTIONS) for one in rounds]) for rounds in measured.values()]
    return [fit_friction(one, handle.model, _HANDLE_OPTIONS.settings) for one in samples]


def held(handle: Handle, fits: Sequence[FrictionFit]) -> dict[str, float]:
    """Return the coverage of the interval of each parameter."""
    ends = {name: [fit.intervals[name] for fit in fits] for name in handle.truth}
    return {
        name: float(np.mean([low <= truth <= high for low, high in ends[name]])) for name, truth in handle.truth.items()
    }


def handle_table() -> Iterator[str]:
    """Yield the lines of the table of all handles as Markdown."""
    yield "| handle | parameter | interval holds it | mean error | half the interval |"
    yield "|---|---|---|---|---|"
    for handle in HANDLES:
        fits = [fit for seed in range(HANDLE_TRIALS) for fit in fits_of(handle, seed)]
        often = held(handle, fits)
        for name, truth in handle.truth.items():
            error = float(np.mean([fit.values[name] / truth - 1.0 for fit in fits]))
            half = float(np.mean([np.ptp(fit.intervals[name]) / (2.0 * truth) for fit in fits]))
            yield f"| {handle.name} | {name} | {often[name]:.2f} | {error:+.3%} | {half:.3%} |"


if __name__ == "__main__":
    tables = {"friction": friction_table(), "motor": motor_table(), "handle": handle_table()}
    for line in tables[sys.argv[1]]:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
