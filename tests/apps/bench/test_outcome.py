from __future__ import annotations

import pytest

from apps.bench.outcome import table


def test_columns_line_up_words_to_the_left_and_numbers_to_the_right() -> None:
    lines = table([("model", "ns"), ("A", 31.72), ("karnopp", 2431.4), ("C", None)]).splitlines()
    assert lines == ["model      ns", "A        31.7", "karnopp  2431", "C           -"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.234, "1.23"), (0.00734, "0.007"), (0.0, "0.000"), (35.26, "35.3"), (12345.6, "12346"), (7, "7")],
)
def test_numbers_have_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert table([("x",), (value,)]).splitlines()[1].strip() == text
