"""Long computations for the topic of tests/haptics/test_shared.py."""

from __future__ import annotations

import functools
from pathlib import Path

from haptics.clock import Clock
from haptics.servo.job import Job
from haptics.servo.process import ServoProcess
from tests.haptics.doubles import BenchDevice
from tests.haptics.test_shared import open_descriptors
from tests.system.haptics.servo.test_process import await_message, make_job


def make_bench(clock: Clock) -> BenchDevice:
    return BenchDevice(clock)


def one_session(folder: Path) -> None:
    job: Job = make_job(folder, functools.partial(make_bench), 0.05)
    servo = ServoProcess(job)
    servo.start()
    while await_message(servo)[0] != "ended":
        pass
    servo.close()


def test_sessions_one_after_the_other_leave_no_descriptor_open(tmp_path: Path) -> None:
    one_session(tmp_path)  # the first one also starts what serves them all
    before = open_descriptors()
    one_session(tmp_path)
    one_session(tmp_path)
    assert open_descriptors() == before
