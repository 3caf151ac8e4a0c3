"""Effects of every fault on every device, with every model, in every phase, and their table."""

import functools
import pickle
import shutil

import numpy as np
import pytest

from apps.settings.config import complete
from devices.faults import FAULTS
from haptics.device import Causality
from haptics.records import Status
from haptics.rendering.envelope import UNUSABLE
from haptics.servo.kernels import FAULT_AFTER
from tests.made_once import made_once
from tests.safety_runs import DEVICES, PERIOD, Case, Passing, find_all, run
from tests.safety_table import (
    AFTER_ALL,
    FATAL,
    HARMLESS,
    RAISING,
    UNSEEN,
    documented,
    markdown,
)


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """Return a function that returns the results of all runs with a fault."""

    @functools.cache
    def of(fault):
        def make(folder):
            (folder / "findings").write_bytes(pickle.dumps(find_all(folder, [fault])))
            shutil.rmtree(folder / "recordings")

        return pickle.loads((made_once(tmp_path_factory, f"fault-{fault}", make) / "findings").read_bytes())

    return of


def told_from_the_first_sample_on(case):
    """Return True if a false value cannot be detected: zeros before the position of the handle is known."""
    return (case.fault, case.phase) == ("jump", "start")


@pytest.mark.parametrize("fault", FAULTS)
def test_the_contact_is_in_the_phase_that_the_table_says(findings, fault):
    for finding in findings(fault):
        assert finding.phase_is_right, finding.case
        if finding.case.phase != "start" and finding.causality is Causality.IMPEDANCE:
            force = finding.rows["command"][finding.case.first - 1]
            assert np.hypot(*force) > 1.0, "there is a force to lose"


@pytest.mark.parametrize("fault", FATAL)
def test_what_cannot_go_on_is_safe_within_two_ticks_and_ends_as_a_fault(findings, fault):
    judged = [finding for finding in findings(fault) if not told_from_the_first_sample_on(finding.case)]
    assert len(judged) >= 8
    for finding in judged:
        case, safe_after = finding.case, finding.safe_after
        assert safe_after is not None
        assert safe_after <= 2, case
        late = 8 if (fault, case.phase) == ("delay-20ms", "start") else 0  # the delay must first exceed the limit
        assert finding.refused[0] == case.first + late, case
        assert finding.fault_after == pytest.approx(0.0 if fault in RAISING else FAULT_AFTER, abs=1e-9)
        assert finding.message.startswith(f"{case.device} failed at tick {finding.refused[-1]}: ")


@pytest.mark.parametrize("fault", HARMLESS)
def test_what_is_not_far_from_the_truth_ends_no_run(findings, fault):
    for finding in findings(fault):
        assert finding.message == ""
        assert len(finding.refused) == 0, finding.case


@pytest.mark.parametrize("fault", UNSEEN)
def test_what_no_sample_shows_is_noticed_where_an_arm_should_move(findings, fault):
    for finding in findings(fault):
        case, status = finding.case, finding.rows["status"]
        moves = case.phase == "slip" or (fault, case.phase) == ("ignored", "stick")  # else it would move later
        assert bool(finding.message) == (moves and finding.causality is Causality.ADMITTANCE), case
        if finding.message:
            spec = complete({"device": {"name": case.device}}).spec
            assert "does not follow" in finding.message
            assert finding.safe_after == 1
            assert finding.fault_after == pytest.approx(FAULT_AFTER, abs=1e-9)
            ahead = np.hypot(*(finding.rows["proxy"] - finding.rows["position"]).T)
            assert ahead.max() < spec.max_following_error + PERIOD * spec.max_speed
            assert not (status & UNUSABLE & ~Status.FOLLOWING_ERROR).any()


@pytest.mark.parametrize("fault", AFTER_ALL)
def test_a_short_fault_is_survived(findings, fault):
    for finding in findings(fault):
        assert finding.message == ""
        assert len(finding.refused) > 0, finding.case
        late = finding.rows["time"] > finding.case.start + 0.06
        assert not (finding.rows["status"][late] & UNUSABLE).any()


@pytest.mark.parametrize("fault", FAULTS)
def test_no_command_is_above_the_limits(findings, fault):
    for finding in findings(fault):
        assert np.isfinite(finding.commands).all()
        if told_from_the_first_sample_on(finding.case) and finding.causality is Causality.ADMITTANCE:
            # The reference begins at the sampled position. No driver may return zero for a failed reading.
            assert not finding.commands[:5].any()
        else:
            assert finding.largest <= 1.0 + 1e-9, finding.case


@pytest.mark.parametrize("fault", FAULTS)
def test_a_refused_sample_leaves_the_element_as_it_was(findings, fault):
    for finding in findings(fault):
        rows = finding.rows
        refused = np.flatnonzero((rows["status"] & UNUSABLE) != 0)
        after = refused[refused > 0]
        kept = (rows["displacement"][after] == rows["displacement"][after - 1]).all(axis=1)
        let_go = ~rows["displacement"][after].any(axis=1)  # displacement reset by model D while held
        assert (kept | (let_go if finding.case.model == "D" else False)).all(), finding.case
        assert not rows["sliding_velocity"][refused].any()


@pytest.mark.parametrize("fault", FAULTS)
def test_the_recording_is_whole_and_comes_out_with_the_same_bits(findings, fault):
    for finding in findings(fault):
        rows, told = finding.rows, np.unique(finding.ticks)
        assert (finding.verification.ticks, finding.verification.mismatches) == (len(rows), 0), finding.case
        if len(rows):
            commanded = rows["tick"][np.isfinite(rows["command"]).all(axis=1)]
            assert np.isin(commanded, told).all()
            assert told[-1] - rows["tick"][-1] in ((0, 1) if len(commanded) else (0,))
        else:
            assert fault in RAISING
            assert finding.case.phase == "start"


def test_the_document_has_the_table_of_this_run(findings):
    table = markdown([finding for fault in FAULTS for finding in findings(fault)])
    assert documented() == table, "python -m tests.safety_table --write puts it there"


@pytest.mark.parametrize("fault", FAULTS)
def test_the_outcome_is_the_same_where_reading_takes_time(findings, fault, tmp_path):
    """The outcome must not depend on the time that reading takes, although the table uses simulated time."""
    said = {finding.case: finding.words() for finding in findings(fault)}
    for device, models in DEVICES.items():
        case = Case(fault, device, models[0], "slip")
        assert run(case, tmp_path / device, Passing).words() == said[case], case


def test_every_fault_is_judged():
    assert {*FATAL, *HARMLESS, *AFTER_ALL, *UNSEEN} == set(FAULTS)
