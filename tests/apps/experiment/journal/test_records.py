"""Records of a journal: validation of every line, session state, sealed codes, and the table of trials."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.cli import main
from apps.experiment.journal import Journal, read_journal, replay, trial_rows
from apps.experiment.journal import journal as journal_module
from apps.experiment.journal.blinding import decode, make_codes, open_codes, seal_codes
from apps.experiment.journal.tables import COLUMNS, csv_of, tsv_of, write_table
from haptics.errors import ConfigurationError, RecordingError
from tests.apps.experiment.journal.records import HEADER, begin_block, end, place, response, run_trial, start


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    with Journal.create(place(tmp_path_factory.mktemp("out")), HEADER) as journal:
        begin_block(journal)
        run_trial(journal, 1)
        run_trial(journal, 2)
        journal.append("end", reason="complete", trials=2, repeated=0)
    return journal.place.journal.read_bytes().splitlines(keepends=True)


def refused(path, data):
    path.write_bytes(data)
    with pytest.raises(RecordingError) as caught:
        read_journal(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def changed(line, **fields):
    return json.dumps(json.loads(line) | fields).encode() + b"\n"


def without(line, name):
    record = json.loads(line)
    del record[name]
    return json.dumps(record).encode() + b"\n"


def test_swapped_doubled_or_missing_line_is_named(tmp_path, lines):
    path = tmp_path / "j"
    assert "line 4" in refused(path, b"".join([*lines[:3], lines[4], lines[3], *lines[5:]]))
    assert "line 5" in refused(path, b"".join([*lines[:4], lines[3], *lines[4:]]))
    assert "line 3" in refused(path, b"".join([*lines[:2], *lines[3:]]))
    assert "line 1" in refused(path, b"".join(lines[1:]))
    assert "line 2" in refused(path, lines[0] + changed(lines[0], number=1))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"record": "trial_begin"}, "must be one of header"),
        ({"record": ["trial_start"]}, "must be one of header"),
        ({"trial": 0}, "trial = 0: must be a whole number of at least 1"),
        ({"trial": True}, "trial = True"),
        ({"trial": 1.0}, "trial = 1.0"),
        ({"level": "0.25"}, "level = '0.25': must be a finite number or null"),
        ({"level": 10**400}, "level = 1"),
        ({"kind": "best"}, "must be one of test, practice"),
        ({"comparison_interval": 3}, "must be one of 1, 2 or null"),
        ({"comparison_interval": True}, "must be one of 1, 2 or null"),
        ({"values": [1.0, "2"]}, "must be a list of numbers or null"),
        ({"markers": 111}, "must be a list of whole numbers"),
        ({"mood": "good"}, "has no field 'mood'"),
        ({"condition": "x" * 30_000}, "20000 at most"),
        ({"condition": "\ud800"}, "half a character"),
    ],
)
def test_invalid_field_is_named_with_its_line(tmp_path, lines, fields, words):
    told = refused(tmp_path / "j", b"".join([*lines[:2], changed(lines[2], **fields), *lines[3:]]))
    assert "line 3" in told
    assert words in told


def test_missing_field_is_named(tmp_path, lines):
    told = refused(tmp_path / "j", b"".join([*lines[:2], without(lines[2], "markers"), *lines[3:]]))
    assert "line 3: trial_start lacks markers" in told


def test_optional_field_defaults_to_null(tmp_path, lines):
    path = tmp_path / "j"
    path.write_bytes(b"".join([*lines[:2], without(lines[2], "track"), *lines[3:]]))
    assert read_journal(path).records[2]["track"] is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"\n", "is no JSON"),
        (b"[]\n", "must be a JSON object"),
        (b"[" * 100_000 + b"\n", "nested"),
        (b'{"a":' * 100_000 + b"\n", "nested"),
        (b'{"record": "event", "number": 1, "number": 1}\n', "has a name twice"),
        (b'{"record": "event", "value": NaN}\n', "NaN"),
        (b'{"record": "event", "value": -Infinity}\n', "Infinity"),
        (b'{"record": "event", "value": ' + b"9" * 5000 + b"}\n", "digits"),
        (b"\xff\xfe{\x00}\x00\n", "not UTF-8"),
        (b"\x00\x00\x00\n", "is no JSON"),
        (b'{"record": "event", "number": 1, "utc": "", "monotonic_ns": 0, "name": "x", "v": 1e999}\n', "inf"),
    ],
)
def test_malformed_line_is_named(tmp_path, lines, line, words):
    told = refused(tmp_path / "j", b"".join([lines[0], line, *lines[2:]]))
    assert "line 2" in told
    assert words in told


def test_newer_format_is_refused(tmp_path, lines):
    assert "use a newer one" in refused(tmp_path / "j", changed(lines[0], format=2) + b"".join(lines[1:]))
    assert "line 1" in refused(tmp_path / "j", changed(lines[0], format="1") + b"".join(lines[1:]))


def test_line_and_journal_sizes_are_limited(tmp_path, lines, monkeypatch):
    monkeypatch.setattr(journal_module, "LONGEST_LINE", 2000)
    told = refused(tmp_path / "j", lines[0] + b" " * 3000 + b"\n")
    assert "line 2" in told
    monkeypatch.setattr(journal_module, "LARGEST_JOURNAL", 1000)
    assert "too large" in refused(tmp_path / "j", b"".join(lines))


def test_special_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "none", Path("/dev/zero")):
        with pytest.raises(RecordingError):
            read_journal(path)
    assert "no whole record" in refused(tmp_path / "j", b"")


@settings(max_examples=37)
@given(st.data())
def test_random_damage_raises_or_yields_valid_records(tmp_path_factory, lines, data):
    """After damage to some bytes the reader returns valid records or names the damaged line."""
    whole = b"".join(lines)
    first = data.draw(st.integers(0, len(whole)))
    last = data.draw(st.integers(first, min(len(whole), first + 40)))
    path = tmp_path_factory.mktemp("j") / "j"
    path.write_bytes(whole[:first] + data.draw(st.binary(max_size=30)) + whole[last:])
    try:
        found = read_journal(path)
    except RecordingError as error:
        assert "line " in str(error) or "no whole record" in str(error)
        return
    assert [one["number"] for one in found.records] == list(range(len(found.records)))


def test_replay_counts_trials_attempts_and_blocks(tmp_path):
    with Journal.create(place(tmp_path), HEADER) as journal:
        begin_block(journal)
        run_trial(journal, 1)
        journal.append("trial_start", **start(2))
        journal.append("trial_end", **end(2, 1, "repeat", "too fast"))
        run_trial(journal, 3)
        journal.append("trial_start", **start(2, 2))
        journal.append("response", **response(2, 2))
        state = replay(journal.records)
    assert list(state.counted_attempts) == [1, 3]
    assert (state.repeated, state.attempts_at(2), state.attempts_at(9), state.blocks) == (1, 2, 0, {1: 1})
    assert (state.interrupted.trial, state.interrupted.number) == (2, 2)
    assert state.interrupted.response is not None


def test_replay_reopens_a_resumed_session(tmp_path):
    with Journal.create(place(tmp_path), HEADER) as journal:
        journal.append("end", reason="aborted", trials=0, repeated=0)
        journal.append("note", text="went home", by="experimenter")
        assert replay(journal.records).end is not None
        journal.append("event", name="resumed")
        assert replay(journal.records).end is None


def test_replay_discards_an_answer_that_is_redone(tmp_path):
    with Journal.create(place(tmp_path), HEADER) as journal:
        begin_block(journal)
        run_trial(journal, 1)
        journal.append("event", name="redo", trial=1)
        assert replay(journal.records).counted_attempts == {}
        run_trial(journal, 1, 2)
        assert replay(journal.records).counted_attempts[1].number == 2


def test_age_is_measured_from_the_last_record(tmp_path):
    with Journal.create(place(tmp_path), HEADER) as journal:
        state = replay(journal.records)
    assert timedelta(0) <= state.age() < timedelta(minutes=1)
    state.last_utc = "2026-01-01T00:00:00+00:00"
    assert state.age(datetime(2026, 1, 3, tzinfo=UTC)) == timedelta(days=2)
    state.last_utc = "yesterday"
    with pytest.raises(RecordingError, match="no date and time"):
        state.age()


CONTRADICTIONS: list[tuple[str, list[tuple[str, dict[str, Any]]]]] = [
    ("is begun for the 1. time", [("trial_start", start(1, 2))]),
    ("which was not begun", [("trial_start", start(1, block=2))]),
    ("not being run", [("response", response(1))]),
    ("not being run", [("trial_start", start(1)), ("trial_end", end(2))]),
    ("answered twice", [("trial_start", start(1)), ("response", response(1)), ("response", response(1))]),
    ("counts", [("trial_start", start(1)), ("trial_end", end(1)), ("trial_start", start(1, 2))]),
    ("begun for the 2. time", [("block_start", {"block": 1, "conditions": [], "recording": None, "attempt": 1})]),
]


@pytest.mark.parametrize(("words", "entries"), CONTRADICTIONS)
def test_contradictory_records_name_their_line(tmp_path, words, entries):
    with Journal.create(place(tmp_path), HEADER) as journal:
        begin_block(journal)
        for kind, fields in entries:
            journal.append(kind, **fields)
    with pytest.raises(RecordingError, match=rf"line {2 + len(entries)}: .*{words}"):
        replay(journal.records)


def test_empty_journal_is_refused():
    with pytest.raises(RecordingError, match="empty"):
        replay([])


def session(out):
    with Journal.create(place(out), HEADER) as journal:
        begin_block(journal)
        run_trial(journal, 1)
        journal.append("trial_start", **start(2, kind="catch-null", comparison_interval=None, level=0.0))
        journal.append("trial_end", **end(2, 1, "repeat", "too slow", "a gap of 7 ms"))
        begin_block(journal, 1, 2)
        unscored = {"response": 0.1 + 0.2, "correct": None, "key": 'a, "b"\n'}
        run_trial(journal, 2, 2, answer=unscored, values=[3.0], markers=[221])
        journal.append("trial_start", **start(3))
    return journal.place


def test_table_row_joins_the_records_of_an_attempt(tmp_path):
    first, repeated, again = trial_rows(session(tmp_path))
    assert list(first) == [column.name for column in COLUMNS]
    assert (first["trial"], first["condition"], first["response"], first["correct"]) == (1, "low", "2", True)
    assert (first["asked_1"], first["asked_2"], first["axis_unit"]) == (1.0, 1.25, "N")
    assert (repeated["counts"], repeated["response"], repeated["reasons"]) == (False, None, "too slow; a gap of 7 ms")
    assert (again["counts"], again["attempt"], again["asked_2"], again["marker_2"]) == (True, 2, None, None)
    recordings = [one["recording"] for one in (first, repeated, again)]
    assert recordings == ["blocks/block-01", "blocks/block-01", "blocks/block-01_2"]
    assert float(again["response"]) == 0.1 + 0.2


def test_stimulus_columns_come_from_the_recording_or_give_a_reason(tmp_path):
    where = session(tmp_path)
    (where.folder / "blocks" / "block-01").mkdir(parents=True)

    def measure(folder, trial):
        assert folder == where.folder / "blocks" / "block-01"
        return {"delivered_1": float(trial["markers"][0]), "delivered_exact": True}

    first, _, again = trial_rows(where, measure)
    assert (first["recording"], again["recording"]) == ("blocks/block-01", "blocks/block-01_2")
    assert (first["delivered_1"], first["delivered_exact"], first["felt_1"]) == (111.0, True, None)
    assert first["stimulus_missing"] is None
    assert again["stimulus_missing"] == "the recording is not there"
    assert {row["stimulus_missing"] for row in trial_rows(where, None)} == {"not measured"}
    assert "not a readable recording" in trial_rows(where)[0]["stimulus_missing"]


def test_stimulus_is_measured_in_the_recording_of_a_resumed_block(tmp_path):
    where = session(tmp_path)
    for name in ("block-01", "block-01_2"):
        (where.folder / "blocks" / name).mkdir(parents=True)

    def measure(folder, _trial):
        return {"ticks_1": 5} if folder.name == "block-01_2" else {"stimulus_missing": "no such interval"}

    first, *_ = trial_rows(where, measure)
    assert (first["recording"], first["ticks_1"], first["stimulus_missing"]) == ("blocks/block-01_2", 5, None)


def test_recording_outside_the_session_folder_is_refused(tmp_path):
    with Journal.create(place(tmp_path), HEADER) as journal:
        journal.append("block_start", block=1, conditions=[], recording="blocks/../../../x", attempt=1)
        run_trial(journal, 1)
    with pytest.raises(RecordingError, match="not in the session's folder"):
        trial_rows(journal.place, lambda _folder, _trial: {})


def test_table_is_rewritten_but_foreign_files_are_kept(tmp_path):
    where = session(tmp_path)
    assert write_table(where) == write_table(where) == where.table
    lines = [line.split("\t") for line in where.table.read_text(encoding="utf-8").splitlines()]
    assert {len(line) for line in lines} == {len(COLUMNS)}
    assert len(lines) == 4
    told = json.loads(where.table.with_suffix(".json").read_text(encoding="utf-8"))
    assert list(told) == lines[0]
    where.table.write_text("mine\n")
    with pytest.raises(OSError, match="not written by this program"):
        write_table(where)
    assert where.table.read_text() == "mine\n"


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)


@settings(max_examples=12)
@given(TEXTS, TEXTS, st.floats(allow_nan=False, allow_infinity=False), st.lists(TEXTS, max_size=2))
def test_csv_and_tsv_cells_round_trip(tmp_path_factory, condition, key, value, reasons):
    with Journal.create(place(tmp_path_factory.mktemp("out")), HEADER) as journal:
        begin_block(journal)
        journal.append("trial_start", **start(1, condition=condition, level=value))
        journal.append("response", **response(1, key=key))
        journal.append("trial_end", **end(1, 1, "ok", *reasons))
    rows = trial_rows(journal.place)
    (read,) = csv.DictReader(io.StringIO(csv_of(rows), newline=""))
    assert (read["condition"], read["key"], read["reasons"]) == (condition, key, "; ".join(reasons))
    assert float(read["level"]) == value
    header, row, rest = tsv_of(rows).split("\n")
    assert rest == ""
    assert len(header.split("\t")) == len(row.split("\t")) == len(COLUMNS)
    assert len(tsv_of(rows).splitlines()) == 2


STIMULI = [
    {"condition": "low", "track": "up"},
    {"condition": "low", "track": "down"},
    {"condition": "high", "level": 2.5},
]


def blind_session(out):
    return Journal.create(place(out), HEADER | {"blind": seal_codes(place(out), make_codes(STIMULI))})


@pytest.fixture
def decodable(tmp_path):
    """A blind session that has ended."""
    with blind_session(tmp_path) as journal:
        journal.append("end", reason="complete", trials=0, repeated=0)
    return journal.place


def test_resumed_session_has_the_same_codes(tmp_path):
    with blind_session(tmp_path) as journal:
        seal = journal.records[0]["blind"]
    codes = open_codes(journal.place, seal)
    assert codes == open_codes(journal.place, seal)
    assert sorted(map(str, codes.stimuli.values())) == sorted(map(str, STIMULI))


def test_sealed_files_do_not_reveal_conditions(tmp_path):
    with blind_session(tmp_path) as journal:
        text = journal.place.codes.read_text()
    assert "low" not in text
    assert "condition" not in text
    one, other = make_codes(STIMULI), make_codes(STIMULI)
    assert one.seal != other.seal
    assert one.stimuli != other.stimuli


@pytest.mark.parametrize("harm", ["table", "salt", "exchanged"])
def test_modified_code_table_is_detected(decodable, harm):
    table = json.loads(decodable.codes.read_text())
    if harm == "table":
        stimuli = json.loads(base64.b64decode(table["sealed"]))
        first, second, *_ = stimuli
        stimuli[first], stimuli[second] = stimuli[second], stimuli[first]
        table["sealed"] = base64.b64encode(json.dumps(stimuli).encode()).decode()
    elif harm == "salt":
        table["salt"] = "0" * 32
    if harm == "exchanged":
        seal_codes(decodable, make_codes(STIMULI))
    else:
        decodable.codes.write_text(json.dumps(table))
    with pytest.raises(RecordingError, match="not the table that was sealed"):
        decode(decodable)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"sealed": 1, "salt": "a"}', '{"sealed": "%%", "salt": "a"}'])
def test_invalid_code_table_is_refused(decodable, content):
    decodable.codes.write_text(content)
    with pytest.raises(RecordingError, match="no sealed code table"):
        decode(decodable)


def test_decode_refuses_a_session_that_is_not_blind(tmp_path):
    with Journal.create(place(tmp_path), HEADER) as journal:
        journal.append("end", reason="complete", trials=0, repeated=0)
    with pytest.raises(ConfigurationError, match="no blind session"):
        decode(journal.place)


def test_empty_code_table_is_refused():
    with pytest.raises(ConfigurationError, match="1 to 2000"):
        make_codes([])


def test_decode_command_opens_all_sessions_or_none(tmp_path, capsys):
    with blind_session(tmp_path) as journal:
        assert main(["experiment", "decode", str(tmp_path)]) == 2
        captured = capsys.readouterr()
        assert "has not ended: its codes stay sealed" in captured.err
        assert "low" not in captured.out + captured.err
        journal.append("end", reason="complete", trials=0, repeated=0)
    assert main(["experiment", "decode", str(tmp_path), "--json"]) == 0
    (session,) = json.loads(capsys.readouterr().out)["sessions"]
    assert sorted(map(str, session["codes"].values())) == sorted(map(str, STIMULI))
    assert main(["experiment", "decode", str(tmp_path)]) == 0
    assert '{"condition": "low", "track": "up"}' in capsys.readouterr().out
