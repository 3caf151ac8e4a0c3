"""What the first stage leaves out: slow tests, and most examples of those marked ``few``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import BY_THE_CLOCK, EACH_ALONE
from tests.processes import ROOT
from tests.suites import words_of_pytest

CONFTEST = "from tests.conftest import pytest_collection_modifyitems"
TESTS = """
import pytest

@pytest.mark.few(3)
@pytest.mark.parametrize("number", range(7))
def test_many(number): pass

class TestMore:
    @pytest.mark.few(1)
    @pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.slow), 2])
    def test_many(self, number): pass

@pytest.mark.few(5)
@pytest.mark.parametrize("number", range(2))
def test_not_many(number): pass

@pytest.mark.slow
def test_long(): pass
"""


def collected(folder: Path, marks: str) -> list[str]:
    """Return what is chosen by `marks` of those tests."""
    words = words_of_pytest(folder, CONFTEST, TESTS, "-q", "--collect-only", "-m", marks)
    return re.findall(r"^test_it.py::(\S+)$", words, flags=re.MULTILINE)


def test_few_examples_of_the_whole_range_are_left_in_the_first_stage(tmp_path: Path) -> None:
    assert collected(tmp_path, "not slow") == [
        *(f"test_many[{number}]" for number in (0, 3, 6)),
        "TestMore::test_many[0]",
        *(f"test_not_many[{number}]" for number in range(2)),
    ]


def test_the_second_stage_has_them_all(tmp_path: Path) -> None:
    assert len(collected(tmp_path, "not hardware")) == 7 + 3 + 2 + 1


@pytest.mark.parametrize("beginning", [*BY_THE_CLOCK, *EACH_ALONE])
def test_what_runs_by_the_clock_is_still_where_it_is_said_to_be(beginning: str) -> None:
    tests = (path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
    assert any(path.startswith(beginning) for path in tests)
