"""Prediction error of a torque, and its interval by a bootstrap over blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording
from calibration.fitting.intervals import quantile
from calibration.fitting.regression import blocks

Array = NDArray[np.float64]

BLOCKS, CONFIDENCE = 20, 0.95
PARTS = 5
"""Long parts of a recording whose scatter says what another recording may show: neighbouring blocks err alike."""
_RESAMPLED, _SEED = 2000, 20181


@dataclass(frozen=True)
class ErrorEstimate:
    """How well torque is predicted.

    Attributes
    ----------
    value, low, high : float
        The rms error relative to the rms of the measured torque, and its interval over blocks.
    rms : float
        The rms error [N m or N].
    """

    value: float
    low: float
    high: float
    rms: float


def relative_error(
    recording: JointRecording, predicted: Array, number: int = BLOCKS, confidence: float = CONFIDENCE
) -> ErrorEstimate:
    """Return the rms error of a prediction of friction relative to the rms of the measured torque.

    Parameters
    ----------
    recording : JointRecording
        What was seen: its `friction` is compared, its `measured` torque is what the error is relative to.
    predicted : array, (n,)
        Of the friction [N m or N].
    number : int
        Contiguous blocks that are drawn for the interval: neighbouring samples err alike, blocks hardly.
    confidence : float
        Of the interval.

    Raises
    ------
    ConfigurationError
        Where the measured torque is 0 throughout.
    """
    recording.require_terms()
    squares = block_means((recording.friction - predicted) ** 2, number)
    return estimate(squares, block_means(recording.effort**2, number), confidence)


def block_means(values: Array, number: int) -> Array:
    """Return the means (number,) over contiguous blocks."""
    return np.array([values[test].mean() for _, test in blocks(len(values), number)])


def estimate(errors: Array, torques: Array, confidence: float = CONFIDENCE) -> ErrorEstimate:
    """Return the ratio of two rms values from their mean squares over blocks, with the interval of a bootstrap."""
    drawn = np.random.default_rng(_SEED).integers(len(errors), size=(_RESAMPLED, len(errors)))
    ratios = np.sqrt(errors[drawn].mean(axis=1) / torques[drawn].mean(axis=1))
    low, high = np.quantile(ratios, [0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence])
    rms = float(np.sqrt(errors.mean()))
    return ErrorEstimate(rms / float(np.sqrt(torques.mean())), float(low), float(high), rms)


def elsewhere(
    rms: float, torque: float, errors: Array, torques: Array, recordings: int, confidence: float = CONFIDENCE
) -> ErrorEstimate:
    """Return a cross-validated error with the interval in which that of another, equally long recording lies.

    The other recording's error varies too, as that of the first did; with few parts, quantiles are those of Student's
    t. Both hold for recordings of like motion only.

    Parameters
    ----------
    rms, torque : float
        Rms error and rms torque, cross-validated [N m or N].
    errors, torques : array, (parts,)
        Mean squared error and torque of each long part, the model fitted without it.
    recordings : int
        That the parts are of, the same number each.
    confidence : float
        Of the interval.
    """
    count, ratio = len(errors), errors.mean() / torques.mean()
    if rms == 0.0 or not errors.any():
        return ErrorEstimate(0.0, 0.0, 0.0, 0.0)
    scatter = (errors - ratio * torques) / errors.mean()
    deviation = 0.5 * np.sqrt(np.sum(scatter**2) / (count - 1) / count * (1 + recordings))
    factor = float(np.exp(quantile(confidence, np.array(count - 1.0)) * deviation))
    return ErrorEstimate(rms / torque, rms / torque / factor, rms / torque * factor, rms)


def paired(errors: Array, others: Array, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Return the ratio of two rms errors on the same blocks, and the interval of a bootstrap of these blocks."""
    drawn = np.random.default_rng(_SEED).integers(len(errors), size=(_RESAMPLED, len(errors)))
    ratios = np.sqrt(errors[drawn].mean(axis=1) / others[drawn].mean(axis=1))
    low, high = np.quantile(ratios, [0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence])
    return float(np.sqrt(errors.mean() / others.mean())), float(low), float(high)
