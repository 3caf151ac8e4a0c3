"""The tests' own promise: what a test has started ends with it."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.processes import ended, program, until

PARENT = """
import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "600"])
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_nothing_outlives_a_test_that_fails(stopped: bool) -> None:
    with pytest.raises(ZeroDivisionError), program("-c", PARENT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        if stopped:
            process.send_signal(signal.SIGSTOP)
        raise ZeroDivisionError
    assert process.returncode == -signal.SIGKILL
    until(lambda: ended(child), "the child lives on")
