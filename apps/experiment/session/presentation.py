"""Presentation of a trial as a script, and evaluation of the trace during its intervals.

A script is a generator. Its requests to the stage take effect at the next tick. It yields the number of ticks to wait
before it continues. The same script therefore runs in real time and without a clock.

A stroke extends from one reversal of the hand to the next, or to the point where it stops. It counts if it is long
enough. Its speed is its length divided by the time in which the hand moved.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from apps.experiment.design import Design
from apps.experiment.screens.display import Display
from apps.experiment.sequence import TrialSpec
from apps.experiment.settings import ExplorationSettings
from apps.experiment.trial import Answer, TrialView
from apps.settings.config import SessionConfig
from haptics.jit import kernel
from haptics.records import Rows, Status
from haptics.rendering.envelope import UNUSABLE
from haptics.servo.kernels import GATE_TIME
from haptics.trace import Trace

_T = TypeVar("_T")

Script = Generator[int, None, _T]
"""Generator that yields numbers of ticks to wait, and returns its result."""

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


class Stage(Protocol):
    """Running session of the servo, with or without a clock (`apps.experiment.session.stages`).

    Attributes
    ----------
    period : float
        Sampling period [s].
    trace : Trace
        Trace of the servo.
    folder : Path
        Folder of the recording.
    """

    period: float
    trace: Trace
    folder: Path

    def apply_parameters(self, config: SessionConfig) -> None:
        """Apply other parameters at the next tick."""

    def gate(self, closed: bool) -> None:
        """Fade the output out or in."""

    def mark(self, marker: int) -> None:
        """Set the marker of the rows from the next tick on."""

    def write_record(self, kind: str, /, **fields: Any) -> None:
        """Write a journal record. A stage without a clock first writes all previous ticks to the recording."""

    def run(self, script: Script[None]) -> None:
        """Run a script to completion and close the recording."""


class Respondent(Protocol):
    """Source of the answers: a participant or a simulated observer (`apps.experiment.session.respondents`)."""

    needs_rows: bool

    def explore(self, stage: Stage, plan: TrialSpec) -> bool | None:
        """Handle input during the stimulus.

        Returns
        -------
        bool or None
            True when the exploration is finished, False while it continues, None for the default rule (strokes and
            time).
        """

    def reply(self, stage: Stage, plan: TrialSpec, view: TrialView, since: int) -> Script[Answer | None]:
        """Wait for the answer to a trial whose last interval ended at tick `since`.

        Return None after a time-out.
        """


@dataclass(frozen=True)
class Outcome:
    """Result of a trial.

    Attributes
    ----------
    answer : Answer or None
        The answer, if any.
    reasons : tuple of str
        Reasons for a repetition, empty if the trial counts.
    """

    answer: Answer | None
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

    def _ticks(self, time: float) -> int:
        return max(math.ceil(time / self._stage.period - 1e-9), 1)

    def present(self, plan: TrialSpec, attempt: int, respondent: Respondent) -> Script[Outcome]:
        """Present a trial and wait for the answer.

        A disturbed trial is not answered.
        """
        stage, felt, since = self._stage, [], -1
        for number, marker in enumerate(plan.markers(attempt)):
            first = stage.trace.count
            reasons, since = yield from self._interval(plan, number, marker, respondent)
            if reasons:
                return Outcome(None, reasons)
            if respondent.needs_rows:
                rows = stage.trace.since(first)
                felt.append(rows[rows["marker"] == marker])
        view = plan.view(self._design, tuple(felt) if felt else None)
        self._display.prompt(plan)
        answer = yield from respondent.reply(stage, plan, view, since)
        return Outcome(answer, () if answer is not None else ("no answer in time",))

    def _interval(
        self, plan: TrialSpec, number: int, marker: int, respondent: Respondent
    ) -> Script[tuple[tuple[str, ...], int]]:
        """Present an interval.

        Return the reasons for a repetition, and the last tick of the interval.
        """
        stage, design, between = self._stage, self._design, marker - marker % 10
        stage.mark(between)
        stage.apply_parameters(design.config(plan.condition, plan.values[number]))
        yield self._ticks(max(design.trials.gap, GATE_TIME, design.session.limits.fade_in))
        self._display.park(plan, number)
        if not (yield from self._parked()):
            stage.gate(True)
            return ("the hand did not come to rest at the start",), -1
        stage.mark(marker)
        self._display.interval(plan, number)
        watch = Watch(design.exploration, stage.period, stage.trace.count, marker)
        yield from self._explored(watch, plan, respondent)
        stage.mark(between)
        stage.gate(True)
        self._display.gap(plan, number)
        yield 1
        watch.evaluate(stage.trace)
        reasons = self._rejection_reasons(watch)
        self._display.show_interval(watch.rows, watch.late, watch.gap, reasons)
        return reasons, watch.last_tick

    def _parked(self) -> Script[bool]:
        """Wait for the hand in the start box and fade the output in.

        Return False after a time-out.
        """
        stage, trace, exploration = self._stage, self._stage.trace, self._design.exploration
        watch = Watch(exploration, stage.period, trace.count)
        least = self._ticks(exploration.rest) if exploration.start else 0
        until = trace.count + self._ticks(exploration.patience)
        while watch.rested < least:
            if trace.count > until:
                return False
            yield max(LOOK, least - watch.rested)
            watch.evaluate(trace)
        stage.gate(False)
        yield self._ticks(GATE_TIME) + 1
        watch = Watch(exploration, stage.period, trace.count)
        while not watch.steady:
            if trace.count > until:
                return False
            yield 5
            watch.evaluate(trace)
        return True

    def _explored(self, watch: Watch, plan: TrialSpec, respondent: Respondent) -> Script[None]:
        """Wait until the exploration is long enough or the respondent has finished."""
        stage, exploration = self._stage, self._design.exploration
        longest, wanted = self._ticks(self._design.trials.interval), exploration.strokes
        while watch.rows < longest:
            done = respondent.explore(stage, plan)
            if done or (done is None and wanted and watch.strokes >= wanted):
                return
            soonest = longest if done is None else LOOK
            if done is None and wanted:  # no poll is needed before the missing strokes can be completed
                length = (wanted - watch.strokes) * exploration.stroke
                soonest = math.floor(length / (exploration.greatest_speed * stage.period))
            yield min(max(soonest, LOOK), longest - watch.rows)
            watch.evaluate(stage.trace)

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


# --- evaluation of the trace ---

_LATE = int(Status.STARTED_LATE | Status.ENDED_LATE)
_FADE = int(Status.FADE)

_TURN = 0.2
"""Backward displacement that marks a reversal, as a fraction of the stroke length."""

_STOP = 0.02
"""Time of slow motion that ends a stroke [s]."""

WATCH = np.dtype(
    [
        ("period", "<f8"),
        ("marker", "<i8"),
        ("centre", "<f8", (2,)),
        ("reach", "<f8"),
        ("rest_speed", "<f8"),
        ("stroke", "<f8"),
        ("rows", "<i8"),
        ("last_tick", "<i8"),
        ("rested", "<i8"),
        ("steady", "<i8"),
        ("flags", "<i8"),
        ("late", "<i8"),
        ("gap", "<f8"),
        ("last_start", "<f8"),
        ("begun", "<i8"),
        ("anchor", "<f8", (2,)),
        ("far", "<f8", (2,)),
        ("far_distance", "<f8"),
        ("moving", "<i8"),
        ("slow", "<i8"),
        ("strokes", "<i8"),
        ("least_speed", "<f8"),
        ("greatest_speed", "<f8"),
    ]
)
"""Settings and state of a watch.

