"""Front ends in processes of their own, behind real pipes: dead, frozen and talkative ones, and many at once."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.front_ends.front_end import _MOST_WAITING, ProcessFrontEnd
from apps.front_ends.messages import Advised, AskShown, Close, Preparing, Shown, Stop
from apps.front_ends.several import FrontEnds
from tests.apps.session.persons import Person, babble, die, listen
from tests.processes import until

Start = Callable[..., ProcessFrontEnd]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return what starts a front end, which does not outlive the test."""
    started: list[ProcessFrontEnd] = []

    def begin(target: Callable[..., None], *arguments: Any) -> ProcessFrontEnd:
        started.append(ProcessFrontEnd(target, arguments, name="test front end"))
        return started[-1]

    yield begin
    for front in started:
        front._process.kill()
        front.close()


def heard(front: ProcessFrontEnd, seconds: float = 20.0) -> list[Any]:
    """Return what a front end says until it is gone."""
    said, end = [], time.monotonic() + seconds
    while front.open and time.monotonic() < end:
        said += front.messages()
    return said


def test_what_it_said_before_it_was_killed_is_heard(start: Start) -> None:
    front = start(die, Stop())
    assert heard(front) == [Stop()]
    assert not front.open
    front.send(Preparing("nobody hears this"))
    front.close()
    front.close()


def test_all_are_told_the_same_and_one_that_was_killed_disturbs_nobody(start: Start, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b", "c")]
    fronts, all_of_them = [start(listen, str(file)) for file in files], FrontEnds()
    for front in fronts:
        all_of_them.add(front)
    all_of_them.tell(Advised("first"))
    until(lambda: all(file.exists() and "first" in file.read_text() for file in files), "they were not told")
    os.kill(fronts[1]._process.pid or 0, signal.SIGKILL)
    until(lambda: not all_of_them.messages() and fronts[1] in all_of_them.lost(), "nobody noticed")
    assert all_of_them.lost() == []
    all_of_them.tell(Advised("second"), but=fronts[0])
    all_of_them.tell(Advised("third"))
    all_of_them.close()
    told = [file.read_text().splitlines() for file in files]
    first, second, third = (f"Advised(message='{word}')" for word in ("first", "second", "third"))
    assert told == [[first, third], [first], [first, second, third]]


def test_a_frozen_one_is_never_waited_for_and_then_given_up(start: Start, tmp_path: Path) -> None:
    front = start(listen, str(tmp_path / "a"))
    front.send(Advised("there"))
    until(lambda: (tmp_path / "a").exists() and "there" in (tmp_path / "a").read_text(), "it did not start")
    os.kill(front._process.pid or 0, signal.SIGSTOP)
    longest, words = 0.0, Advised("word " * 100)
    for _ in range(2000):
        began = time.monotonic()
        front.send(words)
        longest = max(longest, time.monotonic() - began)
    assert longest < 0.5, "the servo takes an application for dead after a second"
    assert front.open
    os.kill(front._process.pid or 0, signal.SIGCONT)
    until(lambda: not front.messages() and (tmp_path / "a").read_text().count("\n") == 2001, "words were lost")
    os.kill(front._process.pid or 0, signal.SIGSTOP)
    for _ in range(_MOST_WAITING + 2000):
        front.send(words)
    assert not front.open


def test_one_that_talks_without_end_is_heard_a_little_at_a_time(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.front_ends.front_end._AT_ONCE", 5)
    front = start(babble)
    until(lambda: len(front.messages()) == 5, "it says too little")
    assert front.open


def test_who_joins_is_greeted_with_the_present_run() -> None:
    greetings: list[Any] = [None]
    fronts = FrontEnds(lambda: greetings[0])
    early, late = Person(), Person()
    fronts.add(early)
    greetings[0] = Preparing("a run")
    fronts.add(late)
    assert (early.told, late.told) == ([], [Preparing("a run")])


def test_one_whose_window_is_closed_leaves_alone() -> None:
    fronts, leaves, stays = FrontEnds(), Person(Stop(), Close(), "after that"), Person("still here")
    fronts.add(leaves)
    fronts.add(stays)
    assert fronts.messages() == [(leaves, Stop()), (leaves, Close()), (stays, "still here")]
    assert fronts.open == (stays,)
    leaves.dies = True
    fronts.tell("more")
    assert fronts.messages() == []
    assert fronts.lost() == [], "it has said goodbye"
    assert (leaves.told, stays.told) == ([], ["more"])
    fronts.close()
    assert leaves.closed and stays.closed


def test_a_window_whose_key_can_be_held_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.front_ends.several.wait", lambda connections, timeout: time.sleep(0.001))
    monkeypatch.setattr(FrontEnds, "connections", ())
    monitor, stage, fronts = Person(Shown(), holds_key=False), Person(), FrontEnds()
    fronts.add(monitor)
    assert not fronts.await_key(10.0, lambda: False), "nobody could hold it"
    fronts.add(stage)
    assert not fronts.await_key(0.05, lambda: False), "it has no window yet"
    assert not fronts.await_key(10.0, lambda: True)
    stage.says = [Stop(), Shown()]
    assert fronts.await_key(10.0, lambda: False)
    assert (monitor.told, stage.told[-1]) == ([], AskShown())
