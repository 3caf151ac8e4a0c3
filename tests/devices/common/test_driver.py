"""Common parts of the drivers: log, latch, waking of threads, serial ports."""

import functools
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from devices.common import latch as latches
from devices.common.bus import open_port
from devices.common.driver import ForceDriver
from devices.common.kernels import FORCE_DRIVER_FIELDS, LOST, NOT_FINITE
from devices.common.latch import Latch, Wake, copy_latest, publish_to
from devices.common.log import CAPACITY, CommandLog
from haptics.errors import DeviceFault, DeviceNotFoundError, DeviceOpenError
from haptics.jit import fence, kernel
from haptics.servo.kernels import SCRATCH, raise_event

# --- latch ------------------------------------------------------------------------------------------------------------


SIZE = 5
STILL_MOVABLE = 7


@kernel
def read_until_full(place, rows):
    """Copy the latest numbers until every row has others; return the number of failed copies."""
    failures, k = 0, 0
    while k < len(rows):
        if not copy_latest(place, rows[k]):
            failures += 1
        elif k == 0 or rows[k, 0] != rows[k - 1, 0]:
            k += 1
    return failures


@kernel
def keep_publishing(place, numbers, going_on):
    """Publish the same number in every place, another one each time, until stopped."""
    turns = 0
    while going_on[0] != 0:
        turns += 1
        for i in range(len(numbers)):
            numbers[i] = turns
        publish_to(place, numbers)
        for _ in range(100):  # a pause, so that Python threads can run
            fence()
    return turns


def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def assert_whole_and_in_order(rows):
    np.testing.assert_array_equal(rows, np.repeat(rows[:, :1], SIZE, axis=1))
    assert (np.diff(rows[:, 0]) > 0.0).all(), "nothing old comes after something new"


def test_kernel_reads_whole_values_of_a_thread():
    latch, going_on = Latch(SIZE), [True]

    def write():
        number = 0.0
        while going_on:
            number += 1.0
            latch.publish(*[number] * SIZE)

    rows = np.zeros((4000, SIZE))
    copy_latest(latch.place, rows[0].copy()), read_until_full(Latch(SIZE).place, rows[:0])  # compiled before
    writer = in_thread(write)
    read_until_full(latch.place, rows)
    going_on.clear()
    writer.join()
    assert_whole_and_in_order(rows)


def test_thread_reads_whole_values_of_a_kernel():
    latch, going_on, turns = Latch(SIZE), np.zeros(1, np.int64), list[int]()
    keep_publishing(latch.place, np.zeros(SIZE), going_on)  # compiled before
    going_on[0] = 1
    writer = in_thread(lambda: turns.append(keep_publishing(latch.place, np.zeros(SIZE), going_on)))
    rows = list[tuple[float, ...]]()
    for _ in range(100_000_000):
        if len(rows) == 2000:
            break
        numbers = latch.read()
        if not rows or numbers != rows[-1]:
            rows.append(numbers)
    going_on[0] = 0
    writer.join()
    assert len(rows) == 2000
    assert_whole_and_in_order(np.array(rows))
    assert latch.read() == (turns[0],) * SIZE


def test_interrupted_writer_does_not_block_readers(monkeypatch):
    latch, numbers = Latch(2), np.zeros(2)
    latch.publish(1.0, 2.0)

    class Sleepy:
        """Fills the slot, and then its thread has no turn for long."""

        def pack_into(self, memory, place, *values):
            whole.pack_into(memory, place, 8.0, 9.0)
            raise InterruptedError

    whole = latch._numbers
    with monkeypatch.context() as patch:
        patch.setattr(latch, "_numbers", Sleepy())
        with pytest.raises(InterruptedError):
            latch.publish(3.0, 4.0)
    assert copy_latest(latch.place, numbers)
    assert latch.read() == tuple(numbers) == (1.0, 2.0)
    latch.publish(5.0, 6.0)
    assert copy_latest(latch.place, numbers)
    assert latch.read() == tuple(numbers) == (5.0, 6.0)


