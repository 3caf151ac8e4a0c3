"""Long computations for the topic of tests/apps/experiment/observers/test_in_session.py."""

from __future__ import annotations

from pathlib import Path

from tests.apps.experiment.observers.test_in_session import session


def test_one_that_feels_tells_what_the_device_made_of_it(tmp_path: Path) -> None:
    """0.6 N on 1 N is six times the increment of 75 %: no wrong answers, whichever interval has it."""
    responses = session(tmp_path, 0.6, "level = 2\nlapse = 0.0")
    assert [response["correct"] for response in responses] == [True] * 16
    assert {response["response"] for response in responses} == {"1", "2"}


def test_reaction_times_are_those_of_the_observer(tmp_path: Path) -> None:
    responses = session(tmp_path, 0.6, "level = 1\nreaction_time = 0.9\nreaction_spread = 0.0")
    assert {response["reaction_time_s"] for response in responses} == {0.9}
