"""Exclusion of participants and training: reports, exports, status, erasure; replacements of slot and group."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
from datetime import timedelta
from pathlib import Path

import pytest

from apps.cli import main
from apps.experiment.assignment import AssignmentLog
from apps.experiment.design import read_design
from apps.experiment.export import export_sessions
from apps.experiment.export.archive import archive
from apps.experiment.journal.erasure import RECORD, erase, find_participant
from apps.experiment.journal.exclusion import ExclusionLog
from apps.experiment.journal.folder import reserve_slot
from apps.experiment.journal.journal import replay
from apps.experiment.report.data import read_experiment
from apps.experiment.report.page import left_out_words
from apps.experiment.session import running
from apps.experiment.session.running import Request, begin, in_group, run_session, run_sessions
from apps.experiment.status import as_page, as_text, read_status
from apps.experiment.trial_log import TrialLog
from haptics.errors import ConfigurationError
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.experiment.test_groups import with_groups
from tests.apps.experiment.test_schedule import MONDAY, scheduled


@pytest.fixture
def out(tmp_path):
    """Two participants with a session each, of an experiment of three sessions."""
    folder = tmp_path / "out"
    for code in ("P01", "P02"):
        with TrialLog.open(folder, code, "wood", axis="law.force") as log:
            log.begin_block()
            log.begin_trial(0.5, values=(2.0, 2.5), comparison=2)
            log.finish_trial("2", correct=True)
        reserve_slot(folder, "wood", code)
    return folder


def test_excluded_participant_is_left_out_of_exports_and_report(out, tmp_path):
    kept = {path: path.read_bytes() for path in out.rglob("*.jsonl")}
    ExclusionLog(out).exclude("P01", "device  fault")
    for to in ("csv", "psignifit", "bids", "psych-ds"):
        sessions = export_sessions([out], tmp_path / to, to=to)
        assert [one.place.participant for one in sessions] == ["P02"]
        names = [path.relative_to(tmp_path / to).as_posix() for path in (tmp_path / to).rglob("*")]
        assert not any("P01" in name for name in names)
    with open(tmp_path / "csv" / "left_out.csv", encoding="utf-8", newline="") as file:
        assert list(csv.reader(file))[1:] == [["P01", "1", "excluded: device fault"]]
    for to in ("bids", "psych-ds"):
        assert "- P01, session 1: excluded: device fault" in (tmp_path / to / "README.md").read_text(encoding="utf-8")
    experiment = read_experiment([out])
    assert [person.code for person in experiment.people] == ["P02"]
    assert left_out_words(experiment.left_out) == " Excluded by the experimenter: P01 (device fault)."
    result = archive([out], tmp_path / "archive", licence="CC0-1.0", authors=["A"])
    page = (tmp_path / "archive" / "README.md").read_text(encoding="utf-8")
    assert (
        result["excluded"] == 1
        and "training that are not included: 1." in page
        and "P01" not in page
        and "fault" not in page
    )
    assert {path: path.read_bytes() for path in out.rglob("*.jsonl")} == kept, "the data are kept"
    ExclusionLog(out).exclude("P02", "x")
    for read in (lambda: export_sessions([out], tmp_path / "none"), lambda: read_experiment([out])):
        with pytest.raises(ConfigurationError, match=r"all 2 sessions are left out \(excluded: device fault; exclu"):
            read()


def test_exclusion_can_be_revoked_with_a_record(out, tmp_path):
    log = ExclusionLog(out)
    assert log.exclude("P01", "noise").number == 0
    with pytest.raises(ConfigurationError, match="P01 is excluded already: noise"):
        log.exclude("P01", "again")
    log.include("P01", "a mistake")
    with pytest.raises(ConfigurationError, match="P01 is not excluded"):
        log.include("P01", "again")
    assert not ExclusionLog(out).excluded and len(export_sessions([out], tmp_path / "csv")) == 2
    assert not (tmp_path / "csv" / "left_out.csv").exists()
    entries = [json.loads(path.read_text()) for path in sorted((out / "exclusions").iterdir())]
    assert [(one["state"], one["reason"]) for one in entries] == [("excluded", "noise"), ("included", "a mistake")]


@pytest.mark.parametrize(
    ("code", "reason", "words"),
    [
        ("P09", "x", "there are no data of P09"),
        ("../x", "x", "not a name"),
        ("P01", "  ", "--reason: must be given"),
        ("P01", "x" * 501, "at most 500"),
        ("P01", "see anna@example.org", "looks like an address"),
    ],
)
def test_invalid_exclusion_is_refused_before_anything_is_written(out, code, reason, words):
    with pytest.raises(ConfigurationError, match=words):
        ExclusionLog(out).exclude(code, reason)
    assert not (out / "exclusions").exists()


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "[]",
        '{"participant": "P01", "state": "excluded"}',
        '{"participant": "Anna", "state": "excluded", "reason": "", "utc": ""}',
        '{"participant": "P01", "state": "removed", "reason": "", "utc": ""}',
        '{"participant": "P01", "state": "excluded", "reason": 1, "utc": ""}',
        '{"participant": "P01", "state": "replacement", "of": 0, "experiment": "wood", "utc": ""}',
        '{"participant": "P01", "state": "replacement", "of": true, "experiment": "wood", "utc": ""}',
    ],
)
def test_damaged_log_is_refused(out, tmp_path, text):
    (out / "exclusions").mkdir()
    (out / "exclusions" / "entry-0000.json").write_text(text)
    for read in (ExclusionLog, read_status, lambda folder: export_sessions([folder], tmp_path / "csv")):
        with pytest.raises(ConfigurationError, match=r"entry-0000.json is no entry about an exclusion"):
            read(out)


def test_missing_entry_is_refused(out, tmp_path):
    """Without it, the later exclusions would be ignored."""
    for code in ("P01", "P02"):
        ExclusionLog(out).exclude(code, "noise")
    (out / "exclusions" / "entry-0000.json").unlink()
    for read in (ExclusionLog, read_status, lambda folder: export_sessions([folder], tmp_path / "csv")):
        with pytest.raises(ConfigurationError, match=r"entry-0000.json is missing, and later.*entry-0001.json exist"):
            read(out)


def test_status_of_one_participant_states_the_exclusion(out):
    ExclusionLog(out).exclude("P01", "noise\x1b[2J")
    for folder in (out, out / "sub-P01", out / "sub-P01" / "ses-01"):
        (found,) = read_status(folder)
        assert found.participants[-1].state == "excluded"
        assert "noise [2J" in as_text(found) and "\x1b" not in as_text(found)


def test_link_is_not_written_through(out, tmp_path):
    (out / "exclusions").mkdir()
    (out / "exclusions" / "entry-0000.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="no entry"):
        ExclusionLog(out)
    assert not (tmp_path / "elsewhere").exists()


def test_erasure_removes_the_code_and_the_reason_but_keeps_the_replacement(out):
    log = ExclusionLog(out)
    log.exclude("P01", "secret reason")
    log.replace("P03", "P01", "wood")
    log.exclude("P02", "as P01")
    found = find_participant(out, "P01")
    assert [path.name for path in found.mentions] == ["entry-0002.json"] and found.copies == ()
    erase(found)
    traces = [path for path in out.rglob("*") if path.is_file() and path.name not in (RECORD, "entry-0002.json")]
    assert not any(word in path.read_text() for path in traces for word in ("P01", "secret"))
    log = ExclusionLog(out)
    assert set(log.excluded) == {"P02"} and log.replaced_by("P03", "wood") is None
    log.replace("P04", "P02", "wood")
    assert log.replacement_of("P02", "wood") == "P04"


# --- training ---


def test_training_is_recorded_but_neither_analysed_nor_exported(tmp_path):
    file = scheduled(tmp_path, 'time_zone = "UTC"', 'time_zone = "UTC"\ntraining = [1]')
    file.write_text(file.read_text().replace("most_trials = 4", "most_trials = 1").replace("{ most_trials = 3 }", "{}"))
    design, out = read_design(file), tmp_path / "out"
    first, second = (run_session(design, Request("P01", k, 7, out, {}, True)) for k in (1, 2))
    assert Path(first["journal"]).is_file() and first["trials"] == second["trials"] > 0
    (session,) = export_sessions([out], tmp_path / "csv")
    assert session.place.session == 2
    assert "P01,1,training" in (tmp_path / "csv" / "left_out.csv").read_text()
    experiment = read_experiment([out])
    assert [one.place.session for one in experiment.sessions] == [2]
    assert left_out_words(experiment.left_out) == " 1 training session is not analysed."
    with pytest.raises(ConfigurationError, match=r"all 1 sessions are left out \(training\)"):
        read_experiment([Path(first["folder"])])


@pytest.mark.parametrize("training", ["[4]", "[1, 1]", "[1, 2, 3]", "1", '["1"]'])
def test_invalid_training_is_refused(tmp_path, training):
    with pytest.raises(ConfigurationError, match=r"toml:\d+: schedule.training"):
        read_design(scheduled(tmp_path, 'time_zone = "UTC"', f"training = {training}"))


# --- replacement ---


@pytest.fixture
def study(tmp_path):
    """Design with groups, and four participants, of whom P2 is excluded."""
    design, folder = read_design(with_groups(tmp_path)), tmp_path / "out"
    for number in range(1, 5):
        start(design, folder, f"P{number}")
    ExclusionLog(folder).exclude("P2", "ill")
    return design, folder


def start(design, out, code, replaces="", hand="left", session=1):
    """Begin and end a session; return slot, place in the group, and group."""
    journal, who = begin(design, Request(code, session, 7, out, {"hand": hand}, False, replaces=replaces))
    with journal:
        design, in_its_group = in_group(design, journal, who, out)
        journal.append("end", reason="completed", trials=0, repeated=0)
    return who.slot, in_its_group.slot, design.group


def test_replacement_takes_slot_group_and_order(study):
    design, out = study
    before = AssignmentLog(out, "weber").of("P2")
    assert start(design, out, "P5", replaces="P2") == (1, before.place, before.group)
    log = AssignmentLog(out, "weber")
    assert log.of("P2") is None and (log.of("P5").block, len(log.history.entries)) == (before.block, 4)
    assert reserve_slot(out, "weber", "P6") == 4, "the place of P2 is not free"
    assert start(design, out, "P5", session=2)[0] == 1
    (found,) = read_status(out)
    states = {one.participant: one for one in found.participants}
    assert (states["P2"].state, states["P2"].replaced_by, states["P5"].replaces) == ("excluded", "P5", "P2")
    assert "Excluded" in as_text(found) and "ill; replaced by P5" in as_text(found)
    assert "Ausgeschlossen" in as_page([found], "de") and "ersetzt durch P5" in as_page([found], "de")
    with pytest.raises(ConfigurationError, match="P2 has been replaced, so that"):
        ExclusionLog(out).include("P2", "a mistake")


@pytest.mark.parametrize(
    ("code", "replaces", "hand", "words"),
    [
        ("P5", "P1", "left", "P1 is not excluded"),
        ("P5", "P9", "left", "P9 is not excluded"),
        ("P5", "P5", "left", "P5 is not excluded"),
        ("P3", "P2", "left", "has a session of this experiment"),
        ("P2", "P2", "left", r"P2 was excluded \(ill\)"),
        ("P5", "P2", "right", "--field hand=right: a participant who replaces P2 must have hand=left"),
    ],
)
def test_impossible_replacement_is_refused_before_anything_is_written(study, code, replaces, hand, words):
    design, out = study
    before = {path: path.is_file() and path.read_bytes() for path in out.rglob("*")}
    with pytest.raises(ConfigurationError, match=words):
        start(design, out, code, replaces, hand)
    assert {path: path.is_file() and path.read_bytes() for path in out.rglob("*")} == before


def test_participant_who_has_begun_or_another_one_cannot_replace(study):
    design, out = study
    reserve_slot(out, "weber", "P6")
    with pytest.raises(ConfigurationError, match="P6 has begun already; a replacement must be new"):
        start(design, out, "P6", replaces="P2")
    start(design, out, "P5", replaces="P2")
    with pytest.raises(ConfigurationError, match="P2 has been replaced by P5 already"):
        start(design, out, "P7", replaces="P2")


@pytest.mark.parametrize("step", ["transfer_slot", "reserve_slot"])
def test_interrupted_replacement_is_completed_by_the_next_start(study, step, monkeypatch):
    design, out = study
    group = AssignmentLog(out, "weber").of("P2").group

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(running, step, killed)
        with pytest.raises(KeyboardInterrupt):
            start(design, out, "P5", replaces="P2")
    assert start(design, out, "P5")[::2] == (1, group)
    assert len(ExclusionLog(out).excluded) == 1 and len(list((out / "exclusions").iterdir())) == 2


def test_interrupted_replacement_is_of_one_participant_only(study, monkeypatch):
    design, out = study
    ExclusionLog(out).exclude("P3", "late")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(running, "transfer_slot", killed)
        with pytest.raises(KeyboardInterrupt):
            start(design, out, "P5", replaces="P2")
    with pytest.raises(ConfigurationError, match="P2 has been replaced by P5 already"):
        start(design, out, "P6", replaces="P2")
    with pytest.raises(ConfigurationError, match="P5 replaces P2 already"):
        start(design, out, "P5", replaces="P3")
    assert start(design, out, "P5", replaces="P2")[0] == 1
    assert start(design, out, "P6", replaces="P3")[0] == 2


def test_excluded_participant_neither_begins_nor_continues(study):
    design, out = study
    with pytest.raises(ConfigurationError, match=r"P2 was excluded \(ill\)"):
        start(design, out, "P2", session=2)
    with pytest.raises(ConfigurationError, match=r"P2 was excluded \(ill\)"):
        run_sessions(with_groups(out.parent), [Request("P2", 2, 7, out, {}, True)], 1)
    journal, _ = begin(design, Request("P1", 2, 7, out, {"hand": "left"}, False))
    journal.close()
    ExclusionLog(out).exclude("P1", "late")
    with pytest.raises(ConfigurationError, match=r"P1 was excluded \(late\)"):
        running.resume_session(journal.place.folder)
    assert [one["record"] for one in replay(journal.records).events] == []


def replace_all(out, number, taken):
    """Try to replace every excluded participant by own ones."""
    os.fsync = lambda _: None
    log = ExclusionLog(out)
    for k in range(20):
        try:
            log.replace(f"S{number}x{k}", f"P{k:02d}", "wood")
        except ConfigurationError:
            continue
        taken.put((k, number))


def test_stations_replace_each_participant_once(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    log = ExclusionLog(tmp_path)
    for k in range(20):
        (tmp_path / f"sub-P{k:02d}").mkdir()
        log.exclude(f"P{k:02d}", "x")
    context = multiprocessing.get_context("fork")
    taken = context.Queue()
    stations = [context.Process(target=replace_all, args=(tmp_path, number, taken)) for number in range(4)]
    for process in stations:
        process.start()
    found = [taken.get(timeout=60) for _ in range(20)]
    for process in stations:
        process.join()
    assert sorted(k for k, _ in found) == list(range(20)) and taken.empty()
    log.refresh()
    assert {log.replacement_of(f"P{k:02d}", "wood") for k in range(20)} == {f"S{n}x{k}" for k, n in found}


# --- commands ---


def test_commands_exclude_and_replace(tmp_path, capsys):
    file, out = changed(tmp_path, "most_trials = 4", "most_trials = 1", WEBER), tmp_path / "out"
    run = ["experiment", "run", str(file), "--observer", "simulated", "--out", str(out), "--json"]
    main([*run, "--participant", "P1"])
    assert main(["experiment", "exclude", str(out), "P1", "--reason", "asleep", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["excluded"] is True
    main([*run, "--participant", "P2", "--replaces", "P1"])
    assert json.loads((out / "sub-P2/ses-01/session.json").read_text())["slot"] == 0
    capsys.readouterr()
    main(["experiment", "export", str(out), "--to", "csv", "--out", str(tmp_path / "csv"), "--json"])
    assert json.loads(capsys.readouterr().out)["left_out"] == 1
    main(["experiment", "report", str(out), "--out", str(tmp_path / "report.html")])
    assert "left out: 1 session of excluded participants or training" in capsys.readouterr().out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("Excluded by the experimenter: P1 (asleep).") == 2, "as a warning, and in the methods"
    assert main([*run, "--participants", "2", "--replaces", "P1"]) == 2
    assert main(["experiment", "exclude", str(out), "P1", "--revoke", "--reason", "x"]) == 2
    assert "P1 has been replaced" in capsys.readouterr().err


def test_excluded_participant_is_not_due(tmp_path):
    design, out = read_design(scheduled(tmp_path)), tmp_path / "out"
    journal, _ = begin(design, Request("P1", 1, 7, out, {}, False, date=MONDAY))
    journal.append("end", reason="completed", trials=0, repeated=0)
    journal.close()
    assert read_status(out, MONDAY + timedelta(days=3))[0].participants[0].state == "due"
    ExclusionLog(out).exclude("P1", "moved away")
    (one,) = read_status(out, MONDAY + timedelta(days=3))[0].participants
    assert (one.state, one.session, one.exclusion) == ("excluded", None, "moved away")