def test_empty_latch_reports_no_value():
    latch, numbers = Latch(2), np.ones(2)
    assert not copy_latest(latch.place, numbers)
    assert latch.read() == (0.0, 0.0)
    publish_to(latch.place, np.array((3.0, -4.0)))
    assert copy_latest(latch.place, numbers)
    assert latch.read() == tuple(numbers) == (3.0, -4.0)


# --- command log ------------------------------------------------------------------------------------------------------


def in_order(path):
    log = np.load(path)
    used = log[log["monotonic_ns"] > 0]
    return used[np.argsort(used["monotonic_ns"], kind="stable")]


def test_log_survives_a_kill(tmp_path):
    path = tmp_path / "log.npy"
    code = (
        "import os, signal\n"
        "from devices.common.log import CommandLog\n"
        f"log = CommandLog({str(path)!r})\n"
        "for k in range(100): log.append(k * 1e-3, k, -k)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    finished = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert finished.returncode == -signal.SIGKILL
    rows = in_order(path)
    np.testing.assert_array_equal(rows["command"], [(k, -k) for k in range(100)])


def test_log_keeps_the_newest_rows(tmp_path):
    path = tmp_path / "log.npy"
    log = CommandLog(str(path))
    for k in range(CAPACITY + 10):
        log.append(float(k), float(k), 0.0)
    rows = np.load(path)
    assert len(rows) == CAPACITY
    assert sorted(rows["time"]) == list(range(10, CAPACITY + 10))
    assert rows["time"][9] == CAPACITY + 9


def test_older_log_is_replaced(tmp_path):
    path = tmp_path / "log.npy"
    CommandLog(str(path)).append(1.0, 2.0, 3.0)
    CommandLog(str(path))
    assert len(in_order(path)) == 0


SUITABLE = "in a folder that exists, is writable and has room"


def test_log_needs_disk_space_at_the_start(tmp_path):
    """Reserved at once: a store into a page that cannot be had would kill the process without its fade-out."""
    path = tmp_path / "log.npy"
    code = (
        "import resource\n"
        "from devices.common.log import CommandLog\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        f"CommandLog({str(path)!r})\n"
    )
    finished = subprocess.run([sys.executable, "-c", code], check=False, timeout=60, capture_output=True, text=True)
    assert finished.returncode == 1
    assert f"DeviceOpenError: device.log = {path}: the file cannot be made (File too large); name one {SUITABLE}" in (
        finished.stderr
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "link", "link to nowhere", "link to a log", "folder", "table"])
def test_log_does_not_overwrite_foreign_files(tmp_path, kind):
    path, own = tmp_path / "log.npy", tmp_path / "thesis.tex"
    own.write_text("years of work")
    match kind:
        case "file":
            path.write_text("years of work")
        case "link":
            path.symlink_to(own)
        case "link to nowhere":
            path.symlink_to(tmp_path / "nowhere")
        case "link to a log":
            CommandLog(str(tmp_path / "other.npy")).append(1.0, 2.0, 3.0)
            path.symlink_to(tmp_path / "other.npy")
        case "folder":
            path.mkdir()
        case _:
            np.save(path, np.zeros(CAPACITY))
    before = {one.name: one.is_file() and one.read_bytes() for one in tmp_path.iterdir()}
    with pytest.raises(DeviceOpenError, match=r"device\.log = .*: the file cannot be made"):
        CommandLog(str(path))
    assert {one.name: one.is_file() and one.read_bytes() for one in tmp_path.iterdir()} == before


def test_log_row_has_time_command_and_clock(tmp_path):
    path = tmp_path / "log.npy"
    before = time.monotonic_ns()
    CommandLog(str(path)).append(0.25, 1.5, -2.5)
    (row,) = in_order(path)
    assert row["time"] == 0.25
    assert row["command"].tolist() == [1.5, -2.5]
    assert before <= row["monotonic_ns"] <= time.monotonic_ns()


