"""Exports of long recordings: memory, and independence of the chunk size."""

import tracemalloc

import numpy as np
import pytest

from apps.export import writers
from apps.export.table import Table
from haptics.recording.recording import Recording
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
