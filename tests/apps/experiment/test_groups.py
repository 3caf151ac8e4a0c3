"""Groups of participants: blocks, minimisation, stations that are killed, sessions, exports, report."""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from apps.experiment.assignment import Assignment, AssignmentLog, History, choose_group
from apps.experiment.design import read_design
from apps.experiment.export import export_sessions
from apps.experiment.journal.erasure import erase, find_participant
from apps.experiment.journal.journal import read_journal, replay
from apps.experiment.power import describe, make_study, outcome, simulate_people
from apps.experiment.preregister import as_markdown, preregistration
from apps.experiment.report.data import read_experiment
from apps.experiment.report.factors import analyse_effects
from apps.experiment.session.running import Request, begin, in_group, reopen, run_session
from apps.experiment.settings import AnalysisSettings, GroupSettings, PowerSettings
from haptics.errors import ConfigurationError, RecordingError
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.experiment.test_conditions import person

GROUPS = """\
[groups]
names = ["wet", "dry"]
shares = [1, 2]
block = [3, 6]
fields = ["hand"]
conditions = { wet = ["1 N"] }

[fields]
demanded = ["hand"]
allowed = { hand = ["left", "right"] }

[texts.groups]
wet = ["Wet your finger."]

"""

QUEST = WEBER.replace("reversals = 20\nmost_trials = 4", "").replace("{ most_trials = 3 }", "{}")


def with_groups(folder, old="", new="", text=WEBER):
    """Write the experiment with groups, in which `old` is replaced by `new`; return the file."""
    return changed(folder, old, new, text.replace("[catch]", GROUPS + "[catch]"))


WRONG = [
    ('names = ["wet", "dry"]', 'names = ["wet"]', "2 to 12"),
    ('names = ["wet", "dry"]', 'names = ["wet", "wet"]', "different names"),
    ("shares = [1, 2]", "shares = [1, 0]", "groups.shares"),
    ("shares = [1, 2]", "shares = [1]", "groups.shares"),
    ("block = [3, 6]", "block = 4", "a multiple of 3"),
    ("block = [3, 6]", "block = []", "a multiple of 3"),
    ("block = [3, 6]", 'method = "minimization"', "minimisation"),
    ("block = [3, 6]", "probability = 0.5", "groups.probability"),
    ('fields = ["hand"]', 'fields = ["age"]', "'age' must be in fields.demanded"),
    ('fields = ["hand"]', 'method = "minimisation"', "groups.fields"),
    ('{ wet = ["1 N"] }', '{ wt = ["1 N"] }', "'wet'"),
    ('{ wet = ["1 N"] }', '{ wet = ["1N"] }', "'1 N'"),
    ('{ wet = ["1 N"] }', '{ wet = ["1 N"], dry = ["1 N"] }', "'2 N' is in no group"),
    ('fields = ["hand"]', "blind = true", "experiment.blind"),
    ("wet = [", "wt = [", "'wet'"),
    ('["Wet your finger."]', "3", "texts.groups"),
]


