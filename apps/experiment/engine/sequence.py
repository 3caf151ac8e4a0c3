"""Trial sequence of a session, determined by the design, the seed and the previous answers.

A sequence has no clock, device or files. The random numbers of a trial depend only on its number, so that the same
answers reproduce the same sequence. Sessions are resumed in this way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from apps.experiment.design import ConditionSettings, Design
from apps.experiment.procedures import Tracks, catch_positions, child, make_procedure, trial_seed, williams_order
from apps.experiment.trial import TrialView
from haptics.records import Rows

_TRACK, _ORDER, _CATCH, _INTERVALS = 1_000, 10_000, 20_000, 30_000
"""Seed numbers, used in place of trial numbers, for random values that belong to a whole session.

They are for the tracks, the order of tracks in a section, its catch trials, and the intervals of the comparison.
"""

_OBSERVER, _MISSED = 1, 100
_MOST = 4000
"""Number of trials for which catch trial positions are drawn, more than any session contains."""

_QUAD = (1, 1, 2, 2)
"""Position of the comparison in four consecutive trials before shuffling: twice in each interval."""


@dataclass(frozen=True)
class Participant:
    """Participant and session.

    Attributes
    ----------
    code : str
        Code of the participant.
    session : int
        Session number of the participant, from 1.
    slot : int
        Position in the order of arrival, which selects an order of conditions.
    seed : int
        Seed of the experiment.
    """

    code: str
    session: int
    slot: int
    seed: int

    def seed_of(self, block: int, trial: int) -> SeedSequence:
        """Return the seed of a trial.

        Block 0 is used for values of the whole session.
        """
        return trial_seed(self.seed, self.code, self.session, block, trial)


@dataclass(frozen=True)
class TrialSpec:
    """Specification of a trial.

    Attributes
    ----------
    trial, block : int
        Numbers, from 1.
    kind : str
        ``test``, ``practice``, ``catch-null`` or ``catch-easy``.
    condition : ConditionSettings
        Condition of the trial.
    track : int or None
        Index of the track in its section. None for practice and catch trials.
    label : str or None
        Name of the track in the journal.
    level : float
        Level of the comparison, in the unit of the axis.
    values : tuple of float
        Value of the axis in each interval.
    comparison : int or None
        Interval with the comparison, from 1, if there are two intervals.
    """

    trial: int
    block: int
    kind: str
    condition: ConditionSettings
    track: int | None
    label: str | None
    level: float
    values: tuple[float, ...]
    comparison: int | None

    def view(self, design: Design, rows: tuple[Rows, ...] | None = None) -> TrialView:
        """Return the trial as seen by an observer."""
        reference = self.condition.reference
        return TrialView(design.experiment.task, design.axis, reference, self.level, self.values, self.comparison, rows)

    def markers(self, attempt: int) -> tuple[int, ...]:
        """Return the markers of the rows of each interval.

        The first marker minus 1 marks the rows in between.
        """
        return tuple(100 * self.trial + 10 * (attempt % 10) + number + 1 for number in range(len(self.values)))


class _Section:
    """Consecutive trials of one kind: the tracks of one or several conditions."""

    def __init__(
        self, design: Design, who: Participant, number: int, conditions: tuple[ConditionSettings, ...]
    ) -> None:
        self.conditions = conditions
        self._labels: list[tuple[ConditionSettings, str]] = []
        procedures = []
        for condition in conditions:
            for track in range(condition.tracks):
                place = design.conditions.index(condition)
                seed = who.seed_of(0, _TRACK + 10 * place + track)
                guess = design.task.guess or 0.0
                procedures.append(make_procedure(design.procedure_of(condition), guess=guess, seed=seed))
                self._labels.append((condition, f"{condition.name}/{track + 1}"))
        self.tracks = Tracks(procedures, who.seed_of(0, _ORDER + number))
        self._catches = _catches(design, who.seed_of(0, _CATCH + number))

    def catch(self, done: int) -> str:
        """Return the kind of catch trial after `done` trials, or an empty string."""
        return self._catches.get(done, "")

    def named(self, track: int) -> tuple[ConditionSettings, str]:
        """Return the condition and the name of a track."""
        return self._labels[track]


def _catches(design: Design, seed: SeedSequence) -> dict[int, str]:
    """Return the kinds of the catch trials of a section by position."""
    catch = design.catch
    share = catch.null + catch.easy
    if not share or not design.task.responses:
        return {}
    least = min(one for one in (catch.null, catch.easy) if one)
    kinds = ("null",) * round(catch.null / least) + ("easy",) * round(catch.easy / least)
    return catch_positions(_MOST, share, seed, kinds=kinds)


class TrialSequence:
    """Sequence of the trials of a session.

    Parameters
    ----------
    design : Design
        Design of the experiment.
    who : Participant
        Participant and session.

    Attributes
    ----------
    failed : bool
        Whether the session ends because the practice was failed.
    """

    def __init__(self, design: Design, who: Participant) -> None:
        self.design, self._who = design, who
        self._sections = self._made()
        self._section = 0
        self._trial = self._block = 1
        self._in_section = self._in_block = 0
        self._practised: list[bool] = []
        self._practising = design.practice.window > 0 and bool(design.task.responses)
        self.failed = False

    def _made(self) -> list[_Section]:
        conditions = self.design.conditions
        if self.design.trials.interleave:
            return [_Section(self.design, self._who, 0, conditions)]
        order = williams_order(len(conditions), self._who.slot)
        return [_Section(self.design, self._who, number, (conditions[place],)) for number, place in enumerate(order)]

    def tracks(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the name of every track and the report of its procedure."""
        return [
            (section.named(number)[1], procedure.report())
            for section in self._sections
            for number, procedure in enumerate(section.tracks.procedures)
        ]

    def next(self) -> TrialSpec | None:
        """Return the next trial, or None at the end.

        The result is the same until `take` is called.
        """
        if self.failed or self._section >= len(self._sections):
            return None
        if self._practising:
            return self._practice()
        section = self._sections[self._section]
        kind = section.catch(self._in_section)
        if kind:
            return self._caught(section, kind)
        track, level = section.tracks.next()
        condition, label = section.named(track)
        return self._plan("test", condition, level, track, label)

    def _practice(self) -> TrialSpec:
        conditions = self.design.conditions
        condition = conditions[self._in_section % len(conditions)]
        return self._plan("practice", condition, self.design.practice_level(condition))

    def _caught(self, section: _Section, kind: str) -> TrialSpec:
        place = self._generator(2).integers(len(section.conditions))
        condition = section.conditions[int(place)]
        level = self.design.easy_level(condition) if kind == "easy" else 0.0
        return self._plan(f"catch-{kind}", condition, level)

    def _plan(
        self, kind: str, condition: ConditionSettings, level: float, track: int | None = None, label: str | None = None
    ) -> TrialSpec:
        reference, comparison = condition.reference, None
        values: tuple[float, ...] = (reference + level,) if self.design.task.responses else (level,)
        if self.design.task.intervals == 2:
            comparison = self._comparison()
            values = (reference, reference + level) if comparison == 2 else (reference + level, reference)
        return TrialSpec(self._trial, self._block, kind, condition, track, label, level, values, comparison)

    def _comparison(self) -> int:
        """Return the interval of the comparison.

        Of four trials it is the first in two, in random order.
        """
        four, place = divmod(self._trial - 1, len(_QUAD))
        return int(child(self._who.seed_of(0, _INTERVALS), four).permutation(_QUAD)[place])

    def _generator(self, purpose: int) -> np.random.Generator:
        return child(self._who.seed_of(self._block, self._trial), purpose)

    def generator(self, plan: TrialSpec, missed: int = 0) -> np.random.Generator:
        """Return the random generator of a simulated observer in a trial, after `missed` late answers."""
        return child(self._who.seed_of(plan.block, plan.trial), _OBSERVER if not missed else _MISSED + missed)

    def add_answer(self, plan: TrialSpec, response: str | float, correct: bool | None) -> None:
        """Add the answer to `plan`, which `next` has returned."""
        if plan.kind == "practice":
            self._practised.append(bool(correct))
        elif plan.track is not None:
            level = (
                plan.level if self.design.task.responses or self.design.experiment.task == "estimation" else response
            )
            self._sections[self._section].tracks.add_outcome(plan.track, float(level), correct is not False)
        self._trial += 1
        self._in_section += 1
        self._in_block += 1
        self._turn()

    def _turn(self) -> None:
        """Continue with the next section or block if the current one is complete."""
        if self._practising:
            practice = self.design.practice
            passed = sum(self._practised[-practice.window :]) >= practice.correct
            passed = passed and len(self._practised) >= practice.window
            if passed or len(self._practised) >= practice.most:
                self.failed = not passed and practice.failing == "stop"
                self._practising = False
                self._begin_block(section=True)
        elif self._sections[self._section].tracks.finished:
            self._section += 1
            self._begin_block(section=True)
        elif self._in_block >= self.design.trials.block:
            self._begin_block()

    def _begin_block(self, *, section: bool = False) -> None:
        self._block += 1
        self._in_block = 0
        if section:
            self._in_section = 0

    def conditions_of(self, plan: TrialSpec) -> list[str]:
        """Return the names of the conditions in the block that begins with `plan`."""
        if plan.kind == "practice":
            return [one.name for one in self.design.conditions]
        return [one.name for one in self._sections[self._section].conditions]
