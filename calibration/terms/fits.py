"""Fits of models composed of terms: cross-validated errors and coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording
from calibration.fitting.block_fits import BlockFits
from calibration.fitting.intervals import quantile
from calibration.fitting.prediction_error import PARTS, ErrorEstimate, block_means, elsewhere
from calibration.fitting.regression import LinearFit, least_squares
from calibration.terms.model import Fitted, TermModel
from calibration.terms.terms import Term

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """Candidate model.

    Attributes
    ----------
    terms : tuple of Term
        Terms in addition to the base.
    error : float
        Cross-validated rms error relative to the rms torque.
    blocks : array, (blocks,)
        Mean squared error on every block relative to the overall mean squared torque.
    """

    terms: tuple[Term, ...]
    error: float
    blocks: Array = field(repr=False)

    def without(self, *terms: Term) -> tuple[Term, ...]:
        """Return its terms without the given ones."""
        return tuple(term for term in self.terms if term not in terms)


class TermFits:
    """Columns of all terms over all recordings of one joint.

    Parameters
    ----------
    seen : sequence of JointRecording
        Recordings of the joint.
    base : tuple of Term
        Terms of every model.
    offered : tuple of Term
        Optional terms.
    number : int
        Number of blocks of each recording.
    gap : float
        Samples omitted on both sides of a test block, as a fraction of its length.
    """

    def __init__(
        self, seen: Sequence[JointRecording], base: tuple[Term, ...], offered: tuple[Term, ...], number: int, gap: float
    ) -> None:
        self.base, self.offered = base, offered
        ends = np.cumsum([term.count for term in (*base, *offered)]).tolist()
        self.places = {
            term: range(first, last) for term, first, last in zip((*base, *offered), [0, *ends[:-1]], ends, strict=True)
        }
        self.matrix = np.concatenate([np.column_stack([term.matrix(one) for term in self.places]) for one in seen])
        self.friction = np.concatenate([one.friction for one in seen])
        self.power = float(np.mean(np.concatenate([one.effort for one in seen]) ** 2))
        self.torques = np.concatenate([block_means(one.effort**2, number) for one in seen])
        self.events = {
            term: sum(bool(term.matrix(one).any()) for one in seen) for term in (*base, *offered) if term.once
        }
        lengths = [len(one) for one in seen]
        self.fits = BlockFits(self.matrix, self.friction, lengths, number, gap)
        self.parts = BlockFits(self.matrix, self.friction, lengths, PARTS, gap / number)
        self.part_torques = np.concatenate([block_means(one.effort**2, PARTS) for one in seen])
        self.recordings = len(seen)

    def step(self, terms: tuple[Term, ...]) -> Step:
        """Return the model with some terms, with its cross-validated error."""
        errors = self.fits.errors(self._columns(terms)) / self.power
        return Step(terms, float(np.sqrt(errors.mean())), errors)

    def score(self, step: Step, confidence: float) -> ErrorEstimate:
        """Return the cross-validated error of a model, with an interval for another, similar recording."""
        errors = self.parts.errors(self._columns(step.terms))
        rms = float(np.sqrt(step.blocks.mean() * self.power))
        return elsewhere(
            rms, float(np.sqrt(self.torques.mean())), errors, self.part_torques, self.recordings, confidence
        )

    def plausible(self, step: Step) -> bool:
        """Return True if no coefficient that must be positive is negative."""
        must = [term.positive for term in (*self.base, *step.terms) for _ in range(term.count)]
        return bool(np.all(self.fits.coefficients(self._columns(step.terms))[must] >= 0.0))

    def doubt(self, step: Step, term: Term, confidence: float) -> float:
        """Return the smallest half width of a term's intervals relative to the coefficient."""
        columns = self._columns(step.terms)
        mine = [columns.index(place) for place in self.places[term]]
        values = np.abs(self.fits.coefficients(columns)[mine])
        return float(np.min(self._reach(columns, confidence)[mine] / np.maximum(values, np.finfo(float).tiny)))

    def fit(self, step: Step) -> LinearFit:
        """Return the fit of a model to all samples."""
        return least_squares(self.matrix[:, self._columns(step.terms)], self.friction)

    def model(self, step: Step, confidence: float, rotary: bool) -> TermModel:
        """Return a model for use on other recordings."""
        terms = (*self.base, *step.terms)
        trust = np.array([self._trust(term) for term in terms for _ in range(term.count)])
        values = trust * self.fit(step).coefficients
        reach = trust * self._reach(self._columns(step.terms), confidence)
        ends = np.cumsum([term.count for term in terms])[:-1]
        parts = zip(terms, np.split(values, ends), np.split(reach, ends), strict=True)
        return TermModel(tuple(Fitted(term, value, value - wide, value + wide) for term, value, wide in parts), rotary)

    def _columns(self, terms: Sequence[Term]) -> list[int]:
        return [column for term in (*self.base, *terms) for column in self.places[term]]

    def _trust(self, term: Term) -> float:
        """Return the shrinkage of a coefficient: n/(n + 1) for one event in each of n recordings."""
        return self.events[term] / (self.events[term] + 1) if term.once else 1.0

    def _reach(self, columns: list[int], confidence: float) -> Array:
        """Return the half widths of the intervals of coefficients, by the jackknife over blocks."""
        found = self.fits.left_out(columns)
        count = len(found)
        variance = (count - 1) / count * np.sum((found - found.mean(axis=0)) ** 2, axis=0)
        return np.asarray(quantile(confidence, np.array([count - 1.0])) * np.sqrt(variance))
