from __future__ import annotations

import pytest

from apps.experiment.trial import TASKS, Answer, TrialView


@pytest.mark.parametrize(
    ("task", "level", "order", "response", "correct"),
    [
        ("discrimination", 0.2, 2, "2", True),
        ("discrimination", 0.2, 2, "1", False),
        ("discrimination", 0.0, 1, "1", True),  # an equal pair: right by chance, half of the time
        ("detection-2ifc", 0.2, 1, "2", False),
        ("detection", 0.2, None, "yes", True),
        ("detection", 0.0, None, "yes", False),
        ("detection", 0.0, None, "no", True),
        ("same-different", 0.2, 2, "same", False),
        ("same-different", 0.0, 2, "same", True),
        ("adjustment", 0.2, None, 3.1, None),
        ("estimation", 0.2, None, 10.0, None),
    ],
)
def test_an_answer_is_right_or_wrong(
    task: str, level: float, order: int | None, response: str | float, correct: bool | None
) -> None:
    trial = TrialView(task, "law.force", 1.0, level, (1.0, 1.0 + level)[: TASKS[task].intervals], order)
    assert Answer(response, 0.5).correct(trial) is correct
