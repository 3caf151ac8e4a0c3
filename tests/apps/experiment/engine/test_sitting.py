"""A whole session without a clock: its journal, its recordings, and how it is taken up again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.experiment.design import read_design
from apps.experiment.engine.opening import Request, begin
from apps.experiment.engine.run_command import describe
from apps.experiment.engine.running import resume_session
from apps.experiment.engine.sitting import TooManyRepeated
from apps.experiment.journal import SessionFolder, open_codes, read_journal, replay
from haptics.errors import ConfigurationError, RecordingError
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from tests.apps.experiment.design.designs import WEBER, changed
from tests.apps.experiment.engine.running import simulate
from tests.sampling import sample


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], SessionFolder]:
    folder = tmp_path_factory.mktemp("session")
    return simulate(changed(folder), folder / "out")


def test_every_trial_is_a_slice_of_a_recording_that_replays(session: tuple[dict[str, Any], SessionFolder]) -> None:
    result, place = session
    state = replay(read_journal(place.journal).records)
    assert result["trials"] == len(state.answered) == 8 and len(state.block_starts) == result["blocks"] == 2
    for start in state.block_starts:
        recording = Recording(place.folder / start["recording"])
        assert verify(recording).verdict == "ok"
        for attempt in (one for one in state.attempts if one.start["block"] == start["block"]):
            for marker, value in zip(attempt.start["markers"], attempt.start["values"], strict=True):
                rows = recording.rows[recording.rows["marker"] == marker]
                assert (rows["gate"] == 1.0).all() and len(rows)
                (version,) = set(rows["settings_version"].tolist())
                assert recording.settings[version]["law"]["force"] == value


def test_the_answer_comes_as_many_ticks_after_the_last_interval_as_the_journal_says(
    session: tuple[dict[str, Any], SessionFolder],
) -> None:
    _, place = session
    state = replay(read_journal(place.journal).records)
    for attempt in state.attempts:
        assert attempt.response is not None and attempt.recording is not None
        rows = Recording(place.folder / attempt.recording).rows
        last = rows["tick"][rows["marker"] == attempt.start["markers"][-1]].max()
        assert attempt.response["tick"] - last == round(attempt.response["reaction_time_s"] * 1000)


def test_an_interval_that_time_ends_has_exactly_its_ticks(tmp_path: Path) -> None:
    text = WEBER.replace("strokes = 2\n", "").replace("block = 5", "block = 5\ninterval = 0.537")
    _, place = simulate(changed(tmp_path, text=text), tmp_path / "out")
    rows = Recording(place.recording(1)).rows
    markers, counts = np.unique(rows["marker"][rows["marker"] % 10 > 0], return_counts=True)
    assert len(markers) == 10 and set(counts.tolist()) == {537}


def test_the_same_seed_gives_the_same_session_and_another_one_another(tmp_path: Path) -> None:
    file = changed(tmp_path)
    told = []
    for out, seed in (("a", 7), ("b", 7), ("c", 8)):
        _, place = simulate(file, tmp_path / out, seed=seed)
        records = read_journal(place.journal).records[1:]
        stamps = ("utc", "monotonic_ns")
        told.append([{name: value for name, value in one.items() if name not in stamps} for one in records])
    assert told[0] == told[1] != told[2]


def test_a_session_that_has_ended_is_neither_begun_nor_resumed_again(
    session: tuple[dict[str, Any], SessionFolder], tmp_path: Path
) -> None:
    _, place = session
    with pytest.raises(ConfigurationError, match="has ended"):
        resume_session(place.folder)
    with pytest.raises(ConfigurationError, match="experiment resume"):
        simulate(changed(tmp_path), place.folder.parent.parent)


def test_more_repetitions_than_allowed_stop_it_and_name_the_doctor(tmp_path: Path) -> None:
    file = changed(tmp_path, "least_speed = 0.025", "least_speed = 0.19")
    with pytest.raises(TooManyRepeated, match=r"too slow.*haptics doctor.*experiment resume"):
        simulate(file, tmp_path / "out")
    (journal,) = (tmp_path / "out").glob("sub-*/ses-*/*_journal.jsonl")
    state = replay(read_journal(journal).records)
    assert state.end is None and not state.answered
    assert {word for one in state.attempts if one.end for word in one.end["reasons"]} == {"too slow"}
    assert [one.number for one in state.attempts] == list(range(1, 7)), "the same trial again and again, not dropped"


def test_an_observer_too_who_takes_longer_than_the_time_out_is_asked_again(tmp_path: Path) -> None:
    text = WEBER.replace("block = 5", "block = 5\ntime_out = 0.5\nmost_repeated = 1.0")
    text += "\n[observer]\nreaction_time = 0.5\n"  # the median: half of all answers come too late
    result, place = simulate(changed(tmp_path, text=text), tmp_path / "out")
    state = replay(read_journal(place.journal).records)
    assert result["reason"] == "completed" and len(state.answered) == 8
    late = [one for one in state.attempts if not one.counts]
    assert late and {word for one in late if one.end for word in one.end["reasons"]} == {"no answer in time"}
    times = [one.response["reaction_time_s"] for one in state.answered.values() if one.response]
    assert len(times) == 8 and max(times) <= 0.5


def cut_short(place: SessionFolder, records: int, policy: str | None = None) -> None:
    """Let the journal be as if its session had been killed after so many records."""
    lines = place.journal.read_text(encoding="utf-8").splitlines(keepends=True)[:records]
    place.journal.write_text("".join(lines), encoding="utf-8")


def begun(folder: Path, old: str = "", new: str = "", records: int = 8) -> SessionFolder:
    _, place = simulate(changed(folder, old, new), folder / "out")
    cut_short(place, records)
    return place


def test_by_its_policy_the_interrupted_block_is_run_again_as_a_whole(tmp_path: Path) -> None:
    place = begun(tmp_path, "[response]", '[resume]\npolicy = "block"\n\n[response]', 9)
    answered = replay(read_journal(place.journal).records).answered
    assert len(answered) == 2
    resume_session(place.folder)
    state = replay(read_journal(place.journal).records)
    assert state.end is not None and len(state.answered) == 8
    assert [state.answered[trial].number for trial in (1, 2, 3)] == [2, 2, 2], "the third one had been begun"


def test_by_its_policy_or_age_it_is_not_taken_up_again(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    place = begun(tmp_path / "a", "[response]", '[resume]\npolicy = "restart"\n\n[response]')
    with pytest.raises(ConfigurationError, match=r"resume\.policy"):
        resume_session(place.folder)
    place = begun(tmp_path / "b", "[response]", "[resume]\nmost_age = 1e-6\n\n[response]")
    with pytest.raises(ConfigurationError, match=r"resume\.most_age"):
        resume_session(place.folder)


def test_an_answer_that_does_not_come_out_again_is_refused(tmp_path: Path) -> None:
    place = begun(tmp_path)
    lines = place.journal.read_text(encoding="utf-8").splitlines()
    (number,) = [k for k, line in enumerate(lines) if '"record": "response"' in line][:1]
    told = json.loads(lines[number])
    told["response"] = "1" if told["response"] == "2" else "2"
    lines[number] = json.dumps(told)
    place.journal.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(RecordingError, match="does not come out again"):
        resume_session(place.folder)


def test_an_answer_that_was_written_counts_even_if_its_trial_was_not_ended(tmp_path: Path) -> None:
    place = begun(tmp_path, records=7)
    assert read_journal(place.journal).records[-1]["record"] == "response"
    resume_session(place.folder)
    state = replay(read_journal(place.journal).records)
    assert all(one.number == 1 for one in state.answered.values())


def test_what_must_be_known_of_a_person_is_asked_for(tmp_path: Path) -> None:
    file = changed(
        tmp_path, "[response]", '[fields]\ndemanded = ["age_band"]\nallowed = { age_band = ["20-29"] }\n\n[response]'
    )
    design = read_design(file)
    for fields, words in (({}, "age_band"), ({"age_band": "young"}, "20-29")):
        with pytest.raises(ConfigurationError, match=words):
            begin(design, Request("P01", 1, 7, tmp_path / "out", fields, simulated=False))
    assert not (tmp_path / "out").exists()


def test_a_simulated_observer_moves_no_mouse(tmp_path: Path) -> None:
    hand = "points = [[-0.03, 0.0], [0.03, 0.0]]\nrest_force = 0.0\nrest_grip = 1.0\nrest = 0.4"
    with pytest.raises(ConfigurationError, match="moves no mouse"):
        simulate(changed(tmp_path, hand, 'name = "mouse"'), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_result_is_told_with_the_percentage_that_it_stands_for(
    session: tuple[dict[str, Any], SessionFolder],
) -> None:
    track = {"estimate": 0.20794, "target_percent": 83.15, "trials": 40}
    words = describe({**session[0], "tracks": {"2 N/1": track, "unknown": {"estimate": None, "trials": 3}}})
    assert words.splitlines()[-1] == "  2 N/1: 0.2079 at 83 % correct, after 40 trials"


def test_a_blind_session_is_sealed_and_its_result_tells_no_track(tmp_path: Path) -> None:
    result, place = simulate(changed(tmp_path, "seed = 7", "seed = 7\nblind = true"), tmp_path / "out")
    assert result["tracks"] == {}
    stimuli = open_codes(place, read_journal(place.journal).records[0]["blind"]).stimuli
    assert sorted(one["track"] for one in stimuli.values()) == ["1 N/1", "2 N/1"]


TASKS = {
    "detection": ("", 'kind = "quest+"\nminimum = 0.05\nmaximum = 2.0\ntrials = 6\n'),
    "detection-2ifc": (
        "",
        STAIRS := 'kind = "staircase"\nstart = 0.5\nminimum = 0.02\nmaximum = 2.0\nmost_trials = 6\n',
    ),
    "same-different": ("null = 0.3\n", STAIRS),
    "adjustment": ("", 'kind = "adjustment"\nstarts = [0.5, 2.0]\nrepeats = 2\n'),
    "estimation": ("", 'kind = "estimation"\nlevels = [0.5, 1.0, 2.0]\nrepeats = 2\n'),
}


@pytest.mark.parametrize("task", sample(TASKS, 2))
def test_every_task_runs(task: str, tmp_path: Path) -> None:
    more, procedure = TASKS[task]
    text = WEBER.split("[response]")[0].replace("{ most_trials = 3 }", "{}").replace('"discrimination"', f'"{task}"')
    before, _, rest = text.partition("[procedure]\n")
    text = f"{before}[procedure]\n{procedure}\n[catch]\n{more}easy = 0.1\n{rest[rest.index('[trials]') :]}"
    result, place = simulate(changed(tmp_path, text=text), tmp_path / "out")
    state = replay(read_journal(place.journal).records)
    assert result["reason"] == "completed" and result["trials"] >= 4
    numbers = task in ("adjustment", "estimation")
    for attempt in state.attempts:
        assert attempt.response is not None
        assert isinstance(attempt.response["response"], float if numbers else str)
        assert (attempt.response["correct"] is None) is numbers
