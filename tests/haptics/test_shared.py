"""Shared memory without a name: others reach it while its maker wants that, and nothing of it stays."""

import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from haptics.errors import ConfigurationError
from haptics.servo.job import Paths
from haptics.servo.lane import Lane
from haptics.shared import SharedFile, map_new
from haptics.trace import Ring

PAIR = np.dtype([("number", "<i8"), ("twice", "<i8")])


def publish(file: SharedFile) -> None:
    ring = Ring.attach(file.path)
    record = np.zeros(1, PAIR)
    for number in range(5):
        record["number"], record["twice"] = number, 2 * number
        ring.append(record[0])


def open_descriptors() -> set[str]:
    gc.collect()
    return set(os.listdir("/proc/self/fd"))


@pytest.fixture(params=["nameless", "named"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "named":
        monkeypatch.delattr(os, "memfd_create")


@pytest.fixture
def file(system: None) -> SharedFile:
    return SharedFile("test")


def test_another_process_writes_what_this_one_reads(file: SharedFile) -> None:
    ring = Ring.create(file.path, PAIR, 8)
    writer = multiprocessing.get_context("spawn").Process(target=publish, args=(file,))
    writer.start()
    writer.join()
    assert ring.since(0)["twice"].tolist() == [0, 2, 4, 6, 8]


def test_who_has_it_mapped_keeps_it_and_nobody_else_gets_it(file: SharedFile) -> None:
    ring = Ring.create(file.path, PAIR, 8)
    publish(file)
    reader = Ring.attach(file.path)
    file.close()
    file.close()
    assert not file.path.exists()
    with pytest.raises(ConfigurationError, match="is not a trace"):
        Ring.attach(file.path)
    record = np.ones(1, PAIR)
    ring.append(record[0])
    assert reader.since(4)["number"].tolist() == [4, 1]


def test_closing_twice_leaves_the_descriptors_of_others_alone(file: SharedFile, tmp_path: Path) -> None:
    file.close()
    with open(tmp_path / "innocent", "w") as innocent:  # gets the number that has become free
        file.close()
        innocent.write("still open")


def test_a_copy_that_was_sent_elsewhere_owns_nothing(file: SharedFile) -> None:
    Ring.create(file.path, PAIR, 8)
    travelled = pickle.loads(pickle.dumps(file))
    assert travelled.path == file.path
    del travelled
    gc.collect()
    assert len(Ring.attach(file.path).since(0)) == 0


def test_what_has_something_in_it_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "full"
    path.write_text("somebody's")
    with pytest.raises(FileExistsError, match="full"):
        map_new(path, 64)
    with pytest.raises(ConfigurationError, match="full"):
        Lane(path, PAIR, create=True)
    assert path.read_text() == "somebody's"


def test_no_room_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no room in memory for"):
        map_new(tmp_path / "huge", 1 << 62)


def test_it_is_gone_when_nobody_refers_to_it_any_more(system: None) -> None:
    before = open_descriptors()
    file = SharedFile("test")
    path = file.path
    Ring.create(path, PAIR, 8)
    assert path.exists()
    del file
    assert open_descriptors() == before
    assert not path.exists()


def test_a_name_is_removed_for_a_maker_that_died(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr("haptics.shared._folder", lambda: tmp_path)
    paths = Paths.unique()
    assert len(list(tmp_path.iterdir())) == 3
    pickle.loads(pickle.dumps(paths)).remove_for_the_dead()
    assert not list(tmp_path.iterdir())
    paths.close()


SUICIDE = """
import os, signal
from haptics.servo.job import Paths
from haptics.trace import Trace
paths = Paths.unique()
Trace.create(paths.trace.path)
print(os.getpid(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_maker_that_is_killed_leaves_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", SUICIDE], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    for folder in (Path("/dev/shm"), Path(tempfile.gettempdir())):
        assert not list(folder.glob(f"haptics-{int(done.stdout)}-*"))
