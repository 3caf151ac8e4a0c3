"""Respondents: simulated observers, and participants with keys and buttons."""

from __future__ import annotations

from collections import Counter, deque

from apps.experiment.design import Design, keys_of
from apps.experiment.observers import SimulatedObserver
from apps.experiment.screens.display import Display
from apps.experiment.sequence import TrialSequence, TrialSpec
from apps.experiment.session.presentation import Script, Stage
from apps.experiment.trial import Answer, TrialView
from apps.session.record import KeyEvent
from haptics.errors import ConfigurationError

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

    def explore(self, stage: Stage, plan: TrialSpec) -> bool | None:
        """Do nothing: the answer to an adjustment is the value that would have been set."""
        return None

    def reply(self, stage: Stage, plan: TrialSpec, view: TrialView, since: int) -> Script[Answer | None]:
        """Return the observer's answer.

        Its reaction time is a whole number of ticks.
        """
        answer = self._observer.answer(view, self._sequence.generator(plan, self._missed[plan.trial]))
        ticks, out = max(round(answer.reaction_time / stage.period), 2), round(self._time_out / stage.period)
        if out and ticks > out:
            self._missed[plan.trial] += 1
            yield out
            return None
        yield ticks - 1  # the first tick has already passed at the end of the interval
        return Answer(answer.response, round(ticks * stage.period, 9), since + ticks)


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

    def key(self, event: KeyEvent) -> None:
        """Queue a key press."""
        if event.down:
            self._events.append(event)

    def explore(self, stage: Stage, plan: TrialSpec) -> bool | None:
        """Change the value in an adjustment task, or switch between value and reference.

        Return True when the value is set, None in other tasks.
        """
        if self._design.experiment.task != "adjustment":
            return None
        if self._trial != plan.trial:
            self._trial, self._value, self._comparing = plan.trial, plan.level, False
            self._events.clear()
            self._pressed(stage)
        reference, step = plan.condition.reference, self._design.response.step
        for answer, _, _, _ in self._inputs(stage):
            if answer == "done":
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
        """Wait for the answer: a response, or a number that is typed."""
        if self._design.experiment.task == "adjustment":
            return Answer(self._value, 0.0, since, "key") if self._trial == plan.trial else None
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
            return number if number > 0.0 else None
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
            digit = name in {"return", "backspace", "."} or (len(name) == 1 and name.isdigit())
            if meaning is None and typing and digit:
                meaning = name
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
