"""Choosing things by name."""

from __future__ import annotations

import pytest

from apps.catalogue import chosen, listed
from haptics.errors import ConfigurationError

NAMES = ("one", "two", "three")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ["one", "two", "three"]),
        (["all"], ["one", "two", "three"]),
        (["two", "all"], ["one", "two", "three"]),
        (["three", "one", "three"], ["three", "one"]),
    ],
)
def test_each_once_in_the_order_of_asking(names: list[str], expected: list[str]) -> None:
    assert chosen("thing", names, NAMES, "all") == expected


def test_an_unknown_name_is_answered_with_all_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown thing 'tow'. Did you mean 'two'.*one, three, two"):
        chosen("thing", ["one", "tow"], NAMES)
    with pytest.raises(ConfigurationError, match="unknown thing 'all'"):
        chosen("thing", ["all"], NAMES)


def test_a_list_has_two_straight_columns() -> None:
    assert listed({"a": "first", "long": "second"}) == "a     first\nlong  second"
