"""Exports of long recordings in any chunks, and packed session folders."""

import hashlib
import json
import tracemalloc

import numpy as np
import pytest

from apps.cli import main
from apps.experiment.journal import trial_rows
from apps.experiment.stimulus import measure
from apps.export import writers
from apps.export.writers import Table
from apps.pack import packing
from apps.pack.packing import pack
from haptics.errors import RecordingError
from haptics.recording.recording import PACKED, TICKS, Recording
from haptics.recording.replay import verify
from haptics.recording.tick_file import TableInMemory
from tests.apps.experiment.export.test_exports import recorded  # noqa: F401
from tests.apps.test_export import folder, long, require_packages  # noqa: F401


@pytest.mark.parametrize("kind", ["csv", "parquet", "mat"])
def test_file_is_the_same_for_any_chunk(kind, long, tmp_path, monkeypatch):
    require_packages(kind)
    writers.write(Table.of(long), kind, tmp_path / "a")
    monkeypatch.setattr(writers, "_ROWS_AT_ONCE", 777)
    monkeypatch.setattr(writers, "_FEW", 10**9)
    writers.write(Table.of(long), kind, tmp_path / "b")
    one, other = (path.read_bytes() for path in (tmp_path / "a", tmp_path / "b"))
    assert one[128:] == other[128:]  # a MATLAB file begins with the time at which it was made


@pytest.mark.parametrize(("kind", "pyarrow"), [("csv", True), ("csv", False), ("mat", False)])
def test_export_memory_does_not_grow_with_the_length(kind, pyarrow, folder, tmp_path, monkeypatch):
    """Three times the rows; the number of chunks in memory depends on the threads."""
    if pyarrow:
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(writers, "_FEW", 0 if pyarrow else 10**9)
    monkeypatch.setattr(writers, "_ROWS_AT_ONCE", 250)
    short, wanted = Recording(folder).read(), Recording(folder)

    def peak(copies):
        wanted.rows = np.tile(short, copies)
        table = Table.of(wanted)
        tracemalloc.start()
        writers.write(table, kind, tmp_path / f"a.{kind}")
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(2)
    assert peak(12) < 1.5 * peak(4)


# --- packed sessions --------------------------------------------------------------------------------------------------


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