@pytest.mark.parametrize(("old", "new", "words"), WRONG, ids=[new or "none" for _, new, _ in WRONG])
def test_invalid_group_is_refused_with_its_place(tmp_path, old, new, words):
    path = with_groups(tmp_path, old, new)
    with pytest.raises(ConfigurationError) as caught:
        read_design(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:") and words in message
    line = path.read_text(encoding="utf-8").splitlines()[int(message[len(f"{path}:") :].partition(":")[0]) - 1]
    assert (new or "[groups]").partition(" ")[0] in line or line in ("[groups]", "[texts.groups]", "[texts]")


def test_group_has_its_conditions(tmp_path):
    design = read_design(with_groups(tmp_path))
    assert [one.name for one in design.for_group("wet").conditions] == ["1 N"]
    assert [one.name for one in design.for_group("dry").conditions] == ["1 N", "2 N"]


# --- assignment ---


@pytest.fixture
def unsynced(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)


def test_each_block_holds_the_shares(tmp_path, unsynced):
    """Whole blocks have the exact shares, for each combination of fields and any seeds of the stations."""
    groups = GroupSettings(names=["a", "b", "c"], shares=[1, 1, 2], block=[4, 8], fields=["hand"])
    assignments, chance = AssignmentLog(tmp_path, "e"), random.Random(3)
    for number in range(300):
        assignments.assign(f"P{number}", groups, {"hand": chance.choice("lr"), "more": "x"}, seed=number % 2)
    log = assignments.history
    sizes = Counter()
    for hand in "lr":
        own = [one for one in log.entries if one.fields == {"hand": hand}]
        for block in range(1, own[-1].block):
            members = [one for one in own if one.block == block]
            size = members[0].size
            sizes[size] += 1
            assert Counter(one.group for one in members) == {"a": size // 4, "b": size // 4, "c": size // 2}
    assert min(sizes[4], sizes[8]) > 5
    assert len({tuple(one.group for one in log.entries[k : k + 4]) for k in range(0, 200, 4)}) > 10


def test_first_assignment_of_a_participant_is_kept(tmp_path, unsynced):
    groups = GroupSettings(names=["a", "b"], fields=["hand"])
    first = AssignmentLog(tmp_path, "e").assign("P01", groups, {"hand": "l"}, 1)
    again = AssignmentLog(tmp_path, "e").assign("P01", groups, {"hand": "r"}, 2)
    assert again == first and len(list(tmp_path.rglob("assignment-*"))) == 1
    with pytest.raises(ConfigurationError, match="was assigned to a group that"):
        AssignmentLog(tmp_path, "e").assign("P01", GroupSettings(names=["x", "y"]), {}, 1)


def test_minimisation_balances_every_field():
    """Pocock and Simon: 200 participants with three fields; a random assignment differs by about 10 in each value."""
    groups = GroupSettings(names=["a", "b"], method="minimisation", fields=["age", "hand", "sex"], probability=0.9)
    log, chance = History(), random.Random(5)
    for _ in range(200):
        fields = {"age": chance.choice("123"), "hand": chance.choice("lr"), "sex": chance.choice("fm")}
        log.add(Assignment(None, choose_group(groups, log, fields, 7)[0], fields, 0, 0, 0))
    for name in ("age", "hand", "sex"):
        for value in {one.fields[name] for one in log.entries}:
            counts = Counter(one.group for one in log.entries if one.fields[name] == value)
            assert abs(counts["a"] - counts["b"]) <= 4


def test_minimisation_keeps_the_shares():
    groups = GroupSettings(names=["a", "b"], shares=[1, 3], method="minimisation", fields=["hand"])
    log = History()
    for number in range(200):
        fields = {"hand": "lr"[number % 2]}
        log.add(Assignment(None, choose_group(groups, log, fields, 1)[0], fields, 0, 0, 0))
    assert abs(log.count()["a"] - 50) <= 4


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "[]",
        "{}",
        '{"participant": "Anna", "group": "a", "fields": {}, "block": 1, "size": 4}',
        '{"participant": "P1", "group": 1, "fields": {}, "block": 1, "size": 4}',
        '{"participant": "P1", "group": "a", "fields": [], "block": 1, "size": 4}',
        '{"participant": "P1", "group": "a", "fields": {}, "block": true, "size": 4}',
        '{"participant": "P1", "sealed": "%", "fields": {}, "block": 1, "size": 4}',
    ],
)
def test_damaged_assignment_is_refused(tmp_path, text):
    log = AssignmentLog(tmp_path, "e")
    log.folder.mkdir(parents=True)
    (log.folder / "assignment-0000").write_text(text)
    with pytest.raises(ConfigurationError, match=r"assignment-0000 is no assignment"):
        log.assign("P01", GroupSettings(names=["a", "b"]), {}, 1)


