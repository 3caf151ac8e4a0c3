"""The trace under its real conditions: a second process writes while this one reads."""

import multiprocessing
import time
from pathlib import Path

import numpy as np
import pytest

from haptics.errors import ConfigurationError
from haptics.records import COLUMNS, ROW, ROW_UNITS
from haptics.trace import Reader, Ring, Trace

SMALL = np.dtype([("number", "<i8"), ("twice", "<i8"), ("vector", "<f8", (2,))])


def write_many(path: Path, count: int, pause_every: int) -> None:
    ring = Ring.attach(path)
    record = np.zeros(1, ring.slots.dtype)
    for number in range(count):
        record["number"], record["twice"], record["vector"] = number, 2 * number, number
        ring.append(record[0])
        if pause_every and number % pause_every == 0:
            time.sleep(1e-4)


def test_rows_come_out_as_they_went_in(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "ring", SMALL, 8)
    write_many(ring.path, 5, 0)
    rows = ring.since(2)
    assert rows["number"].tolist() == [2, 3, 4]
    assert rows["vector"].tolist() == [[2, 2], [3, 3], [4, 4]]


def test_a_reader_gets_every_row_across_the_seam(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "ring", SMALL, 8)
    reader = Reader(ring)
    seen: list[int] = []
    for number in range(50):
        record = np.zeros(1, SMALL)
        record["number"] = number
        ring.append(record[0])
        if number % 5 == 4:
            seen += reader.read()["number"].tolist()
    assert seen == list(range(50))
    assert reader.lost == 0


def test_a_slow_reader_learns_how_much_it_lost(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "ring", SMALL, 8)
    reader = Reader(ring)
    write_many(ring.path, 20, 0)
    rows = reader.read()
    # One slot is given up: the writer may be filling it at this very moment.
    assert rows["number"].tolist() == list(range(13, 20))
    assert reader.lost == 13
    assert len(reader.read()) == 0
    assert reader.lost == 13


def test_the_ring_outlives_a_killed_writer(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "ring", SMALL, 4096)
    writer = multiprocessing.get_context("spawn").Process(target=write_many, args=(ring.path, 10_000_000, 10))
    writer.start()
    while ring.count < 100:
        time.sleep(0.001)
    writer.kill()
    writer.join()
    rows = Ring.attach(ring.path).since(0)
    assert len(rows) >= 99
    assert (rows["twice"] == 2 * rows["number"]).all()


def test_the_flight_recorder_is_a_plain_npy_file(tmp_path: Path) -> None:
    trace = Trace.create(tmp_path / "trace", capacity=16)
    row = np.zeros(1, ROW)
    for tick in range(10):
        row["tick"] = tick
        trace.append(row[0])
    trace.save(tmp_path / "flight.npy")
    assert np.load(tmp_path / "flight.npy")["tick"].tolist() == list(range(10))


def test_what_nobody_fills_of_a_row_is_neutral(tmp_path: Path) -> None:
    trace = Trace.create(tmp_path / "trace", capacity=4)
    for tick in range(9):
        trace.slots["tick"][tick % 4] = tick
        trace.publish(tick + 1)
    rows = trace.since(0)
    assert rows["tick"].tolist() == [6, 7, 8]
    assert (rows["marker"].tolist(), rows["gate"].tolist(), rows["region"].tolist()) == ([0] * 3, [1.0] * 3, [-1] * 3)
    assert np.isnan(rows["normal_force"]).all()
    assert np.isnan(rows["hand_force"]).all()
    assert np.isnan(rows["channels"]).all()


def test_every_reader_knows_when_tick_0_was(tmp_path: Path) -> None:
    trace = Trace.create(tmp_path / "trace", capacity=4)
    reader = Reader(Ring.attach(trace.path))
    assert reader.origin == (0, 0)
    trace.origin[:] = 12, 34
    assert reader.origin == (12, 34)
    assert trace.count == 0


def test_every_column_has_a_unit() -> None:
    assert tuple(ROW_UNITS) == COLUMNS.names
    assert ROW.names == (*ROW_UNITS, "channels")


@pytest.mark.parametrize("content", [b"", b"not a ring" * 1000])
def test_something_else_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="other is not a trace"):
        Ring.attach(path)
