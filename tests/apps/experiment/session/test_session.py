"""Whole sessions without a clock: journal, recordings, table, resumption, and requests of people."""

import csv
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from apps.experiment.command import describe
from apps.experiment.design import read_design
from apps.experiment.journal import SessionFolder, read_journal, replay, trial_rows
from apps.experiment.journal.blinding import open_codes
from apps.experiment.observers import make_observer
from apps.experiment.procedures.methods import trial_seed
from apps.experiment.screens.display import Display
from apps.experiment.session import running
from apps.experiment.session.presentation import Simulated
from apps.experiment.session.running import Request, begin, reopen, resume_session
from apps.experiment.session.session import ABORTED, PAUSED, REDONE, ExperimentSession, TooManyRepeated
from apps.experiment.session.stages import OfflineStage
from haptics.errors import ConfigurationError, RecordingError
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.experiment.session.running import simulate
from tests.sampling import sample


def state_of(place):
    return replay(read_journal(place.journal).records)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("session")
    return simulate(changed(folder), folder / "out")


def test_trials_are_slices_of_a_recording_that_replays(session):
    result, place = session
    state = state_of(place)
    assert result["trials"] == len(state.counted_attempts) == 8 and len(state.block_starts) == result["blocks"] == 2
    for start in state.block_starts:
        recording = Recording(place.folder / start["recording"])
        assert verify(recording).verdict == "ok"
        for attempt in (one for one in state.attempts if one.start["block"] == start["block"]):
            for marker, value in zip(attempt.start["markers"], attempt.start["values"], strict=True):
                rows = recording.rows[recording.rows["marker"] == marker]
                assert (rows["gate"] == 1.0).all() and len(rows)
                (version,) = set(rows["settings_version"].tolist())
                assert recording.settings[version]["law"]["force"] == value


def test_answer_tick_agrees_with_the_reaction_time(session):
    _, place = session
    for attempt in state_of(place).attempts:
        rows = Recording(place.folder / attempt.recording).rows
        last = rows["tick"][rows["marker"] == attempt.start["markers"][-1]].max()
        assert attempt.response["tick"] - last == round(attempt.response["reaction_time_s"] * 1000)


def test_timed_interval_has_its_exact_length(tmp_path):
    text = WEBER.replace("strokes = 2\n", "").replace("block = 5", "block = 5\ninterval = 0.537")
    _, place = simulate(changed(tmp_path, text=text), tmp_path / "out")
    rows = Recording(place.recording(1)).rows
    markers, counts = np.unique(rows["marker"][rows["marker"] % 10 > 0], return_counts=True)
    assert len(markers) == 10 and set(counts.tolist()) == {537}


def test_session_is_determined_by_its_seed(tmp_path):
    file = changed(tmp_path)
    told = []
    for out, seed in (("a", 7), ("b", 7), ("c", 8)):
        _, place = simulate(file, tmp_path / out, seed=seed)
        records = read_journal(place.journal).records[1:]
        stamps = ("utc", "monotonic_ns")
        told.append([{name: value for name, value in one.items() if name not in stamps} for one in records])
    assert told[0] == told[1] != told[2]


def test_ended_session_is_neither_resumed_nor_begun_again(session, tmp_path):
    _, place = session
    with pytest.raises(ConfigurationError, match="has ended"):
        resume_session(place.folder)
    with pytest.raises(ConfigurationError, match="experiment resume"):
        simulate(changed(tmp_path), place.folder.parent.parent)


def test_too_many_repetitions_stop_the_session(tmp_path):
    file = changed(tmp_path, "least_speed = 0.025", "least_speed = 0.19")
    with pytest.raises(TooManyRepeated, match=r"too slow.*haptics doctor.*experiment resume"):
        simulate(file, tmp_path / "out")
    (journal,) = (tmp_path / "out").glob("sub-*/ses-*/*_journal.jsonl")
    state = replay(read_journal(journal).records)
    assert state.end is None and not state.counted_attempts
    assert {word for one in state.attempts if one.end for word in one.end["reasons"]} == {"too slow"}
    assert [one.number for one in state.attempts] == list(range(1, 7)), "the same trial is repeated"


