"""What the engine does, as it is told to the screens."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest

from apps.experiment.design import Design, read_design
from apps.experiment.engine.course import Course, Participant, Plan
from apps.experiment.engine.presenting import Reply
from apps.experiment.screens import Certificate, Outcome, Progress, Show
from apps.experiment.screens.audience import ScreenAudience
from tests.apps.experiment.design.designs import changed


class Heard:
    """A front end that keeps what it is told."""

    open, holds_key, connection = True, False, None

    def __init__(self) -> None:
        self.told: list[Any] = []

    def send(self, message: Any) -> None:
        self.told.append(message)

    def messages(self) -> list[Any]:
        return []

    def close(self) -> None:
        self.open = False

    def last(self, kind: type) -> Any:
        return next(message for message in reversed(self.told) if isinstance(message, kind))


def begin(design: Design, trials: int | None = None) -> tuple[ScreenAudience, Heard, Heard, Plan]:
    participant, experimenter = Heard(), Heard()
    audience = ScreenAudience(design, participant, experimenter, code="P01", session=1, blocks=2, trials=trials)
    plan = Course(design, Participant("P01", 1, 0, 7)).next()
    assert plan is not None
    return audience, participant, experimenter, plan


def present(audience: ScreenAudience, plan: Plan) -> None:
    """Present a trial and its answer."""
    for number in (0, 1):
        audience.park(plan, number)
        audience.interval(plan, number)
        audience.gap(plan, number)
    audience.ask(plan)
    audience.ended(plan, 1, True, (), Reply("2", 0.8, 5000, "key", "2"))


def test_a_trial_as_both_see_it(tmp_path: Path) -> None:
    audience, participant, experimenter, plan = begin(read_design(changed(tmp_path)))
    present(audience, plan)
    shows = [message for message in participant.told if isinstance(message, Show)]
    kinds = [(show.kind, show.interval, show.of) for show in shows]
    trial = [(kind, number, 2) for number in (1, 2) for kind in ("park", "interval", "gap")]
    assert kinds == [*trial, ("response", 0, 2)]
    assert [(choice.key, choice.words) for choice in shows[-1].keys] == [("1", "first"), ("2", "second")]
    progress, outcome = experimenter.last(Progress), experimenter.last(Outcome)
    assert (progress.trial, progress.level, progress.phase) == (plan.trial, plan.level, "waiting for the answer")
    assert (outcome.response, outcome.reaction_time, outcome.correct) == ("2", 0.8, True)
    assert not any("level" in str(dataclasses.asdict(show)) for show in shows)


def test_the_experimenter_sees_the_certificate_of_all_intervals(tmp_path: Path) -> None:
    audience, participant, experimenter, _ = begin(read_design(changed(tmp_path)))
    audience.judged(2000, 0, 1.2e-3, ())
    told = {one.name: one for one in experimenter.last(Certificate).figures}
    assert {name: one.verdict for name, one in told.items()} == {
        "intervals": "",
        "repeated": "good",
        "late ticks in intervals": "good",
        "longest gap": "good",
    }
    audience.judged(2000, 8, 9e-3, ("late ticks", "gap between ticks"))
    told = {one.name: one for one in experimenter.last(Certificate).figures}
    assert {one.verdict for name, one in told.items() if name != "intervals"} == {"doubtful"}
    assert (told["intervals"].value, told["repeated"].value) == ("2", "50 %")
    assert (told["late ticks in intervals"].value, told["longest gap"].value) == ("0.2 %", "9 ms")
    assert not any(one.telling for one in told.values()), "a blind session shows it, too"
    assert not any(isinstance(message, Certificate) for message in participant.told)


def test_in_a_blind_session_the_experiment_itself_says_nothing_that_tells(tmp_path: Path) -> None:
    design = read_design(changed(tmp_path))
    design = dataclasses.replace(design, experiment=dataclasses.replace(design.experiment, blind=True))
    audience, _, experimenter, plan = begin(design)
    present(audience, plan)
    for message in experimenter.told:
        if isinstance(message, Progress | Outcome):
            assert (message.kind, message.condition, message.track, message.level) == ("", "", None, None)
    assert experimenter.last(Outcome).correct is None
    assert experimenter.last(Outcome).response == "2"


def test_what_is_left_comes_from_the_pace_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audience, participant, experimenter, plan = begin(read_design(changed(tmp_path)), trials=20)
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    audience.park(dataclasses.replace(plan, kind="practice", trial=1), 0)
    for trial in range(2, 13):
        now += 7.0
        audience.park(dataclasses.replace(plan, kind="test", trial=trial), 0)
    assert experimenter.last(Progress).remaining == pytest.approx(10 * 7.0)
    assert experimenter.last(Progress).of == 21
    assert participant.last(Show).share == pytest.approx(0.5)
    audience.pause("experimenter")
    assert experimenter.last(Progress).paused
    assert participant.last(Show).kind == "pause"
    audience.park(plan, 0)
    assert not experimenter.last(Progress).paused
