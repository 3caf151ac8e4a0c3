"""Selection of the terms of a friction model, and comparison of models.

Terms are added one by one. The criterion is the error on blocks of the recordings that were not used for the fit, with
a gap between them because errors of adjacent samples are correlated. Of the models on the path, the smallest one is
chosen whose error is at most one standard error above the lowest (Hastie, Tibshirani and Friedman 2009, section 7.10).
Models with an implausible sign of a coefficient are rejected, as are terms whose sign is not significant.

The models are compared on other recordings with published friction and simple fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording
from calibration.fitting.intervals import (
    BLOCKS,
    CONFIDENCE,
    PARTS,
    ErrorEstimate,
    block_means,
    elsewhere,
    estimate,
    paired,
    quantile,
)
from calibration.fitting.regression import BlockFits, LinearFit, least_squares, times
from calibration.terms.model import BASE, KINDS, Fitted, Term, TermModel, candidate_terms
from haptics.errors import ConfigurationError

_GAP = 0.1
"""Samples omitted on both sides of a test block, as a fraction of its length."""
_MOST_TERMS = 10
"""Maximum number of terms besides offset and viscosity."""


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
    kinds: Sequence[str] = KINDS,
) -> Selection:
    """Select the terms of a joint's friction and fit them.

    Parameters
    ----------
    recordings : JointRecording or sequence of JointRecording
        Recordings of one joint.
    candidates : sequence of Term, optional
        Candidate terms; by default `candidate_terms` of the first recording.
    kinds : sequence of str
        Permitted kinds of terms.

    Raises
    ------
    ConfigurationError
        If there is no recording, the torque of one is 0, or a kind is unknown.
    """
    seen = (recordings,) if isinstance(recordings, JointRecording) else tuple(recordings)
    for kind in kinds:
        if kind not in KINDS:
            raise ConfigurationError(f'kind "{kind}" is not one of {", ".join(KINDS)}')
    if not seen:
        raise ConfigurationError("terms cannot be chosen without a recording")
    for one in seen:
        one.require_terms()
    offered = candidate_terms(seen[0]) if candidates is None else candidates
    offered = tuple(term for term in offered if term.kind in kinds)
    fits = TermFits(seen, offered)
    path = _forward(fits)
    # The smallest model whose mean squared error is at most a standard error above the lowest ...
    best = min(path, key=lambda step: step.error)
    most = best.blocks.mean() + best.blocks.std(ddof=1) / np.sqrt(len(best.blocks))
    enough = [step for step in path if step.blocks.mean() <= most]
    chosen = min(enough, key=lambda step: (len(step.terms), step.error))
    # ... without terms of insignificant sign, removing the least certain ones first.
    while chosen.terms:
        doubts = {term: fits.doubt(chosen, term) for term in chosen.terms}
        worst = max(doubts, key=doubts.__getitem__)
        if doubts[worst] < 1.0:
            break
        chosen = fits.step(chosen.without(worst))
    return Selection(fits.model(chosen), path, fits.score(chosen), fits.fit(chosen).condition)


def _forward(fits: TermFits) -> tuple[Step, ...]:
    """Return the models of a forward selection; terms that become superfluous are dropped after each step."""
    path = [fits.step(())]
    while len(path[-1].terms) < _MOST_TERMS:
        last = path[-1]
        # models with one more term, or with another variant of a term
        mine = {term.name: term for term in last.terms}
        trials = [
            fits.step((*(last.without(mine[term.name]) if term.name in mine else last.terms), term))
            for term in fits.offered
            if term not in last.terms
        ]
        step = min((trial for trial in trials if fits.plausible(trial)), key=lambda trial: trial.error, default=last)
        if step.error >= last.error:
            break
        while step.terms:  # without the term that lowers the error least, if the error does not rise
            fewer = [fits.step(step.without(idle)) for idle in step.terms]
            best = min((trial for trial in fewer if fits.plausible(trial)), key=lambda trial: trial.error, default=None)
            if best is None or best.error > step.error:
                break
            step = best
        path.append(step)
    return tuple(path)


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

    def without(self, term: Term) -> tuple[Term, ...]:
        """Return its terms without one of them."""
        return tuple(one for one in self.terms if one is not term)


class TermFits:
    """Columns of all terms over all recordings of one joint.

    Parameters
    ----------
    seen : sequence of JointRecording
        Recordings of the joint.
    offered : tuple of Term
        Optional terms.
    """

    def __init__(self, seen: Sequence[JointRecording], offered: tuple[Term, ...]) -> None:
        self.seen, self.offered = seen, offered
        self.places: dict[Term, range] = {}
        count = 0
        for term in (*BASE, *offered):
            self.places[term] = range(count, count := count + term.count)
        self.matrix = np.concatenate([np.column_stack([term.matrix(one) for term in self.places]) for one in seen])
        self.friction = np.concatenate([one.friction for one in seen])
        self.power = float(np.mean(np.concatenate([one.effort for one in seen]) ** 2))
        self.torques = np.concatenate([block_means(one.effort**2, BLOCKS) for one in seen])
        lengths = [len(one) for one in seen]
        self.fits = BlockFits(self.matrix, self.friction, lengths, BLOCKS, _GAP)
        self.parts = BlockFits(self.matrix, self.friction, lengths, PARTS, _GAP / BLOCKS)
        self.part_torques = np.concatenate([block_means(one.effort**2, PARTS) for one in seen])

    def step(self, terms: tuple[Term, ...]) -> Step:
        """Return the model with some terms, with its cross-validated error."""
        errors = self.fits.errors(self._columns(terms)) / self.power
        return Step(terms, float(np.sqrt(errors.mean())), errors)

    def score(self, step: Step) -> ErrorEstimate:
        """Return the cross-validated error of a model, with an interval for another, similar recording."""
        errors = self.parts.errors(self._columns(step.terms))
        rms, torque = float(np.sqrt(step.blocks.mean() * self.power)), float(np.sqrt(self.torques.mean()))
        return elsewhere(rms, torque, errors, self.part_torques, len(self.seen))

    def plausible(self, step: Step) -> bool:
        """Return True if no coefficient that must be positive is negative."""
        must = [term.positive for term in (*BASE, *step.terms) for _ in range(term.count)]
        return bool(np.all(self.fits.coefficients(self._columns(step.terms))[must] >= 0.0))

    def doubt(self, step: Step, term: Term) -> float:
        """Return the smallest half width of a term's intervals relative to the coefficient."""
        columns = self._columns(step.terms)
        mine = [columns.index(place) for place in self.places[term]]
        values = np.abs(self.fits.coefficients(columns)[mine])
        return float(np.min(self._reach(columns)[mine] / np.maximum(values, np.finfo(float).tiny)))

    def fit(self, step: Step) -> LinearFit:
        """Return the fit of a model to all samples."""
        return least_squares(self.matrix[:, self._columns(step.terms)], self.friction)

    def model(self, step: Step) -> TermModel:
        """Return a model for use on other recordings."""
        terms, trust = (*BASE, *step.terms), []
        for term in terms:  # the shrinkage of a coefficient: n/(n + 1) for one event in each of n recordings
            events = sum(bool(term.matrix(one).any()) for one in self.seen) if term.once else 0
            trust += [events / (events + 1) if term.once else 1.0] * term.count
        values = np.array(trust) * self.fit(step).coefficients
        reach = np.array(trust) * self._reach(self._columns(step.terms))
        ends = np.cumsum([term.count for term in terms])[:-1]
        parts = zip(terms, np.split(values, ends), np.split(reach, ends), strict=True)
        fitted = tuple(Fitted(term, value, value - wide, value + wide) for term, value, wide in parts)
        return TermModel(fitted, self.seen[0].rotary)

    def _columns(self, terms: Sequence[Term]) -> list[int]:
        return [column for term in (*BASE, *terms) for column in self.places[term]]

    def _reach(self, columns: list[int]) -> Array:
        """Return the half widths of the intervals of coefficients, by the jackknife over blocks."""
        found = self.fits.left_out(columns)
        count = len(found)
        variance = (count - 1) / count * np.sum((found - found.mean(axis=0)) ** 2, axis=0)
        return np.asarray(quantile(CONFIDENCE, np.array([count - 1.0])) * np.sqrt(variance))


