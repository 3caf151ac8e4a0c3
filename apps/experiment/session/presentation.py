"""Presentation of a trial as a script, and evaluation of the trace during its intervals.

A script is a generator. Its requests to the stage take effect at the next tick. It yields the number of ticks to wait
before it continues. The same script therefore runs in real time and without a clock.

A stroke extends from one reversal of the hand to the next, or to the point where it stops. It counts if it is long
enough. Its speed is its length divided by the time in which the hand moved.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from apps.experiment.design import Design, keys_of
from apps.experiment.observers import SimulatedObserver
from apps.experiment.screens.display import Display
from apps.experiment.sequence import TrialSequence, TrialSpec
from apps.experiment.settings import ExplorationSettings
from apps.experiment.trial import Answer, TrialView
from apps.session.record import KeyEvent
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from haptics.records import Rows, Status
from haptics.rendering.envelope import UNUSABLE
from haptics.servo.kernels import GATE_TIME
from haptics.trace import Trace

_T = TypeVar("_T")

Script = Generator[int, None, _T]
"""Generator that yields numbers of ticks to wait, and returns its result."""

Result = tuple[Answer | None, tuple[str, ...]]
"""Answer to a trial, if any, and the reasons for a repetition, empty if the trial counts."""

if TYPE_CHECKING:
    from apps.experiment.session.stages import LiveStage, OfflineStage

    Stage = OfflineStage | LiveStage
    """Running session of the servo."""

LOOK = 20
"""Polling interval of the hand [ticks]."""

_DISTURBING = {
    "no usable sample": UNUSABLE,
    "force limited": int(Status.LIMITED),
    "motors warm": int(Status.THERMAL),
    "too fast for the envelope": int(Status.SPEED),
    "energy limited": int(Status.ENERGY),
    "edge of the workspace": int(Status.WORKSPACE),
    "dead-man released": int(Status.RELEASED),
}
"""Status flags after which a trial is repeated, because the rendered force was wrong."""


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

    def present(self, plan: TrialSpec, attempt: int, respondent: Respondent) -> Script[Result]:
        """Present a trial and wait for the answer.

        A disturbed trial is not answered.
        """
        stage, felt, since = self._stage, [], -1
        respondent.begin_trial()
        for number, marker in enumerate(plan.markers(attempt)):
            first = stage.trace.count
            reasons, since = yield from self._interval(plan, number, marker, respondent)
            if reasons:
                return None, reasons
            if respondent.needs_rows:
                rows = stage.trace.since(first)
                felt.append(rows[rows["marker"] == marker])
        view = plan.view(self._design, tuple(felt) if felt else None)
        self._display.prompt(plan)
        answer = yield from respondent.reply(stage, plan, view, since)
        return answer, () if answer is not None else ("no answer in time",)

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

_WHOLE = ("marker", "rows", "last_tick", "rested", "steady", "flags", "late", "begun", "moving", "slow", "strokes")
_NUMBERS = ("period", "reach", "rest_speed", "stroke", "gap", "last_start", "far_distance", "least_speed")
WATCH = np.dtype(
    [
        *((name, "<i8") for name in _WHOLE),
        *((name, "<f8") for name in (*_NUMBERS, "greatest_speed")),
        *((name, "<f8", (2,)) for name in ("centre", "anchor", "far")),
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


# --- respondents ------------------------------------------------------------------------------------------------------

_LOOK = 10
"""Polling interval of keys and buttons [ticks]."""

_FARTHEST = 4.0
"""Upper limit of an adjustment, as a multiple of the reference or of the initial level."""


class Simulated:
    """Respondent that answers with a simulated observer, after the observer's reaction time.

    Parameters
    ----------
    observer : SimulatedObserver
        The simulated observer.
    sequence : TrialSequence
        Trial sequence, which supplies the random numbers of every trial.
    time_out : float
        Longest reaction time that counts as an answer [s]. 0: unlimited.
    """

    def __init__(self, observer: SimulatedObserver, sequence: TrialSequence, *, time_out: float = 0.0) -> None:
        self._observer, self._sequence, self._time_out = observer, sequence, time_out
        self.needs_rows = observer.needs_rows
        self._missed: Counter[int] = Counter()

    def begin_trial(self) -> None:
        """Do nothing: an attempt does not depend on earlier ones."""

    def explore(self, stage: Stage, plan: TrialSpec) -> bool | None:
        """Do nothing: the answer to an adjustment is the value that would have been set."""
        return None

    def reply(self, stage: Stage, plan: TrialSpec, view: TrialView, since: int) -> Script[Answer | None]:
        """Return the observer's answer.

        Its reaction time is a whole number of ticks.
        """
        answer = self._observer.answer(view, self._sequence.generator(plan, self._missed[plan.trial]))
        ticks, out = max(round((answer.reaction_time or 0.0) / stage.period), 2), round(self._time_out / stage.period)
        if out and ticks > out:
            self._missed[plan.trial] += 1
            yield out
            return None
        yield ticks - 1  # the first tick has already passed at the end of the interval
        return Answer(answer.response, round(ticks * stage.period, 9), since + ticks)


_DIGITS = frozenset("0123456789")
_TYPED = {"period": ".", "comma": ".", "enter": "return", "return": "return", "backspace": "backspace"}
"""Meaning of the keys, other than digits, with which a number is typed."""


class Person:
    """Respondent that answers with keys and buttons.

    Button presses are rising edges in the trace, exact to one tick. A key press has the tick that was due when the
    display received it (`apps.session.record`).

    Parameters
    ----------
    design : Design
        Design of the experiment.
    display : Display
        Display of the digits that are typed.
    """

    needs_rows = False

    def __init__(self, design: Design, display: Display) -> None:
        self._design, self._display = design, display
        self._keys = keys_of(design)
        self._events: deque[KeyEvent] = deque()
        self._seen, self._held = 0, 0
        self._changed: dict[int, int] = {}
        self._trial = 0
        self._value, self._comparing, self._typed = 0.0, False, ""
        self._confirmed: Answer | None = None

    def begin_block(self) -> None:
        """Forget keys and buttons of the block before, whose ticks are greater than those of a block that begins."""
        self._events.clear()
        self._seen, self._held = 0, 0
        self._changed.clear()

    def begin_trial(self) -> None:
        """Begin an attempt at a trial: the value of an adjustment is the presented one again."""
        self._trial, self._confirmed = 0, None

    def key(self, event: KeyEvent) -> None:
        """Queue a key press."""
        if event.down:
            self._events.append(event)

    def explore(self, stage: Stage, plan: TrialSpec) -> bool | None:
        """Change the value in an adjustment task, or switch between value and reference.

        Return True when the value is confirmed, None in other tasks.
        """
        if self._design.experiment.task != "adjustment":
            return None
        if self._trial != plan.trial:
            self._trial, self._value, self._comparing = plan.trial, plan.level, False
            self._events.clear()
            self._pressed(stage)
        reference, step = plan.condition.reference, self._design.response.step
        for answer, tick, source, key in self._inputs(stage):
            if answer == "done":
                self._confirmed = Answer(self._value, None, tick, source, key)
                return True
            value = self._value * {"up": 1.0 + step, "down": 1.0 / (1.0 + step)}.get(answer, 1.0)
            self._comparing = not self._comparing if answer == "compare" else False
            try:
                config = self._design.config(plan.condition, reference if self._comparing else value)
            except ConfigurationError:
                continue
            if value <= _FARTHEST * max(reference, plan.level):
                self._value = value
                stage.apply_parameters(config)
        return False

    def reply(self, stage: Stage, plan: TrialSpec, view: TrialView, since: int) -> Script[Answer | None]:
        """Wait for the answer: a response, or a number that is typed; a value must have been confirmed before."""
        if self._design.experiment.task == "adjustment":
            return self._confirmed
        self._typed = ""
        out = self._design.trials.time_out
        until = stage.trace.count + round(out / stage.period) if out else 2**62
        while stage.trace.count < until:
            for meaning, tick, source, key in self._inputs(stage):
                if tick <= since:
                    continue
                answer = meaning if self._design.task.responses else self._number(meaning)
                if answer is not None:
                    return Answer(answer, round((tick - since) * stage.period, 9), tick, source, key)
            yield _LOOK
        return None

    def _number(self, key: str) -> float | None:
        """Return the typed number completed by this key, or None if it is incomplete."""
        if key == "return":
            try:
                number = float(self._typed)
            except ValueError:
                return None
            return number if 0.0 < number < math.inf else None
        self._typed = self._typed[:-1] if key == "backspace" else self._typed + key
        self._display.entry(self._typed)
        return None

    def _inputs(self, stage: Stage) -> list[tuple[str, int, str, str]]:
        """Return the keys and buttons since the last poll, oldest first: meaning, tick, source, name."""
        inputs = self._pressed(stage)
        typing = self._design.experiment.task == "estimation"
        while self._events:
            event = self._events.popleft()
            name, meaning = event.name, self._keys.get(event.name)
            if meaning is None and typing:
                meaning = name if name in _DIGITS else _TYPED.get(name)
            if meaning is not None:
                inputs.append((meaning, event.tick, "key", name))
        return sorted(inputs, key=lambda one: one[1])

    def _pressed(self, stage: Stage) -> list[tuple[str, int, str, str]]:
        """Return the buttons pressed since the last poll."""
        count, slots = stage.trace.count, stage.trace.slots
        size, bounce, pressed = len(slots), round(self._design.response.debounce / stage.period), []
        for number in range(max(self._seen, count - size + 1), count):
            held, tick = int(slots["buttons"][number % size]), int(slots["tick"][number % size])
            changed = held ^ self._held
            for answer, button in self._design.response.buttons.items() if changed else ():
                if not changed >> button & 1:
                    continue
                steady = tick - self._changed.get(button, -(2**62)) > bounce
                self._changed[button] = tick
                if held >> button & 1 and steady:
                    pressed.append((answer, tick, "button", f"button {button}"))
            self._held = held
        self._seen = count
        return pressed


Respondent = Simulated | Person
"""Source of the answers."""
