"""Friction identification of a joint: model selection, fit, and parameters for a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording
from calibration.data.signals import best_cutoff, motion, smooth
from calibration.friction import (
    MODELS,
    Choice,
    FitSettings,
    FrictionFit,
    Samples,
    Travel,
    choose_model,
    joined,
    negative,
    without_saturated,
)
from calibration.parameters import Found, JointParameters
from devices.common.parameter_keys import key
from haptics.errors import ConfigurationError
from haptics.settings import unknown_name

Array = NDArray[np.float64]

AUTOMATIC = "auto"
"""Automatic selection of the model by prediction error, or of the cut-off from the positions."""


@dataclass(frozen=True)
class IdentificationOptions:
    """Options of the friction identification.

    Attributes
    ----------
    model : str
        Name of the model, or ``auto`` for selection by cross-validation.
    smooth : float, "auto" or None
        Cut-off frequency of the zero-phase filter for velocity and acceleration [Hz], applied to the positions if
        available. None uses the measured signals.
    inertia : float
        Moving inertia on the joint side of the sensor [kg m^2] or [kg].
    settings : FitSettings
        Settings of the fit.
    """

    model: str = AUTOMATIC
    smooth: float | str | None = None
    inertia: float = 0.0
    settings: FitSettings = field(default_factory=FitSettings)


@dataclass(frozen=True, eq=False)
class IdentifiedFriction:
    """Identified friction of one joint, with its data.

    Attributes
    ----------
    recordings : tuple of JointRecording
        Recordings of the joint.
    samples : tuple of Samples
        Samples of each recording, prepared for the fit.
    choice : Choice
        Scores of the compared models, and the fit of the chosen one.
    """

    recordings: tuple[JointRecording, ...]
    samples: tuple[Samples, ...]
    choice: Choice

    @property
    def fit(self) -> FrictionFit:
        """Fit to all recordings."""
        return self.choice.fit

    @property
    def joint(self) -> str:
        """Name of the joint."""
        return self.recordings[0].joint

    @property
    def rotary(self) -> bool:
        """Whether the joint is rotary."""
        return self.recordings[0].rotary

    def parameters(self) -> JointParameters:
        """Return the parameters for a parameter file."""
        fit, choice = self.fit, self.choice
        diagnostics = fit.diagnostics
        force = partial(key, dimension="force", rotary=self.rotary)
        facts: dict[str, Any] = {
            "samples": len(fit.kept),
            "samples_used": int(fit.kept.sum()),
            **{f"excluded_{reason.replace(' ', '_')}": int(count) for reason, count in fit.excluded.items()},
        }
        numbers = {
            key("dead_band", "velocity", self.rotary): fit.dead_band,
            key("velocity_noise", "velocity", self.rotary): fit.velocity_noise,
            force("residual_rms"): diagnostics.rms,
            "condition_number": fit.condition,
            "relative_error": diagnostics.relative_rms,
            "relative_error_cross_validated": choice.score,
            "residual_autocorrelation": diagnostics.autocorrelation,
            "effective_samples": diagnostics.effective_samples,
            "outlier_share": diagnostics.outliers,
        }
        facts |= {name: float(value) for name, value in numbers.items() if np.isfinite(value)}
        if len(fit.offset_deviations) > 1:
            mean = fit.values.get("offset", 0.0)
            facts[force("offset_spread")] = float(np.std(fit.offset_deviations, ddof=1))
            facts[force("offset_recordings")] = [mean + one for one in fit.offset_deviations]
        values = {name: float(value) for name, value in fit.values.items()}
        intervals = {
            name: (float(low), float(high)) for name, (low, high) in fit.intervals.items() if np.isfinite(high - low)
        }
        warnings = tuple(doubt.message for doubt in fit.doubts)
        for recording in self.recordings:
            if (limits := recording.saturation) is not None:
                word = "torque" if self.rotary else "force"
                warnings += (
                    f"{Path(recording.source.path).name}: the {word} is clipped at {limits.values} "
                    f"({100.0 * limits.share:.1f} % of the samples are exactly there). These samples, and others that "
                    "are expected there within the noise, were left out; use a sensor of a larger range.",
                )
        return JointParameters(self.joint, self.rotary, Found(choice.name, values, intervals, facts, warnings))


def identify(recordings: Sequence[JointRecording], options: IdentificationOptions) -> IdentifiedFriction:
    """Identify the friction of a joint.

    Parameters
    ----------
    recordings : sequence of JointRecording
        Recordings of one joint.
    options : IdentificationOptions
        Options of the identification.

    Raises
    ------
    ConfigurationError
        If a recording cannot be used (the message names it), or the result is not a friction law.
    """
    if options.model != AUTOMATIC and options.model not in MODELS:
        raise unknown_name("friction model", options.model, [AUTOMATIC, *MODELS])
    samples = tuple(samples_of(one, options) for one in recordings)
    models = None if options.model == AUTOMATIC else [options.model]
    try:
        joined(samples).require_law()
        choice = choose_model(samples, models, settings=options.settings)
    except ConfigurationError as error:
        raise recordings[0].error(str(error).rstrip(".")) from error
    wrong = negative(choice.fit.values)
    if wrong:
        raise recordings[0].error(
            f"the model {choice.name} has a negative {wrong[0]} ({choice.fit.values[wrong[0]]:.3g}), which "
            "is no friction; check the sign of the torque or force, or leave out --unbounded"
        )
    return IdentifiedFriction(tuple(recordings), samples, choice)


def samples_of(recording: JointRecording, options: IdentificationOptions) -> Samples:
    """Prepare a recording for a fit: smooth it if requested, remove the inertia, mark clipped samples.

    Raises
    ------
    ConfigurationError
        If it cannot be used.
    """
    time, effort = recording.time, -recording.friction
    if recording.load is not None and options.inertia:
        raise recording.error("its load, inertia included, is known and taken off; leave out --inertia")
    try:
        cutoff = recording.cutoff if options.smooth in {None, AUTOMATIC} else float(options.smooth)
        velocity, position, inertia = recording.velocity, recording.position, options.inertia
        if options.smooth is None:
            known = {"instrument": recording.instrument, "velocity_noise": recording.velocity_noise}
            samples = Samples.from_torque(time, velocity, effort, recording.acceleration, inertia, **known)
        elif position is not None:
            samples = Samples.from_positions(time, position, effort, inertia, cutoff, recording.reference)
        else:
            samples = Samples.from_noisy_velocity(time, velocity, effort, inertia, cutoff)
        if samples.commanded is None and recording.displacement is not None:
            angle = position if recording.rotary else None
            samples = replace(samples, travel=Travel.whole(recording.displacement), angle=angle)
        if recording.gaps is not None:
            samples = replace(samples, gaps=recording.gaps)
        limits = recording.saturation
        if limits is None:
            return samples
        return without_saturated(samples, recording.effort, limits, options.settings)
    except ConfigurationError as error:
        raise recording.error(str(error).rstrip(".")) from error


def smoothed(recording: JointRecording, cutoff: float | str | None) -> JointRecording:
    """Return a recording with its velocity smoothed, and the corresponding acceleration.

    Parameters
    ----------
    recording : JointRecording
        Recording to smooth.
    cutoff : float, "auto" or None
        As `IdentificationOptions.smooth`; None returns the recording unchanged.
    """
    if cutoff is None:
        return recording
    time, velocity, position = recording.time, recording.velocity, recording.position
    chosen = None if cutoff == AUTOMATIC else float(cutoff)
    if position is not None:
        found = motion(time, position, chosen)
        return replace(recording, velocity=found.velocity, acceleration=found.acceleration)
    limit = best_cutoff(time, velocity) if chosen is None else chosen
    slow, rise = (smooth(time, velocity, limit, derivative) for derivative in (0, 1))
    return replace(recording, velocity=slow, acceleration=rise)


@dataclass(frozen=True)
class PredictionError:
    """Error of predicted torques on a recording that was not used for the identification.

    Attributes
    ----------
    relative : float
        Root mean square error relative to the rms torque, with the offset of the parameters.
    relative_own_offset : float
        The same with the offset fitted to this recording, because the zero of a torque sensor drifts.
    offset : float
        Offset fitted to this recording [N m or N].
    """

    relative: float
    relative_own_offset: float
    offset: float


def prediction_error(joint: JointParameters, samples: Samples) -> PredictionError:
    """Return the error of predicted torques on a recording.

    Saturated samples and samples within the dead band of the identification are excluded.

    Parameters
    ----------
    joint : JointParameters
        Parameters with identified friction.
    samples : Samples
        Samples of another recording of the joint.

    Raises
    ------
    ConfigurationError
        If all samples are at rest, or required accelerations are missing.
    """
    found = joint.known_friction()
    moving = samples.faster_than(joint.dead_band or 0.0)
    if not moving.any():
        raise ConfigurationError("no sample is faster than what counts as rest")
    predicted = MODELS[found.model].evaluate(found.values, samples.motion)
    inertia = found.values.get("inertia", 0.0)
    if inertia != 0.0:
        if samples.acceleration is None:
            raise ConfigurationError("has no accelerations, which the inertia among the parameters needs")
        predicted = predicted + inertia * samples.acceleration
    error = (samples.friction - predicted)[moving]
    size, shift = float(np.mean(samples.friction[moving] ** 2)), float(error.mean())
    return PredictionError(
        float(np.sqrt(np.mean(error**2) / size)),
        float(np.sqrt(np.var(error) / size)),
        found.values.get("offset", 0.0) + shift,
    )
