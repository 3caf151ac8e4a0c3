"""Shared memory between processes: rows and records are never torn, and its descriptors are freed."""

from __future__ import annotations

import functools
import multiprocessing

import numpy as np

from haptics.servo.control import Job
from haptics.servo.process import ServoProcess
from haptics.shared import Mailbox, SharedFile
from haptics.trace import Reader, Ring
from tests.haptics.servo.test_process import PAIR, publish_many
from tests.haptics.test_trace import PAIR as ROWS
from tests.haptics.test_trace import SMALL, open_descriptors, publish, shared, system, write_many  # noqa: F401
from tests.system.haptics.test_process import await_message, make_bench, make_job


def test_trace_never_returns_a_torn_row(tmp_path):
    ring = Ring.create(tmp_path / "ring", SMALL, 64)
    reader = Reader(ring)
    writer = multiprocessing.get_context("spawn").Process(target=write_many, args=(ring.path, 20_000, 50))
    writer.start()
    total = 0
    while writer.is_alive() or ring.count > total + reader.lost:
        rows = reader.read()
        assert (rows["twice"] == 2 * rows["number"]).all()
        assert (rows["vector"][:, 0] == rows["number"]).all()
        assert (np.diff(rows["number"]) == 1).all()
        total += len(rows)
    writer.join()
    assert writer.exitcode == 0
    assert total + reader.lost == 20_000
    assert total > 0


def test_lane_never_returns_a_torn_record(tmp_path):
    lane = Mailbox(tmp_path / "lane", PAIR, create=True)
    writer = multiprocessing.get_context("spawn").Process(target=publish_many, args=(lane.path, 20_000))
    writer.start()
    versions = [0]
    while versions[-1] < 20_000:
        latest = lane.read()
        if latest is None:
            continue
        version, value = latest
        assert value["first"][0] == value["second"][0] == version
        assert (value["filler"] == version).all()
        assert version >= versions[-1]
        versions.append(version)
    writer.join()
    assert writer.exitcode == 0


def test_another_process_writes_shared_memory(shared):
    ring = Ring.create(shared.path, ROWS, 8)
    writer = multiprocessing.get_context("spawn").Process(target=publish, args=(shared,))
    writer.start()
    writer.join()
    assert ring.since(0)["twice"].tolist() == [0, 2, 4, 6, 8]


def one_session(folder):
    job: Job = make_job(folder, functools.partial(make_bench, None), 0.05)
    servo = ServoProcess(job)
    servo.start()
    while await_message(servo)[0] != "ended":
        pass
    servo.close()


def test_sessions_leave_no_descriptor_open(tmp_path):
    one_session(tmp_path)  # the first one also starts shared helpers
    before = open_descriptors()
    one_session(tmp_path)
    one_session(tmp_path)
    assert open_descriptors() == before


def test_memory_is_freed_with_its_last_reference(system):
    before = open_descriptors()
    shared = SharedFile("test")
    path = shared.path
    Ring.create(path, ROWS, 8)
    assert path.exists()
    del shared
    assert open_descriptors() == before
    assert not path.exists()
