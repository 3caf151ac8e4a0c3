"""Whole experiments: shipped examples, live blocks, scenes, kills, and power."""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from apps.experiment import command
from apps.experiment.design import read_design
from apps.experiment.journal import SessionFolder, read_journal, replay, sessions_below, trial_rows
from apps.experiment.power import Study, plan, simulate_people
from apps.experiment.report.analysis import analyse
from apps.experiment.report.data import read_experiment
from apps.experiment.session.running import Manner, Request, run_session
from apps.experiment.session.stages import Followers, LiveStage
from apps.experiment.settings import AnalysisSettings, PowerSettings
from apps.experiment.stimulus import measure
from haptics.recording.recording import Recording
from haptics.recording.replay import verify as verify_by_replay
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.experiment.session import rehearsal as killed
from tests.apps.experiment.session.running import simulate
from tests.apps.experiment.session.test_scenes import along_a_wall, assert_exact
from tests.apps.experiment.test_power import QUEST, WEAK, task_study
from tests.apps.screen import WHY_NOT, virtual_screen
from tests.processes import ROOT
from tests.sampling import sample
from tests.system.parallel.commands import run_python

EXAMPLES = sorted([*(ROOT / "examples/experiments").glob("*.toml"), *(ROOT / "examples/replications").glob("*.toml")])

ENDLESS = WEBER.replace("{ most_trials = 3 }", "{}")
"""Both conditions have the procedure of the experiment."""

SHORT = ENDLESS.replace("block = 5", "block = 4\nrest = 0.5\nlate_ticks = 1.0\nlongest_gap = 0.9").replace(
    "most_trials = 4", "most_trials = 2"
)


@pytest.mark.parametrize("file", sample(EXAMPLES, 2), ids=lambda file: file.stem)
def test_example_runs_and_delivers_the_stimuli_of_its_design(file, tmp_path):
    result, place = simulate(file, tmp_path, seed=read_design(file).experiment.seed)
    assert result["reason"] == "completed" and result["repeated"] == 0
    rows = trial_rows(place, measure)
    assert all(row["delivered_exact"] for row in rows)
    if file.stem == "provancher2009":  # the intervals hold the published differences, and not zero
        experiment = read_experiment([place.folder], measure)
        person = analyse(experiment, experiment.people[0], AnalysisSettings.of({}, [75.0]))
        found = {one.reference: one.differences[0].jnd for one in person.conditions}
        for reference, published in ((0.2, 0.056), (0.8, 0.150)):
            assert 0.0 < found[reference].low < published < found[reference].high
    if any(word in file.read_text(encoding="utf-8") for word in ("compensation", "damping = 0.0")):
        for row in rows:
            for k in (1, 2):
                assert abs(row[f"felt_{k}"] - row[f"asked_{k}"]) < 0.02 * row[f"asked_{k}"]


def test_friction_of_a_wall_is_rendered_recorded_and_felt(tmp_path):
    _, place = simulate(along_a_wall(tmp_path), tmp_path / "out")
    for rows in assert_exact(place):
        assert np.nanmax(rows["normal_force"]) > 1.0
    assert trial_rows(place, None)[0]["axis_unit"] == ""
    assert "np." not in place.table.read_text(encoding="utf-8"), "numbers are written without their NumPy type"


# --- live blocks ------------------------------------------------------------------------------------------------------


class FakeSession:
    """Stands in for the session of a block, and keeps the tables that it is configured with."""

    def __init__(self, config, notify, *, quiet, folder):
        self.folder, self.servo = folder, SimpleNamespace(trace=None)
        self.gate = self.mark = lambda value: None
        self.keys = SimpleNamespace(listen=lambda hear: None)
        self.tables: list[Mapping[str, Any]] = []

    def configure(self, tables):
        self.tables.append(tables)


@pytest.mark.parametrize(
    ("make", "level"),
    [
        (changed, lambda table: (table["law"]["force"], "scene" in table)),
        (along_a_wall, lambda table: (table["scene"]["walls"][0]["friction"], False)),
    ],
    ids=["law", "wall"],
)
def test_live_block_is_configured_only_where_the_level_changes(make, level, tmp_path, monkeypatch):
    monkeypatch.setattr("apps.experiment.session.stages.Session", FakeSession)
    design = read_design(make(tmp_path))
    low, high = (design.config(design.conditions[0], level) for level in (0.5, 0.7))
    stage: Any = LiveStage(low, tmp_path / "block", lambda kind, **fields: None, Followers())
    for config in (low, high, high, low):
        stage.apply_parameters(config)
    assert [level(table) for table in stage.session.tables] == [(0.7, False), (0.5, False)]


