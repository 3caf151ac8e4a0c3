"""Long recordings: memory of packing, and certificates of any pieces."""

import tracemalloc

import numpy as np

from haptics.recording.certificate import RunSummary
from haptics.recording.tick_file import PackedTable, TableInMemory, write_packed
from haptics.records import COLUMNS as COLUMN_TYPES
from tests.haptics.recording.test_certificate import everything, random_run
from tests.haptics.recording.test_tick_file import blocks  # noqa: F401


def test_packing_memory_does_not_grow_with_the_length(tmp_path, blocks):
    def peak(count):
        rows = TableInMemory(np.zeros(count, COLUMN_TYPES))
        tracemalloc.start()
        write_packed(rows, tmp_path / f"{count}.npz")
        found = PackedTable(tmp_path / f"{count}.npz")
        found.sha256()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(30_000)
    assert peak(400_000) < 1.1 * peak(100_000)


def test_summary_does_not_depend_on_the_piece_size():
    rows = random_run(20_000)
    whole = everything(RunSummary(1e-3).add(rows))
    for size in (1, 777, 4096):
        pieces = RunSummary(1e-3)
        for start in range(0, len(rows), size):
            pieces.add(rows[start : start + size])
        assert everything(pieces) == whole
