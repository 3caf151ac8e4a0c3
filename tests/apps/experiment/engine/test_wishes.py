"""What people want in the middle of a session: a pause, the last trial again, the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from apps.experiment.design import read_design
from apps.experiment.engine.answering import Simulated
from apps.experiment.engine.audience import Audience
from apps.experiment.engine.course import Plan
from apps.experiment.engine.offline import OfflineStage
from apps.experiment.engine.opening import Request, begin
from apps.experiment.engine.sitting import ABORTED, PAUSED, REDONE, Sitting
from apps.experiment.journal import SessionState, read_journal, replay
from apps.experiment.observers import make_observer
from apps.experiment.procedures import trial_seed
from tests.apps.experiment.design.designs import changed


class Wishful(Audience):
    """Wants something at a moment of a trial, once."""

    present = True

    def __init__(self, trial: int, wish: Callable[[Audience], None]) -> None:
        super().__init__()
        self._trial, self._wish, self.shown = trial, wish, list[str]()
        self._over = 0

    def interval(self, plan: Plan, number: int) -> None:
        if plan.trial == self._trial and number == 1:
            self._trial = 0
            self._wish(self)

    def pause(self, by: str) -> None:
        self.shown.append("pause")
        self.paused = False

    def feedback(self, correct: bool) -> None:
        self.shown.append("right" if correct else "wrong")


def sit(folder: Path, audience: Audience, old: str = "", new: str = "") -> tuple[str, SessionState]:
    design = read_design(changed(folder, old, new))
    journal, who = begin(design, Request("P01", 1, 7, folder / "out", {}, simulated=True))
    observer = make_observer({}, seed=trial_seed(7, "P01", 0, 0, 1))
    with journal:
        sitting = Sitting(
            design,
            who,
            journal,
            respondent=lambda course: Simulated(observer, course, needs_rows=False),
            stage=OfflineStage,
            audience=audience,
            again=False,
        )
        return sitting.run(), replay(read_journal(journal.place.journal).records)


def pause(audience: Audience) -> None:
    audience.paused = True


def redo(audience: Audience) -> None:
    audience.redo = True


def end(audience: Audience) -> None:
    audience.aborted = True


def test_a_trial_that_is_paused_is_run_again_and_is_no_repetition_to_complain_of(tmp_path: Path) -> None:
    audience = Wishful(3, pause)
    reason, state = sit(tmp_path, audience)
    assert (reason, audience.shown, sorted(state.answered)) == ("completed", ["pause"], list(range(1, 9)))
    paused = [one for one in state.attempts if one.trial == 3]
    assert [one.end and (one.end["outcome"], one.end["reasons"]) for one in paused] == [
        ("repeat", [PAUSED]),
        ("ok", []),
    ]
    assert [one["name"] for one in state.events][:2] == ["pause", "go on"]


def test_the_last_answered_trial_is_run_again_and_its_first_answer_counts_no_more(tmp_path: Path) -> None:
    reason, state = sit(tmp_path, Wishful(3, redo))
    assert reason == "completed" and sorted(state.answered) == list(range(1, 9))
    assert [(one.trial, one.number, one.counts) for one in state.attempts[:5]] == [
        (1, 1, True),
        (2, 1, False),  # what was answered here was taken back
        (3, 1, False),  # what was going on then
        (2, 2, True),
        (3, 2, True),
    ]
    third = next(one for one in state.attempts if one.trial == 3)
    assert third.end is not None and third.end["reasons"] == [REDONE]


def test_a_session_that_a_person_ends_has_ended(tmp_path: Path) -> None:
    reason, state = sit(tmp_path, Wishful(3, end))
    assert reason == "ended by a person" and sorted(state.answered) == [1, 2]
    last = state.attempts[-1].end
    assert last is not None and (last["outcome"], last["reasons"]) == ("aborted", [ABORTED])
    assert state.end is not None and state.end["reason"] == reason


@pytest.mark.parametrize("wanted", [True, False])
def test_feedback_is_given_where_it_is_part_of_the_experiment(tmp_path: Path, wanted: bool) -> None:
    audience = Wishful(0, pause)
    _, state = sit(tmp_path, audience, "block = 5", f"block = 5\nfeedback = {str(wanted).lower()}")
    given = ["right" if one.response and one.response["correct"] else "wrong" for one in state.answered.values()]
    assert audience.shown == (given if wanted else [])
