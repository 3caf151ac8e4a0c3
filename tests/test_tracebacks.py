"""An error that comes up at an instruction without a line fails its test, and not the whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suites import words_of_pytest
from tests.tracebacks import give_lines

CONFTEST = "from tests.conftest import pytest_runtest_makereport"
TESTS = """
def fail(): raise ValueError("at no line")
NOWHERE = bytes([0xF8])  # one instruction without a line, in the code object's table of lines
fail.__code__ = fail.__code__.replace(co_linetable=NOWHERE * (len(fail.__code__.co_code) // 2))

def test_that_fails(): fail()

def test_that_fails_meanwhile():
    try: fail()
    except ValueError as error: raise KeyError("then") from error

def test_that_passes(): pass
"""


def test_it_fails_its_test_and_the_others_run(tmp_path: Path) -> None:
    words = words_of_pytest(tmp_path, CONFTEST, TESTS, "-q", "-p", "no:xdist")
    assert "2 failed, 1 passed" in words
    assert words.count("ValueError: at no line") >= 2
    assert "KeyError: 'then'" in words


def test_other_tracebacks_stay_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 / 0
    before = caught.value.__traceback__
    assert not give_lines(caught.value)
    assert caught.value.__traceback__ is before