def test_live_block_is_recorded_and_replays(tmp_path):
    file = changed(tmp_path, "easy = 0.2", "easy = 0.0", SHORT)
    request = Request("P01", 1, 7, tmp_path / "out", {}, simulated=True, manner=Manner(live=True))
    result = run_session(read_design(file), request)
    assert (result["trials"], result["reason"]) == (4, "completed")
    place = SessionFolder.of(Path(result["folder"]))
    recording = Recording(place.recording(1))
    assert verify_by_replay(recording).mismatches == 0
    for attempt in replay(read_journal(place.journal).records).attempts:
        for marker, value in zip(attempt.start["markers"], attempt.start["values"], strict=True):
            rows = recording.rows[recording.rows["marker"] == marker]
            (version,) = set(rows["settings_version"].tolist())
            assert recording.settings[version]["law"]["force"] == value
            assert (rows["gate"] == 1.0).all() and len(rows) > 500


REHEARSED = (
    (
        ENDLESS.replace("reversals = 20\nmost_trials = 4", "reversals = 20\nmost_trials = 2")
        .replace("block = 5", "block = 20\nrest = 0.2\ninterval = 0.3\ngap = 0.15\nlate_ticks = 1.0\nlongest_gap = 0.9")
        .replace("start = [-0.03, 0.0]\nstrokes = 2\nleast_speed = 0.025\ngreatest_speed = 0.2\n", "")
        .replace("rest = 0.4\n", "rest = 0.4\nstiffness = 2000.0\ndamping = 20.0\n")
    )
    + """
[screen]
full_screen = false

[friction]
measure_each_session = true
excitation = { slowest = 0.02, speeds = 2, rounds = 2, strokes = 1, stroke_time = 0.3 }

[texts]
instructions = ["The first page.", "The second page."]
"""
)


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
@pytest.mark.timeout(300)
def test_rehearsal_measures_the_device_friction_before_instructions_and_blocks(tmp_path):
    file = changed(tmp_path, text=REHEARSED)
    with virtual_screen() as screen:
        rehearsal = killed.run(screen, file, tmp_path / "out")
        words = killed.finish(rehearsal)
    assert rehearsal.returncode == 0, words
    (place,) = sessions_below(tmp_path / "out")
    records = read_journal(place.journal).records
    order = [one.get("name", one["record"]) for one in records if one["record"] in ("event", "block_start")]
    assert order[:3] == ["own-friction", "instructions", "block_start"]
    assert "own friction was measured" in words
    recording = Recording(place.folder / "friction")
    assert recording.metadata["state"] == "complete"
    assert recording.metadata["real_time"], "a servo process moved the device in real time"
    block = json.loads((place.recording(1) / "recording.json").read_text())
    (measured,) = [one for one in records if one.get("name") == "own-friction"]
    assert block["friction_file_hash"] == measured["sha256"]


# --- kills ------------------------------------------------------------------------------------------------------------


def test_session_that_is_killed_repeatedly_has_the_journal_of_an_undisturbed_one(tmp_path):
    file = changed(tmp_path, "most_trials = 4", "most_trials = 15", ENDLESS)
    done = run_python("-m", "tests.apps.experiment.session.killed", file, tmp_path, 15, 2)
    assert int(done.stdout) >= 10, "kills that met a running session"
    (whole,), (cut,) = sessions_below(tmp_path / "whole"), sessions_below(tmp_path / "cut")
    assert lasting_records(cut)[1:] == lasting_records(whole)[1:]
    state = replay(read_journal(cut.journal).records)
    for one in state.counted_attempts.values():
        assert one.recording is not None
        found = set(np.unique(Recording(cut.folder / one.recording).rows["marker"]).tolist())
        assert found >= set(one.start["markers"]), "an answered trial is in the recording"
    for one in state.attempts:
        assert one.end is not None or one.response is None, "an answered trial was lost"
        assert one.end is not None or state.attempts_at(one.trial) > one.number, "an interrupted trial was not repeated"


def lasting_records(place):
    """Return the records of a journal without stamps, kills and interrupted trials."""
    records = read_journal(place.journal).records
    ended = {(one.trial, one.number) for one in replay(records).attempts if one.end is not None}
    left_out = ("number", "utc", "monotonic_ns", "attempt", "markers")
    kept = []
    for record in records:
        key = record.get("trial"), record.get("attempt")
        interrupted = record["record"] in ("trial_start", "response", "trial_end") and key not in ended
        if not interrupted and record["record"] != "block_start" and record.get("name") != "resumed":
            kept.append({name: value for name, value in record.items() if name not in left_out})
    return kept


# --- observers, tables, power -----------------------------------------------------------------------------------------


