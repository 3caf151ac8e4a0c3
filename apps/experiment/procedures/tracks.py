"""Interleaved procedures in a seeded random order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.random import SeedSequence

from apps.experiment.procedures.order import child
from apps.experiment.procedures.procedure import Procedure


class Tracks:
    """Interleaved tracks: in every round, each unfinished track has one trial, in random order.

    The tracks therefore proceed together, and only the last trial of a round is predictable. The order of a round
    depends on its number only, not on answers.

    Parameters
    ----------
    procedures : sequence of Procedure
        The tracks, at least one.
    seed : SeedSequence
        Parent seed. Round k is drawn with its k-th child.
    """

    def __init__(self, procedures: Sequence[Procedure], seed: SeedSequence) -> None:
        self.procedures = tuple(procedures)
        self._seed = seed
        self._round = 0
        self._left = self._drawn()

    @property
    def finished(self) -> bool:
        """Whether all tracks are finished."""
        return all(procedure.finished for procedure in self.procedures)

    def next(self) -> tuple[int, float]:
        """Return the track of the next trial, from 0, and its level, unchanged until `take`.

        Invalid once finished.
        """
        track = self._left[0]
        return track, self.procedures[track].level()

    def add_outcome(self, track: int, level: float, correct: bool) -> None:
        """Add the outcome of a trial of `track`; see `Procedure.take`."""
        self.procedures[track].add_outcome(level, correct)
        self._left.remove(track)
        if not self._left and not self.finished:
            self._round += 1
            self._left = self._drawn()

    def _drawn(self) -> list[int]:
        """Return the order of the current round, without finished tracks."""
        order = child(self._seed, self._round).permutation(len(self.procedures))
        return [int(number) for number in order if not self.procedures[number].finished]

    def report(self) -> list[dict[str, Any]]:
        """Return the reports of all tracks."""
        return [procedure.report() for procedure in self.procedures]