# --- waking -----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["event of the system", "none"])
def wake(request, monkeypatch):
    if request.param == "none":
        monkeypatch.delattr(os, "eventfd", raising=False)
    made = Wake()
    assert (made.descriptor < 0) == (request.param == "none" or not hasattr(os, "eventfd"))
    return made


def waited(wake, timeout, monkeypatch, meanwhile=lambda: None):
    """Return how long a thread waits in virtual time [s], in which `meanwhile` is called after a tenth of a second."""
    passed = []

    def wait(ready, limit):
        if ready():
            passed.append(0.0)
        else:
            meanwhile()
            passed.append(0.1 if ready() else limit)
        return ready()

    def poll(readable, writable, exceptional, limit):
        return [[wake.descriptor] if wait(lambda: bool(select.select(readable, [], [], 0.0)[0]), limit) else []]

    with monkeypatch.context() as patch:
        patch.setattr(latches, "select", SimpleNamespace(select=poll))
        patch.setattr(wake._event, "wait", lambda limit: wait(wake._event.is_set, limit))
        wake.wait(timeout)
    return passed[0]


def test_calls_wake_once(wake, monkeypatch):
    for _ in range(3):
        wake.call()
    assert waited(wake, 60.0, monkeypatch) == 0.0
    assert waited(wake, 60.0, monkeypatch) == 60.0
    assert waited(wake, 60.0, monkeypatch, wake.call) == 0.1
    assert waited(wake, 60.0, monkeypatch) == 60.0


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="the system has no such events")
def test_kernel_wakes_a_thread():
    wake = Wake()
    raise_event(wake.descriptor, np.zeros(SCRATCH, np.int64))
    assert select.select([wake.descriptor], [], [], 0.0)[0]


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="the system has no such events")
def test_event_is_closed_with_its_last_reference():
    wake = Wake()
    descriptor = wake.descriptor
    os.fstat(descriptor)
    del wake
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


# --- serial ports -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "a\0b", "folder"])
def test_invalid_ports_are_rejected(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises((DeviceNotFoundError, DeviceOpenError), match=r"device\.port|cannot be opened"):
        open_port(name and str(tmp_path / name), "device.port", 0)


# --- driver -----------------------------------------------------------------------------------------------------------


def take_position(record, now, elapsed):
    record["position"], record["time"] = (0.01, -0.02), now


def give_force(record, x, y):
    record["command"] = x, y
    if not np.isfinite((x, y)).all():
        record["fault"] = NOT_FINITE


class Bench(ForceDriver):
    """Driver with parts in Python; it loses its device when `lost` is set."""

    name, of_samples = "the bench", (STILL_MOVABLE,)

    def __init__(self):
        super().__init__(np.dtype(FORCE_DRIVER_FIELDS), (take_position, give_force), None, 1e-3)
        self.wake = Wake()
        self._take, self._give = (functools.partial(part, self._record) for part in self._parts)

    def open(self):
        pass

    def close(self):
        pass

    def lose(self, fault):
        self._record["fault"] = fault

    def _wake(self):
        return self.wake

    def _fault_error(self, fault):
        return DeviceFault(f"the bench was lost ({fault})")


def test_driver_reports_a_lost_device_in_every_call():
    with Bench() as bench:
        assert bench.read().position.tolist() == [0.01, -0.02]
        bench.write(np.array((1.0, 2.0)))
        assert bench._record["command"].tolist() == [[1.0, 2.0]]
        bench.lose(LOST)
        for call in (bench.read, lambda: bench.write(np.zeros(2))):
            with pytest.raises(DeviceFault, match="the bench was lost"):
                call()


def test_driver_refuses_a_bad_command_and_goes_on():
    bench = Bench()
    with pytest.raises(DeviceFault, match=r"the bench was given the command \(nan, 0\): it must be finite"):
        bench.write(np.array((math.nan, 0.0)))
    bench.write(np.zeros(2))
    bench.read()


def test_driver_without_samples_still_takes_commands_if_its_device_does():
    bench = Bench()
    bench.lose(STILL_MOVABLE)
    with pytest.raises(DeviceFault):
        bench.read()
    bench.write(np.zeros(2))
