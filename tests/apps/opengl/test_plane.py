"""A workspace on a window: places go to the window and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.opengl.plane import Area, Plane

SIZES = st.tuples(st.integers(640, 4000), st.integers(480, 2400))


@given(SIZES, st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0, 1), st.floats(0, 1))
def test_places_go_to_the_window_and_back(
    size: tuple[int, int], width: float, height: float, u: float, v: float
) -> None:
    workspace = ((-0.3 * width, -0.6 * height), (0.7 * width, 0.4 * height))
    area = Area(11.0, 7.0, *size)
    plane = Plane(area, workspace)
    place = workspace[0][0] + u * width, workspace[0][1] + v * height
    pixel = plane.to_window(*place)
    assert plane.to_plane(*pixel) == pytest.approx(place, abs=1e-9)
    assert area.holds(plane.outline)
    outside = plane.to_plane(pixel[0] + 1e5, pixel[1] - 1e5)
    assert outside == pytest.approx((workspace[1][0], workspace[0][1]))