def test_plan_reports_people_without_a_threshold(tmp_path):
    """A staircase that settles at 86 % presents few trials near 80 %."""
    head, rest = ENDLESS.split("[procedure]")
    staircase = 'kind = "staircase"\nstart = 0.5\ndown = 4\nreversals = 8\nsteps = [2.0]\nminimum = 0.04\nmaximum = 2.0'
    questions = "[power]\nproportion = 0.8\npeople = 60\nparticipants = [8, 16]\n\n"
    file = changed(tmp_path, text=f"{head}[procedure]\n{staircase}\n\n{questions}{rest[rest.index('[catch]') :]}")
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    answer = command.run(parser.parse_args(["power", str(file), "--workers", "1"]))
    assert answer.result["left_out"] > 3 and "power.proportion" in answer.text.replace("\n", " ")


def test_interval_of_the_power_covers_the_scatter_between_pools():
    """Between pools of 150 people the power differs far more than by drawing 4000 studies."""
    settings, mean, sd, count = PowerSettings(participants=(12,)), math.log(1.3), 0.4, 12
    reach, noncentrality = stats.t.ppf(0.975, count - 1), mean / sd * math.sqrt(count)
    truth = stats.nct.sf(reach, count - 1, noncentrality) + stats.nct.cdf(-reach, count - 1, noncentrality)
    rows = []
    for seed in range(25):
        rows += plan(mean + sd * np.random.default_rng(seed).standard_normal(150), settings)
    assert sum(row.low <= truth <= row.high for row in rows) >= 22
    assert np.std([row.power for row in rows]) > 0.05
    assert np.mean([row.high - row.low for row in rows]) < 0.45


def test_no_threshold_method_beats_the_bound(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("threshold_methods", ROOT / "examples" / "threshold_methods.py")
    assert spec is not None and spec.loader is not None
    study: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(study)
    picture = tmp_path / "study.png"
    monkeypatch.setattr("sys.argv", ["threshold_methods", "--people=40", f"--picture={picture}"])
    study.main()
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    longest = {row[1]: [float(one) for one in row[2].split(" ± ")] for row in rows[1:] if row[0] == "80"}
    (floor,) = longest.pop(study.FLOOR)
    assert floor == pytest.approx(study.best(0.02)[1] / math.sqrt(80), abs=6e-4)
    for scatter, error in longest.values():
        assert scatter > floor - 3.0 * error
    assert longest["QUEST+ that knows slope and lapses"][0] < 1.25 * floor
    powers = {row[0]: [float(one.split(" ± ")[0]) for one in row[1:-1]] for row in rows if len(row) == 11}
    assert all(one[-1] > one[0] for one in powers.values())
    assert powers[study.FLOOR][4] > powers["2-down/1-up"][4]
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("procedure", "error"),
    [
        (QUEST | {"trials": 80}, 0.35),
        ({"kind": "constant", "levels": [0.05, 0.1, 0.15, 0.2, 0.3], "repeats": 20}, 0.4),
        ({"kind": "staircase", "start": 0.5, "minimum": 0.01, "maximum": 1.0, "steps": [4.0, 2.0]}, 0.5),
    ],
    ids=["quest+", "constant", "staircase"],
)
def test_procedure_recovers_thresholds(procedure, error):
    found = simulate_people(Study((replace(WEAK, procedure=procedure),), {}, "dprime", 0.75, 8), 0, 40)[:, 0]
    found = found[~np.isnan(found[:, 0])]
    off = found[:, 0] - found[:, 1]
    assert len(found) > 30 and abs(off.mean()) < 0.15 and off.std() < error
    assert np.exp(np.median(found[:, 1])) == pytest.approx(math.hypot(0.1, 0.05), rel=0.15)


UNKNOWN_GUESSES = {"kind": "quest+", "minimum": 0.02, "maximum": 2.0, "count": 20, "thresholds": 20, "trials": 60} | {
    "guesses": [0.05, 0.15, 0.3]  # false alarms are not known beforehand
}


CONSTANT = {"kind": "constant", "levels": [0.1, 0.2, 0.4, 0.8, 1.6], "repeats": 20}


@pytest.mark.parametrize(
    ("task", "procedure", "null"),
    [("detection", CONSTANT, 0.3), ("same-different", CONSTANT, 0.3), ("detection", UNKNOWN_GUESSES, 0.3)],
)
def test_thresholds_of_detection_tasks_are_recovered(task, procedure, null):
    found = simulate_people(task_study(task, procedure, {"spread": 0.0, "lapse": 0.0}, null), 0, 40)
    off = found[:, 0, 0] - found[:, 0, 1]
    known = off[np.isfinite(off)]
    assert len(known) > 34
    assert math.exp(float(np.median(known))) == pytest.approx(1.0, abs=0.15)
    trials = UNKNOWN_GUESSES["trials"] if procedure is UNKNOWN_GUESSES else 100
    assert (found[:, 0, 2] == trials + round(null * trials / (1 - null))).all(), "trials without a stimulus take time"
