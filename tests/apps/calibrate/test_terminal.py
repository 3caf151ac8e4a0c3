"""What a person at a terminal is told and asked, and what becomes of the answers."""

import os
from collections.abc import Iterator

import pytest

from apps.calibrate.reports.terminal import Answers, TerminalPerson
from calibration.joystick.person import GATES, MIDDLE
from haptics.errors import ConfigurationError, DeviceFault


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def person(pipe: tuple[int, int], typed: str, yes: bool = False) -> TerminalPerson:
    os.write(pipe[1], typed.encode())
    return TerminalPerson(yes, Answers(pipe[0]))


def look() -> tuple[int, int]:
    return 12, -34


def test_lines_come_one_by_one(pipe: tuple[int, int]) -> None:
    answers = Answers(pipe[0])
    assert answers.next(0.0) is None
    os.write(pipe[1], b"one\ntwo\nth")
    assert answers.next(0.0) == "one"
    assert answers.next(0.0) == "two"
    assert answers.next(0.0) is None
    os.write(pipe[1], b"ree\r\n")
    assert answers.next(0.0) == "three"


def test_a_place_is_asked_for_and_enter_goes_on(pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]) -> None:
    person(pipe, "\n").bring(GATES["square"][0], look)
    said = capsys.readouterr()
    assert "the far right corner" in said.err and "Enter" in said.err
    assert said.out == ""


def test_a_stick_that_fails_while_an_answer_is_awaited_is_noticed(pipe: tuple[int, int]) -> None:
    def broken() -> tuple[int, int]:
        raise DeviceFault("the stick was unplugged")

    with pytest.raises(DeviceFault, match="unplugged"):
        person(pipe, "").bring(MIDDLE, broken)


def test_whether_it_moved_so_is_asked_until_the_answer_is_one(
    pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert person(pipe, "perhaps\nY\n").saw((0.009, 0.0))
    assert "9 mm to the right? [y/n]" in capsys.readouterr().err
    assert not person(pipe, "no\n").saw((0.0, -0.004))


def test_with_yes_it_is_not_asked(pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]) -> None:
    assert person(pipe, "", yes=True).saw((0.0, -0.004))
    assert "4 mm towards you" in capsys.readouterr().err


def test_a_weight_is_asked_for_with_its_mass_and_taken_off(
    pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    one = person(pipe, "\n\n")
    one.hang(0.25, look)
    one.take_off(0.25, look)
    said = capsys.readouterr().err
    assert "0.25 kg" in said and "straight towards you" in said and "Take the weight off" in said


def test_when_nobody_can_answer_that_is_said(pipe: tuple[int, int]) -> None:
    one = person(pipe, "")
    os.close(pipe[1])
    with pytest.raises(ConfigurationError, match="run it in a terminal"):
        one.let_go(look)