def test_missing_assignment_is_refused(tmp_path, unsynced):
    """Without the first file, the participants of later ones would be assigned again."""
    groups = GroupSettings(names=["a", "b"], block=2)
    for number in range(3):
        AssignmentLog(tmp_path, "e").assign(f"P{number}", groups, {}, 1)
    path = AssignmentLog(tmp_path, "e").folder / "assignment-0001"
    text = path.read_text()
    path.unlink()
    for code in ("P2", "P3"):
        with pytest.raises(ConfigurationError, match=r"assignment-0001 is missing, and later.*assignment-0002 exist"):
            AssignmentLog(tmp_path, "e").assign(code, groups, {}, 1)
    assert len(list(path.parent.iterdir())) == 2
    path.write_text(text)
    assert AssignmentLog(tmp_path, "e").assign("P2", groups, {}, 1).block == 2


def test_erased_participant_still_counts(tmp_path):
    """The erasure removes the code from the assignment only, so that later ones stay known and balanced."""
    groups = GroupSettings(names=["a", "b"], block=2)
    kept = [AssignmentLog(tmp_path, "e").assign(f"P{number}", groups, {}, 1) for number in range(3)]
    erase(find_participant(tmp_path, "P0"))
    log = AssignmentLog(tmp_path, "e")
    assert log.assign("P1", groups, {}, 1) == kept[1]
    assert {log.assign("P3", groups, {}, 1).group, kept[2].group} == {"a", "b"}
    first = log.history.entries[0]
    assert first.participant is None and first.group == kept[0].group
    assert not any("P0" in path.read_text() for path in (tmp_path / "groups").rglob("*") if path.is_file())


def station(out, number, people):
    """Assign all participants in random order, without waiting for the disk."""
    os.fsync = lambda _: None
    log = AssignmentLog(out, "e")
    codes = [f"P{k:05d}" for k in range(people)]
    random.Random(number).shuffle(codes)
    for code in codes:
        log.assign(code, GroupSettings(names=["a", "b"], block=4), {}, 1)


def assign_with_kills(out, stations, people, kills, seed=1):
    """Run stations that are killed at random moments and started again; return the final log and the kills."""
    chance, context = random.Random(seed), multiprocessing.get_context("fork")
    running = {n: context.Process(target=station, args=(out, n, people)) for n in range(stations)}
    for process in running.values():
        process.start()
    killed = 0
    while any(process.is_alive() for process in running.values()):
        time.sleep(chance.uniform(0.0, 0.05))
        number = chance.randrange(stations)
        if killed < kills and running[number].is_alive():
            os.kill(running[number].pid, signal.SIGKILL)
            running[number].join()
            killed += 1
            running[number] = context.Process(target=station, args=(out, number, people))
            running[number].start()
    log = AssignmentLog(out, "e")
    log.refresh()
    return log.history, killed


def assert_balanced(log, people, block):
    """Every participant is assigned once, and every prefix is balanced within half a block."""
    assert sorted(one.participant for one in log.entries) == [f"P{k:05d}" for k in range(people)]
    lead = 0
    for one in log.entries:
        lead += 1 if one.group == "a" else -1
        assert abs(lead) <= block // 2
    assert lead == 0


def test_stations_that_are_killed_assign_each_participant_once(tmp_path):
    log, killed = assign_with_kills(tmp_path, 3, 200, 8)
    assert_balanced(log, 200, 4)
    assert killed > 0


# --- sessions ---


def request(out, code="P01", **fields):
    return Request(code, 1, 7, out, fields, True)


def test_simulated_session_has_a_group_in_journal_and_exports(tmp_path):
    design = read_design(with_groups(tmp_path, "most_trials = 4", "most_trials = 1"))
    result = run_session(design, request(tmp_path / "out", hand="left"))
    records = read_journal(Path(result["journal"])).records
    state = replay(records)
    (event,) = (one for one in state.events if one["name"] == "group")
    assert records[1] == event and event["group"] == result["group"] == state.group
    allowed = {"wet": {"1 N"}, "dry": {"1 N", "2 N"}}[state.group]
    assert {one.start["condition"] for one in state.attempts} == allowed
    for to in ("csv", "bids", "psych-ds"):
        export_sessions([tmp_path / "out"], tmp_path / to, to=to)
    assert "group" in (tmp_path / "csv" / "trials.csv").read_text().partition("\n")[0].strip().split(",")
    assert (tmp_path / "csv" / "participants.csv").read_text().count(f",{state.group},") == 1
    assert (tmp_path / "bids" / "participants.tsv").read_text() == (
        f"participant_id\tobserver\tgroup\thand\nsub-P01\tsimulated\t{state.group}\tleft\n"
    )
    assert read_experiment([tmp_path / "out"]).people[0].group == state.group