``marker`` selects the evaluated rows (-1: all). ``rested`` counts the ticks for which the hand has been at rest in the
box, and ``steady`` those since the output was last fading or held down by the gate. ``anchor`` is the start of the
current stroke, and ``far`` the farthest point from it.
"""


@kernel
def _follow(s: Any, x: float, y: float, speed: float) -> None:
    """Update the stroke with the hand position (x, y) [m], and count it if it ends and is long enough."""
    s.slow = s.slow + 1 if speed < s.rest_speed else 0
    s.moving += 1 if speed >= s.rest_speed else 0
    distance = math.hypot(x - s.anchor[0], y - s.anchor[1])
    if distance > s.far_distance:
        s.far_distance, s.far[0], s.far[1] = distance, x, y
    stopped = s.slow * s.period >= _STOP
    back = math.hypot(x - s.far[0], y - s.far[1])
    if not stopped and not (back > _TURN * s.stroke and distance < s.far_distance):
        return
    if stopped and s.far_distance < s.stroke:
        return
    if s.far_distance >= s.stroke and s.moving > 0:
        mean = s.far_distance / (s.moving * s.period)
        s.least_speed, s.greatest_speed = min(s.least_speed, mean), max(s.greatest_speed, mean)
        s.strokes += 1
    s.anchor[0], s.anchor[1] = s.far[0], s.far[1]
    s.far[0], s.far[1] = x, y
    s.far_distance = math.hypot(x - s.anchor[0], y - s.anchor[1])
    s.moving = 0


@kernel
def watch_rows(watch: Rows, slots: Rows, first: int, following: int) -> None:
    """Evaluate the rows `first` to `following` - 1 of a trace."""
    s = watch[0]
    for k in range(first, following):
        row = slots[k % len(slots)]
        if s.marker >= 0 and row.marker != s.marker:
            continue
        s.last_tick = row.tick
        x, y, speed = row.position[0], row.position[1], math.hypot(row.velocity[0], row.velocity[1])
        inside = abs(x - s.centre[0]) <= s.reach and abs(y - s.centre[1]) <= s.reach
        s.rested = s.rested + 1 if inside and speed < s.rest_speed else 0
        s.steady = s.steady + 1 if row.gate == 1.0 and row.status & _FADE == 0 else 0
        s.flags |= row.status
        s.late += 1 if row.status & _LATE != 0 else 0
        start = row.tick * s.period + row.period_error
        s.gap = max(s.gap, start - s.last_start) if s.rows > 0 else 0.0
        s.last_start = start
        s.rows += 1
        if s.begun == 0:
            s.begun = 1
            s.anchor[0], s.anchor[1], s.far[0], s.far[1], s.far_distance = x, y, x, y, 0.0
        _follow(s, x, y, speed)


class Watch:
    """Incremental evaluation of the trace during or between intervals.

    Parameters
    ----------
    exploration : ExplorationSettings
        Settings of strokes and of the start box.
    period : float
        Sampling period [s].
    first : int
        Index of the first evaluated row of the trace.
    marker : int
        Marker of the evaluated rows, -1 for all.
    """

    def __init__(self, exploration: ExplorationSettings, period: float, first: int, marker: int = -1) -> None:
        self._record: NDArray[Any] = np.zeros(1, WATCH)
        record = self._record
        record["period"], record["marker"], record["rest_speed"] = period, marker, exploration.rest_speed
        record["centre"], record["reach"] = exploration.start or (0.0, 0.0), exploration.reach
        if not exploration.start:
            record["reach"] = math.inf
        record["stroke"], record["least_speed"] = exploration.stroke, math.inf
        self._seen = first

    def evaluate(self, trace: Trace) -> None:
        """Evaluate the new rows of the trace."""
        count, slots = trace.count, trace.slots
        watch_rows(self._record, slots, max(self._seen, count - len(slots) + 1), count)
        self._seen = count

    def __getattr__(self, name: str) -> Any:
        """Return a value of the state, by the names of `WATCH`."""
        if name.startswith("_") or name not in (WATCH.names or ()):
            raise AttributeError(name)
        return self._record[name][0].item()
