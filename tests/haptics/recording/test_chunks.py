"""Reading a table of ticks in pieces."""

from pathlib import Path

import numpy as np
import pytest
from numpy.lib import format as npy

from haptics.errors import RecordingError
from haptics.recording import tick_file
from haptics.recording.tick_file import TickFile, TickTable, read_ticks
from haptics.records import COLUMNS, ROW

COUNT = 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = np.zeros(COUNT, ROW)
    rows["tick"] = np.arange(COUNT)
    rows["position"] = np.random.default_rng(1).normal(size=(COUNT, 2))
    file = TickFile(tmp_path / "ticks.npy")
    file.append(rows)
    file.close()
    return tmp_path / "ticks.npy"


@pytest.mark.parametrize("rows", [1, 7, 250, COUNT, 10 * COUNT])
@pytest.mark.parametrize(("start", "stop"), [(0, None), (13, 14), (100, 900), (-5, None), (900, 100), (5, 5000)])
def test_chunks_are_the_rows_in_order(path: Path, rows: int, start: int, stop: int | None) -> None:
    table = TickTable(path)
    pieces = [piece.copy() for piece in table.chunks(rows=rows, start=start, stop=stop)]
    assert all(1 <= len(piece) <= rows for piece in pieces)
    found = np.concatenate(pieces) if pieces else np.zeros(0, table.dtype)
    np.testing.assert_array_equal(found, read_ticks(path)[start:stop])
    np.testing.assert_array_equal(table.read(start, stop), read_ticks(path)[start:stop])


def test_chunks_with_selected_columns_hold_only_these(path: Path) -> None:
    (piece,) = TickTable(path).chunks(["position", "tick"])
    assert piece.dtype.names == ("position", "tick")
    assert piece.dtype.itemsize == 24
    np.testing.assert_array_equal(piece["position"], read_ticks(path)["position"])
    np.testing.assert_array_equal(piece["tick"], np.arange(COUNT))


def test_chunks_share_one_buffer(path: Path) -> None:
    pieces = list(TickTable(path).chunks(rows=100))
    assert len(pieces) == 10
    assert all(np.shares_memory(piece, pieces[0]) for piece in pieces)


def test_column_of_a_later_format_has_its_neutral_value(tmp_path: Path) -> None:
    older = [entry for entry in npy.dtype_to_descr(COLUMNS) if entry[0] not in ("gate", "hand_force")]
    np.save(tmp_path / "ticks.npy", np.zeros(3, older))
    table = TickTable(tmp_path / "ticks.npy")
    assert "gate" not in (table.dtype.names or ())
    (piece,) = table.chunks(["gate", "hand_force", "tick"])
    np.testing.assert_array_equal(piece["gate"], 1.0)
    assert np.isnan(piece["hand_force"]).all()
    assert piece["hand_force"].shape == (3, 2)


def test_unknown_column_is_refused(path: Path) -> None:
    with pytest.raises(RecordingError, match="has no column temperature"):
        list(TickTable(path).chunks(["tick", "temperature"]))


def test_file_cut_short_while_it_is_read_is_an_error(path: Path) -> None:
    table = TickTable(path)
    pieces = table.chunks(rows=100)
    next(pieces)
    with open(path, "rb+") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(RecordingError, match="cut short"):
        list(pieces)


def test_missing_file_is_an_error_at_each_read(path: Path) -> None:
    table = TickTable(path)
    path.unlink()
    with pytest.raises(RecordingError, match="No such file"):
        table.read(0, 1)
    with pytest.raises(RecordingError, match="No such file"):
        table.sha256()


def test_buffer_of_wide_rows_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = [*npy.dtype_to_descr(COLUMNS), *((f"more_{k}", "<f8", (64,)) for k in range(50))]
    np.save(tmp_path / "ticks.npy", np.zeros(30, wide))
    monkeypatch.setattr(tick_file, "_BUFFER_SIZE", 10 * np.dtype(wide).itemsize)
    assert [len(piece) for piece in TickTable(tmp_path / "ticks.npy").chunks()] == [10, 10, 10]


def test_hash_changes_with_rows_header_and_trailing_bytes(path: Path) -> None:
    before, data = TickTable(path).sha256(), path.read_bytes()
    changed = [
        data[:-1] + bytes([data[-1] ^ 1]),
        data.replace(b"(1000,)", b"(999,) "),
        data.replace(b"'proxy'", b"'proxi'").replace(b"'force'", b"'proxy'").replace(b"'proxi'", b"'force'"),
        data + b"\0",
    ]
    for other in changed:
        assert other != data
        path.write_bytes(other)
        assert TickTable(path).sha256() != before


def test_bytes_that_a_failed_write_left_are_removed_at_the_end(tmp_path: Path) -> None:
    file = TickFile(tmp_path / "ticks.npy")
    file.append(np.zeros(3, ROW))
    with open(tmp_path / "ticks.npy", "ab") as other:
        other.write(b"half a row")
    digest = file.close()
    assert digest == TickTable(tmp_path / "ticks.npy").sha256()
    assert len(read_ticks(tmp_path / "ticks.npy")) == 3
