"""What stands on the participant's screen: nothing is cut off, nothing lies over something else."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from apps.opengl.plane import Area
from tests.apps.experiment.screens.shows import INSTRUCTIONS, shows
from tests.apps.screen import WHY_NOT, Screen

pytestmark = [pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]


@pytest.fixture(scope="module")
def laid_out(screen: Screen) -> list[dict[str, Any]]:
    return list(screen.answer("tests.apps.experiment.screens.measure_scenes"))


def test_no_text_is_cut_off_and_none_lies_over_another(laid_out: list[dict[str, Any]]) -> None:
    assert len(laid_out) == 4 * (len(shows()) + 1)
    for entry in laid_out:
        window = Area(0, 0, *entry["size"])
        boxes = [Area(*box) for box in entry["boxes"]]
        assert all(window.holds(box) for box in boxes), entry
        for one, other in itertools.combinations(boxes, 2):
            apart_x = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            apart_y = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert min(apart_x, apart_y) < 3, entry  # pixels; boxes have air above and below the letters


def test_all_that_is_said_is_shown_and_in_the_dark_nothing(laid_out: list[dict[str, Any]]) -> None:
    by_name = {entry["show"]: entry for entry in laid_out}
    assert by_name["dark"]["words"] == []
    assert by_name["instructions"]["words"] == ["How it goes", INSTRUCTIONS, "2 / 4", "←", "back", "→", "go on"]
    assert by_name["response"]["words"] == ["Which one resisted more?", "1", "2", "1", "first", "2", "second"]
    assert "12.5" in by_name["number"]["words"]
    assert by_name["break"]["words"][2] != "0:00"


def test_texts_that_are_too_long_to_be_read_are_told_of(laid_out: list[dict[str, Any]]) -> None:
    assert {entry["show"] for entry in laid_out if entry["small"]} == {"too long"}
