"""Friction identification of a joint, as one call: the choice of the model, the fit, and what goes into a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibration.parameters.parameters import Found, JointParameters
from devices.common.parameter_keys import key
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from calibration.data.joint_recording import JointRecording
    from calibration.friction import Choice, FitSettings, FrictionFit, Samples

Array = NDArray[np.float64]

AUTOMATIC = "auto"
"""Of models: the one that predicts best; of cut-offs: the one that the positions ask for."""


@dataclass(frozen=True)
class Wishes:
    """How friction is to be identified.

    Attributes
    ----------
    model : str
        Name of the model, or ``auto``: cross-validation chooses among all.
    smooth : float, "auto" or None
        Cut-off of the zero-phase smoothing that velocity and acceleration are made with [Hz]; of the positions, where
        there are any. None takes them as they were measured.
    inertia : float
        Inertia that moves on the joint's side of the sensor [kg m^2] or [kg].
    settings : FitSettings or None
        How the fit is done.
    """

    model: str = AUTOMATIC
    smooth: float | str | None = None
    inertia: float = 0.0
    settings: FitSettings | None = None


@dataclass(frozen=True, eq=False)
class Identified:
    """The friction of one joint and what it was found from.

    Attributes
    ----------
    recordings : tuple of JointRecording
        What was measured, a recording each.
    samples : tuple of Samples
        The same as it was fitted.
    choice : Choice
        The scores of the models that were tried, and the fit of the one that was chosen.
    """

    recordings: tuple[JointRecording, ...]
    samples: tuple[Samples, ...]
    choice: Choice

    @property
    def fit(self) -> FrictionFit:
        """The fit over all recordings."""
        return self.choice.fit

    @property
    def joint(self) -> str:
        """Name of the joint."""
        return self.recordings[0].joint

    @property
    def rotary(self) -> bool:
        """Whether it turns."""
        return self.recordings[0].rotary

    def parameters(self) -> JointParameters:
        """Return what goes into a parameter file."""
        fit, choice = self.fit, self.choice
        diagnostics = fit.diagnostics
        facts: dict[str, Any] = {
            "samples": len(fit.kept),
            "samples_used": int(fit.kept.sum()),
            **{f"excluded_{reason.replace(' ', '_')}": int(count) for reason, count in fit.excluded.items()},
            key("dead_band", "velocity", self.rotary): float(fit.dead_band),
            key("velocity_noise", "velocity", self.rotary): float(fit.velocity_noise),
            key("residual_rms", "force", self.rotary): float(diagnostics.rms),
            "condition_number": float(fit.condition),
            "relative_error": float(diagnostics.relative_rms),
            "relative_error_cross_validated": float(choice.scores[choice.name]),
            "residual_autocorrelation": float(diagnostics.autocorrelation),
            "effective_samples": float(diagnostics.effective_samples),
            "outlier_share": float(diagnostics.outliers),
        }
        facts = {name: value for name, value in facts.items() if np.isfinite(value)}
        values = {name: float(value) for name, value in fit.values.items()}
        intervals = {
            name: (float(low), float(high)) for name, (low, high) in fit.intervals.items() if np.isfinite(high - low)
        }
        warnings = tuple(doubt.message for doubt in fit.doubts)
        return JointParameters(self.joint, self.rotary, Found(choice.name, values, intervals, facts, warnings))


def identify(recordings: Sequence[JointRecording], wishes: Wishes) -> Identified:
    """Return the friction of a joint.

    Parameters
    ----------
    recordings : sequence of JointRecording
        Of one joint, a recording each.
    wishes : Wishes
        How.

    Raises
    ------
    ConfigurationError
        If a recording cannot be used, naming it, or what comes out is no friction.
    """
    from calibration.friction import MODELS, FitSettings, choose_model, joined, negative
    from haptics.settings import unknown

    if wishes.model != AUTOMATIC and wishes.model not in MODELS:
        raise unknown("friction model", wishes.model, [AUTOMATIC, *MODELS])
    samples = tuple(samples_of(one, wishes) for one in recordings)
    models = list(MODELS) if wishes.model == AUTOMATIC else [wishes.model]
    try:
        joined(samples).require_law()
        choice = choose_model(samples, models, settings=wishes.settings or FitSettings())
    except ConfigurationError as error:
        raise recordings[0].error(str(error).rstrip(".")) from error
    wrong = negative(choice.fit.values)
    if wrong:
        raise recordings[0].error(
            f"the model {choice.name} comes out with a negative {wrong[0]} ({choice.fit.values[wrong[0]]:.3g}), which "
            "is no friction; check the sign of the torque or force, let --model auto choose, or take --physical"
        )
    return Identified(tuple(recordings), samples, choice)


def samples_of(recording: JointRecording, wishes: Wishes) -> Samples:
    """Return a recording as it is fitted: smoothed if that is wished, what the inertia takes added.

    Raises
    ------
    ConfigurationError
        If it cannot be used.
    """
    from calibration.friction import Samples

    time, effort = recording.time, -recording.friction
    if recording.load is not None and wishes.inertia:
        raise recording.error("its load, inertia included, is known and taken off; leave out --inertia")
    try:
        if wishes.smooth is None:
            return Samples.from_torque(
                time,
                recording.velocity,
                effort,
                recording.acceleration,
                wishes.inertia,
                instrument=recording.instrument,
                velocity_noise=recording.velocity_noise,
            )
        cutoff = recording.cutoff if wishes.smooth == AUTOMATIC else float(wishes.smooth)
        if recording.position is not None:
            return Samples.from_positions(time, recording.position, effort, wishes.inertia, cutoff, recording.reference)
        return Samples.from_noisy_velocity(time, recording.velocity, effort, wishes.inertia, cutoff)
    except ConfigurationError as error:
        raise recording.error(str(error).rstrip(".")) from error


def smoothed(recording: JointRecording, cutoff: float | str | None) -> JointRecording:
    """Return a recording with its velocity smoothed, and the acceleration that belongs to that.

    Parameters
    ----------
    recording : JointRecording
        The recording.
    cutoff : float, "auto" or None
        As `Wishes.smooth`; None leaves it as it is.
    """
    from calibration.data.signals import best_cutoff, motion, smooth

    if cutoff is None:
        return recording
    time, velocity, position = recording.time, recording.velocity, recording.position
    chosen = None if cutoff == AUTOMATIC else float(cutoff)
    if position is not None:
        found = motion(time, position, chosen)
        return replace(recording, velocity=found.velocity, acceleration=found.acceleration)
    limit = best_cutoff(time, velocity) if chosen is None else chosen
    return replace(
        recording, velocity=smooth(time, velocity, limit), acceleration=smooth(time, velocity, limit, derivative=1)
    )


def relative_error(joint: JointParameters, samples: Samples) -> float:
    """Return how far parameters are from a recording: rms error of the torque by the rms of the torque.

    Samples below the speed that counted as rest when the parameters were found are left out.

    Parameters
    ----------
    joint : JointParameters
        With a friction.
    samples : Samples
        Another recording of the joint.

    Raises
    ------
    ConfigurationError
        If all samples are at rest, or accelerations are missing that the parameters need.
    """
    found = joint.known_friction()
    moving = samples.faster_than(joint.dead_band or 0.0)
    if not moving.any():
        raise ConfigurationError("no sample is faster than what counts as rest")
    predicted = joint.friction_at(samples.velocity)
    inertia = found.values.get("inertia", 0.0)
    if inertia != 0.0:
        if samples.acceleration is None:
            raise ConfigurationError("has no accelerations, which the inertia among the parameters needs")
        predicted = predicted + inertia * samples.acceleration
    error = (samples.friction - predicted)[moving]
    return float(np.sqrt(np.mean(error**2) / np.mean(samples.friction[moving] ** 2)))
