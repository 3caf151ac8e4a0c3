"""Small pictures with smooth edges: they differ by shape, and have the area that they should have."""

from __future__ import annotations

import numpy as np
import pytest

from apps.opengl import pictures


def test_intervals_differ_by_shape_and_answers_too() -> None:
    size = 60
    shapes = [pictures.badge(number, size) for number in (1, 2, 3)] + [pictures.tick(size), pictures.cross(size)]
    for number, one in enumerate(shapes):
        for other in shapes[:number]:
            assert np.abs(one - other).mean() > 0.1
    assert shapes[0].sum() == pytest.approx(np.pi * (0.5 * size) ** 2, rel=0.04)
    assert shapes[2].sum() == pytest.approx(0.5 * size**2, rel=0.06)
    line = pictures.badge(1, size, 3.0)
    assert line.sum() == pytest.approx(3 * np.pi * (size - 4), rel=0.03)
