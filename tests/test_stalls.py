"""A test that guards a promise in wall-clock time is repeated if machine or threads stood still, and only then."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stalls import Stalls, StallWatcher
from tests.suites import words_of_pytest

CONFTEST = """
import tests.conftest as shared
import tests.stalls as stalls
from tests.conftest import (
    pytest_collection_modifyitems, pytest_runtest_makereport, pytest_runtest_protocol, pytest_runtest_teardown,
    pytest_terminal_summary, pytest_unconfigure,
)

class Watcher:
    stall, path = 0.0, "nowhere"

    def __init__(self, *path): pass

    def take(self):
        stall, Watcher.stall = Watcher.stall, 0.0
        return stall

    def close(self): pass

class Lateness:
    kept_waiting = 0.0

    def take(self):
        kept_waiting, Lateness.kept_waiting = Lateness.kept_waiting, 0.0
        return kept_waiting

    def close(self): pass

waited = 0.0
shared.StallWatcher = shared.Stalls = Watcher
stalls.Lateness, stalls._waited = Lateness, lambda: waited
shared.BY_THE_CLOCK = ("test_it.py::test_of_a_program",)
"""
TESTS = """
import collections, pytest, time
import conftest
from conftest import Lateness, Watcher
from tests.processes import NeverCame
tries = collections.Counter()

@pytest.mark.wall_clock
@pytest.mark.parametrize(("stall", "needed"), [(0.0, 2), (0.02, 1), (0.02, 2), (0.02, 3), (0.02, 4), (0.05, 4)])
def test_in_time(stall, needed):
    Watcher.stall = stall
    tries[stall, needed] += 1
    assert tries[stall, needed] == needed, "too late"

@pytest.mark.wall_clock
@pytest.mark.parametrize(("kept_waiting", "needed"), [(0.008, 2), (0.5, 2), (0.5, 4)])
def test_in_turn(kept_waiting, needed):
    Lateness.kept_waiting = kept_waiting
    tries[kept_waiting, needed] += 1
    assert tries[kept_waiting, needed] == needed, "too late"

@pytest.mark.wall_clock
@pytest.mark.parametrize(("part", "needed"), [(0.1, 2), (10.0, 2), (10.0, 4)])
def test_in_a_crowd(part, needed):
    begin = time.monotonic()
    time.sleep(0.1)
    conftest.waited += part * (time.monotonic() - begin)
    tries[part, needed] += 1
    assert tries[part, needed] == needed, "too late"

@pytest.mark.wall_clock
@pytest.mark.parametrize("stall", [0.7, 16.0])
def test_waited_for(stall):
    Watcher.stall = stall
    raise NeverCame("it never came", 30.0)

@pytest.mark.parametrize("needed", [3, 4])
def test_of_a_program(needed):
    Watcher.stall = 0.05
    tries["program", needed] += 1
    if tries["program", needed] != needed:
        pytest.fail("Traceback (most recent call last):\\n  in its second line\\nOSError: it has ended\\n")

def test_without_the_marker():
    Watcher.stall = 0.02
    tries["unmarked"] += 1
    assert tries["unmarked"] == 2
