"""Replay: the same bits for every model, program and format, and every changed bit is found."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from haptics import Causality, Recording, RecordingError, Status
from haptics.recording import replay
from haptics.recording.replay import verify
from haptics.records import COMPUTED
from haptics.rendering.programs import Motion, constant_reference, reference, table_name
from tests.haptics.changing import ELEMENTS, element_program, record_change, record_programs
from tests.recordings import of_every_kept_recording

LAWS: list[dict[str, Any]] = [
    {"name": "coulomb", "force": 4.0},
    {"name": "stribeck", "kinetic_force": 3.0, "static_force": 4.0, "stribeck_velocity": 0.1, "viscosity": 2.0},
]


def record(folder, trace, model):
    """Record a run in which the law changes at tick 700 and samples are noisy."""
    rng = np.random.default_rng(5)

    def shake(state, number):
        state.position += rng.normal(0, 1e-4, 2)
        state.velocity += rng.normal(0, 0.02, 2)
        state.force += rng.normal(0, 2.0, 2)

    limits = {"max_force": 3.9}
    return record_change(folder, trace, model, LAWS, shake, at=700, duration=2.0, limits=limits, max_force_rate=2000.0)


@pytest.fixture
def recording(tmp_path, trace):
    """Return a recording of model C whose rows can be changed."""
    recording = record(tmp_path / "run", trace, "C")
    recording.rows = np.array(recording.rows)
    return recording


@pytest.mark.parametrize("model", ELEMENTS)
def test_run_replays_with_the_same_bits(tmp_path, trace, model):
    recording = record(tmp_path / "run", trace, model)
    assert set(recording.rows["settings_version"]) == {0, 1}
    found = verify(recording)
    assert (found.ticks, found.mismatches, found.first_mismatch) == (2000, 0, None)


@pytest.mark.parametrize("column", [*COMPUTED, "position"])
def test_single_changed_bit_is_found(recording, column):
    cell = recording.rows[column][1234:1235]
    cell.view(np.uint8).reshape(-1)[0] ^= 1
    found = verify(recording)
    assert found.mismatches >= 1
    assert found.first_mismatch == 1234


@pytest.mark.parametrize(("flag", "found"), [(Status.SLEW, 1), (Status.STALE, 1), (Status.STARTED_LATE, 0)])
def test_changed_flag_of_the_envelope_is_found(recording, flag, found):
    """Lateness is measured and not computed."""
    recording.rows["status"][1234] ^= int(flag)
    assert (verify(recording).mismatches, verify(recording).first_mismatch) == (found, 1234 if found else None)


@pytest.mark.parametrize(("flagged", "explained"), [(500, True), (499, False), (501, False), (None, False)])
def test_gap_needs_the_flag_of_the_next_tick(recording, flagged, explained):
    recording.rows["tick"][500:] += 3
    if flagged is not None:
        recording.rows["status"][flagged] |= int(Status.AFTER_SKIP)
    found = verify(recording)
    missing = [finding.tick for finding in found.findings if finding.rule == "tick"]
    assert (found.ticks, missing) == ((2000, []) if explained else (500, [503]))


def test_changed_parameters_are_found(recording):
    recording.settings[0]["element"] = {"stiffness": 6000.0 * (1 + 1e-12), "damping": 10.0}
    assert verify(recording).mismatches > 0


def test_lost_ticks_make_a_recording_incomplete(recording):
    assert verify(recording).verdict == "ok"
    recording.metadata["certificate"] = {"lost_ticks": 3}
    assert verify(recording).verdict == "incomplete"


def test_recording_without_settings_is_refused(recording):
    del recording.settings[1]
    with pytest.raises(RecordingError, match="does not hold what a replay needs"):
        verify(recording)


def test_truncated_complete_recording_is_not_verified(recording):
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
def test_result_does_not_depend_on_the_piece_size(tmp_path, trace, monkeypatch, size):
    recording = record(tmp_path / "run", trace, "B")
    rows = np.array(recording.rows)
    rows["command"][[1234, 1500]] += 1e-9
    recording.rows = rows
    whole = verify(recording)
    assert (whole.mismatches > 0, whole.first_mismatch) == (True, 1234)
    monkeypatch.setattr(replay, "_ROWS_PER_CALL", size)
    assert verify(recording) == whole


# --- recordings of earlier formats


@of_every_kept_recording
def test_kept_recording_is_read_and_replays_with_the_same_bits(kept):
    recording = Recording(kept)
    written = np.load(recording.ticks)
    assert recording.metadata["format"] == 2
    assert 300 < len(written) == len(recording.rows)
    for name in written.dtype.names:
        assert recording.rows[name].tobytes() == written[name].tobytes()
    found = verify(recording)
    assert (found.ticks, found.mismatches) == (len(recording.rows), 0)
    assert found.verdict == ("incomplete" if kept.name == "c_killed" else "ok")


# --- motions and changes of the program


LAW = {"name": "coulomb", "force": 4.0}
OF = {"C": Causality.IMPEDANCE, "A": Causality.ADMITTANCE}


def motions(causality):
    """Two motions that the circling device follows poorly for a while."""
    angle = 5e-3 * np.arange(900)
    circle = 0.03 * np.column_stack((np.cos(angle), np.sin(angle)))
    bound = 4.0 if causality is Causality.IMPEDANCE else 0.3
    first = Motion(causality, reference(circle), bound, max_error=0.2, label="circle")
    if causality is Causality.IMPEDANCE:
        first = replace(first, stiffness=100.0, damping=2.0, integration=400.0)
    return [first, replace(first, table=constant_reference(0.2), relative=True, max_speed=0.5)]


def record_order(folder, trace, model, order, every=300):
    """Record a run through the programs that `order` has a letter of.

    ``m``, ``h`` and ``x`` are motions, of which the last one is not followed; ``e`` is an element, ``c`` another law.
    """
    causality, rng = OF[model], np.random.default_rng(5)
    circle, hold = motions(causality)
    followed = {"m": circle, "h": hold, "x": replace(hold, max_error=1e-3)}

    def shake(state, number):
        state.position += rng.normal(0, 1e-4, 2)
        state.velocity += rng.normal(0, 0.02, 2)
        state.force *= 0.2
        if number % 97 < 3:
            state.velocity[1] = np.nan

    programs: list[tuple[Any, dict[str, Any]]] = []
    for number, letter in enumerate(order):
        if letter in followed:
            programs.append((followed[letter], {"program": number}))
        elif letter == "e":
            programs.append(element_program(model, LAW, number))
        else:
            programs.append(element_program(model, {**LAW, "force": 2.0}, number - 1))
    duration, bench = every * len(order) * 1e-3, {"max_force_rate": 2000.0, "fade_in": 0.05}
    return record_programs(folder, trace, programs, shake, every=every, duration=duration, **bench)


@pytest.mark.parametrize("model", OF)
@pytest.mark.parametrize("order", ["m", "mh", "em", "mehce"])
def test_programs_replay_with_the_same_bits(tmp_path, trace, model, order):
    recording = record_order(tmp_path / "run", trace, model, order)
    assert set(recording.rows["settings_version"]) == set(range(len(order)))
    found = verify(recording)
    assert (found.ticks, found.mismatches, found.verdict) == (300 * len(order), 0, "ok")


@pytest.mark.parametrize("model", OF)
def test_motion_that_is_not_followed_replays(tmp_path, trace, model):
    recording = record_order(tmp_path / "run", trace, model, "mx", every=90)
    assert (recording.rows["status"][-1] & Status.ASTRAY) != 0
    assert verify(recording).mismatches == 0


def test_invalid_motion_table_is_refused(tmp_path, trace):
    recording = record_order(tmp_path / "run", trace, "C", "em")
    path = recording.folder / table_name(1)
    table = np.load(path)
    table[100, 0] += 1e-9
    np.save(path, table)
    with pytest.raises(RecordingError, match="its SHA-256 is another"):
        verify(recording)
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(RecordingError, match="cannot be read"):
        verify(recording)
    path.unlink()
    with pytest.raises(RecordingError, match="cannot be read"):
        verify(recording)
