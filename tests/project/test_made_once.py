"""Results shared by the processes of a test run: made once, also after a failure or the death of the first process."""

import os
import signal
import subprocess
import sys
import time

from tests.processes import ROOT

SHARED = """
import os, time
import pytest
from tests.made_once import made_once

def make(folder):
    with open({log!r}, "a") as log:
        log.write("made\\n")
    {make}
    (folder / "result").write_text("5")

@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return made_once(tmp_path_factory, "shared", make)

@pytest.mark.parametrize("number", range(4))
def test_result(shared, number):
    assert (shared / "result").read_text() == "5"
    time.sleep(0.2)  # no process runs all the tests
"""

ONE = """
import pathlib, sys, time
from tests.made_once import made_once

class Factory:
    def getbasetemp(self):
        return pathlib.Path(sys.argv[1])

def make(folder):
    (folder / "partial").touch()
    print("begun", flush=True)
    time.sleep(float(sys.argv[2]))

print(sorted(path.name for path in made_once(Factory(), "shared", make).iterdir()))
"""


def run_with_two_workers(folder, make):
    """Run four tests with a shared fixture on two workers; return the output and the number of calls of `make`."""
    log = folder / "log"
    (folder / "test_shared.py").write_text(SHARED.format(log=str(log), make=make))
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", f"--basetemp={folder / 'run'}"],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.stdout, len(log.read_text().splitlines())


def test_two_workers_share_one_result(tmp_path):
    output, made = run_with_two_workers(tmp_path, "time.sleep(1.0)")
    assert "4 passed" in output
    assert made == 1


def test_failure_is_reported_by_every_worker_with_its_message(tmp_path):
    output, made = run_with_two_workers(tmp_path, "raise ValueError('no such page')")
    assert "4 errors" in output
    assert output.count("no such page") >= 4
    assert made == 1


def test_killed_process_does_not_block_the_next_one(tmp_path):
    def start(seconds):
        words = [sys.executable, "-c", ONE, str(tmp_path), str(seconds)]
        return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    with start(60.0) as first:
        assert first.stdout.readline() == "begun\n"
        with start(0.0) as second:
            time.sleep(0.5)
            assert second.poll() is None, "waits for the first"
            first.send_signal(signal.SIGKILL)
            output, _ = second.communicate(timeout=30)
    assert output == "begun\n['partial']\n"
