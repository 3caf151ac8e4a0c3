"""A model of a joint's friction made of terms, and what it says of a motion."""

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
    """A term with its coefficients.

    Attributes
    ----------
    term : Term
        The term.
    values : array, (k,)
        A coefficient for each of its columns, SI units. Of a term that a recording shows only once it is n/(n + 1) of
        the best fit to n recordings: another recording has an event of its own, and after one event half of it is the
        safe guess.
    low, high : array, (k,)
        Their intervals, from leaving out one block of the recordings at a time (jackknife).
    """

    term: Term
    values: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class TermModel:
    """A sum of terms.

    Attributes
    ----------
    fitted : tuple of Fitted
        Its terms.
    rotary : bool
        Whether the joint turns.
    """

    fitted: tuple[Fitted, ...]
    rotary: bool = True

    @property
    def terms(self) -> tuple[Term, ...]:
        """Its terms."""
        return tuple(one.term for one in self.fitted)

    def of(self, name: str) -> Fitted | None:
        """Return the term of a name with its coefficients; None where the model has none."""
        return next((one for one in self.fitted if one.term.name == name), None)

    def predict(self, recording: JointRecording, kinds: Sequence[str] = KINDS) -> Array:
        """Return the friction (n,) [N m or N] to expect from a motion, made of the terms of some kinds.

        The `friction` of the recording is not looked at. For compensation ask for ``("friction",)``: what the drive
        does is not friction.
        """
        total = np.zeros(len(recording))
        for one in self.fitted:
            if one.term.kind in kinds:
                total += one.term.matrix(recording) @ one.values
        return total

    def error(self, recording: JointRecording, kinds: Sequence[str] = KINDS) -> ErrorEstimate:
        """Return how far the prediction is off on a recording, relative to the measured torque."""
        return relative_error(recording, self.predict(recording, kinds))
