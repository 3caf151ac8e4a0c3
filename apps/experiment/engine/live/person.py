"""Answers of a participant: keys with their tick, and device buttons sampled at every tick."""

from __future__ import annotations

from collections import deque

from apps.experiment.design import Design, keys_of
from apps.experiment.engine.display import Display
from apps.experiment.engine.presenting import Reply
from apps.experiment.engine.sequence import TrialSpec
from apps.experiment.engine.stage import Script, Stage
from apps.experiment.trial import TrialView
from apps.session.events import KeyEvent
from haptics.errors import ConfigurationError

_LOOK = 10
"""Polling interval of keys and buttons [ticks]."""

_FARTHEST = 4.0
"""Upper limit of an adjustment, as a multiple of the reference or of the initial level."""


class Person:
    """Respondent that answers with keys and buttons.

    Button presses are rising edges in the trace, exact to one tick. A key press has the tick that was due when the
    display received it (`apps.session.events`).

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

    # --- during the stimulus ---

    def explore(self, stage: Stage, plan: TrialSpec) -> bool | None:
        """Adjust the value in an adjustment task.

        Return True when the value is set, None in other tasks.
        """
        if self._design.experiment.task != "adjustment":
            return None
        if self._trial != plan.trial:
            self._trial, self._value, self._comparing = plan.trial, plan.level, False
            self._events.clear()
            self._pressed(stage)
        for answer, _, _, _ in self._given(stage):
            if answer == "done":
                return True
            self._turn(stage, plan, answer)
        return False

    def _turn(self, stage: Stage, plan: TrialSpec, answer: str) -> None:
        """Increase or decrease the value, or switch between value and reference."""
        reference, step = plan.condition.reference, self._design.response.step
        value = self._value * {"up": 1.0 + step, "down": 1.0 / (1.0 + step)}.get(answer, 1.0)
        self._comparing = not self._comparing if answer == "compare" else False
        try:
            config = self._design.config(plan.condition, reference if self._comparing else value)
        except ConfigurationError:
            return
        if value <= _FARTHEST * max(reference, plan.level):
            self._value = value
            stage.apply_parameters(config)

    # --- after the stimulus ---

    def reply(self, stage: Stage, plan: TrialSpec, view: TrialView, since: int) -> Script[Reply | None]:
        """Wait for the answer."""
        if self._design.experiment.task == "adjustment":
            return Reply(self._value, 0.0, since, "key") if self._trial == plan.trial else None
        self._typed = ""
        out = self._design.trials.time_out
        until = stage.count + round(out / stage.period) if out else 2**62
        while stage.count < until:
            for answer, tick, source, key in self._given(stage):
                if tick > since and (found := self._answer(answer)) is not None:
                    return Reply(found, round((tick - since) * stage.period, 9), tick, source, key)
            yield _LOOK
        return None

    def _answer(self, answer: str) -> str | float | None:
        """Return the answer completed by this key: a response or a typed number.

        None if incomplete.
        """
        if self._design.task.responses:
            return answer
        if answer == "return":
            try:
                number = float(self._typed)
            except ValueError:
                return None
            return number if number > 0.0 else None
        self._typed = self._typed[:-1] if answer == "backspace" else self._typed + answer
        self._display.entry(self._typed)
        return None

    # --- keys and buttons ---

    def _given(self, stage: Stage) -> list[tuple[str, int, str, str]]:
        """Return the answers since the last poll, oldest first: meaning, tick, source, name."""
        found = self._pressed(stage)
        while self._events:
            event = self._events.popleft()
            meaning = self._keys.get(event.name)
            if meaning is None and self._design.experiment.task == "estimation" and _is_typed(event.name):
                meaning = event.name
            if meaning is not None:
                found.append((meaning, event.tick, "key", event.name))
        return sorted(found, key=lambda one: one[1])

    def _pressed(self, stage: Stage) -> list[tuple[str, int, str, str]]:
        """Return the buttons pressed since the last poll."""
        count, size = stage.count, len(stage.slots)
        bounce, found = round(self._design.response.debounce / stage.period), []
        for number in range(max(self._seen, count - size + 1), count):
            held, tick = int(stage.slots["buttons"][number % size]), int(stage.slots["tick"][number % size])
            changed = held ^ self._held
            for answer, button in self._design.response.buttons.items() if changed else ():
                if not changed >> button & 1:
                    continue
                steady = tick - self._changed.get(button, -(2**62)) > bounce
                self._changed[button] = tick
                if held >> button & 1 and steady:
                    found.append((answer, tick, "button", f"button {button}"))
            self._held = held
        self._seen = count
        return found


def _is_typed(name: str) -> bool:
    """Return True if the key is part of a typed number."""
    return name in {"return", "backspace", "."} or (len(name) == 1 and name.isdigit())