def test_repetitions_before_a_resumption_do_not_stop_the_session(tmp_path):
    file = changed(tmp_path, "least_speed = 0.025", "least_speed = 0.19")
    with pytest.raises(TooManyRepeated):
        simulate(file, tmp_path / "out")
    (folder,) = (tmp_path / "out").glob("sub-*/ses-*")
    with pytest.raises(TooManyRepeated, match="6 of 6 trials"):
        resume_session(folder)
    (journal,) = folder.glob("*_journal.jsonl")
    assert [one.number for one in replay(read_journal(journal).records).attempts] == list(range(1, 13))


def test_folder_of_another_experiment_is_refused_with_its_reason(tmp_path):
    simulate(changed(tmp_path), tmp_path / "out")
    with pytest.raises(
        ConfigurationError, match=r"^\S+ has the journal \S+ of another experiment: choose .*\(--out\)\.$"
    ):
        simulate(changed(tmp_path, 'name = "weber"', 'name = "other"'), tmp_path / "out")


def test_late_answer_repeats_the_trial(tmp_path):
    text = WEBER.replace("block = 5", "block = 5\ntime_out = 0.5\nmost_repeated = 1.0")
    text += "\n[observer]\nreaction_time = 0.5\n"  # the median: half of all answers come too late
    result, place = simulate(changed(tmp_path, text=text), tmp_path / "out")
    state = state_of(place)
    assert result["reason"] == "completed" and len(state.counted_attempts) == 8
    late = [one for one in state.attempts if not one.counts]
    assert late and {word for one in late if one.end for word in one.end["reasons"]} == {"no answer in time"}
    times = [one.response["reaction_time_s"] for one in state.counted_attempts.values() if one.response]
    assert len(times) == 8 and max(times) <= 0.5


def interrupted(folder, old="", new="", records=8):
    """Run a session and truncate its journal as if it had been killed after `records` records."""
    _, place = simulate(changed(folder, old, new), folder / "out")
    lines = place.journal.read_text(encoding="utf-8").splitlines(keepends=True)
    place.journal.write_text("".join(lines[:records]), encoding="utf-8")
    return place


