"""Presentation of a trial as a script: rest at the start, gate opens, interval, gate closes, answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from apps.experiment.design import Design
from apps.experiment.engine.display import Display
from apps.experiment.engine.sequence import TrialSpec
from apps.experiment.engine.stage import Script, Stage
from apps.experiment.engine.watch import Watch
from apps.experiment.trial import TrialView
from haptics.records import Rows, Status
from haptics.rendering.envelope import UNUSABLE
from haptics.servo.kernels import GATE_TIME

LOOK = 20
"""Polling interval of the hand [ticks]."""

_DISTURBING = {
    "no usable sample": UNUSABLE,
    "force limited": int(Status.LIMITED),
    "too fast for the envelope": int(Status.SPEED),
    "energy limited": int(Status.ENERGY),
    "edge of the workspace": int(Status.WORKSPACE),
    "dead-man released": int(Status.RELEASED),
}
"""Status flags after which a trial is repeated, because the rendered force was wrong."""


@dataclass(frozen=True)
class Reply:
    """Answer to a trial.

    Attributes
    ----------
    response : str or float
        The answer.
    reaction_time : float
        Time from the end of the last interval [s].
    tick : int
        Tick of the answer.
    source, key : str
        Source of the answer (`observer`, `key` or `button`) and name of the key or button.
    """

    response: str | float
    reaction_time: float
    tick: int
    source: str
    key: str | None = None


class Respondent(Protocol):
    """Source of the answers: a participant or a simulated observer."""

    needs_rows: bool

    def explore(self, stage: Stage, plan: TrialSpec) -> bool | None:
        """Handle input during the stimulus.

        Returns
        -------
        bool or None
            True when the exploration is finished, False while it continues, None for the default rule (strokes and
            time).
        """
        ...

    def reply(self, stage: Stage, plan: TrialSpec, view: TrialView, since: int) -> Script[Reply | None]:
        """Wait for the answer to a trial whose last interval ended at tick `since`.

        Return None after a time-out.
        """
        ...


@dataclass(frozen=True)
class Outcome:
    """Result of a trial.

    Attributes
    ----------
    reply : Reply or None
        The answer, if any.
    reasons : tuple of str
        Reasons for a repetition, empty if the trial counts.
    """

    reply: Reply | None
    reasons: tuple[str, ...] = ()


class Presenter:
    """Presents trials on a stage.

    Parameters
    ----------
    design : Design
        Design of the experiment.
    stage : Stage
        Stage on which the trials are presented.
    display : Display
        Display of the session.
    """

    def __init__(self, design: Design, stage: Stage, display: Display) -> None:
        self._design, self._stage, self._display = design, stage, display
        self._settle = self._ticks(max(design.trials.gap, GATE_TIME, design.session.limits.fade_in))

    def _ticks(self, time: float) -> int:
        return max(math.ceil(time / self._stage.period - 1e-9), 1)

    def present(self, plan: TrialSpec, attempt: int, respondent: Respondent) -> Script[Outcome]:
        """Present a trial and wait for the answer.

        A disturbed trial is not answered.
        """
        stage, markers, felt = self._stage, plan.markers(attempt), []
        since = -1
        for number, marker in enumerate(markers):
            first = stage.count
            reasons, since = yield from self._interval(plan, number, marker, respondent)
            if reasons:
                return Outcome(None, reasons)
            if respondent.needs_rows:
                felt.append(stage.rows(first, marker))
        view = plan.view(self._design, tuple(felt) if felt else None)
        self._display.prompt(plan)
        reply = yield from respondent.reply(stage, plan, view, since)
        return Outcome(reply, () if reply is not None else ("no answer in time",))

    def _interval(
        self, plan: TrialSpec, number: int, marker: int, respondent: Respondent
    ) -> Script[tuple[tuple[str, ...], int]]:
        """Present an interval.

        Return the reasons for a repetition, and the last tick of the interval.
        """
        stage, design, between = self._stage, self._design, marker - marker % 10
        stage.mark(between)
        stage.apply_parameters(design.config(plan.condition, plan.values[number]))
        yield self._settle
        self._display.park(plan, number)
        if not (yield from self._parked()):
            stage.gate(True)
            return ("the hand did not come to rest at the start",), -1
        stage.mark(marker)
        self._display.interval(plan, number)
        watch = Watch(design.exploration, stage.period, stage.count, marker)
        yield from self._explored(watch, plan, respondent)
        stage.mark(between)
        stage.gate(True)
        self._display.gap(plan, number)
        yield 1
        watch.evaluate(stage.slots, stage.count)
        reasons = self._rejection_reasons(watch)
        self._display.show_interval(watch.rows, watch.late, watch.gap, reasons)
        return reasons, watch.last_tick

    def _parked(self) -> Script[bool]:
        """Wait for the hand in the start box and fade the output in.

        Return False after a time-out.
        """
        stage, exploration = self._stage, self._design.exploration
        watch = Watch(exploration, stage.period, stage.count)
        least, until = (
            self._ticks(exploration.rest) if exploration.start else 0,
            stage.count + self._ticks(exploration.patience),
        )
        while watch.rested < least:
            if stage.count > until:
                return False
            yield max(LOOK, least - watch.rested)
            watch.evaluate(stage.slots, stage.count)
        stage.gate(False)
        yield self._ticks(GATE_TIME) + 1
        watch = Watch(exploration, stage.period, stage.count)
        while not watch.steady:
            if stage.count > until:
                return False
            yield 5
            watch.evaluate(stage.slots, stage.count)
        return True

    def _explored(self, watch: Watch, plan: TrialSpec, respondent: Respondent) -> Script[None]:
        """Wait until the exploration is long enough or the respondent has finished."""
        stage, wanted = self._stage, self._design.exploration.strokes
        longest = self._ticks(self._design.trials.interval)
        while watch.rows < longest:
            done = respondent.explore(stage, plan)
            if done or (done is None and wanted and watch.strokes >= wanted):
                return
            soonest = LOOK if done is not None else self._soonest(wanted - watch.strokes) if wanted else longest
            yield min(max(soonest, LOOK), longest - watch.rows)
            watch.evaluate(stage.slots, stage.count)

    def _soonest(self, strokes: int) -> int:
        """Return the minimum duration of `strokes` strokes [ticks], before which no poll is needed."""
        exploration = self._design.exploration
        return math.floor(strokes * exploration.stroke / (exploration.greatest_speed * self._stage.period))

    def _rejection_reasons(self, watch: Watch) -> tuple[str, ...]:
        """Return the reasons for which an interval does not count."""
        trials, exploration = self._design.trials, self._design.exploration
        reasons = [words for words, flags in _DISTURBING.items() if watch.flags & flags]
        if watch.late > trials.late_ticks * watch.rows:
            reasons.append("late ticks")
        if watch.gap > trials.longest_gap:
            reasons.append("gap between ticks")
        if watch.strokes < exploration.strokes:
            reasons.append("too few strokes")
        elif watch.strokes:
            reasons += ["too slow"] if watch.least_speed < exploration.least_speed else []
            reasons += ["too fast"] if watch.greatest_speed > exploration.greatest_speed else []
        return tuple(reasons)


def rows_of(rows: Rows, marker: int) -> Rows:
    """Return the rows with this marker."""
    chosen: Rows = rows[rows["marker"] == marker]
    return chosen
