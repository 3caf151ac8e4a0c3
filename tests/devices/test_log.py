"""The command log: a ring that survives the death of its process."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from devices.virtual.log import CAPACITY, CommandLog


def in_order(path):
    log = np.load(path)
    used = log[log["monotonic_ns"] > 0]
    return used[np.argsort(used["monotonic_ns"], kind="stable")]


def test_log_survives_a_kill(tmp_path):
    path = tmp_path / "log.npy"
    code = (
        "import os, signal\n"
        "from devices.virtual.log import CommandLog\n"
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


def test_row_has_the_time_the_command_and_the_clock(tmp_path):
    path = tmp_path / "log.npy"
    CommandLog(str(path)).append(0.25, 1.5, -2.5)
    (row,) = in_order(path)
    assert row["time"] == 0.25
    assert row["command"].tolist() == [1.5, -2.5]
    assert row["monotonic_ns"] == pytest.approx(time.monotonic_ns(), abs=60e9)
