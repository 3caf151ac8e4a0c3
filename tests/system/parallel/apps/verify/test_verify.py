"""Long computations for the topic of tests/apps/verify/test_verify.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.verify import wrongs_of_contacts, wrongs_of_envelopes, wrongs_of_records  # noqa: F401
from tests.apps.verify.runs import CLASSICS, classic_plan, make, plan_of
from tests.apps.verify.test_verify import sound

MANY = range(240)


@pytest.mark.timeout(900)
def test_156_runs_of_classic_models_raise_no_alarm(tmp_path: Path) -> None:
    for number in range(12 * len(CLASSICS)):
        sound(make(tmp_path / str(number), classic_plan(number)))


@pytest.mark.timeout(900)
def test_240_honest_recordings_raise_no_alarm(tmp_path: Path) -> None:
    for number in MANY:
        sound(make(tmp_path / str(number), plan_of(number)))
