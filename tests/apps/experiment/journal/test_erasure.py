"""Erasure of a participant: nothing remains but the record, also after an interruption."""

import bz2
import gzip
import lzma
import os
import shutil
import zipfile

import pytest

from apps.experiment.assignment import AssignmentLog
from apps.experiment.journal import erasure
from apps.experiment.journal.erasure import RECORD, erase, find_participant, read_record
from apps.experiment.journal.folder import reserve_slot
from apps.experiment.settings import GroupSettings
from apps.experiment.trial_log import TrialLog
from haptics.errors import ConfigurationError

GROUPS = GroupSettings(names=["wet", "dry"], blind=True)


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "data"
    for code in ("P01", "P10"):
        for session in (1, 2):
            with TrialLog.open(folder, code, "wood", axis="law.force", session=session) as log:
                log.begin_block()
            (log.place.folder / "triggers.jsonl").write_text('{"event": "trial", "code": 1}\n')
        reserve_slot(folder, "wood", code)
        log = AssignmentLog(folder, "wood")
        log.assign(code, GROUPS, {}, 1)
        # left by a station that was killed during the assignment
        shutil.copy(log.folder / f"assignment-{len(log.history.entries) - 1:04d}", log.folder / f".{code.lower()}")
    return folder


def traces(out, code):
    """Return the files that contain a code in their name or content, except the record."""
    paths = [path for path in out.rglob("*") if path.name != RECORD]
    return [
        path for path in paths if code in str(path.relative_to(out)) or (path.is_file() and code in path.read_text())
    ]


def test_nothing_remains_but_the_record_and_others_are_kept(out):
    others = {path: path.read_bytes() for path in traces(out, "P10") if path.is_file()}
    found = find_participant(out, "P01")
    assert (len(found.sessions), len(found.reservations), found.copies, found.mentions) == (2, 3, (), ())
    erase(found, "on request")
    assert traces(out, "P01") == []
    assert {path: path.read_bytes() for path in traces(out, "P10") if path.is_file()} == others
    begun, erased = read_record(out)
    assert (begun["state"], erased["state"], erased["participant"]) == ("begun", "erased", "P01")
    assert (erased["sessions"], erased["files"], erased["reason"]) == (2, found.files, "on request")
    assert reserve_slot(out, "wood", "P11") == 0, "the place is free again"
    with pytest.raises(ConfigurationError, match="there are no data of P01"):
        find_participant(out, "P01")


@pytest.mark.parametrize("stage", ["rename", "rmtree", "unlink", "replace"])
def test_interrupted_erasure_is_completed_by_repetition(stage, out, monkeypatch):
    def killed(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        owner = {"rename": os, "rmtree": erasure.shutil, "unlink": erasure.Path, "replace": os}[stage]
        patch.setattr(owner, stage, killed)
        with pytest.raises(KeyboardInterrupt):
            erase(find_participant(out, "P01"))
    (out / RECORD).write_text((out / RECORD).read_text() + '{"torn')
    erase(find_participant(out, "P01"))
    assert traces(out, "P01") == [] and not list(out.glob(".erasing-*"))
    assert read_record(out)[-1]["state"] == "erased"


def test_running_session_and_links_are_refused(out, tmp_path):
    with TrialLog.open(out, "P01", "wood", axis="law.force", session=3):
        with pytest.raises(ConfigurationError, match="being written by process"):
            erase(find_participant(out, "P01"))
    assert len(list((out / "sub-P01").iterdir())) == 3 and not (out / RECORD).exists()
    (out / "sub-L1").symlink_to(out / "sub-P01")
    with pytest.raises(ConfigurationError, match="is a link"):
        find_participant(out, "L1")
    with pytest.raises(ConfigurationError, match="not a name"):
        find_participant(out, "../x")
    (out / RECORD).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="could not be erased"):
        erase(find_participant(out, "P01"))
    assert not (tmp_path / "elsewhere").exists() and (out / "sub-P01").is_dir()


COMPRESSED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def test_copies_are_found_in_any_form_and_deleted_on_request_only(out):
    text = b"x" * (1 << 20) + b" sub-P01 "  # across the chunks that are searched
    copies = {
        "report.html": b"<p>P10, P01</p>",
        "table.parquet": b"PAR1\0\1P01\0PAR1",
        "deep/P01.bin": b"",
        "long": text,
    }
    copies |= {f"table.csv{suffix}": compress(text) for suffix, compress in COMPRESSED.items()}
    copies |= {"torn.gz": gzip.compress(text)[:-20], "slots/bad.json": b'["P01", "P01", "P01"]'}
    kept = {"other.html": b"<p>P011, XP01, p01</p>", "other.csv.gz": gzip.compress(b"P011"), "empty": b""}
    kept["other"] = b"x" * ((1 << 20) - 129) + b"yP01 " + b"y" * 200  # the code begins where a chunk does
    for name, data in {**copies, **kept}.items():
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_bytes(data)
    for name, inner in (("names.zip", "sub-P01.tsv"), ("content.zip", "participants.tsv")):
        with zipfile.ZipFile(out / name, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(inner, "sub-P01\n")
        copies[name] = (out / name).read_bytes()
    note = out / "sub-P10" / "note.txt"
    note.write_text("after P01")
    found = find_participant(out, "P01")
    assert sorted(str(path.relative_to(out)) for path in found.copies) == sorted(copies)
    assert found.mentions == (note,)
    erase(found)
    assert all((out / name).read_bytes() == data for name, data in copies.items())
    erase(find_participant(out, "P01"), copies=True)
    assert not any((out / name).exists() for name in copies)
    assert all((out / name).read_bytes() == data for name, data in kept.items()) and note.exists()
