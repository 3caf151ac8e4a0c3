"""Prediction error of a torque, with a block bootstrap interval."""

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
"""Number of long parts of a recording, whose scatter estimates the scatter between recordings.

Shorter blocks are correlated with their neighbours.
"""
_RESAMPLED, _SEED = 2000, 20181


@dataclass(frozen=True)
class ErrorEstimate:
    """Prediction error of a torque.

    Attributes
    ----------
    value, low, high : float
        Rms error relative to the rms of the measured torque, and its bootstrap interval.
    rms : float
        Rms error [N m or N].
    """

    value: float
    low: float
    high: float
    rms: float


def relative_error(
    recording: JointRecording, predicted: Array, number: int = BLOCKS, confidence: float = CONFIDENCE
) -> ErrorEstimate:
    """Return the rms error of predicted friction relative to the rms of the measured torque.

    Parameters
    ----------
    recording : JointRecording
        Recording whose `friction` is compared and whose `effort` is the reference of the error.
    predicted : array, (n,)
        Predicted friction [N m or N].
    number : int
        Number of contiguous blocks of the bootstrap. Errors of adjacent samples are correlated, those between blocks
        hardly.
    confidence : float
        Confidence level of the interval.

    Raises
    ------
    ConfigurationError
        If the measured torque is 0 throughout.
    """
    recording.require_terms()
    squares = block_means((recording.friction - predicted) ** 2, number)
    return estimate(squares, block_means(recording.effort**2, number), confidence)


def block_means(values: Array, number: int) -> Array:
    """Return the means (number,) over contiguous blocks."""
    return np.array([values[test].mean() for _, test in blocks(len(values), number)])


def estimate(errors: Array, torques: Array, confidence: float = CONFIDENCE) -> ErrorEstimate:
    """Return the ratio of two rms values from their mean squares over blocks, with a bootstrap interval."""
    drawn = np.random.default_rng(_SEED).integers(len(errors), size=(_RESAMPLED, len(errors)))
    ratios = np.sqrt(errors[drawn].mean(axis=1) / torques[drawn].mean(axis=1))
    low, high = np.quantile(ratios, [0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence])
    rms = float(np.sqrt(errors.mean()))
    return ErrorEstimate(rms / float(np.sqrt(torques.mean())), float(low), float(high), rms)


def elsewhere(
    rms: float, torque: float, errors: Array, torques: Array, recordings: int, confidence: float = CONFIDENCE
) -> ErrorEstimate:
    """Return a cross-validated error with a prediction interval for another recording of the same length.

    The interval includes the variation of the other recording's error. Because there are few parts, quantiles of
    Student's t are used. The result holds for recordings of similar motion only.

    Parameters
    ----------
    rms, torque : float
        Cross-validated rms error and rms torque [N m or N].
    errors, torques : array, (parts,)
        Mean squared error and torque of each long part, with the model fitted without it.
    recordings : int
        Number of recordings, each with the same number of parts.
    confidence : float
        Confidence level of the interval.
    """
    count, ratio = len(errors), errors.mean() / torques.mean()
    if rms == 0.0 or not errors.any():
        return ErrorEstimate(0.0, 0.0, 0.0, 0.0)
    scatter = (errors - ratio * torques) / errors.mean()
    deviation = 0.5 * np.sqrt(np.sum(scatter**2) / (count - 1) / count * (1 + recordings))
    factor = float(np.exp(quantile(confidence, np.array(count - 1.0)) * deviation))
    return ErrorEstimate(rms / torque, rms / torque / factor, rms / torque * factor, rms)


def paired(errors: Array, others: Array, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Return the ratio of two rms errors on the same blocks, with a bootstrap interval over these blocks."""
    drawn = np.random.default_rng(_SEED).integers(len(errors), size=(_RESAMPLED, len(errors)))
    ratios = np.sqrt(errors[drawn].mean(axis=1) / others[drawn].mean(axis=1))
    low, high = np.quantile(ratios, [0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence])
    return float(np.sqrt(errors.mean() / others.mean())), float(low), float(high)
