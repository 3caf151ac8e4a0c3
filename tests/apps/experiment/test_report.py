"""Reports and preregistrations of experiments."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import html
import io
import json
import math
import os
import re
import shutil
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from apps.cli import main
from apps.experiment.command import describe_report
from apps.experiment.design import read_design
from apps.experiment.journal import Journal, SessionFolder
from apps.experiment.journal.schema import COMMON
from apps.experiment.observers import make_observer
from apps.experiment.preregister import as_markdown, preregistration
from apps.experiment.procedures.methods import Tracks, make_procedure, trial_seed
from apps.experiment.report.analysis import analyse, analyse_group, as_json, levels_of, staircase_percent
from apps.experiment.report.data import read_experiment
from apps.experiment.report.factors import analyse_effects
from apps.experiment.report.forms import analyse_forms
from apps.experiment.report.page import SIMULATED, form_table, report, timing
from apps.experiment.sequence import Participant, TrialSequence
from apps.experiment.settings import AnalysisSettings
from apps.experiment.trial import TASKS, TrialView
from apps.experiment.trial_log import TrialLog
from haptics.errors import ConfigurationError, RecordingError
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.experiment.journal.records import HEADER, begin_block, end, run_trial

SEED = 11

WITHDRAWN = "withdrawn by the participant or the experimenter"

QUEST = {"kind": "quest+", "minimum": 0.02, "maximum": 3.0, "trials": 30}


def design(task="discrimination", references=(1.0, 2.0), **tables):
    return {
        "experiment": {"name": "weber-friction", "title": "Weber function of friction", "task": task, "seed": SEED},
        "stimulus": {"axis": "law.force"},
        "session": {"model": "C"},
        "law": {"name": "coulomb", "force": 1.0},
        "conditions": [{"name": f"{one:g} N", "reference": one} for one in references],
        "procedure": dict(QUEST),
        "catch": {"easy": 0.1},
        "observer": {"weber": 0.12, "spread": 0.2},
        **tables,
    }


def header(tables, simulated=True):
    who = {"fields": {}, "observer": dict(tables["observer"])} if simulated else {}
    device = {"name": "virtual-joystick", "parameter_file_hash": "ab" * 32}
    return HEADER | {"experiment": tables["experiment"]["name"], "design": tables, "seed": SEED, "device": device} | who


def write_session(out, code="P01", tables=None, session=1, simulated=True):
    """Write a session as the engine does, with its procedures and a simulated observer; return its folder.

    There are no recordings: the stimuli are known only as asked.
    """
    tables = tables or design()
    task, conditions, catches = str(tables["experiment"]["task"]), tables["conditions"], tables["catch"]
    place = SessionFolder.new(out, code, session, tables["experiment"]["name"])
    journal = Journal.create(place, header(tables, simulated))
    observer = make_observer(tables["observer"], seed=trial_seed(SEED, code, 0, 0, 1))
    trial = 0

    def present(condition, level, kind="test", track=None):
        nonlocal trial
        trial += 1
        reference, comparison = float(condition["reference"]), 1 + (trial % 4 >= 2)
        if TASKS[task].intervals == 1:
            order, values = None, [level if task in {"estimation", "adjustment"} else reference + level]
        else:
            order, values = comparison, [reference, reference + level][:: 1 if comparison == 2 else -1]
        view = TrialView(task, "law.force", reference, level, tuple(values), order)
        answer = observer.answer(view, np.random.default_rng(trial_seed(SEED, code, session, 1, trial)))
        correct, markers = answer.correct(view), [100 * trial + 11 + k for k in range(len(values))]
        given = {"response": answer.response, "correct": correct, "reaction_time_s": answer.reaction_time, "tick": None}
        stimulus = {"reference": reference, "level": level, "comparison_interval": order, "values": values}
        labels = {"kind": kind, "condition": condition["name"], "track": track, "markers": markers}
        run_trial(journal, trial, answer=given, **labels, **stimulus)
        return bool(correct)

    begin_block(journal)
    seeds = [trial_seed(SEED, code, session, 0, number) for number in range(len(conditions))]
    procedures = [make_procedure(tables["procedure"], guess=TASKS[task].guess or 0.0, seed=seed) for seed in seeds]
    tracks, done = Tracks(procedures, trial_seed(SEED, code, session, 0, 99)), 0
    while not tracks.finished:
        done += 1
        index, level = tracks.next()
        condition = conditions[index]
        tracks.add_outcome(index, level, present(condition, level, track=f"{condition['name']}/1"))
        if catches.get("easy") and done % round(1.0 / catches["easy"]) == 0:
            present(condition, condition["reference"] or 10.0 * level, "catch-easy")
        if catches.get("null") and done % round(1.0 / catches["null"]) == 1:
            present(condition, 0.0, "catch-null")
    journal.append("end", reason="completed", trials=trial, repeated=0)
    journal.close()
    return place.folder


@pytest.fixture(scope="module")
def weber(tmp_path_factory):
    """Three simulated observers, two references, QUEST+, without flushing to the disk."""
    out = tmp_path_factory.mktemp("weber")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        for code in ("P01", "P02", "P03"):
            write_session(out, code, design(catch={"easy": 0.1, "null": 0.05}))
    return out


def found_in(folder, **settings):
    experiment = read_experiment([folder])
    chosen = AnalysisSettings(**settings)
    return experiment, [analyse(experiment, person, chosen) for person in experiment.people]


def test_weber_function_is_recovered(weber):
    experiment, people = found_in(weber)
    assert [one.code for one in people] == ["P01", "P02", "P03"]
    assert experiment.simulated
    told = [one for person in people for condition in person.conditions for one in condition.differences]
    assert [condition.reference for condition in people[0].conditions] == [1.0, 2.0]
    assert sum(bool(one.holds_truth) for one in told) >= 4  # of 6; coverage itself is tested with the fits
    for one in told:
        assert one.percent == 75.0
        assert one.true_weber == pytest.approx(0.12, rel=0.7)
    assert len({one.true_weber for one in told}) == 6  # every simulated person and reference has its own
    group = analyse_group(experiment, people, AnalysisSettings())
    assert [(one.reference, one.simulated) for one in group.conditions] == [(1.0, 3), (2.0, 3)]
    for one in group.conditions:
        assert one.weber.mean.low <= one.weber.mean.value <= one.weber.mean.high


def test_change_of_the_threshold_is_analysed_on_request(weber):
    settings = AnalysisSettings(drift="auto", probability=0.9)
    experiment, people = found_in(weber, drift="auto", probability=0.9)
    (first, *_), plain = people[0].conditions, found_in(weber, probability=0.9)[1][0].conditions[0]
    assert "drift" not in as_json(plain)
    told = json.loads(json.dumps(as_json(first)))["drift"]
    assert told["changes"] is (told["bayes_factor"] > 2.0)
    assert [len(one["trials"]) for one in told["courses"]] == [6]
    assert first.drift.constant.threshold(0.75, 0.9) == plain.differences[0].jnd
    assert told["constant"][0]["average_of_these_sessions"] == plain.differences[0].jnd.as_dict()
    assert told["courses"][0]["low"] == first.drift.time_courses(0.75, 0.9)[0].low.tolist()
    page = report(experiment, people, analyse_group(experiment, people, settings), settings)
    assert page.count("<h2>Change within the sessions</h2>") == 3
    assert "averages over fits with and without such a change" in page
    assert "medians of the posterior with 90 % credible intervals" in page
    assert page.count(">95 % interval<") == 3  # of the size of the change, in three tables


def test_fit_uses_only_counted_trials_and_agrees_with_the_procedure(weber):
    experiment, people = found_in(weber)
    for person, result in zip(experiment.people, people, strict=True):
        assert [len(one.rows) for one in result.conditions] == [30, 30]
        assert result.catches.easy == len(person.trials("catch-easy")) > 0
        assert result.catches.null > 0
        assert result.catches.lapse is not None
        assert all(one.fit is not None and one.fit.answers.trials == 30 for one in result.conditions)
    for condition in people[0].conditions:
        (procedure,) = condition.procedures
        assert procedure["trials"] == 30
        assert procedure["target_percent"] == pytest.approx(75.0)
        fitted = condition.fit.threshold(0.75)
        assert math.log(procedure["estimate"] / fitted.value) == pytest.approx(0.0, abs=1.0)


def test_differences_have_the_requested_percentages(weber):
    _, people = found_in(weber, percent=(71.0, 84.0))
    for condition in people[0].conditions:
        low, high = condition.differences
        assert (low.percent, high.percent) == (71.0, 84.0)
        assert low.jnd.value <= high.jnd.value
        assert high.true_jnd / low.true_jnd == pytest.approx(0.9945 / 0.5534, rel=1e-3)  # z of 84 and 71 %


def test_reversals_agree_with_the_trials(tmp_path):
    table = {"kind": "staircase", "start": 0.5, "minimum": 0.02, "maximum": 1.0, "trials": 20, "reversals": 6}
    write_session(tmp_path, tables=design(references=(1.0,), procedure=table, catch={}))
    experiment, (person,) = found_in(tmp_path)
    (procedure,) = person.conditions[0].procedures
    rows = person.conditions[0].rows
    assert len(procedure["reversals"]) >= 6
    for one in procedure["reversals"]:
        assert rows[one["trial"] - 1]["level"] == one["level"]
        assert bool(rows[one["trial"] - 1]["correct"]) is (one["direction"] == "down")
    assert staircase_percent(experiment) == [pytest.approx(procedure["target_percent"], abs=0.01)]


def assert_figure(folder, task, figure):
    """Assert that the report of sessions names the task and has its figure."""
    html, result = report_of(folder, folder / "R.html")
    assert result["task"] == task
    assert f'alt="{figure}"' in html and figures(html)


def test_magnitude_estimates_yield_the_exponent(tmp_path):
    table = {"kind": "estimation", "levels": [0.5, 1.0, 2.0, 4.0], "repeats": 6}
    tables = design("estimation", (1.0,), procedure=table, catch={}, observer={"exponent": 1.4, "weber": 0.1})
    for code in ("P01", "P02"):
        write_session(tmp_path, code, tables)
    experiment, people = found_in(tmp_path)
    assert people[0].magnitude.exponent.low <= 1.4 <= people[0].magnitude.exponent.high
    group = analyse_group(experiment, people, AnalysisSettings())
    assert len(group.magnitude.exponents) == 2
    assert group.magnitude.exponent.value == pytest.approx(1.4, abs=0.15)
    assert_figure(tmp_path, "estimation", "Power law")


def test_adjustments_yield_their_spread(tmp_path):
    table = {"kind": "adjustment", "starts": [0.5, 1.5], "repeats": 15}
    write_session(tmp_path, tables=design("adjustment", (1.0,), procedure=table, catch={}))
    _, (person,) = found_in(tmp_path)
    (condition,) = person.conditions
    assert condition.settings["point"].low <= 1.0 <= condition.settings["point"].high
    (difference,) = condition.differences
    assert difference.percent == pytest.approx(84.13)
    assert difference.holds_truth
    assert_figure(tmp_path, "adjustment", "Values that were set")


@pytest.mark.parametrize("task", ["detection", "same-different"])
def test_detection_tasks_have_thresholds_and_detectability(tmp_path, task):
    table = {"kind": "constant", "levels": [0.1, 0.25, 0.5], "repeats": 20}
    tables = design(task, (1.0,), procedure=table, catch={"null": 0.25}, observer={"weber": 0.2, "spread": 0.0})
    write_session(tmp_path, tables=tables)
    _, (person,) = found_in(tmp_path)
    (condition,) = person.conditions
    assert list(condition.detectability) == [0.1, 0.25, 0.5]
    d_primes = [one.d_prime.value for one in condition.detectability.values()]
    assert d_primes[0] < d_primes[2]
    # the increment told in 75 % of trials of two intervals is 0.954 standard deviations of a presentation
    true = 0.9539 * 0.5 / math.hypot(0.2, 0.05)
    assert condition.detectability[0.5].d_prime.low <= true <= condition.detectability[0.5].d_prime.high
    assert condition.fit.guess.low <= 0.16 <= condition.fit.guess.high
    assert_figure(tmp_path, task, "Psychometric functions")


def test_participant_who_misses_easy_trials_is_excluded(tmp_path):
    write_session(tmp_path, "P01", design(references=(1.0,)))
    careless, catch = {"weber": 0.12, "lapse": 0.3}, {"easy": 0.5, "most_errors": 0.05}
    write_session(tmp_path, "P02", design(references=(1.0,), observer=careless, catch=catch))
    experiment, people = found_in(tmp_path)
    people[1] = analyse(read_experiment([tmp_path / "sub-P02"]), experiment.people[1], AnalysisSettings())
    assert people[0].excluded == ()
    assert "easy catch trials were answered wrongly, more than 5%" in people[1].excluded[0]
    group = analyse_group(experiment, people, AnalysisSettings())
    assert group.counted == 1
    assert group.conditions[0].simulated == 1


def test_repeated_attempts_are_counted_by_reason(tmp_path):
    folder = write_session(tmp_path, tables=design(references=(1.0,), catch={}))
    with Journal.open(SessionFolder.of(folder)) as journal:
        last = next(one for one in reversed(journal.records) if one["record"] == "trial_start")
        journal.append("event", name="redo", trial=last["trial"])
        stamps = {"record", "number", "utc", "monotonic_ns"}
        again = {name: value for name, value in last.items() if name not in stamps}
        journal.append("trial_start", **{**again, "attempt": 2})
        journal.append("trial_end", **end(last["trial"], 2, "repeat", "too fast", "late ticks"))
    _, (person,) = found_in(tmp_path)
    assert person.repeated == {WITHDRAWN: 1, "late ticks": 1, "too fast": 1}
    assert len(person.conditions[0].rows) == 29


def test_sessions_of_a_participant_are_fitted_together(tmp_path):
    for session in (1, 2):
        write_session(tmp_path, tables=design(references=(1.0,), catch={}), session=session)
    experiment, (person,) = found_in(tmp_path)
    assert len(experiment.sessions) == 2
    assert len(person.conditions[0].rows) == 60
    assert [one["session"] for one in person.conditions[0].procedures] == [1, 2]


def test_fit_of_felt_levels_requires_them(weber):
    with pytest.raises(ConfigurationError, match=r"analysis.stimulus = 'felt': trial 3 has none"):
        found_in(weber, stimulus="felt")


def test_folders_of_different_experiments_are_refused(tmp_path, weber):
    other = design(references=(1.0,), catch={}, procedure={**QUEST, "trials": 5, "least_trials": 5})
    other["experiment"]["name"] = "viscosity"
    write_session(tmp_path, tables=other)
    with pytest.raises(ConfigurationError, match="2 experiments \\(viscosity, weber-friction\\)"):
        read_experiment([weber, tmp_path])
    with pytest.raises(RecordingError, match="holds no session"):
        read_experiment([tmp_path / "sub-P01" / "ses-01" / "blocks"])


def test_session_without_trials_is_excluded(tmp_path):
    place = SessionFolder.new(tmp_path, "P01", 1, "weber-friction")
    Journal.create(place, header(design())).close()
    experiment, (person,) = found_in(tmp_path)
    assert person.conditions == ()
    assert person.excluded == ("no trial counts",)
    assert analyse_group(experiment, [person], AnalysisSettings()).conditions == ()


@pytest.mark.parametrize("percent", [[50.0], [100.0], ["many"], 101.0])
def test_invalid_percentage_is_refused(percent):
    with pytest.raises(ConfigurationError, match=r"analysis.percent = "):
        AnalysisSettings(percent=percent)


def test_analysis_settings_accept_a_preregistration_table():
    settings = AnalysisSettings.of({"hypotheses": ["w falls with the reference"], "shape": "weibull"}, [80.0])
    assert (settings.shape, settings.percent) == ("weibull", (80.0,))


def report_of(folder, out, *options):
    with contextlib.redirect_stdout(io.StringIO()) as told:
        assert main(["experiment", "report", str(folder), "--out", str(out), "--json", *options]) == 0
    return out.read_text(encoding="utf-8"), json.loads(told.getvalue())


def figures(html):
    found = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    return [ElementTree.fromstring(base64.b64decode(one)) for one in found]


class TagBalance(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in {"meta", "img", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def made(weber, tmp_path_factory):
    return report_of(weber, tmp_path_factory.mktemp("report") / "R.html")


def test_report_is_complete_and_self_contained(made):
    html, _ = made
    balance = TagBalance()
    balance.feed(html)
    assert balance.open == []
    assert not re.findall(r'(?:src|href)="(?!data:|#)', html)
    assert len(figures(html)) == 1 + 3 * 4  # group; curves, tracks, Weber fractions, time of each participant
    for code in ("P01", "P02", "P03"):
        assert f'<section id="{code}">' in html
        assert f'href="#{code}"' in html


def test_report_marks_simulated_observers(made):
    html, result = made
    assert html.count(SIMULATED) == 1 + 3 + 1  # every page, and the methods
    assert result["simulated"] is True
    assert SIMULATED in result["methods"]
    assert "3 simulated observers gave 180 answers" in result["methods"]


def test_results_of_the_group_are_printed(made):
    _, result = made
    ratio = {"factor": "load", "first": "none", "second": "heavy", "percent": 75.0}
    ratio["ratio"] = {"value": 1.2, "low": 1.1, "high": 1.3, "probability": 0.95, "bound": ""}
    unknown = {"condition": "faint", "percent": 75.0, "jnd": None, "weber_fraction": None}
    group = result["group"] | {"conditions": [*result["group"]["conditions"], unknown]}
    changed = result | {"group": group, "effects": [ratio, ratio | {"ratio": None}]}
    first, *lines = describe_report(changed).splitlines()
    assert "  faint: no difference at 75 % correct within the levels" in lines
    assert first == f"weber-friction: 3 participants, report in {result['report']}"
    assert lines.pop() == "  ratio of load, heavy to none, at 75 % correct 1.2 (1.1 to 1.3)"
    found = {condition["condition"]: condition["weber_fraction"]["mean"] for condition in result["group"]["conditions"]}
    for name, mean in found.items():
        text = "{value:.3g} ({low:.3g} to {high:.3g}), of the simulated observers".format(**mean)
        assert any(f"{name}: Weber fraction at 75 % correct {text}" in line for line in lines)


def test_json_contains_every_number_of_the_tables(made):
    html, result = made
    for person in result["participants"]:
        assert person["truth"]["1 N"]["lapse"] == 0.02
        for condition in person["conditions"]:
            (difference,) = condition["differences"]
            assert difference["jnd"]["low"] <= difference["jnd"]["value"] <= (difference["jnd"]["high"] or 1e9)
            assert f">{difference['true_weber_fraction'] * 100:.3g}</td>" in html
            assert f">{condition['fit']['deviance']:.1f}</td>" in html
    for condition in result["group"]["conditions"]:
        assert f"{100 * condition['weber_fraction']['mean']['value']:.3g}</td>" in html


def test_methods_describe_stimulus_procedure_and_analysis(made):
    _, result = made
    for words in (
        "law.force [N] of the coulomb law rendered by model C on the device virtual-joystick by haptics 0.1.0",
        "calibration has the SHA-256 abababababababab",
        "no recordings with a certificate",
        "References were 1 and 2 N. Levels were chosen by QUEST+ (Watson 2017).",
        "None was excluded.",
        "read off at 75 % correct, without lapses",
        "guessing fixed at 0.5",
    ):
        assert words in result["methods"], words


def test_report_of_a_person_has_no_simulation_notice(tmp_path):
    write_session(tmp_path, tables=design(references=(1.0,), catch={}), simulated=False)
    html, result = report_of(tmp_path, tmp_path / "R.html", "--percent", "71", "--percent", "84")
    assert SIMULATED not in html
    assert result["simulated"] is False
    assert "age band 20-29; handedness right; consent id C17" in html
    assert [one["percent"] for one in result["participants"][0]["conditions"][0]["differences"]] == [71.0, 84.0]
    assert "1 participant gave 30 answers" in result["methods"]
    assert "read off at 71 % and 84 % correct" in result["methods"]
    assert result["participants"][0]["conditions"][0]["differences"][0]["true_jnd"] is None


def test_methods_summarise_the_timing_certificates(tmp_path):
    folder = write_session(tmp_path, tables=design(references=(1.0,), catch={}))
    recording = folder / "blocks" / "block-01"
    recording.mkdir(parents=True)
    delays = {"p50": 4.0, "p99": 61.0, "p999": 90.0, "max": 120.0}
    histograms = {"edges_us": [0.0, 1.0, 10.0, 100.0, 1000.0], "period_error_us": [0, 60000, 3996, 4]}
    certificate = {"ticks": 64000, "overruns": 4, "period_error_us": delays, "fit": True, "histograms": histograms}
    (recording / "recording.json").write_text(json.dumps({"certificate": certificate}), encoding="utf-8")
    words = re.sub(r"\s", " ", timing(read_experiment([tmp_path])))
    assert "The recording has 64 000 ticks, of which 4 (0.0063 %) were late" in words
    assert "4 µs (median) and 61 µs (99th percentile) late" in words
    assert "It is fit by its limits." in words
    (recording / "recording.json").write_text("nothing", encoding="utf-8")
    html, _ = report_of(tmp_path, tmp_path / "R.html")
    assert "blocks/block-01: cannot be read (Expecting value" in html  # the answers are in the journal all the same


def test_scores_and_answers_of_forms_are_means_by_group_and_session(tmp_path):
    forms = [{"name": "workload", "use": "nasa-tlx"}, {"name": "end", "items": [{"name": "w", "kind": "text"}]}]
    tables = {"experiment": {"name": "friction"}, "forms": forms, "groups": {"names": ["wet", "dry"]}}

    def session(code, group, number, *values):
        place = SessionFolder.new(tmp_path, code, number, "friction")
        with Journal.create(place, HEADER | {"design": tables}) as journal:
            journal.append("event", name="group", group=group, place=0)
            for value in values:
                answers = {"mental": value, "effort": None, "w": 3.0}
                made = {"form": "workload", "after_blocks": 1, "answers": answers, "scores": {"raw": value / 2}}
                journal.append("event", name="form-completed", **made)

    session("P1", "wet", 1, 10.0, 30.0)
    session("P1", "wet", 2, 50.0)
    session("P2", "wet", 1, 60)
    session("P3", "dry", 1, 70.0)
    session("P4", "dry", 1, 0.0)
    experiment = read_experiment([tmp_path])
    found = analyse_forms(experiment, {"P4"})
    assert [(one.entry, one.name, one.group, one.session, one.mean, one.participants) for one in found] == [
        *(("score", "raw", group, number, 0.5 * mean, n) for group, number, mean, n in CELLS),
        *(("answer", "mental", group, number, mean, n) for group, number, mean, n in CELLS),
    ]
    assert [one.sd for one in found[:3]] == [None, pytest.approx(math.sqrt(200.0)), None]
    page = form_table("workload", found)
    for text in ('<th class="number">wet, session 2</th>', '<td class="name">mental</td>', "0 to 100", "20 ± 14 [2]"):
        assert text in page


CELLS = [("dry", 1, 70.0, 1), ("wet", 1, 40.0, 2), ("wet", 2, 50.0, 1)]


def test_unwritable_report_is_an_error(weber, tmp_path, capsys):
    assert main(["experiment", "report", str(weber / "sub-P01"), "--out", str(tmp_path / "no" / "R.html")]) != 0
    assert "cannot be written" in capsys.readouterr().err


ANALYSIS = """
[analysis]
hypotheses = ["The Weber fraction | is the same at 1 N and 2 N."]
exclusions = "Participants with a Weber fraction above 1."
plan = ["A fit per participant.", "A paired t test."]
percent = 75.0
"""
POWER = {"experiment": "weber", "alpha": 0.05, "enough": 12, "power": [{"participants": 12, "power": 0.84}]}


@pytest.fixture
def design_file(tmp_path):
    path = tmp_path / "weber.toml"
    path.write_text(WEBER + ANALYSIS, encoding="utf-8")
    return path


def asked(capsys, *arguments, status=0):
    assert main(["experiment", "preregister", *map(str, arguments), "--json"]) == status
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def test_preregistration_facts_come_from_the_file(design_file, capsys):
    told = asked(capsys, design_file)
    assert told["design_sha256"] == hashlib.sha256(design_file.read_bytes()).hexdigest()
    assert told["file"] == design_file.read_text()
    assert [one["name"] for one in told["conditions"]] == ["1 N", "2 N"]
    assert told["conditions"][1]["procedure"]["most_trials"] == 3
    assert (told["trials"]["most"], told["conditions"][1]["trials"]["most"]) == (7, 3)
    assert all(one["trials"]["least"] <= one["trials"]["most"] for one in told["conditions"])
    assert told["seeds"]["seed"] == 7
    assert told["missing"] == []
    assert told["participants"] is None
    assert (told["trials"]["catch"]["null"], told["trials"]["catch"]["easy"]) == (0.0, 0.2)
    assert any("participant is excluded if more than 20% of the easy" in rule for rule in told["exclusions"])
    assert any("more than 20% of its trials, and more than 5," in rule for rule in told["exclusions"])


def test_preregistration_states_the_shares_of_catch_trials_that_are_presented(tmp_path):
    """A long session has the stated shares, also if these are not the ones of the file."""
    text = WEBER.replace("most_trials = 4", "most_trials = 2000")
    design = read_design(changed(tmp_path, "easy = 0.2", "null = 0.05\neasy = 0.07", text))
    stated = preregistration(design, None, None)
    assert stated["trials"]["catch"] == {"null": 0.06, "easy": 0.06, "easy_level": 0.0, "most_errors": 0.2}
    assert "- Catch trials: 6.0% without a difference, 6.0% with an easy one" in as_markdown(stated)
    sequence, kinds = TrialSequence(design, Participant("P01", 1, 0, 7)), []
    while (trial := sequence.next()) is not None:
        kinds.append(trial.kind)
        sequence.add_answer(trial, str(trial.comparison), correct=True)
    for kind in ("null", "easy"):
        assert kinds.count(f"catch-{kind}") / len(kinds) == pytest.approx(0.06, rel=0.02)


def test_preregistration_of_a_task_without_right_answers_has_no_catch_trials_and_practice(tmp_path):
    text = WEBER.replace('"discrimination"', '"estimation"').partition("[response]")[0]
    procedure = text.partition("[procedure]")[2].partition("[catch]")[0]
    text = text.replace(procedure, '\nkind = "estimation"\nlevels = [0.5, 1.0]\n\n')
    text = text.replace("procedure = { most_trials = 3 }\n", "") + "[practice]\nwindow = 6\ncorrect = 5\n"
    page = as_markdown(preregistration(read_design(changed(tmp_path, text=text)), None, None))
    assert "- Catch trials: 0.0% without a difference, 0.0% with an easy one" in page
    assert "- Practice: none" in page and "easy catch" not in page and "practice trials in a row" not in page


def test_preregistration_page_is_complete(design_file, tmp_path, capsys):
    power = tmp_path / "power.json"
    power.write_text(json.dumps(POWER))
    out = tmp_path / "out"
    assert main(["experiment", "preregister", str(design_file), "--power", str(power), "--out", str(out)]) == 0
    page = (out / "preregistration.md").read_text(encoding="utf-8")
    for words in (
        hashlib.sha256(design_file.read_bytes()).hexdigest(),
        "Weber fraction \\| is the same",
        "A paired t test.",
        "percent: 75",
        "Planned: 12 participants",
        "| 12 | 0.84 |",
        "| 2 N | 2 | 1 | nothing |",
        "discrimination",
        "SeedSequence",
        WEBER,
    ):
        assert words in page
    assert "Not stated" not in page
    assert json.loads((out / "preregistration.json").read_text())["power"] == POWER
    assert "not stated yet" not in capsys.readouterr().out


def test_missing_statements_are_listed(tmp_path, capsys):
    design_file = tmp_path / "weber.toml"
    design_file.write_text(WEBER)
    assert asked(capsys, design_file)["missing"] == ["analysis.hypotheses", "analysis.exclusions", "analysis.plan"]
    assert main(["experiment", "preregister", str(design_file), "--out", str(tmp_path / "out")]) == 0
    assert "not stated yet: analysis.hypotheses" in capsys.readouterr().out
    assert main(["experiment", "preregister", str(design_file)]) == 0
    assert capsys.readouterr().out.count("Not stated yet") == 3


def test_number_of_participants_is_an_option(design_file, capsys):
    assert asked(capsys, design_file, "--participants", 20)["participants"] == 20
    assert "at least 1" in asked(capsys, design_file, "--participants", 0, status=2)["error"]


@pytest.mark.parametrize("content", ["", "[]", '{"power": 3}', '{"power": [1]}', "{" * 10_000])
def test_invalid_power_plan_is_refused(design_file, tmp_path, content, capsys):
    (tmp_path / "power.json").write_text(content)
    assert (
        "haptics experiment power" in asked(capsys, design_file, "--power", tmp_path / "power.json", status=2)["error"]
    )


# --- sessions that do not belong together, and trials that are not graded ---

ONE = {"references": (1.0,), "catch": {}, "procedure": {**QUEST, "trials": 12, "least_trials": 12}}


def page_of(folder, *folders):
    experiment = read_experiment([folder, *folders])
    people = [analyse(experiment, person, AnalysisSettings()) for person in experiment.people]
    return report(experiment, people, analyse_group(experiment, people, AnalysisSettings()), AnalysisSettings())


def test_copy_of_a_session_is_not_counted_twice(tmp_path):
    write_session(tmp_path / "data", tables=design(**ONE))
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    with pytest.raises(ConfigurationError, match="are both sub-P01_ses-01_task-weberfriction"):
        read_experiment([tmp_path / "data", tmp_path / "copy"])


def test_journal_under_another_code_is_refused(tmp_path):
    folder = write_session(tmp_path, tables=design(**ONE))
    other = tmp_path / "sub-P02" / "ses-01"
    shutil.copytree(folder, other)
    (journal,) = other.glob("*_journal.jsonl")
    journal.rename(other / journal.name.replace("sub-P01", "sub-P02"))
    with pytest.raises(RecordingError, match="is of participant 'P01'"):
        read_experiment([tmp_path])


def test_sessions_of_different_tasks_or_observers_are_refused(tmp_path):
    write_session(tmp_path / "tasks", "P01", design(**ONE))
    constant = {"kind": "constant", "levels": [0.1, 0.5], "repeats": 5}
    write_session(tmp_path / "tasks", "P02", design("detection", **{**ONE, "procedure": constant}))
    with pytest.raises(ConfigurationError, match=r"2 tasks \(detection, discrimination\)"):
        read_experiment([tmp_path / "tasks"])
    for session in (1, 2):
        write_session(tmp_path / "both", tables=design(**ONE), session=session, simulated=session == 1)
    with pytest.raises(ConfigurationError, match="some sessions of P01 only"):
        read_experiment([tmp_path / "both"])


def test_report_tells_participants_from_simulated_observers(tmp_path):
    write_session(tmp_path, "P01", design(**ONE), simulated=False)
    write_session(tmp_path, "P02", design(**ONE), simulated=False)
    write_session(tmp_path, "TEST1", design(**ONE))
    page = html.unescape(page_of(tmp_path))
    assert "2 participants and 1 simulated observer gave 36 answers" in page
    assert "2 participants and 1 simulated observer, 3 sessions" in page
    assert page.count("Simulated observers (TEST1) answered besides participants") == 2  # notice and methods
    assert page.count(SIMULATED) == 1  # on the page of TEST1


def test_report_names_sessions_that_ended_early(tmp_path):
    folder = write_session(tmp_path, tables=design(**ONE))
    place = SessionFolder.of(folder)
    assert "early" not in page_of(tmp_path)
    lines = place.journal.read_text(encoding="utf-8").replace('"completed"', '"ended by a person"')
    place.journal.write_text(lines, encoding="utf-8")
    assert page_of(tmp_path).count("sub-P01_ses-01_task-weberfriction ended early (ended by a person).") == 2
    place.journal.write_text("".join(lines.splitlines(keepends=True)[:-1]), encoding="utf-8")
    assert page_of(tmp_path).count("sub-P01_ses-01_task-weberfriction has not ended.") == 2


def test_report_follows_the_experiment_file_of_each_session(tmp_path):
    write_session(tmp_path, "P01", design(**ONE))
    table = {"kind": "staircase", "start": 0.5, "minimum": 0.02, "maximum": 1.0, "trials": 20, "reversals": 6}
    folder = write_session(tmp_path, "P02", design(**{**ONE, "procedure": table}))
    (journal,) = folder.glob("*_journal.jsonl")
    journal.write_text(journal.read_text(encoding="utf-8").replace("0" * 64, "1" * 64), encoding="utf-8")
    _, (first, second) = found_in(tmp_path)
    assert [one.conditions[0].procedures[0]["kind"] for one in (first, second)] == ["quest+", "staircase"]
    assert "run with 2 different experiment files" in page_of(tmp_path)


def test_attempt_with_two_reasons_counts_once(tmp_path):
    folder = write_session(tmp_path, tables=design(**ONE))
    with Journal.open(SessionFolder.of(folder)) as journal:
        last = next(one for one in reversed(journal.records) if one["record"] == "trial_start")
        journal.append("event", name="redo", trial=last["trial"], why="the block begins again")
        again = {name: value for name, value in last.items() if name not in COMMON}
        journal.append("trial_start", **{**again, "attempt": 2})
        journal.append("trial_end", **end(last["trial"], 2, "repeat", "too fast", "late ticks"))
    _, (person,) = found_in(tmp_path)
    assert person.repeated == {"block repeated after an interruption": 1, "late ticks": 1, "too fast": 1}
    page = page_of(tmp_path)
    assert "2 attempts did not count (block repeated after an interruption: 1, late ticks: 1 and too fast: 1)." in page


def test_trials_without_a_graded_answer_are_not_wrong_ones(tmp_path):
    with TrialLog.open(tmp_path, "P01", "own", axis="law.force", design={"x": 1}) as log:
        log.begin_block()
        for number in range(20):
            log.begin_trial(0.2 + 0.2 * (number % 2), values=(1.0, 1.4), comparison=2, reference=1.0)
            log.finish_trial("2", correct=True)
        for answer, correct in ((None, None), ("1", None)):
            log.begin_trial(0.4, values=(1.0, 1.4), comparison=2, reference=1.0)
            log.finish_trial(answer, correct=correct)
        log.begin_trial(0.8, values=(1.0, 1.8), comparison=2, kind="catch-easy")
        log.finish_trial(None)
        log.finish()
    _, (person,) = found_in(tmp_path)
    (condition,) = person.conditions
    assert condition.fit.answers.trials == len(condition.rows) == 20
    assert condition.notes[0].startswith("2 of 22 trials have no level, or no answer that is right or wrong")
    assert person.catches.easy == 0 and not person.excluded


def test_condition_with_several_references_has_no_weber_fraction(tmp_path):
    with TrialLog.open(tmp_path, "P01", "own", axis="law.force") as log:
        log.begin_block()
        for number in range(20):
            reference = 1.0 + number % 2
            log.begin_trial(0.4, values=(reference, reference + 0.4), comparison=2, reference=reference)
            log.finish_trial("2", correct=number % 5 > 0)
        log.finish()
    _, (person,) = found_in(tmp_path)
    (condition,) = person.conditions
    assert [one.weber for one in condition.differences] == [None]
    assert "The trials have several references (1, 2): there is no Weber fraction." in condition.notes


def test_specified_reference_does_not_stand_for_a_felt_one():
    row = {"trial": 4, "comparison_interval": 2, "reference": 1.0, "asked_1": 1.0, "asked_2": 1.5}
    row |= {"felt_1": 1.1, "felt_2": 1.5, "stimulus_missing": None}
    assert levels_of([row], "felt") == [pytest.approx(0.4)]
    with pytest.raises(ConfigurationError, match="trial 4 has none"):
        levels_of([row | {"felt_1": None, "stimulus_missing": "the hand did not slide"}], "felt")
    assert levels_of([row | {"felt_1": None, "reference": 0.0}], "felt") == [1.5]
    single = {"comparison_interval": None, "asked_2": None, "felt_1": 1.2, "felt_2": None}
    assert levels_of([row | single], "felt") == [pytest.approx(0.2)]


def test_effect_compares_the_same_quantity_in_conditions_with_and_without_a_reference(tmp_path):
    table = {"kind": "constant", "levels": [0.05, 0.2, 0.5, 1.0, 2.0], "repeats": 12}
    names, fields = {"reference", "without"}, {"catch": {}, "procedure": table, "references": (2.0, 2.0)}
    for code in ("P01", "P02"):
        tables = design(**fields, observer={"weber": 0.3, "spread": 0.1})
        for condition, name in zip(tables["conditions"], sorted(names), strict=True):
            condition |= {"name": name, "factors": {"kind": name}}
        place = SessionFolder.of(write_session(tmp_path, code, tables))
        lines = place.journal.read_text(encoding="utf-8").splitlines(keepends=True)
        bare = [line.replace('"reference": 2.0', '"reference": 0.0') if '"without"' in line else line for line in lines]
        place.journal.write_text("".join(bare), encoding="utf-8")
    experiment, people = found_in(tmp_path)
    jnds = [{one.name: one.differences[0].jnd.value for one in person.conditions} for person in people]
    (effect,) = analyse_effects(experiment, people, AnalysisSettings())
    assert effect.quantity == "jnd" and {effect.first, effect.second} == names
    ratios = [one[effect.second] / one[effect.first] for one in jnds]
    assert effect.ratio.value == pytest.approx(math.sqrt(math.prod(ratios)))