def test_session_killed_before_its_assignment_gets_it_on_resumption(tmp_path):
    design, out = read_design(with_groups(tmp_path)), tmp_path / "out"
    journal, who = begin(design, request(out))
    journal.close()
    for _ in range(2):  # the second time the group is in the journal
        reread, journal, who = reopen(journal.place.folder)
        grouped, who = in_group(reread, journal, who, out)
        journal.close()
    assert grouped.group and who.slot == 0
    assert [one["record"] for one in journal.records] == ["header", "event"]
    assert journal.records[0]["fields"]["hand"] in ("left", "right")
    with pytest.raises(RecordingError, match="is not in the experiment"):
        journal.records[1]["group"] = "moist"
        in_group(reread, journal, who, out)


def test_blind_group_is_hidden_until_the_session_has_ended(tmp_path):
    text = GROUPS.replace('conditions = { wet = ["1 N"] }', "blind = true")
    path = changed(tmp_path, "[catch]", text + "[catch]")
    design, out = read_design(path), tmp_path / "out"
    journal, who = begin(design, request(out))
    in_group(design, journal, who, out)
    journal.append("block_start", block=1, conditions=["1 N"], recording=None, attempt=1)
    journal.close()
    (assignment,) = out.rglob("assignment-*")
    assert journal.records[1]["group"] not in assignment.read_text()
    with pytest.raises(ConfigurationError, match="has not ended"):
        export_sessions([out], tmp_path / "csv")


def test_report_compares_groups(tmp_path):
    """Groups are compared in the conditions that all of them have; a participant with a bound is left out."""
    names = ("P1", "P2", "P3", "P4", "P5")
    group_of = dict(zip(names, ("wet", "wet", "dry", "dry", "dry"), strict=True))

    people = [SimpleNamespace(code=code, group=group_of[code]) for code in names]
    tables = {"groups": {"names": ["wet", "dry"], "conditions": {"wet": ["x"]}}}
    session = SimpleNamespace(header={"design": tables})
    experiment: Any = SimpleNamespace(people=people, sessions=[session], table=tables.get)
    results = [
        person("P1", x=0.1),
        person("P2", x=0.2),
        person("P3", x=0.2, y=9.0),
        person("P4", x=0.4, y=9.0),
        person("P5", x=None, y=9.0),
    ]
    (effect,) = analyse_effects(experiment, results, AnalysisSettings())
    assert (effect.factor, effect.first, effect.second, effect.participants) == ("group", "wet", "dry", 4)
    assert effect.ratio.value == pytest.approx(2.0) and effect.ratio.low < 1.0 and effect.ratio.high > 4.0


def test_report_states_the_interaction_of_group_and_factor():
    """The ratio of hot to cold is 1 and 4 in the wet group, and 8 and 2 in the dry one, which has a bound besides."""
    conditions = [{"name": name, "reference": 1.0, "factors": {"heat": name}} for name in ("cold", "hot")]
    tables = {"groups": {"names": ["wet", "dry"]}, "conditions": conditions}
    group_of = dict.fromkeys(("P1", "P2"), "wet") | dict.fromkeys(("P3", "P4", "P5"), "dry")
    people = [SimpleNamespace(code=code, group=group) for code, group in group_of.items()]
    experiment: Any = SimpleNamespace(
        people=people, sessions=[SimpleNamespace(header={"design": tables})], table=tables.get
    )
    thresholds = {"P1": (0.1, 0.1), "P2": (0.1, 0.4), "P3": (0.1, 0.8), "P4": (0.1, 0.2), "P5": (0.1, None)}
    results = [person(code, cold=cold, hot=hot) for code, (cold, hot) in thresholds.items()]
    found = {one.factor: one for one in analyse_effects(experiment, results, AnalysisSettings())}
    assert list(found) == ["group", "heat", "heat (hot / cold) by group"]
    effect = found["heat (hot / cold) by group"]
    assert (effect.first, effect.second, effect.participants) == ("wet", "dry", 4)
    assert effect.ratio.value == pytest.approx(math.sqrt(8.0 * 2.0) / math.sqrt(1.0 * 4.0))
    assert effect.ratio.low < 1.0 < effect.ratio.high
    only = analyse_effects(experiment, results[:2], AnalysisSettings())
    assert [one.factor for one in only] == ["group", "heat"], "the other group has no participant"


