"""The course of a session: which trial comes next, by the design, the seed and what was answered before; no more.

A course has no clock, no device and no files. What a trial draws depends on its number alone, so a course that is told
the same answers goes the same way: that is how a session is taken up again.
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
"""Numbers, in place of a trial's, of what belongs to a whole session: a track's own seed, the order of tracks in a
section, its catch trials, the intervals with the comparison."""

_OBSERVER, _MISSED = 1, 100
_MOST = 4000
"""Trials for which places of catch trials are drawn: more than anybody does in a session."""

_QUAD = (1, 1, 2, 2)
"""Of four trials in a row, two have the comparison first."""


@dataclass(frozen=True)
class Participant:
    """Who takes part.

    Attributes
    ----------
    code : str
        Code.
    session : int
        Which of their sessions, from 1.
    slot : int
        Place in the order of arrival, which chooses an order of conditions.
    seed : int
        Seed of the experiment.
    """

    code: str
    session: int
    slot: int
    seed: int

    def seed_of(self, block: int, trial: int) -> SeedSequence:
        """Return the seed of a trial; of block 0 for what belongs to the session."""
        return trial_seed(self.seed, self.code, self.session, block, trial)


@dataclass(frozen=True)
class Plan:
    """A trial as it is to be presented.

    Attributes
    ----------
    trial, block : int
        Numbers, from 1.
    kind : str
        ``test``, ``practice``, ``catch-null`` or ``catch-easy``.
    condition : ConditionSettings
        Its condition.
    track : int or None
        Track of its section that its answer belongs to; None for the others.
    label : str or None
        What the track is called in the journal.
    level : float
        Level.
    values : tuple of float
        Value of the axis in each interval.
    comparison : int or None
        Interval with the comparison, where there are two.
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
        """Return the trial as an observer meets it."""
        reference = self.condition.reference
        return TrialView(design.experiment.task, design.axis, reference, self.level, self.values, self.comparison, rows)

    def markers(self, attempt: int) -> tuple[int, ...]:
        """Return the marker of the rows of each interval; one less than the first is that of the rows between."""
        return tuple(100 * self.trial + 10 * (attempt % 10) + number + 1 for number in range(len(self.values)))


class _Section:
    """Trials of one kind in a row: a practice, or the tracks of some conditions."""

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
        """Return the kind of catch trial that comes after `done` trials, or nothing."""
        return self._catches.get(done, "")

    def named(self, track: int) -> tuple[ConditionSettings, str]:
        """Return the condition of a track and what it is called."""
        return self._labels[track]


def _catches(design: Design, seed: SeedSequence) -> dict[int, str]:
    """Return which trials of a section are catch trials."""
    catch = design.catch
    share = catch.null + catch.easy
    if not share or not design.task.responses:
        return {}
    least = min(one for one in (catch.null, catch.easy) if one)
    kinds = ("null",) * round(catch.null / least) + ("easy",) * round(catch.easy / least)
    return catch_positions(_MOST, share, seed, kinds=kinds)


class Course:
    """The trials of a session, one after the other.

    Parameters
    ----------
    design : Design
        The experiment.
    who : Participant
        Whose session it is.

    Attributes
    ----------
    failed : bool
        Whether the practice was not passed, where that ends a session.
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
        """Return the name of every track and what its procedure reports."""
        return [
            (section.named(number)[1], procedure.report())
            for section in self._sections
            for number, procedure in enumerate(section.tracks.procedures)
        ]

    def next(self) -> Plan | None:
        """Return the next trial, the same until `take`; None at the end."""
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

    def _practice(self) -> Plan:
        conditions = self.design.conditions
        condition = conditions[self._in_section % len(conditions)]
        return self._plan("practice", condition, self.design.practice_level(condition))

    def _caught(self, section: _Section, kind: str) -> Plan:
        place = self._generator(2).integers(len(section.conditions))
        condition = section.conditions[int(place)]
        level = self.design.easy_level(condition) if kind == "easy" else 0.0
        return self._plan(f"catch-{kind}", condition, level)

    def _plan(
        self, kind: str, condition: ConditionSettings, level: float, track: int | None = None, label: str | None = None
    ) -> Plan:
        reference, comparison = condition.reference, None
        values: tuple[float, ...] = (reference + level,) if self.design.task.responses else (level,)
        if self.design.task.intervals == 2:
            comparison = self._comparison()
            values = (reference, reference + level) if comparison == 2 else (reference + level, reference)
        return Plan(self._trial, self._block, kind, condition, track, label, level, values, comparison)

    def _comparison(self) -> int:
        """Return the interval with the comparison: in every four trials it is the first twice, in an order drawn."""
        four, place = divmod(self._trial - 1, len(_QUAD))
        return int(child(self._who.seed_of(0, _INTERVALS), four).permutation(_QUAD)[place])

    def _generator(self, purpose: int) -> np.random.Generator:
        return child(self._who.seed_of(self._block, self._trial), purpose)

    def generator(self, plan: Plan, missed: int = 0) -> np.random.Generator:
        """Return what a simulated observer draws from in a trial whose answer came too late so often before."""
        return child(self._who.seed_of(plan.block, plan.trial), _OBSERVER if not missed else _MISSED + missed)

    def take(self, plan: Plan, response: str | float, correct: bool | None) -> None:
        """Take the answer to `plan`, which `next` has returned."""
        if plan.kind == "practice":
            self._practised.append(bool(correct))
        elif plan.track is not None:
            level = (
                plan.level if self.design.task.responses or self.design.experiment.task == "estimation" else response
            )
            self._sections[self._section].tracks.take(plan.track, float(level), correct is not False)
        self._trial += 1
        self._in_section += 1
        self._in_block += 1
        self._turn()

    def _turn(self) -> None:
        """Go on to the next section or block where this one is at its end."""
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

    def conditions_of(self, plan: Plan) -> list[str]:
        """Return the names of the conditions in the block that begins with `plan`."""
        if plan.kind == "practice":
            return [one.name for one in self.design.conditions]
        return [one.name for one in self._sections[self._section].conditions]
