"""``haptics pack``: in less room, read by every command as it is, and as it was again; nothing is ever lost."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from apps.cli import main
from apps.pack import packing
from apps.pack.packing import pack, unpack
from haptics.errors import RecordingError
from haptics.recording.recording import PACKED, TICKS, Recording
from tests.recordings import KEPT


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("recordings")
    asked = ("run", "--device", "virtual-joystick", "--headless", "--clock", "off", "--duration", "2")
    assert main([*asked, "--set", "session.picture=false", "--record", str(parent)]) == 0
    (found,) = parent.iterdir()
    return found


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_recording_is_packed_and_as_it_was_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, size = (folder / TICKS).read_bytes(), (folder / TICKS).stat().st_size
    told = answer(capsys, "pack", str(folder))
    left = (folder / PACKED).stat().st_size
    assert told == {"recordings": 1, "bytes": left - size, "size": left}
    assert left < 0.45 * size
    assert not (folder / TICKS).exists()
    assert answer(capsys, "pack", str(folder))["recordings"] == 0
    assert answer(capsys, "pack", str(folder), "--undo") == {"recordings": 1, "bytes": size - left, "size": size}
    assert (folder / TICKS).read_bytes() == before
    assert not (folder / PACKED).exists()


COMMANDS: dict[str, tuple[str, ...]] = {
    "verify": ("verify", "{folder}"),
    "replay": ("replay", "{folder}", "--headless"),
    "replay --verify": ("replay", "{folder}", "--verify"),
    "compare": ("compare", "{folder}", "{folder}", "--out", "{out}.png"),
    "again": ("compare", "{folder}", "--with", "law.force=1", "--open-loop"),
    "csv": ("export", "{folder}", "--to", "csv", "--out", "{out}.csv"),
    "mat": ("export", "{folder}", "--to", "mat", "--out", "{out}.mat"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_read_it_as_it_is(folder: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [part.format(folder=folder, out=tmp_path / "out") for part in COMMANDS[name]]
    whole = answer(capsys, *arguments)
    files = {path.name: path.read_bytes()[128:] for path in tmp_path.glob("out*")}
    pack(folder)
    assert answer(capsys, *arguments) == whole
    assert {path.name: path.read_bytes()[128:] for path in tmp_path.glob("out*")} == files


@pytest.mark.parametrize("kept", [path for path in KEPT if (path / TICKS).exists()], ids=lambda path: path.name)
def test_recordings_of_older_formats_are_packed(kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(kept, tmp_path / "run"))
    before = (folder / TICKS).read_bytes()
    whole = answer(capsys, "verify", str(folder))
    assert pack(folder) > 0
    assert answer(capsys, "verify", str(folder)) == whole
    assert unpack(folder) > 0
    assert (folder / TICKS).read_bytes() == before


def test_packed_ticks_that_were_changed_are_found_by_their_hash(folder: Path) -> None:
    pack(folder)
    description = json.loads((folder / "recording.json").read_text())
    description["rows_sha256"] = hashlib.sha256(b"other").hexdigest()
    (folder / "recording.json").write_text(json.dumps(description))
    assert main(["verify", str(folder)]) == 1
    with pytest.raises(RecordingError, match="changed, or not closed"):
        unpack(folder)


def test_recording_that_was_not_closed_is_left_alone(folder: Path) -> None:
    (folder / TICKS).rename(folder / "ticks.npy.part")
    assert pack(folder) == 0
    assert sorted(path.name for path in folder.glob("ticks*")) == ["ticks.npy.part"]


def test_what_is_no_recording_is_refused_before_any_is_packed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pack", str(folder), str(tmp_path)]) == 2
    assert "is not a readable recording" in capsys.readouterr().err
    assert (folder / TICKS).exists()


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_error_at_any_moment_loses_nothing(
    folder: Path, undo: bool, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Recording(folder).read()
    if undo:
        pack(folder)

    def broken(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, moment, broken)
    with pytest.raises(OSError, match="No space left"):
        (unpack if undo else pack)(folder)
    monkeypatch.undo()
    assert [path.name for path in folder.glob(".*")] == []
    assert Recording(folder).read().tobytes() == rows.tobytes()


def test_kill_between_the_two_files_leaves_both_and_the_next_time_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Recording(folder).read()
    with monkeypatch.context() as killed:
        killed.setattr(Path, "unlink", lambda self, missing_ok=False: None)
        pack(folder)
    assert (folder / TICKS).exists() and (folder / PACKED).exists()
    assert Recording(folder).ticks.name == TICKS
    assert pack(folder) > 0
    assert Recording(folder).ticks.name == PACKED
    assert Recording(folder).read().tobytes() == rows.tobytes()


def test_what_a_killed_program_left_does_not_matter(folder: Path) -> None:
    (folder / f".{PACKED}.part").write_bytes(b"half")
    assert pack(folder) > 0
    assert packing.unpack(folder) > 0
    assert list(folder.glob(".*")) == []
