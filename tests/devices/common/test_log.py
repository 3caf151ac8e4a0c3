"""The command log: a ring that survives the death of its process."""

import errno
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from devices.common.log import CAPACITY, CommandLog
from haptics.errors import DeviceOpenError


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


def test_without_room_on_the_disk_nothing_is_begun(tmp_path):
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


def test_the_whole_log_has_its_place_from_the_start(tmp_path):
    path = tmp_path / "log.npy"
    CommandLog(str(path))
    found = path.stat()
    assert found.st_blocks * 512 >= found.st_size > CAPACITY * 16


def test_a_full_disk_is_no_reason_to_leave_something_behind(tmp_path, monkeypatch):
    def refuse(descriptor, start, length):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(DeviceOpenError, match="No space left on device"):
        CommandLog(str(tmp_path / "log.npy"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "link", "link to nowhere", "link to a log", "folder", "table"])
def test_what_is_not_ours_is_left_alone(tmp_path, kind):
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


def test_row_has_the_time_the_command_and_the_clock(tmp_path):
    path = tmp_path / "log.npy"
    CommandLog(str(path)).append(0.25, 1.5, -2.5)
    (row,) = in_order(path)
    assert row["time"] == 0.25
    assert row["command"].tolist() == [1.5, -2.5]
    assert row["monotonic_ns"] == pytest.approx(time.monotonic_ns(), abs=60e9)
