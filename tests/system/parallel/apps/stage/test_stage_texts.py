"""What is written on the stage: nothing is cut off, nothing lies over something else, and it grows with the window."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from apps.opengl.plane import Area
from tests.apps.screen import WHY_NOT, Screen

pytestmark = [pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]


@pytest.fixture(scope="module")
def laid_out(screen: Screen) -> list[dict[str, Any]]:
    return list(screen.answer("tests.apps.stage.measure_texts"))


def test_no_text_is_cut_off_and_none_of_a_part_lies_over_another(laid_out: list[dict[str, Any]]) -> None:
    assert len(laid_out) == 12
    for entry in laid_out:
        window, panel = Area(0, 0, *entry["size"]), Area(*entry["panel"])
        for part, found in entry["boxes"].items():
            boxes = [Area(*box) for box in found]
            room = panel if part == "numbers" else window
            assert all(room.holds(box) for box in boxes), (entry["size"], entry["scene"], part, entry["words"][part])
            for one, other in itertools.combinations(boxes, 2):
                apart_x = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
                apart_y = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
                # Boxes have air above and below the letters.
                assert min(apart_x, apart_y) < 0.35 * min(one.height, other.height), (
                    entry["size"],
                    part,
                    entry["words"],
                )


def test_texts_grow_with_the_window(laid_out: list[dict[str, Any]]) -> None:
    heights = {
        tuple(entry["size"]): entry["boxes"]["numbers"][0][3] for entry in laid_out if entry["scene"] == "materials"
    }
    assert heights[2560, 1440] > 1.8 * heights[1280, 720]
    assert heights[1366, 768] >= heights[1280, 720]
