"""The trace and its shared memory: written by one process, read by others, and freed with its owner."""

import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from haptics.errors import ConfigurationError
from haptics.servo.control import SharedFiles
from haptics.shared import Mailbox, SharedFile, map_new
from haptics.trace import Reader, Ring, Trace

SMALL = np.dtype([("number", "<i8"), ("twice", "<i8"), ("vector", "<f8", (2,))])


def write_many(path, count, pause_every):
    ring = Ring.attach(path)
    record = np.zeros(1, ring.slots.dtype)
    for number in range(count):
        record["number"], record["twice"], record["vector"] = number, 2 * number, number
        ring.append(record[0])
        if pause_every and number % pause_every == 0:
            time.sleep(1e-4)


def test_reader_gets_every_row_across_the_seam(tmp_path):
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


def test_slow_reader_counts_its_lost_rows(tmp_path):
    ring = Ring.create(tmp_path / "ring", SMALL, 8)
    reader = Reader(ring)
    write_many(ring.path, 20, 0)
    rows = reader.read()
    # One slot is given up: the writer may be filling it at this very moment.
    assert rows["number"].tolist() == list(range(13, 20))
    assert reader.lost == 13
    assert len(reader.read()) == 0
    assert reader.lost == 13


def test_ring_survives_a_killed_writer(tmp_path):
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


def test_unfilled_columns_are_neutral(tmp_path):
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


@pytest.mark.parametrize("content", [b"", b"not a ring" * 1000])
def test_file_that_is_no_trace_is_refused(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="other is not a trace"):
        Ring.attach(path)


# --- shared memory


PAIR = np.dtype([("number", "<i8"), ("twice", "<i8")])


def publish(shared):
    ring = Ring.attach(shared.path)
    record = np.zeros(1, PAIR)
    for number in range(5):
        record["number"], record["twice"] = number, 2 * number
        ring.append(record[0])


def open_descriptors():
    gc.collect()
    return set(os.listdir("/proc/self/fd"))


@pytest.fixture(params=["nameless", "named"])
def system(request, monkeypatch):
    if request.param == "named":
        monkeypatch.delattr(os, "memfd_create")


@pytest.fixture
def shared(system):
    return SharedFile("test")


def test_closed_memory_stays_mapped_and_cannot_be_attached(shared):
    ring = Ring.create(shared.path, PAIR, 8)
    publish(shared)
    reader = Ring.attach(shared.path)
    shared.close()
    shared.close()
    assert not shared.path.exists()
    with pytest.raises(ConfigurationError, match="is not a trace"):
        Ring.attach(shared.path)
    record = np.ones(1, PAIR)
    ring.append(record[0])
    assert reader.since(4)["number"].tolist() == [4, 1]


def test_closing_twice_leaves_other_descriptors_open(shared, tmp_path):
    shared.close()
    with open(tmp_path / "innocent", "w") as innocent:  # gets the number that has become free
        shared.close()
        innocent.write("still open")


def test_pickled_copy_owns_nothing(shared):
    Ring.create(shared.path, PAIR, 8)
    travelled = pickle.loads(pickle.dumps(shared))
    assert travelled.path == shared.path
    del travelled
    gc.collect()
    assert len(Ring.attach(shared.path).since(0)) == 0


def test_existing_file_is_not_overwritten(tmp_path):
    path = tmp_path / "full"
    path.write_text("somebody's")
    with pytest.raises(FileExistsError, match="full"):
        map_new(path, 64)
    with pytest.raises(ConfigurationError, match="full"):
        Mailbox(path, PAIR, create=True)
    assert path.read_text() == "somebody's"


def test_missing_memory_is_reported(tmp_path):
    with pytest.raises(ConfigurationError, match="no room in memory for"):
        map_new(tmp_path / "huge", 1 << 62)


def test_names_of_a_dead_owner_are_removed(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    paths = SharedFiles.unique()
    assert len(list(tmp_path.iterdir())) == 3
    pickle.loads(pickle.dumps(paths)).remove_orphaned()
    assert not list(tmp_path.iterdir())
    paths.close()


SUICIDE = """
import os, signal
from haptics.servo.control import SharedFiles
from haptics.trace import Trace
paths = SharedFiles.unique()
Trace.create(paths.trace.path)
print(os.getpid(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_owner_leaves_nothing():
    done = subprocess.run([sys.executable, "-c", SUICIDE], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    for folder in (Path("/dev/shm"), Path(tempfile.gettempdir())):
        assert not list(folder.glob(f"haptics-{int(done.stdout)}-*"))
