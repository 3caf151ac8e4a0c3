"""Sessions on several days: windows, deviations, resumption on a later day, and the status of participants."""

from __future__ import annotations

import json
import math
import multiprocessing
import shutil
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from apps.cli import main
from apps.experiment import command as experiment_command
from apps.experiment import schedule, status
from apps.experiment.command import describe
from apps.experiment.design import read_design
from apps.experiment.forms.forms import CONSENT
from apps.experiment.journal.exclusion import ExclusionLog
from apps.experiment.journal.folder import SessionFolder
from apps.experiment.journal.journal import Journal, read_journal, replay
from apps.experiment.power import make_study, outcome, simulate_people
from apps.experiment.preregister import as_markdown, preregistration
from apps.experiment.procedures.methods import make_procedure, trial_seed
from apps.experiment.procedures.settings import Carried
from apps.experiment.report.analysis import analyse
from apps.experiment.report.data import read_experiment
from apps.experiment.schedule import (
    SCHEDULED,
    carried_thresholds,
    day_of,
    earlier_thresholds,
    next_session,
    parse_day,
    scheduled_events,
    window_of,
)
from apps.experiment.session import running
from apps.experiment.session.running import Request, begin, resume_session, run_session
from apps.experiment.settings import AnalysisSettings, PowerSettings, ScheduleSettings
from apps.experiment.status import LANGUAGES, STATES, as_page, as_text, read_status
from haptics.errors import ConfigurationError, RecordingError
from tests.apps.experiment.designs import WEBER, changed
from tests.processes import ROOT

SCHEDULE = """\
[schedule]
sessions = 3
minimum_days = [2, 1]
maximum_days = [5, 10]
time_zone = "UTC"

"""

CARRYING = SCHEDULE + "carry_over = true\n\n"
STAIRCASE = 'kind = "staircase"\nstart = 0.5'
QUEST = WEBER.replace("reversals = 20\nmost_trials = 4", "trials = 6\nleast_trials = 6").replace(
    "{ most_trials = 3 }", "{}"
)

MONDAY = date(2026, 3, 2)


def scheduled(folder, old="", new=""):
    """Write the experiment with a schedule, in which `old` is replaced by `new`; return the file."""
    return changed(folder, old, new, WEBER.replace("[catch]", SCHEDULE + "[catch]"))


@pytest.fixture
def design(tmp_path):
    return read_design(scheduled(tmp_path))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def hold(design, out, session, days, code="P01", end="completed", **more):
    """Hold a session of a participant `days` days after the Monday, without trials; return its journal."""
    day = MONDAY + timedelta(days=days)
    journal, _ = begin(design, Request(code, session, 7, out, {}, False, date=day, **more))
    if end:
        journal.append("end", reason=end, trials=0, repeated=0)
    journal.close()
    return journal


WRONG = [
    ("sessions = 3", "sessions = 100", "schedule.sessions"),
    ("sessions = 3", "", "schedule.sessions: is missing"),
    ("[2, 1]", "[2, 1, 1]", "a list of 2"),
    ("[2, 1]", "-1", "schedule.minimum_days"),
    ("[2, 1]", "true", "schedule.minimum_days"),
    ("[2, 1]", "[]", "schedule.minimum_days"),
    ("[5, 10]", "[1, 10]", "at least schedule.minimum_days"),
    ("[5, 10]", "1.5", "schedule.maximum_days"),
    ('"UTC"', '"Mars/Olympus"', "schedule.time_zone"),
    ('"UTC"', '"../../etc/passwd"', "schedule.time_zone"),
]


@pytest.mark.parametrize(("old", "new", "words"), WRONG, ids=[new or "none" for _, new, _ in WRONG])
def test_invalid_schedule_is_refused_with_its_place(tmp_path, old, new, words):
    path = scheduled(tmp_path, old, new)
    with pytest.raises(ConfigurationError) as caught:
        read_design(path)
    assert str(caught.value).startswith(f"{path}:") and words in str(caught.value)


