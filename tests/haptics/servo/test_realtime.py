"""What the servo asks of the operating system, in a process of its own: it stays so for the rest of its life."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys

import pytest

from haptics.servo.realtime.precedence import NICENESS, TIME_SLICE

KNOWS_TIME_SLICES = platform.machine() == "x86_64" and tuple(map(int, platform.release().split(".")[:2])) >= (6, 12)

_CODE = """
import json, os, sys, threading
sys.path[:] = json.loads(sys.argv[1])
from haptics.servo.realtime.precedence import time_slice
from haptics.servo.realtime import RealTimeSettings, enter, granted_nothing
before, found = granted_nothing(), {}
def loop():
    found["granted"] = enter(RealTimeSettings(scheduling=sys.argv[2], cpu=-1)).as_dict()
    exchange = threading.Thread(target=look)
    exchange.start()
    exchange.join()
def look():
    found["inherited"] = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0), time_slice()
thread = threading.Thread(target=loop)
thread.start()
thread.join()
found["application"] = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0), time_slice()
print(json.dumps({"before": before.niceness, "slice": before.time_slice, **found}))
"""


def entered(scheduling: str, *through: str) -> dict[str, object]:
    """Return what a thread was granted, what one that it began has, and what is left to the rest of the process."""
    words = [*through, sys.executable, "-c", _CODE, json.dumps(sys.path), scheduling]
    found: dict[str, object] = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return found


def may_be_nicer() -> bool:
    words = ["nice", "-n", str(NICENESS), "true"]
    return not subprocess.run(words, check=True, capture_output=True).stderr


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a niceness of their own on Linux only")
def test_in_the_ordinary_class_the_loop_and_its_threads_come_before_others_where_that_is_allowed() -> None:
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
def test_who_came_still_farther_before_others_stays_there() -> None:
    granted = entered("other", "nice", "-n", str(NICENESS - 5 - os.getpriority(os.PRIO_PROCESS, 0)))["granted"]
    assert isinstance(granted, dict)
    assert granted["niceness"] == NICENESS - 5


@pytest.mark.skipif(not shutil.which("chrt"), reason="it takes the program chrt, which Linux has")
def test_who_was_put_into_another_class_stays_in_it() -> None:
    found = entered("other", "chrt", "--batch", "0")
    assert found["application"][0] == found["inherited"][0] == os.SCHED_BATCH  # type: ignore[index]
