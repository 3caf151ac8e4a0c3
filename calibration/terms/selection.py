"""Forward selection of the terms of a friction model by cross-validation.

Terms are added one by one. The criterion is the error on blocks of the recordings that were not used for the fit, with
a gap between them because errors of adjacent samples are correlated. Of the models on the path, the smallest one is
chosen whose error is at most one standard error above the lowest (Hastie, Tibshirani and Friedman 2009, section 7.10).
Models with an implausible sign of a coefficient are rejected, as are terms whose sign is not significant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.data.joint_recording import JointRecording
from calibration.fitting.prediction_error import BLOCKS, CONFIDENCE, ErrorEstimate
from calibration.terms.fits import Step, TermFits
from calibration.terms.model import TermModel
from calibration.terms.terms import KINDS, Term, base_terms, candidate_terms
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
    chosen = _certain(fits, _one_standard_error(path), settings.confidence)
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
        trials = [fits.step(terms) for terms in _neighbours(last, fits.offered)]
        best = min((step for step in trials if fits.plausible(step)), key=lambda step: step.error, default=last)
        if best.error >= last.error:
            break
        path.append(_pruned(fits, best))
    return tuple(path)


def _neighbours(step: Step, offered: Sequence[Term]) -> list[tuple[Term, ...]]:
    """Return the models with one more term, or with another variant of a term."""
    mine = {term.name: term for term in step.terms}
    return [
        (*(step.without(mine[term.name]) if term.name in mine else step.terms), term)
        for term in offered
        if term not in step.terms
    ]


def _pruned(fits: TermFits, step: Step) -> Step:
    """Return the model without terms that do not lower its error."""
    while step.terms:
        fewer = [fits.step(step.without(idle)) for idle in step.terms]
        best = min((trial for trial in fewer if fits.plausible(trial)), key=lambda trial: trial.error, default=None)
        if best is None or best.error > step.error:
            break
        step = best
    return step


def _one_standard_error(path: Sequence[Step]) -> Step:
    """Return the smallest model whose mean squared error is at most a standard error above the lowest."""
    best = min(path, key=lambda step: step.error)
    most = best.blocks.mean() + best.blocks.std(ddof=1) / np.sqrt(len(best.blocks))
    enough = [step for step in path if step.blocks.mean() <= most]
    return min(enough, key=lambda step: (len(step.terms), step.error))


def _certain(fits: TermFits, step: Step, confidence: float) -> Step:
    """Return the model without terms of insignificant sign, removing the least certain ones first."""
    while step.terms:
        worst = max(step.terms, key=lambda term: fits.doubt(step, term, confidence))
        if fits.doubt(step, worst, confidence) < 1.0:
            break
        step = fits.step(step.without(worst))
    return step
