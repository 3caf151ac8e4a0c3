"""Depth of points in the walls of a scene (`docs/how_to/walls.md`).

In a circle or a half-plane, the depth is the distance to the outline. In a polygon, the edges between two convex
corners form a face. The depths of the faces are combined in the order of the corners, from the first convex one, by
``min(a, b) - w/4 h^2``, ``h = max(0, 1 - |a - b|/w)``, w = 2 mm.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Depth = tuple[Floats, Floats]
"""Depth, (n,) [m], and its gradient, (n, 2)."""

WIDTH = 2e-3
"""Difference of the depths of two faces below which they blend [m]."""

_OUTSIDE = -0.01
"""Depth assigned to points far outside a polygon [m]."""


def depth_in(table: Mapping[str, Any], points: Floats) -> Depth:
    """Return depth and gradient of `points`, (n, 2) [m], in the solid of a wall's `table`.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the table does not describe a solid.
    """
    if "half_plane" in table:
        normal = np.array(table["half_plane"]["normal"], float)
        normal = normal / np.hypot(*normal)
        depth = (np.array(table["half_plane"]["point_m"], float) - points) @ normal
        return depth, np.tile(-normal, (len(points), 1))
    if "circle" in table:
        return _disc(np.array(table["circle"]["center_m"], float), float(table["circle"]["radius_m"]), points)
    return _polygon(np.array(table["polygon"]["points_m"], float), points)


def on_the_surface(tables: Sequence[Mapping[str, Any]], points: Floats) -> Floats:
    """Project `points`, (n, 2) [m], onto the surface of the walls; points outside stay unchanged."""
    for table in tables:
        depth, gradient = depth_in(table, points)
        square = (gradient**2).sum(axis=1)
        inside = (depth > 0.0) & (square > 0.0)
        out = depth / np.where(square > 0.0, square, 1.0)
        points = np.where(inside[:, None], points - out[:, None] * gradient, points)
    return points


def _disc(center: Floats, radius: float, points: Floats) -> Depth:
    """Return depth and gradient in a disc with a rounded centre."""
    inwards = center - points
    distance = np.sqrt((inwards**2).sum(axis=1))
    core = min(WIDTH, radius / 2.0)
    middle = distance < core
    depth = np.where(middle, radius - (distance**2 / core + core) / 2.0, radius - distance)
    return depth, inwards / np.where(middle, core, np.maximum(distance, 1e-300))[:, None]


def _polygon(corners: Floats, points: Floats) -> Depth:
    """Return depth and gradient in a polygon."""
    x, y = corners[:, 0], corners[:, 1]
    if (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() < 0.0:
        corners = corners[::-1]
    way = np.roll(corners, -1, axis=0) - corners
    come = np.roll(way, 1, axis=0)
    outer = come[:, 0] * way[:, 1] - come[:, 1] * way[:, 0] > 0.0
    first = int(np.argmax(outer))
    corners, way, outer = np.roll(corners, -first, axis=0), np.roll(way, -first, axis=0), np.roll(outer, -first)
    distance, away = _edges(corners, way, points)
    inside = _inside(corners, points)
    nearest = distance.argmin(axis=1)
    rows = np.flatnonzero(~inside & (distance.min(axis=1) > 0.0))
    distance[rows, nearest[rows]] *= -1.0
    away[rows, nearest[rows]] *= -1.0
    starts = [*np.flatnonzero(outer).tolist(), len(corners)]
    faces = [_least(distance[:, a:b], away[:, a:b]) for a, b in itertools.pairwise(starts)]
    depth, gradient = faces[0]
    for face in faces[1:]:
        depth, gradient = _together((depth, gradient), face)
    box = (points < corners.min(axis=0) + _OUTSIDE) | (points > corners.max(axis=0) - _OUTSIDE)
    far = box.any(axis=1)
    return np.where(far, _OUTSIDE, depth), np.where(far[:, None], 0.0, gradient)


def _edges(corners: Floats, way: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Return distances to edges, (n, edges), and the directions away from them, (n, edges, 2)."""
    length = np.hypot(way[:, 0], way[:, 1])
    along = way / length[:, None]
    left = np.stack((-along[:, 1], along[:, 0]), axis=1)
    off = points[:, None, :] - corners[None]
    place = (off * along).sum(axis=2)
    side = (off * left).sum(axis=2)
    from_end = points[:, None, :] - np.roll(corners, -1, axis=0)[None]
    to_corner = np.where((place > length)[..., None], from_end, off)
    distance = np.hypot(to_corner[..., 0], to_corner[..., 1])
    beside = (place >= 0.0) & (place <= length)
    towards = np.where((distance > 0.0)[..., None], to_corner / np.maximum(distance, 1e-300)[..., None], left)
    straight = np.where((side >= 0.0)[..., None], left, -left)
    return np.where(beside, np.abs(side), distance), np.where(beside[..., None], straight, towards)


def _inside(corners: Floats, points: Floats) -> NDArray[np.bool_]:
    """Return which points are inside, by the winding number of the outline."""
    turns = np.zeros(len(points), int)
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        left = (b[0] - a[0]) * (points[:, 1] - a[1]) - (points[:, 0] - a[0]) * (b[1] - a[1]) > 0.0
        turns += (a[1] <= points[:, 1]) & (b[1] > points[:, 1]) & left
        turns -= (a[1] > points[:, 1]) & (b[1] <= points[:, 1]) & ~left
    return np.asarray(turns != 0)


def _least(distance: Floats, away: Floats) -> Depth:
    """Return the smallest of several distances, with its gradient."""
    k, rows = distance.argmin(axis=1), np.arange(len(distance))
    return distance[rows, k], away[rows, k]


def _together(one: Depth, other: Depth) -> Depth:
    """Blend the depths of two faces."""
    (a, slope_a), (b, slope_b) = one, other
    h = np.clip(1.0 - np.abs(a - b) / WIDTH, 0.0, None)
    share = np.where(b >= a, h / 2.0, 1.0 - h / 2.0)[:, None]
    return np.minimum(a, b) - WIDTH / 4.0 * h**2, (1.0 - share) * slope_a + share * slope_b