"""


def test_it_is_repeated_where_there_was_a_stall(tmp_path: Path) -> None:
    words = words_of_pytest(tmp_path, CONFTEST, TESTS, "-v", "-rs")
    outcomes = re.findall(r"^test_it.py::(\S+) (RERUN|PASSED|FAILED|SKIPPED)", words, flags=re.MULTILINE)
    assert outcomes == [
        ("test_in_time[0.0-2]", "FAILED"),
        ("test_in_time[0.02-1]", "PASSED"),
        *[("test_in_time[0.02-2]", word) for word in ("RERUN", "PASSED")],
        *[("test_in_time[0.02-3]", word) for word in ("RERUN", "RERUN", "PASSED")],
        *[("test_in_time[0.02-4]", word) for word in ("RERUN", "RERUN", "FAILED")],
        *[("test_in_time[0.05-4]", word) for word in ("RERUN", "RERUN", "SKIPPED")],
        ("test_in_turn[0.008-2]", "FAILED"),
        *[("test_in_turn[0.5-2]", word) for word in ("RERUN", "PASSED")],
        *[("test_in_turn[0.5-4]", word) for word in ("RERUN", "RERUN", "FAILED")],
        ("test_in_a_crowd[0.1-2]", "FAILED"),
        *[("test_in_a_crowd[10.0-2]", word) for word in ("RERUN", "PASSED")],
        *[("test_in_a_crowd[10.0-4]", word) for word in ("RERUN", "RERUN", "FAILED")],
        *[("test_waited_for[0.7]", word) for word in ("RERUN", "RERUN", "FAILED")],
        *[("test_waited_for[16.0]", word) for word in ("RERUN", "RERUN", "SKIPPED")],
        *[("test_of_a_program[3]", word) for word in ("RERUN", "RERUN", "PASSED")],
        *[("test_of_a_program[4]", word) for word in ("RERUN", "RERUN", "FAILED")],
        ("test_without_the_marker", "FAILED"),
    ]
    assert "cannot be judged here: 3 times the machine stood still, lately for 50 ms (AssertionError: too late" in words
    named = [line for line in words.splitlines() if "a stall of 20 ms; it had said: AssertionError: too late" in line]
    assert len(named) == 5
    assert words.count("a stall of 50 ms; it had said: OSError: it has ended") == 4
    assert words.count("a thread had to wait for 500 ms; it had said: AssertionError: too late") == 3


OF_THE_FILE = """
import pytest
from conftest import Watcher
made, ended = [], []

@pytest.fixture(scope="session")
def of_all():
    made.append("of all")

@pytest.fixture(scope="module")
def lower(of_all):
    made.append("lower")
    yield len(made)
    ended.append("lower")

@pytest.fixture(scope="module")
def upper(lower):
    made.append("upper")
    yield lower
    ended.append("upper")

@pytest.mark.wall_clock
def test_in_a_stall(upper):
    Watcher.stall = 0.02
    assert made.count("upper") == 2, "the stall was when it was made"

@pytest.mark.wall_clock
def test_without_a_stall(upper):
    assert made == ["of all", "lower", "upper", "lower", "upper"]
    assert ended == ["upper", "lower"]
    assert upper == 4

def test_the_rest(request, upper):
    request.config.add_cleanup(lambda: print("in the end:", *ended))
"""


def test_what_is_made_once_for_a_file_is_made_afresh_for_a_repetition(tmp_path: Path) -> None:
    words = words_of_pytest(tmp_path, CONFTEST, OF_THE_FILE, "-v", "-s")
    outcomes = re.findall(r"^test_it.py::\S+ (RERUN|PASSED|FAILED|SKIPPED)", words, flags=re.MULTILINE)
    assert outcomes == ["RERUN", "PASSED", "PASSED", "PASSED"], words
    assert "in the end: upper lower upper lower" in words


@pytest.fixture
def watcher() -> Iterator[StallWatcher]:
    found = StallWatcher()
    yield found
    found.close()


def begun(watcher: StallWatcher) -> Stalls:
    """Wait until all of them watch."""
    stalls, latest = Stalls(watcher.path), time.monotonic() + 20.0
    time.sleep(0.5)
    while stalls.take() > 0.0:
        assert time.monotonic() < latest
        time.sleep(0.05)
    return stalls


def test_the_watcher_notices_that_one_of_its_processes_was_stopped(watcher: StallWatcher) -> None:
    stalls = begun(watcher)
    for process in watcher._processes:
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(0.1)
        assert stalls.take() > 0.08, "it is not over"
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(0.05)
        assert stalls.take() > 0.08, "it has ended since"


def test_one_that_is_dead_excuses_nothing(watcher: StallWatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    stalls = begun(watcher)
    watcher._processes[0].communicate()
    monkeypatch.setattr("tests.stalls.LONGEST", 0.1)
    time.sleep(0.2)
    stalls.take()
    assert stalls.take() < 0.1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processes cannot be kept on a processor here")
def test_each_processor_has_a_watcher_that_stays_there(watcher: StallWatcher) -> None:
    begun(watcher)
    places = [os.sched_getaffinity(process.pid) for process in watcher._processes]
    everywhere = os.sched_getaffinity(0)
    assert places == [everywhere, *({processor} for processor in sorted(everywhere))]
