"""Erasure of a participant: nothing remains but the record, also after an interruption."""

import json
import os
import shutil

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
        shutil.copy(log.folder / f"assignment-{len(log.entries) - 1:04d}", log.folder / f".{code.lower()}")
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
    assert (len(found.sessions), len(found.reservations), found.mentions) == (2, 3, ())
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


def test_exports_and_reports_with_the_code_are_listed(out):
    (out / "report.html").write_text("<p>P01, P10</p>")
    (out / "other.html").write_text("<p>P011</p>")
    (out / "slots" / "bad.json").write_text(json.dumps([["P01"]] * 3))
    assert [path.name for path in find_participant(out, "P01").mentions] == ["report.html", "bad.json"]
