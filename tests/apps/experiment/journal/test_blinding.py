"""Sealed codes: nothing can be read from the seal, changed behind it, or decoded before the end."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from apps.cli import main
from apps.experiment.journal import Journal, SessionFolder, decode, make_codes, open_codes, seal_codes
from haptics.errors import ConfigurationError, RecordingError
from tests.apps.experiment.journal.records import HEADER, place

STIMULI = [
    {"condition": "low", "track": "up"},
    {"condition": "low", "track": "down"},
    {"condition": "high", "level": 2.5},
]


def blind_session(out: Path) -> Journal:
    where = place(out)
    seal = seal_codes(where, make_codes(STIMULI))
    return Journal.create(where, HEADER | {"blind": seal})


def test_codes_are_opened_at_the_end_and_not_before(tmp_path: Path) -> None:
    with blind_session(tmp_path) as journal:
        with pytest.raises(ConfigurationError, match="has not ended: its codes stay sealed"):
            decode(journal.place)
        journal.append("end", reason="complete", trials=0, repeated=0)
    found = decode(journal.place)
    assert sorted(map(str, found.stimuli.values())) == sorted(map(str, STIMULI))
    assert [found.stimuli[found.code(one)] for one in STIMULI] == STIMULI


def test_a_session_that_goes_on_has_the_same_codes(tmp_path: Path) -> None:
    with blind_session(tmp_path) as journal:
        seal = journal.records[0]["blind"]
    with pytest.raises(ConfigurationError, match="has no code"):
        open_codes(journal.place, seal).code({"condition": "none"})
    assert open_codes(journal.place, seal) == open_codes(journal.place, seal)


def test_neither_the_seal_nor_a_glance_at_the_files_tells_anything(tmp_path: Path) -> None:
    with blind_session(tmp_path) as journal:
        text = journal.place.codes.read_text()
    assert "low" not in text
    assert "condition" not in text
    one, other = make_codes(STIMULI), make_codes(STIMULI)
    assert one.seal != other.seal
    assert [one.code(each) for each in STIMULI] != [other.code(each) for each in STIMULI]


def _with(where: SessionFolder, **fields: str) -> None:
    where.codes.write_text(json.dumps(json.loads(where.codes.read_text()) | fields))


@pytest.mark.parametrize("harm", ["table", "salt", "exchanged"])
def test_a_table_that_was_changed_is_seen(tmp_path: Path, harm: str) -> None:
    with blind_session(tmp_path) as journal:
        journal.append("end", reason="complete", trials=0, repeated=0)
    where = journal.place
    if harm == "table":
        stimuli = json.loads(base64.b64decode(json.loads(where.codes.read_text())["sealed"]))
        first, second, *_ = stimuli
        stimuli[first], stimuli[second] = stimuli[second], stimuli[first]
        _with(where, sealed=base64.b64encode(json.dumps(stimuli).encode()).decode())
    elif harm == "salt":
        _with(where, salt="0" * 32)
    else:
        seal_codes(where, make_codes(STIMULI))
    with pytest.raises(RecordingError, match="not the table that was sealed"):
        decode(where)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"sealed": 1, "salt": "a"}', '{"sealed": "%%", "salt": "a"}'])
def test_what_is_no_table_is_said(tmp_path: Path, content: str) -> None:
    with blind_session(tmp_path) as journal:
        journal.append("end", reason="complete", trials=0, repeated=0)
    journal.place.codes.write_text(content)
    with pytest.raises(RecordingError, match="no sealed code table"):
        decode(journal.place)


def test_a_session_that_was_not_blind_has_nothing_to_decode(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        journal.append("end", reason="complete", trials=0, repeated=0)
    with pytest.raises(ConfigurationError, match="no blind session"):
        decode(journal.place)


def test_there_must_be_something_to_tell_apart() -> None:
    with pytest.raises(ConfigurationError, match="1 to 2000"):
        make_codes([])


def test_the_command_opens_all_sessions_or_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with blind_session(tmp_path) as journal:
        assert main(["experiment", "decode", str(tmp_path)]) == 2
        captured = capsys.readouterr()
        assert "stay sealed" in captured.err
        assert "low" not in captured.out + captured.err
        journal.append("end", reason="complete", trials=0, repeated=0)
    assert main(["experiment", "decode", str(tmp_path), "--json"]) == 0
    (session,) = json.loads(capsys.readouterr().out)["sessions"]
    assert sorted(map(str, session["codes"].values())) == sorted(map(str, STIMULI))
    assert main(["experiment", "decode", str(tmp_path)]) == 0
    assert '{"condition": "low", "track": "up"}' in capsys.readouterr().out
