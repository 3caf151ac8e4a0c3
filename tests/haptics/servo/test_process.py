"""Parts of the servo process: shared lanes, real-time settings, and the recorder that paces an offline run."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from haptics.errors import ConfigurationError
from haptics.servo.process import SIMULATED_TIMEOUT, _RecorderWait
from haptics.servo.realtime import NICENESS, TIME_SLICE
from haptics.servo.servo import MAX_TICKS_PER_CALL
from haptics.servo.standby import Standby
from haptics.shared import Mailbox

PAIR = np.dtype([("first", "<i8"), ("second", "<i8"), ("filler", "<f8", (64,))])


def publish_many(path, count):
    lane = Mailbox(path, PAIR)
    value = np.zeros(1, PAIR)
    for number in range(1, count + 1):
        value["first"] = value["second"] = value["filler"] = number
        lane.publish(value[0])


def test_lane_keeps_the_latest_value_and_survives_a_dead_writer(tmp_path):
    lane = Mailbox(tmp_path / "lane", PAIR, create=True)
    assert lane.version == 0
    publish_many(lane.path, 3)
    latest = lane.read()
    assert latest is not None
    assert (latest[0], int(latest[1]["first"][0])) == (3, 3)
    lane.sequence[0] += 1  # a writer that died half way
    assert lane.read() is None
    assert lane.version == 3


def test_missing_lane_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match="nowhere"):
        Mailbox(tmp_path / "nowhere", PAIR)


KNOWS_TIME_SLICES = platform.machine() == "x86_64" and tuple(map(int, platform.release().split(".")[:2])) >= (6, 12)
_CODE = """
import json, os, sys, threading
sys.path[:] = json.loads(sys.argv[1])
from haptics.servo.realtime import RealTimeSettings, request_real_time, time_slice, without_requests
before, found = without_requests(), {}
def loop():
    found["granted"] = request_real_time(RealTimeSettings(scheduling=sys.argv[2], cpu=-1))
    exchange = threading.Thread(target=look)
    exchange.start()
    exchange.join()
def look():
    found["inherited"] = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0), time_slice()
thread = threading.Thread(target=loop)
thread.start()
thread.join()
found["application"] = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0), time_slice()
print(json.dumps({"before": before["niceness"], "slice": before["time_slice"], **found}))
"""


def entered(scheduling, *through):
    """Return the settings granted to a thread, inherited by its child thread, and left to the process."""
    words = [*through, sys.executable, "-c", _CODE, json.dumps(sys.path), scheduling]
    found: dict[str, object] = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return found


def may_be_nicer():
    words = ["nice", "-n", str(NICENESS), "true"]
    return not subprocess.run(words, check=True, capture_output=True).stderr


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a niceness of their own on Linux only")
def test_loop_thread_gets_its_niceness_and_time_slice():
    found = entered("other")
    niceness = NICENESS if may_be_nicer() else found["before"]
    granted = found["granted"]
    assert isinstance(granted, dict)
    time_slice = TIME_SLICE if KNOWS_TIME_SLICES else found["slice"]
    assert (granted["scheduling"], granted["priority"], granted["niceness"]) == ("other", 0, niceness)
    assert granted["time_slice"] == time_slice
    assert found["inherited"] == [os.SCHED_OTHER, niceness, time_slice]
    assert found["application"] == [os.SCHED_OTHER, found["before"], found["slice"]]


@pytest.mark.skipif(sys.platform != "linux" or not may_be_nicer(), reason="it may not come before others here")
def test_lower_niceness_is_kept():
    granted = entered("other", "nice", "-n", str(NICENESS - 5 - os.getpriority(os.PRIO_PROCESS, 0)))["granted"]
    assert isinstance(granted, dict)
    assert granted["niceness"] == NICENESS - 5


@pytest.mark.skipif(not shutil.which("chrt"), reason="it takes the program chrt, which Linux has")
def test_scheduling_class_is_kept():
    found = entered("other", "chrt", "--batch", "0")
    assert found["application"][0] == found["inherited"][0] == os.SCHED_BATCH


CAPACITY = 4 * MAX_TICKS_PER_CALL


class Running:
    """A servo with a full trace, and the record of its application."""

    def __init__(self, silent=0.0):
        self.stopped = False
        self.trace = SimpleNamespace(count=CAPACITY, capacity=CAPACITY)
        now = time.monotonic_ns() - round(1e9 * silent)
        self.record = {"recorded": np.zeros(1, np.int64), "heartbeat_ns": np.full(1, now, np.int64)}

    def stop(self):
        self.stopped = True

    def waits(self, application):
        """Start a thread that waits for room in the trace."""
        me: Any = self
        self.wait = _RecorderWait(me, me, application)
        thread = threading.Thread(target=self.wait, daemon=True)
        thread.start()
        return thread


def test_offline_run_waits_for_room_in_the_trace():
    servo = Running(silent=-60.0)  # heard of until long after
    thread = servo.waits(os.getppid())
    for recorded, goes_on in ((MAX_TICKS_PER_CALL, False), (2 * MAX_TICKS_PER_CALL, True)):
        servo.record["recorded"][0] = recorded
        thread.join(10.0 if goes_on else 0.1)
        assert thread.is_alive() is not goes_on
    assert not (servo.stopped or servo.wait.lost)


@pytest.mark.parametrize(("silent", "alive"), [(SIMULATED_TIMEOUT + 1.0, True), (0.0, False)])
def test_offline_run_ends_without_a_recorder(silent, alive):
    servo = Running(silent)
    thread = servo.waits(os.getppid() if alive else -1)
    thread.join(10.0)
    assert not thread.is_alive()
    assert servo.stopped and servo.wait.lost


def test_offline_run_waits_for_a_late_application():
    servo = Running(silent=2.0)
    thread = servo.waits(os.getppid())
    thread.join(0.1)
    assert thread.is_alive() and not servo.stopped
    servo.record["recorded"][0] = 2 * MAX_TICKS_PER_CALL
    thread.join(10.0)
    assert not thread.is_alive() and not servo.wait.lost


def test_standby_without_a_job_ends_with_its_context():
    with Standby() as standby:
        assert standby.process.is_alive()
    assert not standby.process.is_alive()
