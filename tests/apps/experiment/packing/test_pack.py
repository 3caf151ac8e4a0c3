"""Recordings of a session in less room: without loss, once read back, and as they were again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from apps.cli import main
from apps.experiment.journal import SessionFolder, trial_rows
from apps.experiment.stimulus import measure
from apps.pack import packing
from apps.pack.packing import pack, unpack
from haptics.errors import RecordingError
from haptics.recording.recording import PACKED, TICKS, Recording
from haptics.recording.replay import verify
from haptics.recording.tick_file import Table, TableInMemory
from tests.apps.experiment.design.designs import changed
from tests.apps.experiment.engine.running import simulate


@pytest.fixture
def place(tmp_path: Path) -> SessionFolder:
    return simulate(changed(tmp_path), tmp_path / "out")[1]


def ticks(place: SessionFolder) -> dict[str, str]:
    files = sorted(place.folder.glob(f"blocks/*/{TICKS}"))
    return {file.parent.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_a_session_is_packed_analysed_and_unpacked(place: SessionFolder, capsys: pytest.CaptureFixture[str]) -> None:
    before, rows = ticks(place), trial_rows(place, measure)
    for kept in place.folder.glob("blocks/*/stimulus.json"):
        kept.unlink()
    size = sum(file.stat().st_size for file in place.folder.glob(f"blocks/*/{TICKS}"))
    assert len(before) == 2
    assert main(["experiment", "pack", str(place.folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    left = sum(file.stat().st_size for file in place.folder.glob(f"blocks/*/{PACKED}"))
    assert not ticks(place) and (told["recordings"], told["bytes"]) == (2, left - size)
    assert left < 0.5 * size
    assert trial_rows(place, measure) == rows, "what was felt was measured before"
    assert main(["experiment", "pack", str(place.folder), "--undo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == size - left
    assert ticks(place) == before and not list(place.folder.glob(f"blocks/*/{PACKED}"))
    assert verify(Recording(place.recording(1))).verdict == "ok"


def test_packing_and_unpacking_twice_does_nothing(place: SessionFolder) -> None:
    block, before = place.recording(1), ticks(place)
    assert unpack(block) == 0
    assert pack(block) > 0 and pack(block) == 0
    assert unpack(block) > 0 and unpack(block) == 0
    assert ticks(place) == before


def test_ticks_that_were_changed_are_not_packed(place: SessionFolder) -> None:
    block = place.recording(1)
    rows = np.load(block / TICKS, mmap_mode="r+")
    rows["position"][7, 0] += 1e-9
    rows.flush()
    with pytest.raises(RecordingError, match="changed, or not closed"):
        pack(block)
    assert (block / TICKS).exists() and not (block / PACKED).exists()


def test_nothing_is_removed_that_does_not_come_back(place: SessionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    block, before = place.recording(1), ticks(place)
    write = packing.write_packed

    def wrong(table: Table, path: Path) -> None:
        rows = table.read()
        rows["time"][3] += 1e-9
        write(TableInMemory(rows), path)

    monkeypatch.setattr(packing, "write_packed", wrong)
    with pytest.raises(RecordingError, match="nothing was removed"):
        pack(block)
    assert ticks(place) == before and not list(block.glob("*npz*"))


@pytest.mark.parametrize("harm", ["cut", "other", "empty"])
def test_a_packed_file_that_is_damaged_is_refused(place: SessionFolder, harm: str) -> None:
    block = place.recording(1)
    pack(block)
    file = block / PACKED
    data = file.read_bytes()
    file.write_bytes({"cut": data[: len(data) // 2], "other": b"PK\3\4" + data[100:], "empty": b""}[harm])
    with pytest.raises(RecordingError, match="holds no packed ticks"):
        unpack(block)
    assert file.exists() and not (block / TICKS).exists()
