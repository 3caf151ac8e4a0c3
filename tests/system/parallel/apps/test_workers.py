"""Workers in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from apps.shared.workers import end_with_parent, workers
from tests.processes import ROOT, ended, until

BUSY = """
import os, signal
from apps.shared.workers import workers

if __name__ == "__main__":
    with workers("processes", 1) as (executor, _):
        print(executor.submit(os.getpid).result(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_ends_with_the_process_that_started_it_when_that_is_killed(tmp_path) -> None:
    file = tmp_path / "busy.py"
    file.write_text(BUSY)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open(tmp_path / "said", "w+") as said:  # not a pipe, which workers that stay would keep open
        done = subprocess.run([sys.executable, file], env=environment, stdout=said, check=False)
        said.seek(0)
        worker = int(said.read())
    assert done.returncode == -signal.SIGKILL
    until(lambda: ended(worker), "a worker waits for tasks of a dead process", 20.0)


def test_a_process_that_nobody_spawned_goes_on() -> None:
    end_with_parent()
    with workers("processes", 1) as (executor, count):
        assert count == 1
        assert executor.submit(os.getpid).result() != os.getpid()
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 1, 0).result()