def test_one_number_of_days_applies_to_every_session():
    settings = ScheduleSettings(sessions=3, minimum_days=2)
    assert (settings.minimum_days, settings.maximum_days) == ((2, 2), ())
    assert window_of(settings, 3, MONDAY).first == MONDAY + timedelta(days=2)
    assert window_of(settings, 3, MONDAY).last is None is window_of(settings, 1, MONDAY).first
    assert str(window_of(ScheduleSettings(sessions=2, maximum_days=1), 2, MONDAY)) == "from 2026-03-03 to 2026-03-03"


def test_preregistration_states_the_schedule(design):
    page = as_markdown(preregistration(design, None, None))
    assert "- Sessions of each participant: 3; days after the previous one: at least 2, 1, at most 5, 10" in page


def test_power_counts_the_sessions_that_are_analysed(tmp_path):
    """Two analysed sessions have twice the trials; the minutes are of one session."""
    found = {}
    for sessions in ("", "[schedule]\nsessions = 3\ntraining = [1]\n\n"):
        design = read_design(
            changed(tmp_path, "[catch]", f"{sessions}[catch]", QUEST.replace(STAIRCASE, 'kind = "quest+"'))
        )
        settings = PowerSettings(question="precision", participants=[4, 8], people=20)
        study = make_study(design, settings, {})
        found[bool(sessions)] = outcome(design, study, settings, simulate_people(study, 0, 20), 1.0)
    assert found[True]["trials"]["1 N"] == 2 * found[False]["trials"]["1 N"]
    assert found[True]["minutes"] == pytest.approx(found[False]["minutes"])


# --- windows ---


@pytest.mark.parametrize(
    ("days", "kind", "words"),
    [
        (1, "early", "session 2 of P01 is due from 2026-03-04 to 2026-03-07, and today is 2026-03-03"),
        (2, "", ""),
        (5, "", ""),
        (6, "late", "session 2 of P01 had to begin from 2026-03-04 to 2026-03-07, and today is 2026-03-08"),
        (-1, "clock", "today is 2026-03-01 by the clock of this computer, but session 1 was on 2026-03-02"),
    ],
)
def test_session_outside_its_window_needs_a_reason(design, out, days, kind, words):
    """A refused session writes nothing; a forced one records the deviation and its reason."""
    hold(design, out, 1, 0)
    before = sorted(out.rglob("*"))
    if kind:
        with pytest.raises(ConfigurationError, match="--outside-window REASON") as caught:
            hold(design, out, 2, days)
        assert words in str(caught.value) and sorted(out.rglob("*")) == before
    (event,) = scheduled_events(replay(hold(design, out, 2, days, outside="ill").records))
    assert (event["date"], event["days"]) == (str(MONDAY + timedelta(days=days)), days)
    assert (event.get("outside"), event.get("reason")) == ((kind, "ill") if kind else (None, None))


def test_sessions_are_in_order(design, out):
    with pytest.raises(ConfigurationError, match="session 1 of P01 is not in"):
        hold(design, out, 2, 0)
    hold(design, out, 1, 0, end="")
    with pytest.raises(ConfigurationError, match="session 1 of P01 has not ended: resume it first"):
        hold(design, out, 2, 3)
    with pytest.raises(ConfigurationError, match=r"the experiment has 3 \(schedule.sessions\)"):
        hold(design, out, 4, 3, outside="more data")
    assert hold(design, out, 2, 3, outside="too old to resume").records[1]["outside"] == "order"


def test_participant_without_consent_is_not_due(design, out):
    journal, _ = begin(design, Request("P01", 1, 7, out, {}, False, date=MONDAY))
    journal.append("event", name=CONSENT, agreed=False)
    journal.append("end", reason="consent refused", trials=0, repeated=0)
    journal.close()
    with pytest.raises(ConfigurationError, match="P01 did not consent in session 1"):
        hold(design, out, 2, 3)
    ((one,),) = (found.participants for found in read_status(out, MONDAY))
    assert (one.state, one.session) == ("stopped", None)


