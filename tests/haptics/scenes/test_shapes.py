"""Signed distances: what they must be, whatever the shape, and polygons that are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics.errors import ConfigurationError
from haptics.scenes import Circle, HalfPlane, Polygon, Shape

SHAPES: dict[str, Shape] = {
    "circle": Circle((0.01, -0.02), 0.03),
    "half-plane": HalfPlane((0.01, 0.0), (3.0, 4.0)),
    "square": Polygon(((-0.02, -0.02), (0.02, -0.02), (0.02, 0.02), (-0.02, 0.02))),
    "hook": Polygon(((0.0, 0.0), (0.04, 0.0), (0.04, 0.01), (0.01, 0.01), (0.01, 0.04), (0.0, 0.04))),
    "clockwise": Polygon(((0.0, 0.03), (0.03, 0.0), (0.0, -0.03), (-0.03, 0.0))),
}
BOX = ((-0.1, -0.1), (0.1, 0.1))
coordinates = st.floats(-0.08, 0.08)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@given(x=coordinates, y=coordinates, dx=coordinates, dy=coordinates)
def test_a_distance_changes_by_at_most_the_way_and_is_zero_on_the_outline(
    shape: Shape, x: float, y: float, dx: float, dy: float
) -> None:
    here, there = shape.distance([(x, y), (x + dx, y + dy)])
    assert abs(there - here) <= math.hypot(dx, dy) + 1e-12
    outline = shape.outline(BOX)
    edge = outline if not isinstance(shape, HalfPlane) else outline[np.abs(outline).max(axis=1) < 0.0999]
    assert np.allclose(shape.distance(edge), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("circle", (0.01, 0.0), (0.045, -0.02)),
        ("half-plane", (0.0, 0.0), (0.02, 0.01)),
        ("square", (0.0, 0.0), (0.021, 0.0)),
        ("hook", (0.005, 0.035), (0.02, 0.02)),
        ("clockwise", (0.01, 0.01), (0.02, 0.02)),
    ],
)
def test_a_distance_is_negative_inside(name: str, inside: tuple[float, float], outside: tuple[float, float]) -> None:
    found = SHAPES[name].distance([inside, outside])
    assert found[0] < 0.0 < found[1]


def test_distances_of_a_square_are_those_to_its_edges_and_corners() -> None:
    found = SHAPES["square"].distance([(0.0, 0.015), (0.023, 0.024), (0.0, -0.05), (0.02, 0.0)])
    assert found == pytest.approx([-0.005, 0.005, 0.03, 0.0], abs=1e-15)


def test_the_outline_of_a_half_plane_is_cut_off_at_the_box() -> None:
    outline = HalfPlane((0.0, 0.02), (0.0, 1.0)).outline(((-0.1, -0.1), (0.1, 0.1)))
    expected = [(-0.1, -0.1), (-0.1, 0.02), (0.1, -0.1), (0.1, 0.02)]
    assert np.allclose(sorted(map(tuple, outline)), expected)


BOW_TIE = ((0.0, 0.0), (0.02, 0.02), (0.02, 0.0), (0.0, 0.02))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Polygon(((0.0, 0.0), (1.0, 0.0))), "has 2 corners"),
        (lambda: Polygon(tuple((math.cos(k), math.sin(k)) for k in range(300))), "has 300 corners"),
        (lambda: Polygon(BOW_TIE), "meet"),
        (lambda: Polygon(((0.0, 0.0), (0.02, 0.0), (0.02, 0.0), (0.0, 0.02))), "meet"),
        (lambda: Polygon(((0.0, 0.0), (0.03, 0.0), (0.01, 0.0), (0.0, 0.02))), "meet"),
        (lambda: Polygon(((0.0, 0.0), (0.02, 0.0), (0.02, 0.02), (0.01, 0.0), (0.0, 0.02))), "meet"),
        (lambda: Polygon(((0.0, 0.0), (0.02, math.nan), (0.02, 0.02))), r"points\[1\]\[1\] = nan"),
        (lambda: Polygon(((0.0, 0.0), (0.02,), (0.02, 0.02))), r"points\[1\]"),  # type: ignore[arg-type]
        (lambda: Circle((0.0, 0.0), 0.0), "radius = 0"),
        (lambda: Circle((0.0, math.inf), 0.1), "center"),
        (lambda: Circle((0.0, 1e9), 0.1), "at most 100 m"),
        (lambda: HalfPlane((0.0, 0.0), (0.0, 0.0)), "must not be zero"),
        (lambda: Circle("00", 0.1), "center"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_shape_is_refused(make: object, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make()  # type: ignore[operator]
