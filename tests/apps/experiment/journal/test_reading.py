"""A journal from a stranger: every line is judged, and the damaged one is named."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.experiment.journal import Journal, read_journal, reading
from haptics.errors import RecordingError
from tests.apps.experiment.journal.records import HEADER, begin_block, place, run_trial


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    with Journal.create(place(tmp_path_factory.mktemp("out")), HEADER) as journal:
        begin_block(journal)
        run_trial(journal, 1)
        run_trial(journal, 2)
        journal.append("end", reason="complete", trials=2, repeated=0)
    return journal.place.journal.read_bytes().splitlines(keepends=True)


def refused(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(RecordingError) as caught:
        read_journal(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def changed(line: bytes, **fields: Any) -> bytes:
    return json.dumps(json.loads(line) | fields).encode() + b"\n"


def without(line: bytes, name: str) -> bytes:
    record = json.loads(line)
    del record[name]
    return json.dumps(record).encode() + b"\n"


def test_lines_that_are_swapped_doubled_or_missing_are_named(tmp_path: Path, lines: list[bytes]) -> None:
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
def test_a_field_that_cannot_be_is_named_with_its_line(
    tmp_path: Path, lines: list[bytes], fields: dict[str, Any], words: str
) -> None:
    told = refused(tmp_path / "j", b"".join([*lines[:2], changed(lines[2], **fields), *lines[3:]]))
    assert "line 3" in told
    assert words in told


def test_a_field_that_lacks_is_named(tmp_path: Path, lines: list[bytes]) -> None:
    told = refused(tmp_path / "j", b"".join([*lines[:2], without(lines[2], "markers"), *lines[3:]]))
    assert "line 3: trial_start lacks markers" in told


def test_what_may_be_left_out_is_null(tmp_path: Path, lines: list[bytes]) -> None:
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
def test_lines_that_are_no_records_are_named(tmp_path: Path, lines: list[bytes], line: bytes, words: str) -> None:
    told = refused(tmp_path / "j", b"".join([lines[0], line, *lines[2:]]))
    assert "line 2" in told
    assert words in told


def test_journals_of_newer_versions_are_refused(tmp_path: Path, lines: list[bytes]) -> None:
    assert "use a newer one" in refused(tmp_path / "j", changed(lines[0], format=2) + b"".join(lines[1:]))
    assert "line 1" in refused(tmp_path / "j", changed(lines[0], format="1") + b"".join(lines[1:]))


def test_sizes_are_bounded(tmp_path: Path, lines: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LONGEST_LINE", 2000)
    told = refused(tmp_path / "j", lines[0] + b" " * 3000 + b"\n")
    assert "line 2" in told
    monkeypatch.setattr(reading, "LARGEST_JOURNAL", 1000)
    assert "too large" in refused(tmp_path / "j", b"".join(lines))


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "none", Path("/dev/zero")):
        with pytest.raises(RecordingError):
            read_journal(path)
    assert "no whole record" in refused(tmp_path / "j", b"")


@settings(max_examples=37)
@given(st.data())
def test_damage_anywhere_is_an_error_in_words_or_no_damage(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    """Whatever happens to some bytes, the reader returns records of the schema or says which line is wrong."""
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
