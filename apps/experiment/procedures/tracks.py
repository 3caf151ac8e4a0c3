"""Several procedures interleaved in one series of trials, in an order that a seed decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.random import SeedSequence

from apps.experiment.procedures.order import child
from apps.experiment.procedures.procedure import Procedure


class Tracks:
    """Interleaved tracks: in every round each that is not finished has one trial, in an order that is drawn.

    So no track runs ahead, and what comes next cannot be foreseen for more than the end of a round. The order of a
    round depends on its number only, not on answers.

    Parameters
    ----------
    procedures : sequence of Procedure
        The tracks, at least one.
    seed : SeedSequence
        Round k is drawn with the seed of its number below it.
    """

    def __init__(self, procedures: Sequence[Procedure], seed: SeedSequence) -> None:
        self.procedures = tuple(procedures)
        self._seed = seed
        self._round = 0
        self._left = self._drawn()

    @property
    def finished(self) -> bool:
        """Whether all tracks are."""
        return all(procedure.finished for procedure in self.procedures)

    def next(self) -> tuple[int, float]:
        """Return the track of the next trial, from 0, and its level; the same until `take`, and not once finished."""
        track = self._left[0]
        return track, self.procedures[track].level()

    def take(self, track: int, level: float, correct: bool) -> None:
        """Take the outcome of a trial of `track`, as `Procedure.take`."""
        self.procedures[track].take(level, correct)
        self._left.remove(track)
        if not self._left and not self.finished:
            self._round += 1
            self._left = self._drawn()

    def _drawn(self) -> list[int]:
        """Return the order of this round, without the tracks that are finished."""
        order = child(self._seed, self._round).permutation(len(self.procedures))
        return [int(number) for number in order if not self.procedures[number].finished]

    def report(self) -> list[dict[str, Any]]:
        """Return the reports of all tracks."""
        return [procedure.report() for procedure in self.procedures]
