"""Long computations for the topic of tests/apps/compare/test_compare.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.compare.test_compare import (
    compared,
    recordings,  # noqa: F401
)


def test_the_same_run_twice_is_the_same(recordings: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    answer = compared(recordings["three"], recordings["again"], capsys)
    assert answer["ticks"] == 1000
    assert {row["first_tick"] for row in answer["differences"]} == {None}
    assert answer["settings"] == {}