# --- comparison -------------------------------------------------------------------------------------------------------

Prediction = Callable[[JointRecording], Array]

PUBLISHED, SYMMETRIC, ASYMMETRIC = "published", "plain, alike both ways", "plain, asymmetric"
FRICTION, RIGID = "friction terms alone", "without drive terms"
ALL, LATE = "all terms", "all terms, ripple a sample late"
_KINDS: Mapping[str, tuple[str, ...]] = {
    FRICTION: ("friction",),
    RIGID: ("friction", "inertia", "load"),
    ALL: ("friction", "inertia", "load", "drive"),
}
NEEDS_VELOCITY = "needs measured velocity: prediction, not compensation"
_MOVING = 0.01
"""Minimum speed of the samples in simple fits, as a fraction of the top speed."""


@dataclass(frozen=True)
class Compared:
    """Prediction error of one kind of model on a recording that was not used for its fit.

    Attributes
    ----------
    kind : str
        Name of the kind.
    error : ErrorEstimate
        Error on the recording.
    ratio : (float, float, float) or None
        Ratio of its rms error to the rms error of the first kind on the same blocks, and the interval.
    cross_validated : ErrorEstimate or None
        Cross-validated error on the fitted recordings.
    note : str
        Requirement that a compensation cannot meet.
    """

    kind: str
    error: ErrorEstimate
    ratio: tuple[float, float, float] | None
    cross_validated: ErrorEstimate | None
    note: str


