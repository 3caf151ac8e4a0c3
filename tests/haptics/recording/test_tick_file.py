"""The table of ticks: whatever its header says, it is looked at as a table of ours or not at all."""

import hashlib
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib import format as npy

from haptics.errors import RecordingError
from haptics.recording import tick_file
from haptics.recording.columns import FORMATS
from haptics.recording.tick_file import TickFile, TickTable, read_ticks
from haptics.records import COLUMNS as COLUMN_TYPES
from haptics.records import ROW

COLUMNS: list[Any] = list(npy.dtype_to_descr(COLUMN_TYPES))


def table(path: Path, descr: Any, shape: Any = (2,), data: bytes = b"\0" * (2 * COLUMN_TYPES.itemsize)) -> Path:
    """Write a table whose header says anything."""
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
    return path


def whole(path: Path, count: int = 5) -> Path:
    rows = np.zeros(count, ROW)
    rows["tick"] = np.arange(count)
    file = TickFile(path)
    file.append(rows)
    file.close()
    return path


def replaced(name: str, *entry: Any) -> list[Any]:
    return [entry if column[0] == name else column for column in COLUMNS]


HOSTILE: dict[str, Any] = {
    "a column of objects": [*COLUMNS, ("evil", "|O")],
    "a column of ours as objects": replaced("tick", "tick", "|O"),
    "objects inside of a column": replaced("tick", "tick", [("a", "|O")]),
    "an array of objects": replaced("position", "position", "|O", (2,)),
    "objects alone": "|O",
    "numbers alone": "<f8",
    "no bytes at all": [],
    "columns without bytes": [(name, "|V0") for name, *_ in COLUMNS],
    "another column, unsafe": [*COLUMNS, ("more", ">f8")],
    "another column, twice": [*COLUMNS, ("more", "<f8"), ("more", "<f8")],
    "another column, named as none is": [*COLUMNS, ("more/..", "<f8")],
    "too many others": [*COLUMNS, *((f"more_{k}", "<f8") for k in range(100))],
    "a column too few": [column for column in COLUMNS if column[0] != "buttons"],
    "a column twice": [*COLUMNS, COLUMNS[0]],
    "a column in place of another": [*COLUMNS[:-1], COLUMNS[0]],
    "another shape": replaced("position", "position", "<f8", (3,)),
    "an absurd shape": replaced("position", "position", "<f8", (2**40, 2**40)),
    "no shape": replaced("position", "position", "<f8"),
    "another order of bytes": replaced("time", "time", ">f8"),
    "less precise": replaced("time", "time", "<f4"),
    "titles": replaced("time", ("title", "time"), "<f8"),
    "lists in place of columns": [list(column) for column in COLUMNS],
    "a number in place of a column": [*COLUMNS[:-1], 3],
    "text": "tick",
    "none": None,
}


@pytest.mark.parametrize("descr", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_header_of_other_columns_is_refused(tmp_path: Path, descr: Any) -> None:
    with pytest.raises(RecordingError, match="columns"):
        read_ticks(table(tmp_path / "ticks.npy", descr))


def test_a_table_of_an_earlier_format_has_its_own_columns(tmp_path: Path) -> None:
    old = [column for column in COLUMNS if column[0] not in FORMATS]
    rows = np.zeros(3, np.dtype(old))
    rows["tick"] = [4, 5, 6]
    np.save(tmp_path / "ticks.npy", rows)
    read = read_ticks(tmp_path / "ticks.npy")
    assert read.dtype == rows.dtype
    assert read["tick"].tolist() == [4, 5, 6]


def test_plain_columns_of_others_are_carried_along(tmp_path: Path) -> None:
    rows = np.zeros(3, np.dtype([*COLUMNS[:4], ("pressure", "<f4", (2,)), *COLUMNS[4:], ("count", "|u1")]))
    rows["tick"], rows["pressure"], rows["count"] = [4, 5, 6], [[1, 2], [3, 4], [5, 6]], [7, 8, 9]
    np.save(tmp_path / "ticks.npy", rows)
    read = read_ticks(tmp_path / "ticks.npy")
    assert read["tick"].tolist() == [4, 5, 6]
    assert read["pressure"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert read["count"].tolist() == [7, 8, 9]


@pytest.mark.parametrize("shape", [(2, 1), (), 2, (-1,), (True,), ("2",), None, (2.0,)])
def test_a_header_of_another_shape_is_refused(tmp_path: Path, shape: Any) -> None:
    with pytest.raises(RecordingError, match=r"ticks\.npy"):
        read_ticks(table(tmp_path / "ticks.npy", COLUMNS, shape))


def test_no_more_rows_are_read_than_are_there(tmp_path: Path) -> None:
    assert len(read_ticks(table(tmp_path / "ticks.npy", COLUMNS, (2**70,)))) == 2
    assert len(read_ticks(table(tmp_path / "ticks.npy", COLUMNS, (1,)))) == 1
    assert len(read_ticks(table(tmp_path / "ticks.npy", COLUMNS, (0,)))) == 0


def test_a_file_of_holes_is_no_recording(tmp_path: Path) -> None:
    path = table(tmp_path / "ticks.npy", COLUMNS, (2**62,))
    os.truncate(path, 10**11)
    with pytest.raises(RecordingError, match="100000000 at most"):
        read_ticks(path)


def test_columns_in_another_order_are_those_they_say(tmp_path: Path) -> None:
    rows = np.zeros(3, np.dtype(COLUMNS[::-1]))
    rows["tick"] = [4, 5, 6]
    np.save(tmp_path / "ticks.npy", rows)
    assert read_ticks(tmp_path / "ticks.npy")["tick"].tolist() == [4, 5, 6]


@pytest.mark.parametrize("kind", ["none", "pipe", "folder"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ticks.npy"
    if kind != "none":
        (os.mkfifo if kind == "pipe" else os.mkdir)(path)
    with pytest.raises(RecordingError, match="there is no such file"):
        read_ticks(path)


def test_a_table_damaged_anywhere_in_its_header_is_read_or_refused(tmp_path: Path) -> None:
    good, rng = whole(tmp_path / "good.npy").read_bytes(), np.random.default_rng(3)
    end = len(good) - 5 * COLUMN_TYPES.itemsize
    refusals = 0
    for _ in range(150):
        data = bytearray(good)
        for place in rng.integers(0, end, rng.integers(1, 4)):
            data[place : place + rng.integers(0, 3)] = rng.bytes(rng.integers(0, 3))
        path = tmp_path / "ticks.npy"
        path.write_bytes(data)
        try:
            assert set(COLUMN_TYPES.names or ()) - set(read_ticks(path).dtype.names or ()) <= set(FORMATS)
        except RecordingError as error:
            refusals += 1
            assert "\n" not in str(error)
    assert refusals > 75


def test_hash_covers_rows_then_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tick_file, "_AT_ONCE", 100)  # in several pieces
    file = TickFile(tmp_path / "ticks.npy")
    file.append(np.ones(7, ROW))
    digest = file.close()
    data = (tmp_path / "ticks.npy").read_bytes()
    rows = 7 * COLUMN_TYPES.itemsize
    assert digest == hashlib.sha256(data[-rows:] + data[:-rows]).hexdigest()
    assert digest == TickTable(tmp_path / "ticks.npy").sha256()
    assert len(digest) == 64
    assert file.close() == ""
