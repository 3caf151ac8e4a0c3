"""Comparison of models on a recording: models composed of terms, published friction, and simple fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording
from calibration.fitting.intervals import BLOCKS, ErrorEstimate, block_means, estimate, paired
from calibration.fitting.regression import least_squares, times
from calibration.terms.selection import Selection, SelectionSettings, select_terms

Array = NDArray[np.float64]
Prediction = Callable[[JointRecording], Array]

PUBLISHED, SYMMETRIC, ASYMMETRIC = "published", "plain, alike both ways", "plain, asymmetric"
FRICTION, RIGID, ALL, LATE = (
    "friction terms alone",
    "without drive terms",
    "all terms",
    "all terms, ripple a sample late",
)
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

    def compared(self, other: JointRecording) -> tuple[Compared, ...]:
        """Return the prediction error of every kind on another recording."""
        return _compared([self], [other], BLOCKS)

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


def compare_in_turn(seen: Sequence[JointRecording], settings: SelectionSettings, number: int) -> tuple[Compared, ...]:
    """Return the prediction error of every kind on parts of recordings, each left out in turn.

    Parameters
    ----------
    seen : sequence of JointRecording
        Recordings of one joint.
    settings : SelectionSettings
        Settings of the selection.
    number : int
        Number of parts of each recording, at least 2.
    """
    kinds, others = [], []
    for place, one in enumerate(seen):
        rest = [*seen[:place], *seen[place + 1 :]]
        for part in range(number):
            first, last = part / number, (part + 1) / number
            around = [one.part(*cut) for cut in ((0.0, first), (last, 1.0)) if cut[0] < cut[1]]
            kinds.append(fit_kinds([*rest, *around], settings))
            others.append(one.part(first, last))
    return _compared(kinds, others, max(2, BLOCKS // number))


def _compared(kinds: Sequence[Kinds], others: Sequence[JointRecording], blocks: int) -> tuple[Compared, ...]:
    """Return the errors over recordings, each with the corresponding models, in blocks of each."""
    for other in others:
        other.require_terms()
    predicted = [models.predict(other) for models, other in zip(kinds, others, strict=True)]
    names = [
        name
        for name in dict.fromkeys((*kinds[0].plain, *kinds[0].chosen, LATE))
        if all(name in one for one in predicted)
    ]
    torques = np.concatenate([block_means(other.effort**2, blocks) for other in others])
    squares = {
        name: np.concatenate(
            [
                block_means((other.friction - one[name]) ** 2, blocks)
                for one, other in zip(predicted, others, strict=True)
            ]
        )
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


def fit_kinds(seen: Sequence[JointRecording], settings: SelectionSettings, every: Selection | None = None) -> Kinds:
    """Fit every kind of model to recordings of one joint.

    Parameters
    ----------
    seen : sequence of JointRecording
        Recordings of the joint.
    settings : SelectionSettings
        Settings of the selection; kinds that it does not permit are omitted.
    every : Selection, optional
        Existing selection with all permitted kinds, which is not repeated.
    """
    plain: dict[str, Prediction] = {}
    if all(one.published is not None for one in seen):
        plain[PUBLISHED] = lambda other: np.zeros(len(other)) if other.published is None else other.published
    plain[SYMMETRIC] = _plain(seen, lambda one: np.column_stack((np.sign(one.velocity), one.velocity)))
    plain[ASYMMETRIC] = _plain(seen, _columns_by_direction)
    chosen = {}
    for name, kinds in _KINDS.items():
        if set(kinds) <= set(settings.kinds):
            same = every is not None and set(kinds) == set(settings.kinds)
            chosen[name] = every if same and every else select_terms(seen, settings=replace(settings, kinds=kinds))
    return Kinds(plain, chosen)


def _columns_by_direction(seen: JointRecording) -> Array:
    forward, backward = seen.velocity > 0.0, seen.velocity < 0.0
    return np.column_stack((forward, backward, forward * seen.velocity, backward * seen.velocity)).astype(float)


def _plain(seen: Sequence[JointRecording], columns: Callable[[JointRecording], Array]) -> Prediction:
    """Return the prediction of a Coulomb-viscous fit."""
    moving = [np.abs(one.velocity) > _MOVING * np.abs(one.velocity).max() for one in seen]
    matrix = np.concatenate([columns(one)[fast] for one, fast in zip(seen, moving, strict=True)])
    target = np.concatenate([one.friction[fast] for one, fast in zip(seen, moving, strict=True)])
    found = least_squares(matrix, target).coefficients
    return lambda other: times(columns(other), found)
