"""Packed ticks: the same rows, header and hashes as before, read block by block; nothing else is believed."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib import format as npy

from haptics.errors import RecordingError
from haptics.recording import packed
from haptics.recording.packed import PackedTable, write_packed
from haptics.recording.tick_file import Table, TableInMemory, TickFile, TickTable
from haptics.records import COLUMNS, ROW

COUNT = 2500


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "BLOCK_ROWS", 400)


@pytest.fixture
def table(tmp_path: Path) -> TickTable:
    rng = np.random.default_rng(1)
    rows = np.zeros(COUNT, ROW)
    rows["tick"] = np.arange(COUNT)
    rows["position"] = np.cumsum(rng.normal(scale=1e-5, size=(COUNT, 2)), axis=0)
    rows["status"] = rng.integers(0, 3, COUNT)
    file = TickFile(tmp_path / "ticks.npy")
    file.append(rows)
    file.close()
    return TickTable(tmp_path / "ticks.npy")


@pytest.fixture
def packed_table(table: TickTable, tmp_path: Path, blocks: None) -> PackedTable:
    write_packed(table, tmp_path / "ticks.npz")
    return PackedTable(tmp_path / "ticks.npz")


def test_packed_rows_are_those_of_the_file(table: TickTable, packed_table: PackedTable) -> None:
    assert (len(packed_table), packed_table.dtype) == (COUNT, table.dtype)
    assert packed_table.read().tobytes() == table.read().tobytes()
    assert (packed_table.header(), packed_table.sha256()) == (table.header(), table.sha256())
    assert packed_table.file_sha256() == table.file_sha256()
    assert packed_table.path.stat().st_size < 0.5 * table.path.stat().st_size
    np.testing.assert_array_equal(packed_table.map(), table.map())


@pytest.mark.parametrize("size", [1, 399, 400, 401, 1000, 10_000])
@pytest.mark.parametrize(("start", "stop"), [(0, None), (5, 6), (399, 401), (800, 1200), (2400, 9999), (7, 3)])
def test_any_stretch_is_read_in_any_pieces(
    table: TickTable, packed_table: PackedTable, start: int, stop: int | None, size: int
) -> None:
    pieces = [piece.copy() for piece in packed_table.chunks(rows=size, start=start, stop=stop)]
    assert all(len(piece) == size for piece in pieces[:-1])
    found = np.concatenate(pieces) if pieces else np.zeros(0, table.dtype)
    np.testing.assert_array_equal(found, table.read(start, stop))
    columns = ("gate", "position")
    np.testing.assert_array_equal(packed_table.read(start, stop, columns), table.read(start, stop, columns))


def test_file_is_one_of_numpy(packed_table: PackedTable) -> None:
    with np.load(packed_table.path) as arrays:
        assert set(arrays) == {"head", "rows", *(f"block{k}" for k in range(7))}
        assert arrays["head"].tobytes() == packed_table.header()


def test_table_without_rows_is_packed_too(tmp_path: Path) -> None:
    empty = TableInMemory(np.zeros(0, COLUMNS))
    write_packed(empty, tmp_path / "ticks.npz")
    found = PackedTable(tmp_path / "ticks.npz")
    assert (len(found), found.sha256()) == (0, empty.sha256())


def test_rows_whose_size_is_no_multiple_of_eight_are_packed_too(tmp_path: Path, blocks: None) -> None:
    kind = np.dtype([*npy.dtype_to_descr(COLUMNS), ("odd", "|u1", (3,))])
    rows = np.frombuffer(np.random.default_rng(2).bytes(900 * kind.itemsize), kind)
    write_packed(TableInMemory(rows), tmp_path / "ticks.npz")
    assert PackedTable(tmp_path / "ticks.npz").read().tobytes() == rows.tobytes()


def pack_as_before(table: Table, path: Path) -> None:
    """Write what older versions wrote: the planes of each column over all rows."""
    raw = table.read().view(np.uint8).reshape(len(table), -1)
    changed = raw.copy()
    changed[1:] ^= raw[:-1]
    planes, number = {}, 0
    for kind, start in ((one[0], one[1]) for one in (table.dtype.fields or {}).values()):
        size = kind.base.itemsize
        for at in range(start, start + kind.itemsize, size):
            planes[f"column{number}"] = np.ascontiguousarray(changed[:, at : at + size].T)
            number += 1
    np.savez_compressed(path, head=np.frombuffer(table.header(), np.uint8), **planes)


def test_files_of_older_versions_are_read(table: TickTable, tmp_path: Path) -> None:
    pack_as_before(table, tmp_path / "ticks.npz")
    found = PackedTable(tmp_path / "ticks.npz")
    assert found.read().tobytes() == table.read().tobytes()
    np.testing.assert_array_equal(found.read(7, 900, ("tick",)), table.read(7, 900, ("tick",)))
    assert found.file_sha256() == table.file_sha256()


def test_files_of_older_versions_that_are_too_large_are_refused(
    table: TickTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack_as_before(table, tmp_path / "ticks.npz")
    monkeypatch.setattr(packed, "_LARGEST_OLD", 1000)
    with pytest.raises(RecordingError, match="unpack them with --undo"):
        PackedTable(tmp_path / "ticks.npz")


def rewrite(path: Path, **changed: Any) -> None:
    """Write some of the arrays in a packed file anew; None leaves one out, bytes are written as they are."""
    with zipfile.ZipFile(path) as archive:
        members = {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}
    for name, value in changed.items():
        if value is None:
            del members[name]
        elif isinstance(value, bytes):
            members[name] = value
        else:
            file = io.BytesIO()
            np.save(file, value)
            members[name] = file.getvalue()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)


def head(**facts: Any) -> np.ndarray:
    file = io.BytesIO()
    whole = {"descr": npy.dtype_to_descr(COLUMNS), "fortran_order": False, "shape": (COUNT,), **facts}
    npy.write_array_header_1_0(file, whole)
    return np.frombuffer(file.getvalue(), np.uint8)


HOSTILE: dict[str, dict[str, Any]] = {
    "no header": {"head": None},
    "a header that is none": {"head": np.arange(100, dtype=np.uint8)},
    "columns of objects": {"head": head(descr=[("tick", "|O")])},
    "columns that are not ours": {"head": head(descr=[("a", "<f8")])},
    "too many rows": {"head": head(shape=(10**12,))},
    "a block missing": {"block3": None},
    "more rows than blocks": {"head": head(shape=(COUNT + 900,))},
    "blocks of no rows": {"rows": np.array([0])},
    "blocks of very many rows": {"rows": np.array([10**9])},
    "a number of rows that is none": {"rows": np.array([], np.int64)},
    "objects": {"rows": np.array([{}], dtype=object)},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_file_that_cannot_be_right_is_refused(packed_table: PackedTable, name: str) -> None:
    rewrite(packed_table.path, **HOSTILE[name])
    with pytest.raises(RecordingError) as raised:
        PackedTable(packed_table.path)
    assert "\n" not in str(raised.value)


WRONG_BLOCKS: dict[str, Any] = {
    "another shape": np.zeros((3, 3), np.uint8),
    "floats": np.zeros((COLUMNS.itemsize, 400)),
    "too few rows": np.zeros((COLUMNS.itemsize, 399), np.uint8),
    "nothing": b"",
    "far too much": b"\x93NUMPY" + bytes(packed._LARGEST_BLOCK + 10**6),
}


@pytest.mark.parametrize("name", WRONG_BLOCKS)
def test_block_that_cannot_be_right_is_refused_when_it_is_read(packed_table: PackedTable, name: str) -> None:
    rewrite(packed_table.path, block2=WRONG_BLOCKS[name])
    found = PackedTable(packed_table.path)
    assert len(found.read(0, 800)) == 800
    with pytest.raises(RecordingError, match="holds no packed ticks"):
        found.read(0, 801)


def test_bit_that_was_changed_is_noticed(packed_table: PackedTable) -> None:
    data = bytearray(packed_table.path.read_bytes())
    data[len(data) // 2] ^= 1
    packed_table.path.write_bytes(data)
    with pytest.raises(RecordingError, match="holds no packed ticks"):
        PackedTable(packed_table.path).sha256()


def test_memory_does_not_grow_with_the_length(tmp_path: Path, blocks: None) -> None:
    def peak(count: int) -> int:
        rows = TableInMemory(np.zeros(count, COLUMNS))
        tracemalloc.start()
        write_packed(rows, tmp_path / f"{count}.npz")
        found = PackedTable(tmp_path / f"{count}.npz")
        found.sha256()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(30_000)
    assert peak(400_000) < 1.1 * peak(100_000)
