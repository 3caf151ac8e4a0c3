"""Small anti-aliased pictures as the covered share of each pixel: signs that do not depend on colour.

Anti-aliasing by OpenGL would take a processor core where OpenGL is rendered in software.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Cover = NDArray[np.float64]
"""Covered share of each pixel, 0 to 1; row 0 is the lowest."""


def _grid(width: int, height: int) -> tuple[Floats, Floats]:
    """Return the x and y coordinates of the centre of each pixel, relative to the centre of the picture."""
    x = np.arange(width) + 0.5 - 0.5 * width
    y = np.arange(height) + 0.5 - 0.5 * height
    across, up = np.meshgrid(x, y)
    return across, up


def _cover(distance: Floats, line: float) -> Cover:
    """Return the coverage for a signed distance to the border (negative inside).

    `line` is the line width [pixel]; 0 fills the shape.
    """
    if line:
        distance = np.abs(distance + 0.5 * line) - 0.5 * line
    return np.clip(0.5 - distance, 0.0, 1.0)


def disc(size: int, line: float = 0.0) -> Cover:
    """Return a circle that touches the edges of the picture; with `line` [pixel], only its outline."""
    x, y = _grid(size, size)
    return _cover(np.hypot(x, y) - 0.5 * size + 0.5, line)


def box(width: int, height: int, line: float = 0.0, corner: float = 0.0) -> Cover:
    """Return a rectangle with corners rounded by `corner` [pixel]; with `line` [pixel], only its outline."""
    x, y = _grid(width, height)
    over_x = np.abs(x) - 0.5 * width + 0.5 + corner
    over_y = np.abs(y) - 0.5 * height + 0.5 + corner
    outside = np.hypot(np.maximum(over_x, 0), np.maximum(over_y, 0))
    return _cover(outside + np.minimum(np.maximum(over_x, over_y), 0) - corner, line)


def triangle(size: int, line: float = 0.0) -> Cover:
    """Return a triangle with a horizontal base; with `line` [pixel], only its outline."""
    x, y = _grid(size, size)
    half = 0.5 * size - 0.5
    slope = np.hypot(2.0, 1.0)
    return _cover(np.maximum((2 * np.abs(x) + y - half) / slope, -half - y), line)


def _stroke(x: Floats, y: Floats, start: tuple[float, float], end: tuple[float, float]) -> Floats:
    """Return the distance to the line segment between two points."""
    along = np.array(end) - np.array(start)
    share = np.clip(((x - start[0]) * along[0] + (y - start[1]) * along[1]) / (along @ along), 0.0, 1.0)
    distance: Floats = np.hypot(x - start[0] - share * along[0], y - start[1] - share * along[1])
    return distance


def tick(size: int) -> Cover:
    """Return a tick mark, for a correct answer."""
    x, y = (2 / size * part for part in _grid(size, size))
    distance = np.minimum(_stroke(x, y, (-0.75, 0.0), (-0.25, -0.55)), _stroke(x, y, (-0.25, -0.55), (0.75, 0.6)))
    return np.clip(0.5 - 0.5 * size * (distance - 0.12), 0.0, 1.0)


def cross(size: int) -> Cover:
    """Return a cross, for a wrong answer."""
    x, y = (2 / size * part for part in _grid(size, size))
    distance = np.minimum(_stroke(x, y, (-0.6, -0.6), (0.6, 0.6)), _stroke(x, y, (-0.6, 0.6), (0.6, -0.6)))
    return np.clip(0.5 - 0.5 * size * (distance - 0.12), 0.0, 1.0)


def badge(number: int, size: int, line: float = 0.0) -> Cover:
    """Return the sign of an interval: a circle for the first, a square for the second, else a triangle."""
    if number == 1:
        return disc(size, line)
    return box(size, size, line, 0.06 * size) if number == 2 else triangle(size, line)
