"""Verification raises no alarm on many honest recordings."""

import pytest

from apps.verify.check import verify
from apps.verify.findings import OK
from tests.apps.verify.runs import CLASSICS, classic_plan, make, plan_of


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("plan", "count"), [(classic_plan, 12 * len(CLASSICS)), (plan_of, 240)], ids=["classic", "any"]
)
def test_honest_recordings_raise_no_alarm(plan, count, tmp_path):
    for number in range(count):
        run, found = verify(make(tmp_path / str(number), plan(number)))
        assert (found.violations, found.missing, found.verdict) == ([], [], OK)
        assert run.count == len(run.source.rows)