@dataclass(frozen=True, eq=False)
class Kinds:
    """Models of every kind, fitted to the same recordings.

    Attributes
    ----------
    plain : mapping
        Predictions of the published friction, if any, and of simple fits.
    chosen : mapping
        Models selected from terms.
    """

    plain: Mapping[str, Prediction]
    chosen: Mapping[str, Selection]

    def predict(self, other: JointRecording) -> dict[str, Array]:
        """Return the friction that every kind predicts."""
        predicted = {kind: predict(other) for kind, predict in self.plain.items()}
        predicted |= {kind: selection.model.predict(other) for kind, selection in self.chosen.items()}
        if self.reacts(ALL):
            # the ripple of the velocity one sample late, the best case for a compensation
            ripple = np.concatenate((other.ripple[:1], other.ripple[:-1]))
            late = replace(other, velocity=other.smooth_velocity + ripple)
            predicted[LATE] = self.chosen[ALL].model.predict(late)
        return predicted

    def reacts(self, kind: str) -> bool:
        """Return True if a kind uses the ripple of the velocity at the same instant as the torque."""
        return kind in self.chosen and self.chosen[kind].model.of("drive_reaction") is not None


def compare_in_turn(seen: Sequence[JointRecording], permitted: Sequence[str], number: int) -> tuple[Compared, ...]:
    """Return the prediction error of every kind on parts of recordings, each left out in turn.

    Parameters
    ----------
    seen : sequence of JointRecording
        Recordings of one joint.
    permitted : sequence of str
        Permitted kinds of terms.
    number : int
        Number of parts of each recording, at least 2.
    """
    kinds, others = [], []
    for place, one in enumerate(seen):
        rest = [*seen[:place], *seen[place + 1 :]]
        for part in range(number):
            first, last = part / number, (part + 1) / number
            around = [one.part(*cut) for cut in ((0.0, first), (last, 1.0)) if cut[0] < cut[1]]
            kinds.append(fit_kinds([*rest, *around], permitted))
            others.append(one.part(first, last))
    return compare(kinds, others, max(2, BLOCKS // number))


def compare(kinds: Sequence[Kinds], others: Sequence[JointRecording], blocks: int = BLOCKS) -> tuple[Compared, ...]:
    """Return the prediction error of every kind over recordings, each with the corresponding models, in blocks."""
    for other in others:
        other.require_terms()
    predicted = [models.predict(other) for models, other in zip(kinds, others, strict=True)]
    known = dict.fromkeys((*kinds[0].plain, *kinds[0].chosen, LATE))
    names = [name for name in known if all(name in one for one in predicted)]
    torques = np.concatenate([block_means(other.effort**2, blocks) for other in others])
    pairs = list(zip(predicted, others, strict=True))
    squares = {
        name: np.concatenate([block_means((other.friction - one[name]) ** 2, blocks) for one, other in pairs])
        for name in names
    }
    first = squares[names[0]]
    return tuple(
        Compared(
            name,
            estimate(squares[name], torques),
            None if name == names[0] or not first.all() else paired(squares[name], first),
            kinds[0].chosen[name].score if len(kinds) == 1 and name in kinds[0].chosen else None,
            NEEDS_VELOCITY if any(models.reacts(name) for models in kinds) else "",
        )
        for name in names
    )


def fit_kinds(seen: Sequence[JointRecording], permitted: Sequence[str], every: Selection | None = None) -> Kinds:
    """Fit every kind of model to recordings of one joint.

    Parameters
    ----------
    seen : sequence of JointRecording
        Recordings of the joint.
    permitted : sequence of str
        Permitted kinds of terms; models with others are omitted.
    every : Selection, optional
        Existing selection with all permitted kinds, which is not repeated.
    """
    plain: dict[str, Prediction] = {}
    if all(one.published is not None for one in seen):
        plain[PUBLISHED] = lambda other: np.zeros(len(other)) if other.published is None else other.published
    plain[SYMMETRIC] = _plain(seen, lambda one: np.column_stack((np.sign(one.velocity), one.velocity)))
    plain[ASYMMETRIC] = _plain(
        seen,
        lambda one: np.column_stack(
            [side * part for part in (1.0, one.velocity) for side in (one.velocity > 0.0, one.velocity < 0.0)]
        ),
    )
    chosen = {}
    for name, kinds in _KINDS.items():
        if set(kinds) <= set(permitted):
            same = every is not None and set(kinds) == set(permitted)
            chosen[name] = every if same and every else select_terms(seen, kinds=kinds)
    return Kinds(plain, chosen)


def _plain(seen: Sequence[JointRecording], columns: Callable[[JointRecording], Array]) -> Prediction:
    """Return the prediction of a Coulomb-viscous fit."""
    moving = [np.abs(one.velocity) > _MOVING * np.abs(one.velocity).max() for one in seen]
    matrix = np.concatenate([columns(one)[fast] for one, fast in zip(seen, moving, strict=True)])
    target = np.concatenate([one.friction[fast] for one, fast in zip(seen, moving, strict=True)])
    found = least_squares(matrix, target).coefficients
    return lambda other: times(columns(other), found)
