"""The table of ticks: columns of all formats, reading in pieces, packed files, and hostile headers."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib import format as npy

from haptics.device import MAX_CHANNELS
from haptics.errors import RecordingError
from haptics.recording import tick_file
from haptics.recording.tick_file import PackedTable, TableInMemory, TickFile, TickTable, write_packed
from haptics.records import COLUMNS as COLUMN_TYPES
from haptics.records import (
    FORMATS,
    MAX_COLUMN_WIDTH,
    NEUTRAL,
    ROW,
    ROW_UNITS,
    column,
    columns_with,
    missing_columns,
    safe_column,
    units_with,
    with_missing_columns,
)
from tests.haptics.test_files import damaged
from tests.haptics.test_files import npy as npy_file

COLUMNS: list[Any] = list(npy.dtype_to_descr(COLUMN_TYPES))


def table(path, descr, shape=(2,), data=b"\0" * (2 * COLUMN_TYPES.itemsize)):
    """Write a table whose header says anything."""
    path.write_bytes(npy_file(descr, shape, data))
    return path


def whole(path, count=5):
    rows = np.zeros(count, ROW)
    rows["tick"] = np.arange(count)
    file = TickFile(path)
    file.append(rows)
    file.close()
    return path


OTHER_TABLES: dict[str, Any] = {
    "objects alone": "|O",
    "no bytes at all": [],
    "another column, twice": [*COLUMNS, ("more", "<f8"), ("more", "<f8")],
    "too many others": [*COLUMNS, *((f"more_{k}", "<f8") for k in range(100))],
    "a column too few": [column for column in COLUMNS if column[0] != "buttons"],
    "lists in place of columns": [list(column) for column in COLUMNS],
    "a number in place of a column": [*COLUMNS[:-1], 3],
    "none": None,
}


@pytest.mark.parametrize("descr", OTHER_TABLES.values(), ids=OTHER_TABLES)
def test_header_with_other_columns_is_refused(tmp_path, descr):
    with pytest.raises(RecordingError, match="columns"):
        TickTable(table(tmp_path / "ticks.npy", descr)).map()


# fmt: off


@pytest.mark.parametrize(
    "entry",
    [
        ("tick", "|O"), ("tick", [("a", "|O")]), ("time", ">f8"), ("time", "<f4"), (("title", "time"), "<f8"),
        ("position", "<f8", (3,)), ("position", "<f8", (2**40, 2**40)), ("position", "<f8"), ("gate", "<f8", (1,)),
        ("hand_force", "<f8", [2]), ("pressure", "|O"), ("pressure", ">f8"), ("pressure", "<f16"), ("pressure", "<U9"),
        ("pressure", "<f8", (0,)), ("pressure", "<f8", (MAX_COLUMN_WIDTH + 1,)), ("pressure", "<f8", (2, 2)),
        ("pressure", "<f8", 2), ("pressure", "<f8", (True,)), ("pressure", [("a", "<f8")]),
        (("title", "pressure"), "<f8"), ("", "<f8"), ("Pressure", "<f8"), ("p" * 65, "<f8"), ("_hidden", "<f8"),
        ("more/..", "<f8"), ("pressure",), ["pressure", "<f8"], None,
    ],
    ids=str,
)
def test_unsafe_column_is_refused(tmp_path, entry):
    assert safe_column(entry) is None
    name = entry[0] if entry else ""
    others = [column for column in COLUMNS if column[0] != name]
    with pytest.raises(RecordingError, match="columns"):
        TickTable(table(tmp_path / "ticks.npy", [*others, entry])).map()


# fmt: on


def test_plain_columns_of_others_are_kept_in_any_order(tmp_path):
    others = [("pressure", "<f4", (2,)), ("wide", "<f8", (MAX_COLUMN_WIDTH,)), ("c_1", "|u1")]
    rows = np.zeros(3, np.dtype([*COLUMNS[4:], *others, *COLUMNS[:4]]))
    rows["tick"], rows["pressure"], rows["c_1"] = [4, 5, 6], [[1, 2], [3, 4], [5, 6]], [7, 8, 9]
    np.save(tmp_path / "ticks.npy", rows)
    read = TickTable(tmp_path / "ticks.npy").map()
    for name in ("tick", "pressure", "wide", "c_1"):
        np.testing.assert_array_equal(read[name], rows[name])


@pytest.mark.parametrize("shape", [(2, 1), (), 2, (-1,), (True,), ("2",), None, (2.0,)])
def test_header_with_another_shape_is_refused(tmp_path, shape):
    with pytest.raises(RecordingError, match=r"ticks\.npy"):
        TickTable(table(tmp_path / "ticks.npy", COLUMNS, shape)).map()


def test_only_existing_rows_are_read(tmp_path):
    assert len(TickTable(table(tmp_path / "ticks.npy", COLUMNS, (2**70,))).map()) == 2
    assert len(TickTable(table(tmp_path / "ticks.npy", COLUMNS, (1,))).map()) == 1
    assert len(TickTable(table(tmp_path / "ticks.npy", COLUMNS, (0,))).map()) == 0


def test_sparse_file_is_refused(tmp_path):
    path = table(tmp_path / "ticks.npy", COLUMNS, (2**62,))
    os.truncate(path, 10**11)
    with pytest.raises(RecordingError, match="100000000 at most"):
        TickTable(path).map()


@pytest.mark.parametrize("kind", ["none", "pipe", "folder"])
def test_missing_pipe_or_folder_is_refused(tmp_path, kind):
    path = tmp_path / "ticks.npy"
    if kind != "none":
        (os.mkfifo if kind == "pipe" else os.mkdir)(path)
    with pytest.raises(RecordingError, match="there is no such file"):
        TickTable(path).map()


def test_damaged_header_is_read_or_refused(tmp_path):
    path = whole(tmp_path / "ticks.npy")
    good, refusals = path.read_bytes(), 0
    for data in damaged(good, 150, end=len(good) - 5 * COLUMN_TYPES.itemsize):
        path.write_bytes(data)
        try:
            assert set(COLUMN_TYPES.names or ()) - set(TickTable(path).map().dtype.names or ()) <= set(FORMATS)
        except RecordingError as error:
            refusals += 1
            assert "\n" not in str(error)
    assert refusals > 75


def test_hash_covers_rows_then_header(tmp_path, monkeypatch):
    monkeypatch.setattr(tick_file, "_ROWS_PER_READ", 100)  # in several pieces
    file = TickFile(tmp_path / "ticks.npy")
    file.append(np.ones(7, ROW))
    digest = file.close()
    data = (tmp_path / "ticks.npy").read_bytes()
    rows = 7 * COLUMN_TYPES.itemsize
    assert digest == hashlib.sha256(data[-rows:] + data[:-rows]).hexdigest()
    assert digest == TickTable(tmp_path / "ticks.npy").sha256()
    assert len(digest) == 64
    assert file.close() == ""


# --- reading in pieces


COUNT = 2500


@pytest.fixture
def loose(tmp_path):
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
def blocks(monkeypatch):
    monkeypatch.setattr(tick_file, "BLOCK_ROWS", 400)


@pytest.fixture
def packed_table(loose, tmp_path, blocks):
    write_packed(loose, tmp_path / "ticks.npz")
    return PackedTable(tmp_path / "ticks.npz")


PARTS = [(0, None), (13, 14), (399, 401), (800, 1200), (-5, None), (900, 100), (5, 5000)]


@pytest.mark.parametrize("size", [1, 7, 250, 400, COUNT, 10 * COUNT])
@pytest.mark.parametrize(("start", "stop"), PARTS)
@pytest.mark.parametrize("kind", ["loose", "packed_table"])
def test_chunks_are_the_rows_in_order(request, loose, kind, size, start, stop):
    table, rows = request.getfixturevalue(kind), TickTable(loose.path).map()
    pieces = [piece.copy() for piece in table.chunks(rows=size, start=start, stop=stop)]
    assert all(len(piece) == size for piece in pieces[:-1])
    assert all(1 <= len(piece) <= size for piece in pieces)
    found = np.concatenate(pieces) if pieces else np.zeros(0, table.dtype)
    np.testing.assert_array_equal(found, rows[start:stop])
    np.testing.assert_array_equal(table.read(start, stop), rows[start:stop])
    part = table.read(start, stop, ("gate", "position"))
    assert part.dtype.names == ("gate", "position") and part.dtype.itemsize == 24
    for name in part.dtype.names:
        np.testing.assert_array_equal(part[name], rows[name][start:stop])


def test_column_of_a_later_format_has_its_neutral_value(tmp_path):
    older = [entry for entry in npy.dtype_to_descr(COLUMN_TYPES) if entry[0] not in ("gate", "hand_force")]
    np.save(tmp_path / "ticks.npy", np.zeros(3, older))
    table = TickTable(tmp_path / "ticks.npy")
    assert "gate" not in (table.dtype.names or ())
    (piece,) = table.chunks(["gate", "hand_force", "tick"])
    np.testing.assert_array_equal(piece["gate"], 1.0)
    assert np.isnan(piece["hand_force"]).all()
    assert piece["hand_force"].shape == (3, 2)


def test_unknown_column_is_refused(loose):
    with pytest.raises(RecordingError, match="has no column temperature"):
        list(loose.chunks(["tick", "temperature"]))


def test_file_cut_short_while_it_is_read_is_an_error(loose):
    pieces = loose.chunks(rows=100)
    next(pieces)
    with open(loose.path, "rb+") as file:
        file.truncate(loose.path.stat().st_size // 2)
    with pytest.raises(RecordingError, match="cut short"):
        list(pieces)


def test_missing_file_is_an_error_at_each_read(loose):
    loose.path.unlink()
    with pytest.raises(RecordingError, match="there is no such file"):
        loose.read(0, 1)
    with pytest.raises(RecordingError, match="there is no such file"):
        loose.sha256()


def test_buffer_of_wide_rows_is_bounded(tmp_path, monkeypatch):
    wide = [*npy.dtype_to_descr(COLUMN_TYPES), *((f"more_{k}", "<f8", (64,)) for k in range(50))]
    np.save(tmp_path / "ticks.npy", np.zeros(30, wide))
    monkeypatch.setattr(tick_file, "_BUFFER_SIZE", 10 * np.dtype(wide).itemsize)
    assert [len(piece) for piece in TickTable(tmp_path / "ticks.npy").chunks()] == [10, 10, 10]


def test_bytes_of_a_failed_write_are_removed(tmp_path):
    file = TickFile(tmp_path / "ticks.npy")
    file.append(np.zeros(3, ROW))
    with open(tmp_path / "ticks.npy", "ab") as other:
        other.write(b"half a row")
    digest = file.close()
    assert digest == TickTable(tmp_path / "ticks.npy").sha256()
    assert len(TickTable(tmp_path / "ticks.npy").map()) == 3


# --- columns of formats


@given(st.sets(st.sampled_from(sorted(FORMATS))))
def test_missing_columns_are_neutral_and_others_unchanged(absent):
    rows = np.zeros(3, np.dtype([entry for entry in COLUMNS if entry[0] not in absent]))
    for name in rows.dtype.names or ():
        rows[name] = 7
    whole = with_missing_columns(rows)
    assert whole.dtype == ROW
    for name in COLUMN_TYPES.names or ():
        expected = np.broadcast_to(NEUTRAL[name], whole[name].shape) if name in absent else rows[name]
        np.testing.assert_array_equal(column(rows, name), expected)
        np.testing.assert_array_equal(whole[name], expected)
    assert np.isnan(whole["channels"]).all()
    whole["tick"] = 0
    assert rows["tick"].tolist() == [7, 7, 7]


SINCE_3 = sorted(name for name, since in FORMATS.items() if since == 3)


@pytest.mark.parametrize(("version", "lacking"), [(2, []), (3, SINCE_3), (99, sorted(FORMATS))])
def test_missing_columns_depend_on_the_format(version, lacking):
    names = [name for name in COLUMN_TYPES.names or () if name not in FORMATS]
    assert sorted(missing_columns(names, version)) == lacking
    assert missing_columns(names[1:], version)[0] == "tick"


# --- channels ---------------------------------------------------------------------------------------------------------


@st.composite
def channels(draw):
    sizes = draw(st.lists(st.integers(1, 7), max_size=8).filter(lambda sizes: sum(sizes) <= MAX_CHANNELS))
    return tuple((f"c_{number}", "V", size) for number, size in enumerate(sizes))


@given(channels())
def test_recorded_row_is_the_beginning_of_a_trace_row(declared):
    columns, row = columns_with(declared), np.zeros(1, ROW)
    row["tick"], row["hand_force"], row["channels"] = 7, (1.5, 2.5), np.arange(MAX_CHANNELS)
    recorded = np.frombuffer(row.tobytes(), columns, 1)[0]
    assert (recorded["tick"], recorded["hand_force"].tolist()) == (7, [1.5, 2.5])
    numbers = [np.atleast_1d(recorded[f"channel_{name}"]).tolist() for name, _, _ in declared]
    assert [len(values) for values in numbers] == [size for _, _, size in declared]
    assert [number for values in numbers for number in values] == list(range(sum(size for _, _, size in declared)))


@given(channels())
def test_channel_columns_are_safe_and_have_units(declared):
    entries, units = npy.dtype_to_descr(columns_with(declared)), units_with(declared)
    assert all(safe_column(entry) == entry for entry in entries)
    assert list(units) == [entry[0] for entry in entries]
    assert list(units.values()) == [*ROW_UNITS.values(), *(unit for _, unit, _ in declared)]


# --- packed files


def test_packed_rows_are_those_of_the_file(loose, packed_table):
    assert (len(packed_table), packed_table.dtype) == (COUNT, loose.dtype)
    assert packed_table.read().tobytes() == loose.read().tobytes()
    assert (packed_table.header(), packed_table.sha256()) == (loose.header(), loose.sha256())
    assert packed_table.file_sha256() == loose.file_sha256()
    assert packed_table.path.stat().st_size < 0.5 * loose.path.stat().st_size
    np.testing.assert_array_equal(packed_table.map(), loose.map())


def test_packed_file_is_an_npz_file(packed_table):
    with np.load(packed_table.path) as arrays:
        assert set(arrays) == {"head", "rows", *(f"block{k}" for k in range(7))}
        assert arrays["head"].tobytes() == packed_table.header()


def test_empty_table_can_be_packed(tmp_path):
    empty = TableInMemory(np.zeros(0, COLUMN_TYPES))
    write_packed(empty, tmp_path / "ticks.npz")
    found = PackedTable(tmp_path / "ticks.npz")
    assert (len(found), found.sha256()) == (0, empty.sha256())
    assert found.file_sha256() == empty.file_sha256()


def test_rows_of_odd_size_can_be_packed(tmp_path, blocks):
    kind = np.dtype([*npy.dtype_to_descr(COLUMN_TYPES), ("odd", "|u1", (3,))])
    rows = np.frombuffer(np.random.default_rng(2).bytes(900 * kind.itemsize), kind)
    write_packed(TableInMemory(rows), tmp_path / "ticks.npz")
    assert PackedTable(tmp_path / "ticks.npz").read().tobytes() == rows.tobytes()


def pack_as_before(loose, path):
    """Write the format of older versions: the planes of each column over all rows."""
    raw = loose.read().view(np.uint8).reshape(len(loose), -1)
    changed = raw.copy()
    changed[1:] ^= raw[:-1]
    planes, number = {}, 0
    for kind, start in ((one[0], one[1]) for one in (loose.dtype.fields or {}).values()):
        size = kind.base.itemsize
        for at in range(start, start + kind.itemsize, size):
            planes[f"column{number}"] = np.ascontiguousarray(changed[:, at : at + size].T)
            number += 1
    np.savez_compressed(path, head=np.frombuffer(loose.header(), np.uint8), **planes)


def test_older_packed_files_are_read(loose, tmp_path):
    pack_as_before(loose, tmp_path / "ticks.npz")
    found = PackedTable(tmp_path / "ticks.npz")
    assert found.read().tobytes() == loose.read().tobytes()
    np.testing.assert_array_equal(found.read(7, 900, ("tick",)), loose.read(7, 900, ("tick",)))
    assert found.file_sha256() == loose.file_sha256()


def test_large_older_packed_file_is_refused(loose, tmp_path, monkeypatch):
    pack_as_before(loose, tmp_path / "ticks.npz")
    monkeypatch.setattr(tick_file, "_MAX_LEGACY_BYTES", 1000)
    with pytest.raises(RecordingError, match="unpack them with --undo"):
        PackedTable(tmp_path / "ticks.npz")


def rewrite(path, **changed):
    """Replace arrays in a packed file; None removes one, bytes are written unchanged."""
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


def head(**facts):
    file = io.BytesIO()
    whole = {"descr": npy.dtype_to_descr(COLUMN_TYPES), "fortran_order": False, "shape": (COUNT,), **facts}
    npy.write_array_header_1_0(file, whole)
    return np.frombuffer(file.getvalue(), np.uint8)


HOSTILE_PACKS: dict[str, dict[str, Any]] = {
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


@pytest.mark.parametrize("name", HOSTILE_PACKS)
def test_invalid_packed_file_is_refused(packed_table, name):
    rewrite(packed_table.path, **HOSTILE_PACKS[name])
    with pytest.raises(RecordingError) as raised:
        PackedTable(packed_table.path)
    assert "\n" not in str(raised.value)


WRONG_BLOCKS: dict[str, Any] = {
    "another shape": np.zeros((3, 3), np.uint8),
    "floats": np.zeros((COLUMN_TYPES.itemsize, 400)),
    "too few rows": np.zeros((COLUMN_TYPES.itemsize, 399), np.uint8),
    "nothing": b"",
    "far too much": b"\x93NUMPY" + bytes(tick_file._MAX_BLOCK_BYTES + 10**6),
}


@pytest.mark.parametrize("name", WRONG_BLOCKS)
def test_invalid_block_is_refused_when_read(packed_table, name):
    rewrite(packed_table.path, block2=WRONG_BLOCKS[name])
    found = PackedTable(packed_table.path)
    assert len(found.read(0, 800)) == 800
    with pytest.raises(RecordingError, match="holds no packed ticks"):
        found.read(0, 801)


def test_changed_bit_in_a_packed_file_is_found(packed_table):
    data = bytearray(packed_table.path.read_bytes())
    data[len(data) // 2] ^= 1
    packed_table.path.write_bytes(data)
    with pytest.raises(RecordingError, match="holds no packed ticks"):
        PackedTable(packed_table.path).sha256()
