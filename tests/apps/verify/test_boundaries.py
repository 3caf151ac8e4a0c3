"""Verification at boundaries: windows and changed settings, unknown settings, the first reference."""

import numpy as np
import pytest

from apps.verify import recorded
from apps.verify.check import verify
from apps.verify.findings import VIOLATED
from apps.verify.recorded import Recorded
from tests.apps.verify.forging import assert_honest, copy_of
from tests.apps.verify.runs import LAWS, Plan, make, tables_of

CHANGE = 100


HAND = {"name": "minimum-jerk", "points": [[0.0, 0.0], [0.04, 0.02]], "rest": 0.0}


def plan(model, **changes):
    return Plan(tables_of(model, law=LAWS["coulomb"], hand=HAND, envelope={}), 300, **changes)


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    return make(tmp_path_factory.mktemp("changed") / "run", plan("C", changes={CHANGE: {"law": LAWS["weak"]}}))


@pytest.mark.parametrize("rows", range(CHANGE - 1, CHANGE + 3))
def test_change_of_settings_at_the_end_of_a_window_is_counted_once(changed, rows, monkeypatch):
    monkeypatch.setattr(recorded, "WINDOW", rows)
    windows = Recorded(changed).windows()
    assert {stretch.segment for window in windows for stretch in window.stretches()} == {0, 1}
    assert_honest(changed)


def test_rows_with_unknown_settings_do_not_end_the_check_of_the_others(changed, tmp_path):
    forged = copy_of(changed, tmp_path / "forged")
    forged.rows["settings_version"][150:160] = 99
    forged.rows["command"][250] *= 1.01
    forged.save()
    _, found = verify(forged.folder)
    assert found.verdict == VIOLATED
    assert {("settings", 150), ("command", 250)} <= {(one.rule, one.tick) for one in found.violations}
    assert "physics" not in {one.rule for one in found.missing}


def test_reference_that_is_taken_back_is_a_violation(tmp_path):
    recording = make(tmp_path / "run", plan("A", faults=("nan@0+0.002", "nan@0.003")))
    assert_honest(recording)
    forged = copy_of(recording, tmp_path / "forged")
    missing = np.isnan(forged.rows["command"]).any(axis=1)
    assert missing[:4].tolist() == [True, True, False, False], "the first reference is that of tick 2"
    forged.rows["command"][3] = forged.rows["command_unlimited"][3] = np.nan
    forged.save()
    _, found = verify(forged.folder)
    assert ("safe output", 3) in {(one.rule, one.tick) for one in found.violations}
