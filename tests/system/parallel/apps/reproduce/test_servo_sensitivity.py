"""Long computations for the topic of tests/apps/reproduce/test_servo_sensitivity.py."""

from __future__ import annotations

import pytest

from apps.reproduce.servo_sensitivity import TRIALS, compared, trial_line
from tests.apps.reproduce.test_servo_sensitivity import QUICK, as_on_the_page
from tests.sampling import sample


@pytest.mark.parametrize("name", sample([name for name in TRIALS if name not in QUICK], 4))
def test_every_other_trial_is_as_the_page_says(name: str) -> None:
    result, times = compared(TRIALS[name])
    as_on_the_page(trial_line(name, result, times), name)
    assert times.closer > 2.0
