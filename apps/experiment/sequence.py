"""Trial sequence of a session, determined by the design, the seed and the previous answers.

A sequence has no clock, device or files. The random numbers of a trial depend only on its number, so that the same
answers reproduce the same sequence. Sessions are resumed in this way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from apps.experiment.design import Design
from apps.experiment.procedures.methods import (
    Tracks,
    catch_kinds,
    catch_positions,
    child,
    make_procedure,
    threshold_of,
    trial_seed,
    williams_order,
)
from apps.experiment.procedures.settings import Carried
from apps.experiment.settings import ConditionSettings
from apps.experiment.trial import TrialView
from haptics.records import Rows

_TRACK, _ORDER, _CATCH, _INTERVALS = 1_000, 10_000, 20_000, 30_000
"""Seed numbers, used in place of trial numbers, for random values that belong to a whole session.

They are for the tracks, the order of tracks in a section, its catch trials, and the intervals of the comparison.
"""

_OBSERVER, _CATCH_CONDITION, _MISSED = 1, 2, 100
"""Purposes of the random numbers of a trial."""

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
    carried : dict
        Thresholds of earlier sessions with which tracks begin, by the name of the track.
    """

    code: str
    session: int
    slot: int
    seed: int
    carried: Mapping[str, Carried] = field(default_factory=dict)

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
        return TrialView(
            design.experiment.task, design.axis, reference, self.level, self.values, self.comparison, rows, self.trial
        )

    def markers(self, attempt: int) -> tuple[int, ...]:
        """Return the markers of the rows of each interval.

        The first marker minus 1 marks the rows in between.
        """
        return tuple(100 * self.trial + 10 * (attempt % 10) + number + 1 for number in range(len(self.values)))


class _Section:
    """Consecutive trials of one kind: the tracks of one or several conditions.

    ``labels`` are the condition and the name of each track, ``catches`` the kinds of catch trials by position.
    """

    def __init__(
        self, design: Design, who: Participant, number: int, conditions: tuple[ConditionSettings, ...]
    ) -> None:
        self.conditions, guess = conditions, design.task.guess or 0.0
        procedures = []
        self.labels: list[tuple[ConditionSettings, str]] = []
        for condition in conditions:
            for track in range(condition.tracks):
                seed = who.seed_of(0, _TRACK + 10 * design.conditions.index(condition) + track)
                label = f"{condition.name}/{track + 1}"
                table, carried = design.procedure_of(condition), who.carried.get(label)
                procedures.append(make_procedure(table, guess=guess, seed=seed, carried=carried))
                self.labels.append((condition, label))
        self.tracks = Tracks(procedures, who.seed_of(0, _ORDER + number))
        self.catches: dict[int, str] = {}
        null, easy = design.catch.null, design.catch.easy
        if null + easy and design.task.responses:
            seed = who.seed_of(0, _CATCH + number)
            self.catches = catch_positions(_MOST, null + easy, seed, kinds=catch_kinds(null, easy))


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
        conditions = design.conditions
        if design.trials.interleave:
            self._sections = [_Section(design, who, 0, conditions)]
        else:
            order = williams_order(len(conditions), who.slot)
            self._sections = [_Section(design, who, n, (conditions[place],)) for n, place in enumerate(order)]
        self._section = 0
        self._trial = self._block = 1
        self._in_section = self._in_block = 0
        self._practised: list[bool] = []
        self._practising = design.practice.window > 0 and bool(design.task.responses)
        self.failed = False

    def reports(self) -> dict[str, dict[str, Any]]:
        """Return the report of the procedure of every track, by the name of the track."""
        return {
            label: procedure.report()
            for section in self._sections
            for (_, label), procedure in zip(section.labels, section.tracks.procedures, strict=True)
        }

    def thresholds(self) -> dict[str, dict[str, Any]]:
        """Return the threshold that each staircase and QUEST+ has found (`threshold_of`), by the name of the track."""
        found = {}
        for section in self._sections:
            for (_, label), procedure in zip(section.labels, section.tracks.procedures, strict=True):
                if (threshold := threshold_of(procedure)) is not None:
                    found[label] = {"level": threshold[0], "log_sd": threshold[1]}
        return found

    def next(self) -> TrialSpec | None:
        """Return the next trial, or None at the end.

        The result is the same until `add_answer` is called.
        """
        if self.failed or self._section >= len(self._sections):
            return None
        if self._practising:
            condition = self.design.conditions[self._in_section % len(self.design.conditions)]
            return self._spec("practice", condition, self.design.practice_level(condition))
        section = self._sections[self._section]
        if kind := section.catches.get(self._in_section):
            rng = child(self._who.seed_of(self._block, self._trial), _CATCH_CONDITION)
            condition = section.conditions[int(rng.integers(len(section.conditions)))]
            level = self.design.easy_level(condition) if kind == "easy" else 0.0
            return self._spec(f"catch-{kind}", condition, level)
        track, level = section.tracks.next()
        condition, label = section.labels[track]
        return self._spec("test", condition, level, track, label)

    def _spec(
        self, kind: str, condition: ConditionSettings, level: float, track: int | None = None, label: str | None = None
    ) -> TrialSpec:
        reference, comparison = condition.reference, None
        values: tuple[float, ...] = (reference + level,) if self.design.task.responses else (level,)
        if self.design.task.intervals == 2:
            # Of four trials the comparison is in the first interval of two, in random order.
            four, place = divmod(self._trial - 1, len(_QUAD))
            comparison = int(child(self._who.seed_of(0, _INTERVALS), four).permutation(_QUAD)[place])
            values = (reference, reference + level) if comparison == 2 else (reference + level, reference)
        return TrialSpec(self._trial, self._block, kind, condition, track, label, level, values, comparison)

    def generator(self, plan: TrialSpec, missed: int = 0) -> np.random.Generator:
        """Return the random generator of a simulated observer in a trial, after `missed` late answers."""
        return child(self._who.seed_of(plan.block, plan.trial), _OBSERVER if not missed else _MISSED + missed)

    def add_answer(self, plan: TrialSpec, response: str | float, correct: bool | None) -> None:
        """Add the answer to `plan`, which `next` has returned, and begin the next block or section if it is due."""
        design = self.design
        if plan.kind == "practice":
            self._practised.append(bool(correct))
        elif plan.track is not None:
            presented = design.task.responses or design.experiment.task == "estimation"
            level = float(plan.level if presented else response)
            self._sections[self._section].tracks.add_outcome(plan.track, level, correct is not False)
        self._trial += 1
        self._in_section += 1
        self._in_block += 1
        section_over = False
        if self._practising:
            practice = design.practice
            passed = sum(self._practised[-practice.window :]) >= practice.correct
            passed = passed and len(self._practised) >= practice.window
            if passed or len(self._practised) >= practice.most:
                self.failed = not passed and practice.failing == "stop"
                self._practising, section_over = False, True
        elif self._sections[self._section].tracks.finished:
            self._section += 1
            section_over = True
        if section_over:
            self._in_section = 0
        if section_over or (not self._practising and self._in_block >= design.trials.block):
            self._block += 1
            self._in_block = 0

    def conditions_of(self, plan: TrialSpec) -> list[str]:
        """Return the names of the conditions in the block that begins with `plan`."""
        practice = plan.kind == "practice"
        conditions = self.design.conditions if practice else self._sections[self._section].conditions
        return [condition.name for condition in conditions]
