"""Lines for people are no wider than the terminal, and nothing of them is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.shared.words import WIDEST, columns, wrapped


@given(st.lists(st.text("ab -:.", max_size=300), max_size=4), st.integers(20, 120), st.integers(0, 10))
def test_words_stay_and_lines_fit(lines: list[str], width: int, indent: int) -> None:
    text = "\n".join(lines)
    found = wrapped(text, indent, width)
    assert found.split() == text.split()
    longest = max((len(word) for word in text.split()), default=0)
    for line in found.splitlines():
        assert len(line) <= max(width, longest + max(indent, len(line) - len(line.lstrip())))


def test_what_follows_is_indented() -> None:
    assert wrapped("advice  one two three", 8, 14) == "advice  one\n        two\n        three"


@pytest.mark.parametrize(("terminal", "expected"), [("80", 80), ("300", WIDEST), ("5", 40)])
def test_the_width_is_that_of_the_terminal(terminal: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", terminal)
    assert columns() == expected