def test_power_knows_the_groups(tmp_path):
    """The second group has 1.5 times the Weber fraction, in the condition that both groups have."""
    design = read_design(
        with_groups(tmp_path, 'kind = "staircase"\nstart = 0.5', 'kind = "quest+"\ntrials = 30', QUEST)
    )
    settings = PowerSettings(question="groups", ratio=1.5, participants=[8, 16], ratio_spread=0.0)
    study = make_study(design, settings, {"level": 1})
    assert [arm.name for arm in study.arms] == ["wet: 1 N", "dry: 1 N"] and study.shares == (1, 2)
    result = outcome(design, study, settings, simulate_people(study, 0, 30), 1.0)
    assert result["truth"] == pytest.approx(1.5) and result["found"] == pytest.approx(1.5, rel=0.15)
    assert "groups 'wet: 1 N' and 'dry: 1 N' differ" in describe({**result, "seconds": 1.0})
    with pytest.raises(ConfigurationError, match="condition of the group 'wet'"):
        make_study(design, PowerSettings(question="groups", first="2 N"), {})
    with pytest.raises(ConfigurationError, match=r"needs the table \[groups\]"):
        make_study(read_design(changed(tmp_path)), settings, {})
    with pytest.raises(ConfigurationError, match="at least 4"):
        PowerSettings(question="groups", participants=[2, 4])


def test_preregistration_states_the_groups(tmp_path):
    page = as_markdown(preregistration(read_design(with_groups(tmp_path)), None, None))
    assert "- Groups between participants: wet (share 1), dry (share 2); permuted blocks of 3 or 6, by hand" in page
    assert "- Conditions of the group wet: 1 N" in page
    assert "| all of the group wet | 4 |" in page and "| all of the group dry | 7 |" in page, "wet has one condition"


def test_preregistration_states_the_order_of_conditions(tmp_path):
    """Groups have orders of their own, and orders of mixed conditions are not chosen by a square."""
    mixed = preregistration(read_design(with_groups(tmp_path)), None, None)
    apart = ("block = 5\n", "block = 5\ninterleave = false\n")
    grouped = preregistration(read_design(with_groups(tmp_path, *apart)), None, None)
    plain = preregistration(read_design(changed(tmp_path, *apart)), None, None)
    assert "square" not in mixed["seeds"]["places"]
    assert "order of assignments to the group chooses the row" in grouped["seeds"]["places"]
    assert "it chooses the row of the square" in plain["seeds"]["places"] and "group" not in plain["seeds"]["places"]
    assert "follows 5 trials and each condition" in as_markdown(plain) and "each condition\n" not in as_markdown(mixed)


if __name__ == "__main__":  # python -m tests.apps.experiment.test_groups FOLDER STATIONS PEOPLE KILLS
    folder, stations, people, kills = Path(sys.argv[1]), *map(int, sys.argv[2:])
    start = time.monotonic()
    found, killed = assign_with_kills(folder, stations, people, kills)
    elapsed = time.monotonic() - start
    assert_balanced(found, people, 4)
    start = time.monotonic()
    AssignmentLog(folder, "e").assign("P00000", GroupSettings(names=["a", "b"], block=4), {}, 1)
    sys.stdout.write(
        f"{people} participants assigned once by {stations} stations with {killed} kills in {elapsed:.0f} s: "
        f"{dict(found.count())}, no prefix off balance by more than 2; a new process finds its participant in "
        f"{time.monotonic() - start:.2f} s.\n"
    )