def test_session_is_resumed_from_another_folder(tmp_path, monkeypatch):
    """The texts of the experiment are in a file beside it, which was named relative to the folder of the beginning."""
    (tmp_path / "texts.toml").write_text('[en]\nend = "Over."\n', encoding="utf-8")
    changed(tmp_path, "seed = 7", 'seed = 7\ntexts = "texts.toml"')
    monkeypatch.chdir(tmp_path)
    _, place = simulate(Path("weber.toml"), tmp_path / "out")
    lines = place.journal.read_text(encoding="utf-8").splitlines(keepends=True)
    place.journal.write_text("".join(lines[:8]), encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert resume_session(place.folder)["reason"] == "completed"


def test_block_policy_repeats_the_interrupted_block(tmp_path):
    place = interrupted(tmp_path, "[response]", '[resume]\npolicy = "block"\n\n[response]', 9)
    assert len(state_of(place).counted_attempts) == 2
    resume_session(place.folder)
    state = state_of(place)
    assert state.end is not None and len(state.counted_attempts) == 8
    assert [state.counted_attempts[trial].number for trial in (1, 2, 3)] == [2, 2, 2], (
        "the third trial had been started"
    )


@pytest.mark.parametrize("policy", ["resume", "block"])
def test_block_interrupted_after_its_last_answer_is_over(tmp_path, policy):
    place = interrupted(tmp_path, "[response]", f'[resume]\npolicy = "{policy}"\n\n[response]', 17)
    assert sorted(state_of(place).counted_attempts) == [1, 2, 3, 4, 5] and not state_of(place).events
    assert continued(place.folder) == "completed"
    state = state_of(place)
    assert [(one["name"], one["block"]) for one in state.events] == [("block-end", 1), ("block-end", 2)]
    assert all(one.number == 1 for one in state.counted_attempts.values())


@pytest.mark.parametrize(("name", "value"), [("policy", '"restart"'), ("most_age", "1e-6")])
def test_resume_is_refused_by_policy_or_age(tmp_path, name, value):
    place = interrupted(tmp_path, "[response]", f"[resume]\n{name} = {value}\n\n[response]")
    with pytest.raises(ConfigurationError, match=rf"resume\.{name}"):
        resume_session(place.folder)


def continued(folder):
    """Resume a session as one with a clock does; return the reason for its end."""
    design, journal, who = reopen(folder)
    respondent = partial(Simulated, make_observer({}, seed=trial_seed(7, "P01", 0, 0, 1)))
    with journal:
        session = ExperimentSession(
            design, who, journal, respondent=respondent, stage=OfflineStage, display=Display(design), again=False
        )
        return session.run()


def test_resume_refuses_an_answer_that_is_not_reproduced(tmp_path):
    place = interrupted(tmp_path)
    lines = place.journal.read_text(encoding="utf-8").splitlines()
    (number,) = [k for k, line in enumerate(lines) if '"record": "response"' in line][:1]
    told = json.loads(lines[number])
    told["response"] = "1" if told["response"] == "2" else "2"
    lines[number] = json.dumps(told)
    place.journal.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(RecordingError, match="is not reproduced"):
        resume_session(place.folder)


def test_recorded_answer_counts_without_the_end_of_its_trial(tmp_path):
    place = interrupted(tmp_path, records=7)
    assert read_journal(place.journal).records[-1]["record"] == "response"
    resume_session(place.folder)
    state = state_of(place)
    assert all(one.number == 1 for one in state.counted_attempts.values())


def test_required_participant_fields_are_validated(tmp_path):
    fields = '[fields]\ndemanded = ["age_band"]\nallowed = { age_band = ["20-29"] }\n\n[response]'
    design = read_design(changed(tmp_path, "[response]", fields))
    for fields, words in (({}, "age_band"), ({"age_band": "young"}, "20-29")):
        with pytest.raises(ConfigurationError, match=words):
            begin(design, Request("P01", 1, 7, tmp_path / "out", fields, simulated=False))
    assert not (tmp_path / "out").exists()


def test_simulated_observer_refuses_the_mouse_hand(tmp_path):
    hand = "points = [[-0.03, 0.0], [0.03, 0.0]]\nrest_force = 0.0\nrest_grip = 1.0\nrest = 0.4"
    with pytest.raises(ConfigurationError, match="moves no mouse"):
        simulate(changed(tmp_path, hand, 'name = "mouse"'), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_result_names_the_percentage_of_each_estimate(session):
    track = {"estimate": 0.20794, "target_percent": 83.15, "trials": 40}
    words = describe({**session[0], "tracks": {"2 N/1": track, "unknown": {"estimate": None, "trials": 3}}})
    assert words.splitlines()[-1] == "  2 N/1: 0.2079 at 83 % correct, after 40 trials"


def test_blind_session_seals_its_stimuli_and_hides_tracks(tmp_path):
    result, place = simulate(changed(tmp_path, "seed = 7", "seed = 7\nblind = true"), tmp_path / "out")
    assert result["tracks"] == {}
    stimuli = open_codes(place, read_journal(place.journal).records[0]["blind"]).stimuli
    assert sorted(one["track"] for one in stimuli.values()) == ["1 N/1", "2 N/1"]


def test_code_table_belongs_to_the_station_that_begins_the_session(tmp_path, monkeypatch):
    """Two stations begin the same blind session at the same time."""
    design = read_design(changed(tmp_path, "seed = 7", "seed = 7\nblind = true"))
    request = Request("P01", 1, 7, tmp_path / "out", {}, simulated=True)
    reserve_slot, places = running.reserve_slot, []

    def slow(*arguments):
        monkeypatch.setattr(running, "reserve_slot", reserve_slot)
        journal, _ = begin(design, request)
        places.append(journal.place)
        journal.close()
        return reserve_slot(*arguments)

    monkeypatch.setattr(running, "reserve_slot", slow)
    with pytest.raises(ConfigurationError, match="has a journal"):
        begin(design, request)
    (place,) = places
    assert open_codes(place, read_journal(place.journal).records[0]["blind"]).stimuli


STAIRS = 'kind = "staircase"\nstart = 0.5\nminimum = 0.02\nmaximum = 2.0\nmost_trials = 6\n'
TASKS = {
    "detection": ("", 'kind = "quest+"\nminimum = 0.05\nmaximum = 2.0\ntrials = 6\n'),
    "detection-2ifc": ("", STAIRS),
    "same-different": ("null = 0.3\n", STAIRS),
    "adjustment": ("", 'kind = "adjustment"\nstarts = [0.5, 2.0]\nrepeats = 2\n'),
    "estimation": ("", 'kind = "estimation"\nlevels = [0.5, 1.0, 2.0]\nrepeats = 2\n'),
}


@pytest.mark.parametrize("task", sample(TASKS, 2))
def test_task_runs_to_completion(task, tmp_path):
    more, procedure = TASKS[task]
    text = WEBER.split("[response]")[0].replace("{ most_trials = 3 }", "{}").replace('"discrimination"', f'"{task}"')
    before, _, rest = text.partition("[procedure]\n")
    text = f"{before}[procedure]\n{procedure}\n[catch]\n{more}easy = 0.1\n{rest[rest.index('[trials]') :]}"
    result, place = simulate(changed(tmp_path, text=text), tmp_path / "out")
    state = state_of(place)
    assert result["reason"] == "completed" and result["trials"] >= 4
    numbers = task in ("adjustment", "estimation")
    for attempt in state.attempts:
        assert isinstance(attempt.response["response"], float if numbers else str)
        assert (attempt.response["correct"] is None) is numbers


def test_session_writes_a_table_of_delivered_and_felt_levels(session):
    result, place = session
    with open(result["table"], encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert Path(result["table"]) == place.table
    assert len(rows) == len(trial_rows(place)) == result["trials"]
    for row in rows:
        assert (row["axis_unit"], row["delivered_exact"], row["stimulus_missing"]) == ("N", "true", "n/a")
        for number in ("1", "2"):
            asked = float(row[f"asked_{number}"])
            assert float(row[f"delivered_{number}"]) == pytest.approx(asked, rel=1e-9)
            low, felt, high = (float(row[f"{name}_{number}"]) for name in ("felt_low", "felt", "felt_high"))
            assert low <= felt <= high
            assert asked < felt < asked + 0.3, "the stick's own friction is felt, too, and not compensated here"


def test_text_that_no_journal_can_have_is_refused_in_one_line(tmp_path):
    file = changed(tmp_path, "[response]", '[texts]\ninstructions = ["Move.\\u0000"]\n\n[response]')
    with pytest.raises(ConfigurationError, match=r"weber\.toml: cannot be written .* a text holds a zero byte"):
        simulate(file, tmp_path / "out")


def test_foreign_table_is_kept_and_the_session_completes(tmp_path, capsys):
    file, out = changed(tmp_path), tmp_path / "out"
    place = out / "sub-P01" / "ses-01"
    place.mkdir(parents=True)
    (place / "sub-P01_ses-01_task-weber_beh.tsv").write_text("mine\n")
    result, _ = simulate(file, out)
    assert (result["table"], result["reason"]) == (None, "completed")
    assert "every export makes it anew" in capsys.readouterr().err
    assert (place / "sub-P01_ses-01_task-weber_beh.tsv").read_text() == "mine\n"


class Requesting(Display):
    """A display that makes one request, named by an attribute, in the second interval of a trial."""

    def __init__(self, trial, request, design):
        super().__init__(design)
        self.present = True
        self._trial, self._request, self.shown = trial, request, list[str]()

    def interval(self, plan, number):
        if plan.trial == self._trial and number == 1:
            self._trial = 0
            setattr(self, self._request, True)

    def pause(self):
        self.shown.append("pause")
        self.paused = False

    def feedback(self, correct):
        self.shown.append("right" if correct else "wrong")


def run_with(folder, trial, request, old="", new="", display=Requesting, before=lambda session, plan: None):
    """Run a session with a request; return the reason for its end, the state, and the display."""
    design = read_design(changed(folder, old, new))
    display = display(trial, request, design)
    journal, who = begin(design, Request("P01", 1, 7, folder / "out", {}, simulated=True))
    observer = make_observer({}, seed=trial_seed(7, "P01", 0, 0, 1))
    with journal:
        respondent = partial(Simulated, observer)
        experiment_session = ExperimentSession(
            design, who, journal, respondent=respondent, stage=OfflineStage, display=display, again=False, before=before
        )
        return experiment_session.run(), replay(read_journal(journal.place.journal).records), display


def test_paused_trial_is_repeated(tmp_path):
    reason, state, display = run_with(tmp_path, 3, "paused")
    assert (reason, display.shown, sorted(state.counted_attempts)) == ("completed", ["pause"], list(range(1, 9)))
    paused = [one for one in state.attempts if one.trial == 3]
    ends = [one.end and (one.end["outcome"], one.end["reasons"]) for one in paused]
    assert ends == [("repeat", [PAUSED]), ("ok", [])]
    assert [one["name"] for one in state.events][:2] == ["pause", "go on"]


class Waiting(Requesting):
    """A display whose pause lasts 2000 ticks."""

    polls = 0

    @property
    def paused(self):
        self.polls -= self.polls > 0
        return self.polls > 0

    @paused.setter
    def paused(self, paused):
        self.polls = 100 if paused else 0

    def pause(self):
        self.shown.append("pause")


def test_rows_of_a_pause_do_not_belong_to_the_interval(tmp_path):
    _, _, display = run_with(tmp_path, 3, "paused", display=Waiting)
    assert display.shown == ["pause"]
    markers = Recording(tmp_path / "out" / "sub-P01" / "ses-01" / "blocks" / "block-01").rows["marker"]
    assert 0 < np.count_nonzero(markers == 312) < 1000 < np.count_nonzero(markers == 310)


def requesting_before(block, request):
    """Return a function that makes a request, once, on the page before a block."""
    made = []

    def before(session, plan):
        if plan.block == block and not made:
            made.append(request)
            setattr(session.display, request, True)

    return before


def test_redo_on_a_page_repeats_the_last_answered_trial(tmp_path):
    reason, state, _ = run_with(tmp_path, 0, "", before=requesting_before(2, "redo"))
    assert reason == "completed" and sorted(state.counted_attempts) == list(range(1, 9))
    attempts = [(one.trial, one.number, one.start["block"], one.counts) for one in state.attempts[4:7]]
    assert attempts == [(5, 1, 1, False), (5, 2, 1, True), (6, 1, 2, True)]
    assert state.blocks == {1: 2, 2: 1}
    assert [one["block"] for one in state.events if one["name"] == "block-end"] == [1, 1, 2]


def test_pause_on_a_page_precedes_the_first_trial(tmp_path):
    _, state, display = run_with(tmp_path, 0, "", before=requesting_before(1, "paused"))
    assert display.shown[0] == "pause" and len(state.attempts) == 8
    assert [one["name"] for one in state.events][:2] == ["pause", "go on"]


def test_recording_of_a_session_that_is_interrupted_is_not_complete(tmp_path):
    class Interrupted(Requesting):
        def interval(self, plan, number):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_with(tmp_path, 0, "", display=Interrupted)
    metadata = Recording(tmp_path / "out" / "sub-P01" / "ses-01" / "blocks" / "block-01").metadata
    assert (metadata["state"], metadata["reason"]) == ("interrupted", "interrupted")


def test_redo_repeats_the_last_answered_trial(tmp_path):
    reason, state, _ = run_with(tmp_path, 3, "redo")
    assert reason == "completed" and sorted(state.counted_attempts) == list(range(1, 9))
    attempts = [(one.trial, one.number, one.counts) for one in state.attempts[:5]]
    assert attempts == [(1, 1, True), (2, 1, False), (3, 1, False), (2, 2, True), (3, 2, True)]
    third = next(one for one in state.attempts if one.trial == 3)
    assert third.end is not None and third.end["reasons"] == [REDONE]


def test_abort_ends_the_session(tmp_path):
    reason, state, _ = run_with(tmp_path, 3, "aborted")
    assert reason == "ended by a person" and sorted(state.counted_attempts) == [1, 2]
    last = state.attempts[-1].end
    assert last is not None and (last["outcome"], last["reasons"]) == ("aborted", [ABORTED])
    assert state.end is not None and state.end["reason"] == reason


def test_session_ended_by_a_person_is_resumed_unless_it_is_blind(tmp_path):
    run_with(tmp_path, 3, "aborted")
    folder = tmp_path / "out" / "sub-P01" / "ses-01"
    assert continued(folder) == "completed"
    state = state_of(SessionFolder.of(folder))
    assert sorted(state.counted_attempts) == list(range(1, 9)) and state.counted_attempts[3].number == 2
    blind = tmp_path / "blind"
    blind.mkdir()
    run_with(blind, 3, "aborted", "seed = 7", "seed = 7\nblind = true")
    with pytest.raises(ConfigurationError, match="may have been decoded"):
        reopen(blind / "out" / "sub-P01" / "ses-01")


@pytest.mark.parametrize("wanted", [True, False])
def test_feedback_follows_the_setting(tmp_path, wanted):
    feedback = f"block = 5\nfeedback = {str(wanted).lower()}"
    _, state, display = run_with(tmp_path, 0, "paused", "block = 5", feedback)
    given = [
        "right" if one.response and one.response["correct"] else "wrong" for one in state.counted_attempts.values()
    ]
    assert display.shown == (given if wanted else [])
