"""A person who answers: buttons to the tick, keys with their tick, numbers, adjustments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.experiment.design import Design, read_design
from apps.experiment.engine.audience import Audience
from apps.experiment.engine.course import Course, Participant
from apps.experiment.engine.live.person import Person
from apps.experiment.engine.presenting import Reply
from apps.experiment.engine.stage import Script
from apps.session.events import KeyEvent
from apps.settings.config import SessionConfig
from haptics.records import ROW
from tests.apps.experiment.design.designs import WEBER, changed


class Stage:
    """A trace that grows as the script wants it, on which buttons are held in given ticks."""

    period = 1e-3

    def __init__(self, held: Callable[[int], int] = lambda tick: 0) -> None:
        self.slots = np.zeros(4096, ROW)
        self.slots["tick"] = np.arange(4096)
        self.slots["buttons"] = [held(tick) for tick in range(4096)]
        self.count = 0
        self.taken: list[SessionConfig] = []

    def take(self, config: SessionConfig) -> None:
        self.taken.append(config)

    def run(self, script: Script[Any], events: dict[int, Callable[[], None]] | None = None) -> Any:
        left = dict(events or {})
        while True:
            for tick in [tick for tick in left if tick <= self.count]:
                left.pop(tick)()
            try:
                self.count += next(script)
            except StopIteration as end:
                return end.value


def press(person: Person, name: str, tick: int) -> Callable[[], None]:
    return lambda: person.key(KeyEvent(name, True, tick, tick * 1_000_000))


def made(path: Path) -> tuple[Design, Person, Any]:
    design = read_design(path)
    plan = Course(design, Participant("P01", 1, 0, 7)).next()
    assert plan is not None
    return design, Person(design, Audience()), plan


def answer(stage: Stage, person: Person, plan: Any, design: Design, **pressed: Any) -> Reply | None:
    found: Reply | None = stage.run(person.reply(stage, plan, plan.view(design), since=100), pressed.get("events"))
    return found


BUTTONS = WEBER + 'buttons = { "1" = 2, "2" = 3 }\ndebounce = 0.005\n'


def test_a_button_is_known_to_the_tick(tmp_path: Path) -> None:
    design, person, plan = made(changed(tmp_path, text=BUTTONS))
    stage = Stage(lambda tick: 1 << 3 if tick >= 437 else 1)
    reply = answer(stage, person, plan, design)
    assert reply == Reply("2", 0.337, 437, "button", "button 3")


def test_a_button_that_was_held_before_or_bounces_is_no_answer(tmp_path: Path) -> None:
    design, person, plan = made(changed(tmp_path, text=BUTTONS))
    # button 2 is held until tick 300 and bounces when it is let go; button 3 is pressed at 600
    stage = Stage(lambda tick: (1 << 2 if tick < 300 or tick == 303 else 0) | (1 << 3 if tick >= 600 else 0))
    reply = answer(stage, person, plan, design)
    assert reply is not None and (reply.response, reply.tick) == ("2", 600)


def test_a_key_has_the_tick_at_which_it_went_down_not_that_at_which_it_was_heard(tmp_path: Path) -> None:
    design, person, plan = made(changed(tmp_path))
    reply = answer(Stage(), person, plan, design, events={512: press(person, "left", 497)})
    assert reply == Reply("1", 0.397, 497, "key", "left")


def test_a_key_that_came_before_the_question_is_no_answer(tmp_path: Path) -> None:
    design, person, plan = made(changed(tmp_path))
    events = {0: press(person, "left", 90), 400: press(person, "x", 390), 700: press(person, "2", 690)}
    reply = answer(Stage(), person, plan, design, events=events)
    assert reply is not None and reply.response == "2"


def test_there_is_no_answer_after_the_time_for_it(tmp_path: Path) -> None:
    design, person, plan = made(changed(tmp_path, "block = 5", "block = 5\ntime_out = 0.5"))
    assert answer(Stage(), person, plan, design, events={600: press(person, "left", 590)}) is None


VALUES = WEBER.replace("{ most_trials = 3 }", "{}").replace("easy = 0.2", "easy = 0.0").split("[response]")[0]
STAIRCASE = """kind = "staircase"
start = 0.5
minimum = 0.02
maximum = 2.0
reversals = 20
most_trials = 4
"""


def values(task: str, procedure: str) -> str:
    assert STAIRCASE in VALUES
    return VALUES.replace('"discrimination"', f'"{task}"').replace(STAIRCASE, procedure)


def test_a_number_is_typed(tmp_path: Path) -> None:
    text = values("estimation", 'kind = "estimation"\nlevels = [1.0, 2.0]\n')
    design, person, plan = made(changed(tmp_path, text=text))
    typed = ["1", "2", "backspace", ".", "5", "return"]
    events = {200 + 50 * k: press(person, name, 200 + 50 * k) for k, name in enumerate(typed)}
    reply = answer(Stage(), person, plan, design, events=events)
    assert reply is not None and reply.response == pytest.approx(1.5)


def test_a_value_is_turned_compared_and_set(tmp_path: Path) -> None:
    text = values("adjustment", 'kind = "adjustment"\nstarts = [0.5, 2.0]\n')
    design, person, plan = made(changed(tmp_path, text=text))
    stage = Stage()
    assert person.explore(stage, plan) is False
    for name in ("up", "up", "down", "c"):
        person.key(KeyEvent(name, True, 10, 10))
    assert person.explore(stage, plan) is False
    forces = [config.law["force"] for config in stage.taken]
    assert forces == pytest.approx(
        [plan.level * 1.05, plan.level * 1.05**2, plan.level * 1.05, plan.condition.reference]
    )
    person.key(KeyEvent("return", True, 20, 20))
    assert person.explore(stage, plan) is True
    reply = answer(stage, person, plan, design)
    assert reply is not None and reply.response == pytest.approx(plan.level * 1.05)
