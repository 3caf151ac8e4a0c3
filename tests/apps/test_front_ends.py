"""Front ends in separate processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from apps.front_ends.front_end import _MOST_WAITING, FrontEnds, ProcessFrontEnd
from apps.front_ends.messages import Advised, AskShown, Close, Preparing, Shown, Stop
from tests.apps.session.persons import Person, babble, die, listen
from tests.processes import until

Start = Callable[..., ProcessFrontEnd]


@pytest.fixture
def start():
    """Return a function that starts a front end, which is killed after the test."""
    started: list[ProcessFrontEnd] = []

    def begin(target, *arguments):
        started.append(ProcessFrontEnd(target, arguments, name="test front end"))
        return started[-1]

    yield begin
    for front in started:
        front._process.kill()
        front.close()


def test_messages_before_a_kill_are_received(start):
    front, messages, end = start(die, Stop()), list[Any](), time.monotonic() + 20.0
    while front.open and time.monotonic() < end:
        messages += front.messages()
    assert messages == [Stop()]
    assert not front.open
    front.send(Preparing("ignored"))
    front.close()
    front.close()


def test_messages_reach_all_front_ends_although_one_was_killed(start, tmp_path):
    files = [tmp_path / name for name in ("a", "b", "c")]
    fronts, group = [start(listen, str(file)) for file in files], FrontEnds()
    for front in fronts:
        group.add(front)
    group.broadcast(Advised("first"))
    until(lambda: all(file.exists() and "first" in file.read_text() for file in files), "the message did not arrive")
    os.kill(fronts[1]._process.pid or 0, signal.SIGKILL)
    until(lambda: not group.messages() and fronts[1] in group.remove_lost(), "the loss was not detected")
    assert group.remove_lost() == []
    group.broadcast(Advised("second"), but=fronts[0])
    group.broadcast(Advised("third"))
    group.close()
    told = [file.read_text().splitlines() for file in files]
    first, second, third = (f"Advised(message='{word}')" for word in ("first", "second", "third"))
    assert told == [[first, third], [first], [first, second, third]]


def test_frozen_front_end_never_blocks_and_is_dropped_finally(start, tmp_path):
    front = start(listen, str(tmp_path / "a"))
    front.send(Advised("there"))
    until(lambda: (tmp_path / "a").exists() and "there" in (tmp_path / "a").read_text(), "it did not start")
    os.kill(front._process.pid or 0, signal.SIGSTOP)
    longest, words = 0.0, Advised("word " * 100)
    for _ in range(2000):
        began = time.monotonic()
        front.send(words)
        longest = max(longest, time.monotonic() - began)
    assert longest < 0.5, "the servo considers an application dead after a second"
    assert front.open
    os.kill(front._process.pid or 0, signal.SIGCONT)
    until(lambda: not front.messages() and (tmp_path / "a").read_text().count("\n") == 2001, "messages were lost")
    os.kill(front._process.pid or 0, signal.SIGSTOP)
    for _ in range(_MOST_WAITING + 2000):
        front.send(words)
    assert not front.open


def test_endless_messages_are_received_in_limited_batches(start, monkeypatch):
    monkeypatch.setattr("apps.front_ends.front_end._AT_ONCE", 5)
    front = start(babble)
    until(lambda: len(front.messages()) == 5, "too few messages")
    assert front.open


def test_closed_window_is_removed_and_the_others_stay():
    fronts, leaves, stays = FrontEnds(), Person(Stop(), Close(), "ignored"), Person("still here")
    fronts.add(leaves)
    fronts.add(stays)
    assert fronts.messages() == [(leaves, Stop()), (leaves, Close()), (stays, "still here")]
    assert fronts.open == (stays,)
    leaves.dies = True
    fronts.broadcast("more")
    assert fronts.messages() == []
    assert fronts.remove_lost() == [], "it closed itself"
    assert (leaves.told, stays.told) == ([], ["more"])
    fronts.close()
    assert leaves.closed and stays.closed


def test_window_with_a_key_is_awaited(monkeypatch):
    monkeypatch.setattr("apps.front_ends.front_end.wait", lambda connections, timeout: time.sleep(0.001))
    monkeypatch.setattr(FrontEnds, "connections", ())
    monitor, stage, fronts = Person(Shown(), holds_key=False), Person(), FrontEnds()
    fronts.add(monitor)
    assert not fronts.await_key(10.0, lambda: False), "no window has a key"
    fronts.add(stage)
    assert not fronts.await_key(0.05, lambda: False), "its window is not shown yet"
    assert not fronts.await_key(10.0, lambda: True)
    stage.says = [Stop(), Shown()]
    assert fronts.await_key(10.0, lambda: False)
    assert (monitor.told, stage.told[-1]) == ([], AskShown())
