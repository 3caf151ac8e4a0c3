"""Erasure of a participant: nothing remains but the record, also after an interruption."""

import bz2
import functools
import gzip
import io
import lzma
import os
import shutil
import tarfile
import zipfile

import pytest

from apps.experiment.assignment import AssignmentLog
from apps.experiment.export.formats import new_export, write_text
from apps.experiment.journal import erasure, search
from apps.experiment.journal.erasure import RECORD, erase, find_participant, read_record
from apps.experiment.journal.exclusion import ExclusionLog
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
    (out / "slots" / "bad.json").write_bytes(b'["P01", "P01", "P01"]')
    found = find_participant(out, "P01")
    assert sorted(str(path.relative_to(out)) for path in found.copies) == sorted(copies)
    assert sorted(found.mentions) == [out / "slots" / "bad.json", note]
    erase(found)
    assert all((out / name).read_bytes() == data for name, data in copies.items())
    erase(find_participant(out, "P01"), copies=True)
    assert not any((out / name).exists() for name in copies)
    assert all((out / name).read_bytes() == data for name, data in kept.items()) and note.exists()


@pytest.mark.parametrize("code", ["low", "A", "task", "wood", "slot", "group", "experiment", "excluded", "r1", "sub"])
def test_code_that_is_a_word_deletes_no_data_of_others(code, tmp_path):
    out, groups = tmp_path / "data", GroupSettings(names=["low", "A", "task", "ok"], fields=["hand"])
    for number, person in enumerate(["P01", "P02", "P03", "P04", code]):
        with TrialLog.open(out, person, "wood", axis="law.force", design={"a": "low A task ok r1"}) as log:
            log.begin_block()
        reserve_slot(out, "wood", person)
        AssignmentLog(out, "wood").assign(person, groups, {"hand": ("low", "A", "r1")[number % 3]}, 1)
    ExclusionLog(out).exclude("P01", "low A task slot group excluded r1 sub")
    backup = tmp_path / "backup"
    shutil.copytree(out, backup, ignore=shutil.ignore_patterns(f"sub-{code}", "slot-0004", "assignment-0004"))
    shutil.copytree(backup, out / "backup")
    shutil.copytree(out / "sub-P01", out / "sub-P01.bak")
    shutil.copytree(out / "sub-P02" / "ses-01", out / "second")
    recording = out / "recordings" / "low" / "ticks.npy"
    recording.parent.mkdir(parents=True)
    recording.write_bytes(b" low A task ")
    (recording.parent / "recording.json").write_text('["low", "A", "r1"]')
    (out / "experiment.toml").write_text('names = ["low", "A", "task", "wood", "r1"]\n')
    (out / "note.txt").write_text(f"about {code}")
    kept = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and f"sub-{code}" not in str(path)}
    for path in (out / "slots/task-wood/slot-0004", out / "groups/task-wood/assignment-0004", out / "note.txt"):
        del kept[path]
    found = find_participant(out, code)
    assert found.copies == (out / "note.txt",) and len(found.reservations) == 2
    erase(found, copies=True)
    assert {path: path.is_file() and path.read_bytes() for path in kept} == kept
    assert not (out / f"sub-{code}").exists() and not (out / "note.txt").exists()
    log = AssignmentLog(out, "wood")
    log.refresh()
    (last,) = (one for one in log.history.entries if one.participant is None)
    assert last.group in groups.names, "the assignment still counts"


def test_files_added_to_the_folder_of_an_export_are_kept(out):
    with new_export(out / "tables") as folder:
        write_text(folder, "sub-P10/beh.tsv", "P10 and P01\n")
        write_text(folder, "other.tsv", "nothing\n")
    with TrialLog.open(out / "tables", "P20", "wood", axis="law.force") as log:
        log.begin_block()
    found = find_participant(out, "P01")
    assert found.copies == (out / "tables",)
    erase(found, copies=True)
    names = {path.relative_to(out / "tables").parts[0] for path in (out / "tables").rglob("*")}
    assert names == {"sub-P20"} and log.place.journal.is_file()


def zipped(**members):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return data.getvalue()


def tarred(**members):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as file:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            file.addfile(header, io.BytesIO(content))
    return data.getvalue()


NESTED = {
    "zip.zip": lambda text: zipped(a=zipped(b=text)),
    "zip.tar.gz": lambda text: gzip.compress(tarred(a=b"x", b=zipped(b=text))),
    "tar.xz": lambda text: lzma.compress(tarred(a=text)),
    "plain.tar": lambda text: tarred(a=b"x", b=gzip.compress(text)),
    "tgz.zip": lambda text: zipped(a=gzip.compress(tarred(b=text))),
    "twice": lambda text: bz2.compress(gzip.compress(text)),
    "long.zip": lambda text: zipped(a=zipped(b=b"x" * (3 << 20) + b" " + text)),
}


def test_archives_within_archives_are_searched(out):
    for name, pack in NESTED.items():
        (out / f"yes-{name}").write_bytes(pack(b"sub-P01"))
        (out / f"no-{name}").write_bytes(pack(b"sub-P010"))
    (out / "yes-name.tar").write_bytes(tarred(P01=b""))
    found = find_participant(out, "P01")
    assert sorted(path.name for path in found.copies) == sorted(f"yes-{name}" for name in (*NESTED, "name.tar"))
    assert found.unsearched == ()


def bomb(size):
    """Return a tar archive with an extended header of `size` bytes."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, size
    return header.tobuf(tarfile.GNU_FORMAT)


HOSTILE = {
    "deep.gz": functools.reduce(lambda data, _: gzip.compress(data), range(9), b"P01"),
    "torn.gz": gzip.compress(b"P01" + os.urandom(5000))[:-4000],
    "torn.zip": zipped(a=b"P01")[:-10],
    "torn.tar": tarred(a=b"x")[:1024] + b"y" * 512 + b"z" * 20_000,
    "pax.tar": bomb(1 << 40),
    "pax.tar.gz": gzip.compress(bomb(1 << 40)),
    "secret.7z": b"7z\xbc\xaf\x27\x1cxyz",
    "secret.zst": b"\x28\xb5\x2f\xfdxyz",
    "large.gz": gzip.compress(b"\0" * (9 << 20)),
    "large.zip": zipped(**{f"a{k}": b"\0" * (1 << 20) for k in range(9)}),
    "nested.zip": zipped(a=zipped(b=os.urandom(3 << 20))),
    "sparse.tar.gz": gzip.compress(tarred(a=b"\0" * (9 << 20))),
    "many.zip": zipped(**{f"a{k}": b"" for k in range(200)}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archive_is_named_as_not_searched_and_kept(name, out, monkeypatch):
    monkeypatch.setattr(search, "_LARGEST_UNPACKED", 8 << 20)
    monkeypatch.setattr(search, "_LARGEST_NESTED", 2 << 20)
    monkeypatch.setattr(search, "_MOST_MEMBERS", 100)
    (out / name).write_bytes(HOSTILE[name])
    found = find_participant(out, "P01")
    assert (found.copies, found.unsearched) == ((), (out / name,))
    erase(found, copies=True)
    assert (out / name).is_file()
