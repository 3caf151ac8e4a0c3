"""Questions asked in another Python: what it answers, and what happens if it does not."""

import os
import signal
import sys
import time
from typing import Any

import pytest

from apps.doctor.child import NoAnswer, ask

HERE = "tests.system.parallel.apps.doctor.test_child"


def echo(*arguments: Any) -> Any:
    sys.stdout.write("noise")
    return list(arguments)


def fail() -> None:
    raise ValueError("this is why")


def die() -> None:
    os.write(2, b"the first word\nand others\n")
    os.kill(os.getpid(), signal.SIGKILL)


def leave() -> None:
    os._exit(0)


def hang() -> None:
    time.sleep(60.0)


def test_an_answer_comes_back_whatever_else_is_printed() -> None:
    assert ask(f"{HERE}:echo", 1, "two", [3.5, None]) == [1, "two", [3.5, None]]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("fail", "ValueError: this is why"),
        ("die", "SIGKILL: the first word"),
        ("leave", "cannot be read"),
        ("nothing", "no attribute 'nothing'"),
    ],
)
def test_a_child_that_does_not_answer_says_why(function: str, reason: str) -> None:
    with pytest.raises(NoAnswer, match=reason):
        ask(f"{HERE}:{function}")


def test_a_child_that_hangs_is_stopped() -> None:
    waited: list[float] = []
    with pytest.raises(NoAnswer, match=r"no answer within 0\.3 s"):
        ask(f"{HERE}:hang", timeout=0.3, waiting=waited.append)
    assert waited == sorted(waited) and waited


def test_without_a_python_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(NoAnswer, match="/nowhere/python cannot be started"):
        ask(f"{HERE}:echo")
