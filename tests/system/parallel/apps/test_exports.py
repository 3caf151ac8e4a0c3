"""Packed session folders: round trip, repetition, damage."""

import hashlib
import json

import pytest

from apps.cli import main
from apps.experiment.journal import trial_rows
from apps.experiment.stimulus import measure
from apps.pack import packing
from apps.pack.packing import pack, unpack
from haptics.errors import RecordingError
from haptics.recording.recording import PACKED, TICKS, Recording
from haptics.recording.replay import verify
from haptics.recording.tick_file import TableInMemory
from tests.apps.experiment.exports.test_exports import recorded  # noqa: F401


def tick_hashes(recorded):
    files = sorted(recorded.folder.glob(f"blocks/*/{TICKS}"))
    return {file.parent.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_session_is_packed_analysed_and_unpacked(recorded, capsys):
    before, rows = tick_hashes(recorded), trial_rows(recorded, measure)
    for kept in recorded.folder.glob("blocks/*/stimulus.json"):
        kept.unlink()
    size = sum(file.stat().st_size for file in recorded.folder.glob(f"blocks/*/{TICKS}"))
    assert len(before) == 2
    assert main(["experiment", "pack", str(recorded.folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    left = sum(file.stat().st_size for file in recorded.folder.glob(f"blocks/*/{PACKED}"))
    assert not tick_hashes(recorded) and (told["recordings"], told["bytes"]) == (2, left - size)
    assert left < 0.5 * size
    assert trial_rows(recorded, measure) == rows, "what was felt was measured before"
    assert main(["experiment", "pack", str(recorded.folder), "--undo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == size - left
    assert tick_hashes(recorded) == before and not list(recorded.folder.glob(f"blocks/*/{PACKED}"))
    assert verify(Recording(recorded.recording(1))).verdict == "ok"


def test_packing_is_idempotent(recorded):
    block, before = recorded.recording(1), tick_hashes(recorded)
    assert unpack(block) == 0
    assert pack(block) > 0 and pack(block) == 0
    assert unpack(block) > 0 and unpack(block) == 0
    assert tick_hashes(recorded) == before


def test_ticks_are_kept_if_the_packed_file_differs(recorded, monkeypatch):
    block, before = recorded.recording(1), tick_hashes(recorded)
    write = packing.write_packed

    def wrong(table, path):
        rows = table.read()
        rows["time"][3] += 1e-9
        write(TableInMemory(rows), path)

    monkeypatch.setattr(packing, "write_packed", wrong)
    with pytest.raises(RecordingError, match="nothing was removed"):
        pack(block)
    assert tick_hashes(recorded) == before and not list(block.glob("*npz*"))
