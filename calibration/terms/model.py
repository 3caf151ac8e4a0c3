"""Model of a joint's friction composed of terms, and its prediction for a motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording
from calibration.fitting.prediction_error import ErrorEstimate, relative_error
from calibration.terms.terms import KINDS, Term

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Term with its coefficients.

    Attributes
    ----------
    term : Term
        The term.
    values : array, (k,)
        Coefficients of its columns, SI units. For a term that occurs only once per recording, they are n/(n + 1) of the
        best fit to n recordings, because each recording has a different event: after a single event, half of its effect
        is the safe estimate.
    low, high : array, (k,)
        Ends of their intervals, by leaving out one block of the recordings at a time (jackknife).
    """

    term: Term
    values: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class TermModel:
    """Sum of terms.

    Attributes
    ----------
    fitted : tuple of Fitted
        Terms with coefficients.
    rotary : bool
        Whether the joint is rotary.
    """

    fitted: tuple[Fitted, ...]
    rotary: bool = True

    @property
    def terms(self) -> tuple[Term, ...]:
        """Terms without coefficients."""
        return tuple(one.term for one in self.fitted)

    def of(self, name: str) -> Fitted | None:
        """Return the term with this name and its coefficients; None if absent."""
        return next((one for one in self.fitted if one.term.name == name), None)

    def predict(self, recording: JointRecording, kinds: Sequence[str] = KINDS) -> Array:
        """Return the predicted friction (n,) [N m or N] of a motion, from terms of the given kinds.

        The `friction` of the recording is not used. For compensation use ``("friction",)``, because effects of the
        drive are not friction.
        """
        total = np.zeros(len(recording))
        for one in self.fitted:
            if one.term.kind in kinds:
                total += one.term.matrix(recording) @ one.values
        return total

    def error(self, recording: JointRecording, kinds: Sequence[str] = KINDS) -> ErrorEstimate:
        """Return the prediction error on a recording, relative to the measured torque."""
        return relative_error(recording, self.predict(recording, kinds))
