"""Replay: the same bits for every model, also across changes of parameters, and any changed bit is found."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haptics.device import Causality, State
from haptics.errors import RecordingError
from haptics.recording import replay
from haptics.recording.recording import Recording
from haptics.recording.replay import COMPUTED, verify
from haptics.records import Status
from haptics.trace import Trace
from tests.haptics.changing import ELEMENTS, record_change

LAWS: list[dict[str, Any]] = [
    {"name": "coulomb", "force": 4.0},
    {"name": "stribeck", "kinetic_force": 3.0, "static_force": 4.0, "stribeck_velocity": 0.1, "viscosity": 2.0},
]


def record(folder: Path, trace: Trace, model: str, disturb: Any = None) -> Recording:
    """Record a run in which the law changes at tick 700 and samples are noisy."""
    rng = np.random.default_rng(5)

    def shake(state: State, number: int) -> None:
        state.position += rng.normal(0, 1e-4, 2)
        state.velocity += rng.normal(0, 0.02, 2)
        state.force += rng.normal(0, 2.0, 2)
        if disturb is not None:
            disturb(state, number)

    limits = {"max_force": 3.9}
    return record_change(folder, trace, model, LAWS, shake, at=700, duration=2.0, limits=limits, max_force_rate=2000.0)


@pytest.mark.parametrize("model", ELEMENTS)
def test_every_tick_comes_out_with_the_same_bits(tmp_path: Path, trace: Trace, model: str) -> None:
    recording = record(tmp_path / "run", trace, model)
    assert set(recording.rows["settings_version"]) == {0, 1}
    found = verify(recording)
    assert (found.ticks, found.mismatches, found.first_mismatch) == (2000, 0, None)


def test_bad_samples_replay_too(tmp_path: Path, trace: Trace) -> None:
    def spoil(state: State, number: int) -> None:
        if 300 <= number < 330:
            state.velocity[1] = np.nan

    assert verify(record(tmp_path / "run", trace, "C", spoil)).mismatches == 0


@pytest.mark.parametrize("column", [*COMPUTED, "position"])
def test_a_single_changed_bit_is_found(tmp_path: Path, trace: Trace, column: str) -> None:
    recording = record(tmp_path / "run", trace, "C")
    rows = np.array(recording.rows)
    cell = rows[column][1234:1235]
    cell.view(np.uint8).reshape(-1)[0] ^= 1
    recording.rows = rows
    found = verify(recording)
    assert found.mismatches >= 1
    assert found.first_mismatch == 1234


@pytest.mark.parametrize(("flag", "found"), [(Status.SLEW, 1), (Status.STALE, 1), (Status.STARTED_LATE, 0)])
def test_a_flag_of_the_envelope_that_was_changed_is_found(
    tmp_path: Path, trace: Trace, flag: Status, found: int
) -> None:
    """Whether a tick was late is not computed: a clock has said so."""
    recording = record(tmp_path / "run", trace, "C")
    rows = np.array(recording.rows)
    rows["status"][1234] ^= int(flag)
    recording.rows = rows
    assert (verify(recording).mismatches, verify(recording).first_mismatch) == (found, 1234 if found else None)


@pytest.mark.parametrize(("flagged", "explained"), [(500, True), (499, False), (501, False), (None, False)])
def test_a_gap_is_explained_by_the_flag_of_the_tick_after_it(
    tmp_path: Path, trace: Trace, flagged: int | None, explained: bool
) -> None:
    recording = record(tmp_path / "run", trace, "C")
    rows = np.array(recording.rows)
    rows["tick"][500:] += 3
    if flagged is not None:
        rows["status"][flagged] |= int(Status.AFTER_SKIP)
    recording.rows = rows
    found = verify(recording)
    missing = [finding.tick for finding in found.findings if finding.rule == "tick"]
    assert (found.ticks, missing) == ((2000, []) if explained else (500, [503]))


def test_other_parameters_are_found(tmp_path: Path, trace: Trace) -> None:
    recording = record(tmp_path / "run", trace, "C")
    recording.settings[0]["element"] = {"stiffness": 6000.0 * (1 + 1e-12), "damping": 10.0}
    assert verify(recording).mismatches > 0


def test_a_recording_that_lost_ticks_is_incomplete(tmp_path: Path, trace: Trace) -> None:
    recording = record(tmp_path / "run", trace, "C")
    assert verify(recording).verdict == "ok"
    recording.metadata["certificate"] = {"lost_ticks": 3}
    assert verify(recording).verdict == "incomplete"


def test_ticks_after_a_gap_are_not_computed(tmp_path: Path, trace: Trace) -> None:
    """What was lost has an effect on the element that cannot be known."""
    recording = record(tmp_path / "run", trace, "C")
    recording.rows = np.delete(np.array(recording.rows), 500)
    found = verify(recording)
    assert (found.ticks, found.mismatches, found.verdict) == (500, 0, "incomplete")
    assert [finding.tick for finding in found.findings if finding.rule == "tick"] == [501]


def test_a_recording_that_lost_settings_is_refused(tmp_path: Path, trace: Trace) -> None:
    recording = record(tmp_path / "run", trace, "C")
    del recording.settings[1]
    with pytest.raises(RecordingError, match="does not hold what a replay needs"):
        verify(recording)


def test_causality_survives_the_way_through_json(tmp_path: Path, trace: Trace) -> None:
    recording = record(tmp_path / "run", trace, "A")
    assert recording.metadata["device"]["causality"] == Causality.ADMITTANCE


def test_a_recording_that_was_cut_short_after_it_was_closed_is_not_verified(tmp_path: Path, trace: Trace) -> None:
    """What is left may compute alright; what is missing is no proof of anything."""
    recording = record(tmp_path / "run", trace, "C")
    description = recording.folder / "recording.json"
    metadata = json.loads(description.read_text())
    description.write_text(json.dumps({**metadata, "certificate": {"ticks": len(recording.rows)}}))
    assert verify(Recording(recording.folder)).mismatches == 0
    ticks = recording.folder / "ticks.npy"
    ticks.write_bytes(ticks.read_bytes()[:5000])
    found = verify(Recording(recording.folder))
    assert (found.mismatches, found.verdict) == (0, "incomplete")
    assert found.ticks < 30
    assert "of the 2000 ticks of its run" in found.findings[0].words


@pytest.mark.parametrize("size", [1, 7, 333])
def test_result_does_not_depend_on_the_size_of_the_pieces(
    tmp_path: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    recording = record(tmp_path / "run", trace, "B")
    rows = np.array(recording.rows)
    rows["command"][[1234, 1500]] += 1e-9
    recording.rows = rows
    whole = verify(recording)
    assert (whole.mismatches > 0, whole.first_mismatch) == (True, 1234)
    monkeypatch.setattr(replay, "_AT_ONCE", size)
    assert verify(recording) == whole