def test_experiment_without_schedule_has_any_sessions(tmp_path, out):
    design = read_design(changed(tmp_path))
    journals = [hold(design, out, session, 0) for session in (5, 2)]
    assert [one["record"] for journal in journals for one in journal.records] == ["header", "end"] * 2


def test_days_begin_at_midnight_in_the_time_zone(monkeypatch):
    """Half past eleven in the evening in Berlin and half past midnight are different days, although not in UTC."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.time.astimezone(tz)

    monkeypatch.setattr(schedule, "datetime", Clock)
    found = []
    for hour, minute in ((22, 30), (23, 30)):
        Clock.time = datetime(2026, 3, 2, hour, minute, tzinfo=UTC)
        found.append([schedule.today_in(zone) for zone in (timezone(timedelta(hours=1)), UTC)])
    assert found == [[MONDAY, MONDAY], [MONDAY + timedelta(days=1), MONDAY]]


def test_day_of_a_journal_from_before_the_schedule_is_that_of_its_last_record(tmp_path, out):
    journal = hold(read_design(changed(tmp_path)), out, 1, 0)
    state = replay(journal.records)
    state.last_utc = "2026-03-02T23:30:00+00:00"
    assert [day_of(state, zone).day for zone in (UTC, timezone(timedelta(hours=1)))] == [2, 3]
    for text in ("", "yesterday", "9999-12-31T23:59:59+00:00"):
        state.last_utc = text
        with pytest.raises(RecordingError, match="its day is invalid"):
            day_of(state, UTC)


def begin_twice(file, out, barrier, results):
    """Begin the second session of a participant at the same time as other stations."""
    design = read_design(file)
    barrier.wait(60.0)
    try:
        hold(design, out, 2, 3)
        results.put("begun")
    except ConfigurationError as error:
        results.put(str(error))


def test_stations_cannot_begin_the_same_session(design, out):
    hold(design, out, 1, 0)
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(3), context.Queue()
    stations = [context.Process(target=begin_twice, args=(design.path, out, barrier, results)) for _ in range(3)]
    for process in stations:
        process.start()
    found = [results.get(timeout=60.0) for _ in stations]
    for process in stations:
        process.join()
    assert found.count("begun") == 1 and sum("sub-P01/ses-02" in text for text in found) == 2
    assert len(scheduled_events(replay(read_journal(next(out.glob("sub-P01/ses-02/*.jsonl"))).records))) == 1


@pytest.mark.parametrize("table", ["x", {"sessions": "3"}, {"sessions": 10**9}, {"sessions": 2, "later": 1}])
def test_status_ignores_an_invalid_schedule_in_a_journal(design, out, table):
    journal = hold(design, out, 1, 0).place.journal
    header, *rest = journal.read_text().splitlines(keepends=True)
    record = json.loads(header)
    record["design"] |= {"schedule": table, "experiment": {"title": "<script>", "language": 3}}
    journal.write_text("".join([json.dumps(record) + "\n", *rest]))
    (found,) = read_status(out, MONDAY)
    assert found.participants[0].state == "finished" and "<script>" not in as_page([found])


# --- resumption ---


@pytest.fixture
def resume(monkeypatch):
    """Resume the sessions of persons on a day, without running them."""
    monkeypatch.setattr(running, "_require_possible", lambda *_: None)
    monkeypatch.setattr(running, "_run", lambda design, journal, *_: journal.records)

    def on(place, days, **more):
        monkeypatch.setattr(running, "today_in", lambda zone: MONDAY + timedelta(days=days))
        return resume_session(place.folder, **more)

    return on


def test_resumed_session_counts_for_the_later_day(design, out, resume):
    place = hold(design, out, 1, 0, end="").place
    assert [one["name"] for one in resume(place, 3)[1:]] == [SCHEDULED, "resumed", SCHEDULED]
    with Journal.open(place) as journal:
        journal.append("end", reason="completed", trials=0, repeated=0)
    with pytest.raises(ConfigurationError, match="is due from 2026-03-07 to 2026-03-10"):
        hold(design, out, 2, 4)
    hold(design, out, 2, 8)


def test_session_is_not_resumed_after_its_window_or_before_its_day(design, out, resume):
    hold(design, out, 1, 0)
    place = hold(design, out, 2, 4, end="").place
    size = place.journal.stat().st_size
    with pytest.raises(ConfigurationError, match="session 2 was on 2026-03-06: set it"):
        resume(place, 3)
    with pytest.raises(ConfigurationError, match="session 2 of P01 had to continue from 2026-03-04 to 2026-03-07"):
        resume(place, 6)
    assert place.journal.stat().st_size == size
    assert resume(place, 6, outside="snow")[-1]["reason"] == "snow"
    assert resume(place, 7)[-1]["date"] == "2026-03-09", "the deviation has been accepted before"


def test_simulated_session_is_resumed_on_its_simulated_day(design, out, resume):
    journal, _ = begin(design, Request("P01", 1, 7, out, {}, True, date=MONDAY))
    journal.close()
    assert len(scheduled_events(replay(resume(journal.place, 100)))) == 1


# --- status ---


@pytest.fixture
def study(design, out):
    """Participants in every state on the second Monday."""
    for code, days in (("due", (3,)), ("later", (2, 7)), ("over", (0,)), ("done", (-9, -7, 0)), ("soon", (2,))):
        for session, day in enumerate(days, 1):
            hold(design, out, session, day, code)
    hold(design, out, 1, 3, "open", end="")
    hold(design, out, 1, 4, "ended", end="ended by a person")
    hold(design, out, 1, 0, "odd").place.journal.write_text("no journal\n")
    place = hold(design, out, 1, 0, "far").place
    place.journal.write_text(place.journal.read_text().replace('"date": "2026-03-02"', '"date": "9999-12-31"'))
    hold(design, out, 2, 5, "ended", outside="<b>")
    moved = hold(design, out, 1, 0, "moved").place.journal
    moved.write_text(moved.read_text().replace('"participant": "moved"', '"participant": "due"'))
    hold(design, out, 1, 0, "gone")
    ExclusionLog(out).exclude("gone", "<b>ill")
    return out


def test_status_shows_who_is_due(study):
    (found,) = read_status(study, MONDAY + timedelta(days=7))
    states = {one.participant: (one.state, one.session) for one in found.participants}
    assert states == {
        "over": ("overdue", 2),
        "soon": ("due", 2),
        "due": ("due", 2),
        "ended": ("due", 3),
        "open": ("open", 1),
        "later": ("later", 3),
        "done": ("finished", None),
        "gone": ("excluded", None),
        "far": ("unreadable", None),
        "moved": ("unreadable", None),
        "odd": ("unreadable", None),
    }
    assert list(states) == "over soon due ended open later done gone far moved odd".split(), "most urgent first"
    text = " ".join(as_text(found).split())
    assert "Due soon 2 of 3 2026-03-06 2026-03-09 0 2026-03-04" in text
    assert "session 1: ended by a person; session 2: run before its window" in text
    assert {one.state for one in found.participants} | {"stopped"} == set(STATES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_page_has_every_word_in_each_language(study, language):
    page = as_page(read_status(study, MONDAY + timedelta(days=7)), language)
    own, other = (status._WORDS[one] for one in (language, next(one for one in LANGUAGES if one != language)))
    assert f'<html lang="{language}">' in page and f"<h1>{own['title']}</h1>" in page
    assert all(own[state] in page and other[state] not in page for state in STATES if state != "stopped")
    assert page.count("<tr>") == 7 + 11 and "<b>" not in page
    assert "ended by a person" not in as_page(read_status(study), "de")


def test_status_hides_groups_and_conditions_of_a_blind_experiment(tmp_path, out):
    """Neither the text, the page nor the data contain any data that are hidden from a blind experimenter."""
    groups = '[groups]\nnames = ["wetgroup", "drygroup"]\nblind = true\n\n[experiment]\nblind = true'
    path = scheduled(tmp_path, "[experiment]", groups)
    path.write_text(path.read_text().replace('name = "1 N"', 'name = "secret"'))
    design = read_design(path)
    journal, who = begin(design, Request("P01", 1, 7, out, {}, False, date=MONDAY))
    with journal:
        running.in_group(design, journal, who, out)
    (found,) = read_status(out, MONDAY)
    for text in (as_text(found), as_page([found]), json.dumps(status.as_json(found))):
        assert not any(word in text for word in ("wetgroup", "drygroup", "secret", "slot", "track"))


def test_folder_without_sessions_is_refused(tmp_path):
    with pytest.raises(RecordingError, match="holds no session"):
        read_status(tmp_path)


# --- commands ---


def command(capsys, *arguments):
    """Run the command; return its exit status, output and messages."""
    code = main(["experiment", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_simulated_participants_run_all_sessions_on_simulated_days(tmp_path, out, capsys, monkeypatch):
    monkeypatch.setattr(running, "today_in", lambda zone: MONDAY)  # the day of the computer may change during the test
    text = (ROOT / "examples/experiments/three_sessions.toml").read_text(encoding="utf-8")
    file = tmp_path / "three_sessions.toml"
    file.write_text(text.replace("most_trials = 40", "most_trials = 2"), encoding="utf-8")
    run = ("run", file, "--observer", "simulated", "--participants", 2, "--workers", 1, "--out", out, "--json")
    code, printed, _ = command(capsys, *run)
    results = json.loads(printed)["sessions"]
    assert code == 0 and [one["participant"] for one in results] == ["sim01", "sim02"] * 3
    assert [one.get("next_session", {}).get("session") for one in results] == [2, 2, 3, 3, None, None]
    first_day = parse_day(results[0]["next_session"]["due"].split()[1])
    code, printed, _ = command(capsys, "status", out, "--json", "--out", tmp_path / "page.html")
    (found,) = json.loads(printed)["experiments"]
    for one in found["participants"]:
        first, second, third = (parse_day(session["day"]) for session in one["sessions"])
        assert second == first_day and "session 3 is due from" in describe(results[2])
        assert one["state"] == "finished" and (second - first, third - second) == (timedelta(days=1),) * 2
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_run_continues_with_the_next_session(design, out):
    assert next_session(out, "P01", "weber") == 1
    hold(design, out, 1, 0)
    assert next_session(out, "P01", "weber") == 2 and next_session(out, "P02", "weber") == 1
    (out / "sub-P01" / "ses-99x").mkdir()
    hold(design, out, 2, 3)
    assert next_session(out, "P01", "weber") == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--observer", "simulated", "--date", "2026-03-02"), "--date: needs"),
        (("--observer", "simulated", "--session", 1, "--date", "2.3.2026"), "must be a date such as 2026-11-28"),
        (("--participant", "P01", "--session", 1, "--date", "2026-03-02"), "--date: needs"),
        (("--observer", "simulated", "--session", 2), "session 1 of sim01 is not in"),
    ],
)
def test_command_refuses_before_anything_is_written(tmp_path, out, capsys, arguments, words):
    code, _, errors = command(capsys, "run", scheduled(tmp_path), "--out", out, *arguments)
    assert code == 2 and words in errors and not out.exists()
    assert "no table" in command(capsys, "run", changed(tmp_path), "--outside-window", "x", "--participant", "P1")[2]


@pytest.mark.parametrize(
    ("reason", "words"),
    [("", "must be given"), (" ", "must be given"), ("x" * 501, "at most 500"), ("a@b", "an address")],
)
def test_invalid_reason_outside_the_window_is_refused(tmp_path, design, out, capsys, reason, words):
    run = ("run", scheduled(tmp_path), "--out", out, "--observer", "simulated", "--outside-window", reason)
    code, _, errors = command(capsys, *run)
    assert code == 2 and "--outside-window: " in errors and words in errors and not out.exists()
    hold(design, out, 1, 0)
    if reason.strip():
        with pytest.raises(ConfigurationError, match=words):
            hold(design, out, 2, 1, outside=reason)


def test_failure_of_the_report_keeps_the_results(tmp_path, out, capsys, monkeypatch):
    def fails(*_):
        raise ValueError("no\nfit")

    monkeypatch.setattr(experiment_command, "_write_report", fails)
    file, page = changed(tmp_path, "most_trials = 4", "most_trials = 1"), tmp_path / "a report.html"
    run = ("run", file, "--observer", "simulated", "--participant", "P1", "--out", out, "--report", page, "--json")
    code, printed, errors = command(capsys, *run)
    result, (line,) = json.loads(printed), [one for one in errors.splitlines() if "--report" in one]
    assert code == 2 and result["report"] is None and Path(result["journal"]).is_file()
    assert "not written (no fit)" in line and f"experiment report {out / 'sub-P1'} --out '{page}'" in line
    assert "Traceback" not in errors


def test_status_ignores_folders_that_are_no_sessions(study):
    """Folders that are no sessions are ignored."""
    (study / "sub-P9" / "ses-01").mkdir(parents=True)
    (study / "sub-P9" / "ses-01" / "x_journal.jsonl").write_text("x")
    assert len(read_status(study)[0].participants) == 11


# --- carry-over ---


def carrying(folder, text=WEBER, old="", new=""):
    """Write the experiment with carry-over, in which `old` is replaced by `new`; return its design."""
    return read_design(changed(folder, old, new, text.replace("[catch]", CARRYING + "[catch]")))


def simulate(design, out, session):
    """Run a session with a simulated observer; return its state."""
    result = run_session(design, Request("P01", session, 7, out, {}, True))
    return replay(read_journal(Path(result["journal"])).records)


def first_levels(state):
    """Return the first level of each track."""
    found = {}
    for one in state.attempts:
        if one.start["track"] is not None:
            found.setdefault(one.start["track"], one.start["level"])
    return found


def test_staircase_begins_where_the_last_session_ended(tmp_path, out):
    """Few reversals: the last level; a threshold beyond the levels is limited to them."""
    design = carrying(tmp_path)
    first, second = simulate(design, out, 1), simulate(design, out, 2)
    assert first_levels(first) == {"1 N/1": 0.5, "2 N/1": 0.5}
    (found,) = (one["tracks"] for one in first.events if one["name"] == "thresholds")
    assert first_levels(second) == {label: pytest.approx(one["level"]) for label, one in found.items()}
    assert all(one["level"] != 0.5 for one in found.values())
    (event,) = (one for one in second.events if one["name"] == "carried-over")
    assert {label: (one["level"], one["session"]) for label, one in event["tracks"].items()} == {
        label: (one["level"], 1) for label, one in found.items()
    }


def test_new_participant_begins_with_the_level_of_the_file(tmp_path, out):
    state = simulate(carrying(tmp_path), out, 1)
    assert [one["tracks"] for one in state.events if one["name"] == "carried-over"] == [{}]


@pytest.mark.parametrize(("level", "start"), [(0.1, 0.1), (1e-9, 0.02), (50.0, 2.0)])
def test_carried_level_is_within_the_levels_of_the_staircase(design, level, start):
    table = design.procedure_of(design.conditions[0])
    made = make_procedure(table, guess=0.5, seed=trial_seed(0, 0, 0, 0, 0), carried=Carried(level, 0.5))
    assert made.level() == pytest.approx(start)


def test_prior_of_quest_is_the_posterior_of_the_last_session_and_a_change():
    """Without answers, estimate and spread are equal to the last session, also at the end of the grid."""
    table = {"kind": "quest+", "minimum": 0.01, "maximum": 1.0, "thresholds": 200}
    for level, spread in ((0.1, 0.3), (0.05, 0.6)):
        made = make_procedure(table, guess=0.5, seed=trial_seed(0, 0, 0, 0, 0), carried=Carried(level, spread))
        report = made.report()
        assert report["estimate"] == pytest.approx(level, rel=0.02)
        assert report["log_sd"] == pytest.approx(spread, rel=0.1)
    made = make_procedure(table, guess=0.5, seed=trial_seed(0, 0, 0, 0, 0), carried=Carried(1e9, 1e-3))
    assert made.report()["estimate"] == pytest.approx(1.0)


@pytest.mark.parametrize("spread", [0.0, 1e-300, 1e-9, 1e-3])
@pytest.mark.parametrize("level", [0.1, 0.0123, 1e-9])
def test_prior_of_quest_with_a_small_spread_is_finite(level, spread):
    table = {"kind": "quest+", "minimum": 0.01, "maximum": 1.0, "thresholds": 5}
    made = make_procedure(table, guess=0.5, seed=trial_seed(0, 0, 0, 0, 0), carried=Carried(level, spread))
    report = made.report()
    assert math.isfinite(report["log_sd"]) and 0.005 < report["estimate"] < 0.2
    for _ in range(30):
        made.add_outcome(made.level(), False)
    assert made.report()["estimate"] > report["estimate"], "the answers can change the threshold"


def test_quest_carries_its_posterior_over(tmp_path, out):
    design = carrying(tmp_path, QUEST, STAIRCASE, 'kind = "quest+"')
    first, second = simulate(design, out, 1), simulate(design, out, 2)
    (found,) = (one["tracks"] for one in first.events if one["name"] == "thresholds")
    carried = carried_thresholds(second)
    for label, one in found.items():
        assert carried[label] == (one["level"], pytest.approx(math.hypot(one["log_sd"], 0.5)))
    (found,) = (one["tracks"] for one in second.events if one["name"] == "thresholds")
    experiment = read_experiment([out])
    person = analyse(experiment, experiment.people[0], AnalysisSettings())
    reports = [one for condition in person.conditions for one in condition.procedures if one["session"] == 2]
    assert {one["track"]: one["estimate"] for one in reports} == {
        label: pytest.approx(one["level"]) for label, one in found.items()
    }


def test_interrupted_session_continues_with_its_carried_thresholds(tmp_path, out):
    """The thresholds are those in the journal of the session, even if the earlier session is erased in the meantime."""
    design = carrying(tmp_path)
    simulate(design, out, 1)
    whole = simulate(design, out, 2)
    place = SessionFolder.of(out / "sub-P01" / "ses-02")
    records = place.journal.read_text().splitlines(keepends=True)
    half = next(k for k, line in enumerate(records) if '"record": "response"' in line and '"trial": 4' in line)
    place.journal.write_text("".join(records[:half]))
    shutil.rmtree(out / "sub-P01" / "ses-01")
    resume_session(place.folder)
    again = replay(read_journal(place.journal).records)
    assert [one.start["level"] for one in again.counted_attempts.values()] == [
        one.start["level"] for one in whole.counted_attempts.values()
    ]
    assert carried_thresholds(again) == carried_thresholds(whole) != {}


@pytest.mark.parametrize("tracks", ["x", {"1 N/1": 1.0}, {"1 N/1": {"level": -1.0, "log_sd": 0.1}}, None])
def test_invalid_threshold_of_an_earlier_session_is_refused(tmp_path, out, tracks):
    design = carrying(tmp_path)
    journal, _ = begin(design, Request("P01", 1, 7, out, {}, True, date=MONDAY))
    journal.append("event", name="thresholds", tracks=tracks)
    journal.append("end", reason="completed", trials=0, repeated=0)
    journal.close()
    with pytest.raises(RecordingError, match="participant P01, session 1: the event thresholds is invalid"):
        earlier_thresholds(design.schedule, out, "P01", "weber", 2)


def test_carry_over_needs_an_adaptive_procedure(tmp_path):
    text = WEBER.replace("minimum = 0.02\nmaximum = 2.0\nreversals = 20\nmost_trials = 4", "trials = 4")
    text = text.replace("{ most_trials = 3 }", "{}")
    with pytest.raises(ConfigurationError, match=r"toml:\d+: schedule.carry_over = true: needs a staircase or QUEST"):
        carrying(tmp_path, text, STAIRCASE, 'kind = "series"\nlevel = 0.5')
