"""Forward selection of the terms of a friction model by cross-validation.

Terms are added one by one. The criterion is the error on blocks of the recordings that were not used for the fit, with
a gap between them because errors of adjacent samples are correlated. Of the models on the path, the smallest one is
chosen whose error is at most one standard error above the lowest (Hastie, Tibshirani and Friedman 2009, section 7.10).
Models with an implausible sign of a coefficient are rejected, as are terms whose sign is not significant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording
from calibration.fitting.intervals import BLOCKS, CONFIDENCE, PARTS, ErrorEstimate, block_means, elsewhere, quantile
from calibration.fitting.regression import BlockFits, LinearFit, least_squares
from calibration.terms.model import KINDS, Fitted, Term, TermModel, base_terms, candidate_terms
from haptics.errors import ConfigurationError

_FEWEST_BLOCKS = 4


@dataclass(frozen=True)
class SelectionSettings:
    """Settings of the selection.

    Attributes
    ----------
    blocks : int
        Number of blocks of each recording.
    gap : float
        Samples omitted on both sides of a test block, as a fraction of its length.
    most_terms : int
        Maximum number of terms besides offset and viscosity.
    kinds : tuple of str
        Permitted kinds of terms.
    confidence : float
        Confidence level of all intervals.
    """

    blocks: int = BLOCKS
    gap: float = 0.1
    most_terms: int = 10
    kinds: tuple[str, ...] = KINDS
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        if self.blocks < _FEWEST_BLOCKS:
            raise ConfigurationError(f"blocks is {self.blocks}; must be at least {_FEWEST_BLOCKS}")
        for kind in self.kinds:
            if kind not in KINDS:
                raise ConfigurationError(f'kind "{kind}" is not one of {", ".join(KINDS)}')


@dataclass(frozen=True)
class Selection:
    """Selected model.

    Attributes
    ----------
    model : TermModel
        Model fitted to all samples, for use on other recordings.
    path : tuple of Step
        Models of the selection path, from the base on.
    score : ErrorEstimate
        Cross-validated error of the fit, with the interval for another recording of similar motion, from five long
        parts. It is slightly optimistic because of the selection, and not valid for different motion, such as in one
        direction only.
    condition : float
        Condition number of the fit.
    """

    model: TermModel
    path: tuple[Step, ...]
    score: ErrorEstimate
    condition: float


def select_terms(
    recordings: JointRecording | Sequence[JointRecording],
    candidates: Sequence[Term] | None = None,
    settings: SelectionSettings = SelectionSettings(),
) -> Selection:
    """Select the terms of a joint's friction and fit them.

    Parameters
    ----------
    recordings : JointRecording or sequence of JointRecording
        Recordings of one joint.
    candidates : sequence of Term, optional
        Candidate terms; by default `candidate_terms` of the first recording.
    settings : SelectionSettings
        Settings of the selection.

    Raises
    ------
    ConfigurationError
        If there is no recording, or the torque of one is 0.
    """
    seen = (recordings,) if isinstance(recordings, JointRecording) else tuple(recordings)
    if not seen:
        raise ConfigurationError("terms cannot be chosen without a recording")
    for one in seen:
        one.require_terms()
    offered = candidate_terms(seen[0]) if candidates is None else candidates
    offered = tuple(term for term in offered if term.kind in settings.kinds)
    fits = TermFits(seen, base_terms(), offered, settings.blocks, settings.gap)
    path = _forward(fits, settings.most_terms)
    # The smallest model whose mean squared error is at most a standard error above the lowest ...
    best = min(path, key=lambda step: step.error)
    most = best.blocks.mean() + best.blocks.std(ddof=1) / np.sqrt(len(best.blocks))
    enough = [step for step in path if step.blocks.mean() <= most]
    chosen = min(enough, key=lambda step: (len(step.terms), step.error))
    # ... without terms of insignificant sign, removing the least certain ones first.
    while chosen.terms:
        doubts = {term: fits.doubt(chosen, term, settings.confidence) for term in chosen.terms}
        worst = max(doubts, key=doubts.__getitem__)
        if doubts[worst] < 1.0:
            break
        chosen = fits.step(chosen.without(worst))
    return Selection(
        model=fits.model(chosen, settings.confidence, seen[0].rotary),
        path=path,
        score=fits.score(chosen, settings.confidence),
        condition=fits.fit(chosen).condition,
    )


def _forward(fits: TermFits, most: int) -> tuple[Step, ...]:
    """Return the models of a forward selection; terms that become superfluous are dropped after each step."""
    path = [fits.step(())]
    while len(path[-1].terms) < most:
        last = path[-1]
        # models with one more term, or with another variant of a term
        mine = {term.name: term for term in last.terms}
        trials = [
            fits.step((*(last.without(mine[term.name]) if term.name in mine else last.terms), term))
            for term in fits.offered
            if term not in last.terms
        ]
        best = min((step for step in trials if fits.plausible(step)), key=lambda step: step.error, default=last)
        if best.error >= last.error:
            break
        path.append(_pruned(fits, best))
    return tuple(path)


def _pruned(fits: TermFits, step: Step) -> Step:
    """Return the model without terms that do not lower its error."""
    while step.terms:
        fewer = [fits.step(step.without(idle)) for idle in step.terms]
        best = min((trial for trial in fewer if fits.plausible(trial)), key=lambda trial: trial.error, default=None)
        if best is None or best.error > step.error:
            break
        step = best
    return step


# --- fits -------------------------------------------------------------------------------------------------------------

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
        # the shrinkage of a coefficient: n/(n + 1) for one event in each of n recordings
        trusted = {term: self.events[term] / (self.events[term] + 1) if term.once else 1.0 for term in terms}
        trust = np.array([trusted[term] for term in terms for _ in range(term.count)])
        values = trust * self.fit(step).coefficients
        reach = trust * self._reach(self._columns(step.terms), confidence)
        ends = np.cumsum([term.count for term in terms])[:-1]
        parts = zip(terms, np.split(values, ends), np.split(reach, ends), strict=True)
        return TermModel(tuple(Fitted(term, value, value - wide, value + wide) for term, value, wide in parts), rotary)

    def _columns(self, terms: Sequence[Term]) -> list[int]:
        return [column for term in (*self.base, *terms) for column in self.places[term]]

    def _reach(self, columns: list[int], confidence: float) -> Array:
        """Return the half widths of the intervals of coefficients, by the jackknife over blocks."""
        found = self.fits.left_out(columns)
        count = len(found)
        variance = (count - 1) / count * np.sum((found - found.mean(axis=0)) ** 2, axis=0)
        return np.asarray(quantile(confidence, np.array([count - 1.0])) * np.sqrt(variance))
