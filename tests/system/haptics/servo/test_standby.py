"""A servo process that waits for its job."""

import functools
import subprocess
import sys
from pathlib import Path

import pytest

from haptics.errors import ServoLost
from haptics.servo.process import ServoProcess
from haptics.servo.standby import Standby
from tests.processes import ended, until
from tests.system.haptics.servo.test_process import await_message, make_bench, make_job


def test_a_standby_is_started_without_numpy_and_numba() -> None:
    program = "import sys, haptics.servo.standby; assert not {'numpy', 'numba'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_process_without_a_job_ends_with_the_context() -> None:
    with Standby() as standby:
        assert standby.process.is_alive()
    assert not standby.process.is_alive()


def test_a_process_without_a_job_ends_with_its_application() -> None:
    program = (
        "import os\nfrom haptics.servo.standby import Standby\n"
        "standby = Standby()\nstandby.start()\nprint(standby.process.pid, flush=True)\nos._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, timeout=60, stdout=subprocess.PIPE)
    until(lambda: ended(int(done.stdout)), "the standby outlived its application")


def test_a_servo_runs_on_a_process_that_has_waited(tmp_path: Path) -> None:
    with Standby() as standby:
        servo = ServoProcess(make_job(tmp_path, functools.partial(make_bench, None), 0.05), standby)
        try:
            servo.start()
            assert servo.pid == standby.process.pid
            assert await_message(servo)[0] == "ready"
            assert await_message(servo) == ("ended", "completed")
        finally:
            servo.close()
    assert not standby.process.is_alive()


def test_a_servo_that_is_closed_before_its_start_ends_the_process(tmp_path: Path) -> None:
    with Standby() as standby:
        ServoProcess(make_job(tmp_path, functools.partial(make_bench, None), 0.05), standby).close()
        assert not standby.process.is_alive()


def test_a_process_that_was_killed_before_its_job_is_reported_as_lost(tmp_path: Path) -> None:
    with Standby() as standby:
        standby.process.kill()
        standby.process.join()
        servo = ServoProcess(make_job(tmp_path, functools.partial(make_bench, None), 0.05), standby)
        try:
            servo.start()
            with pytest.raises(ServoLost, match="SIGKILL"):
                await_message(servo)
        finally:
            servo.close()
