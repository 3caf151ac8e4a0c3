r"""Kernels for the geometry of walls: depth of a point in a wall, with a continuous gradient.

The *depth* :math:`d(x)` is the distance to the surface, positive inside; its gradient g points inwards. Where two faces
are equally close, the distance has a kink, and the force of a wall would change its direction in one tick. At a convex
corner the smaller of two distances is therefore smoothed:

.. math:: \min(a, b) - \tfrac{w}{4} h^2, \qquad h = \max(0, 1 - |a - b| / w),

with the width `ROUNDING`. The gradient is then continuous, with length 1 on a face and shorter in between. The force of
a wall is the gradient of its energy everywhere, so that no path through a corner gains energy. A corner of 90 degrees
is rounded by a quarter of the width. In a wall that is thin enough to be pushed through, the force passes through zero.
At a concave corner distances are smooth already: the nearest point is the corner.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from haptics.jit import kernel
from haptics.parts import record_at

ROUNDING = 2e-3
"""Width of the smoothing between two faces [m], measured in the difference of their distances."""

HALF_PLANE, CIRCLE, POLYGON = range(3)

EDGE = np.dtype(
    [
        ("start", "<f8", (2,)),
        ("end", "<f8", (2,)),
        ("along", "<f8", (2,)),
        ("length", "<f8"),
        ("turns", "<i8"),
    ]
)
"""Edge of a polygon, with the solid on its left. ``turns`` is 1 if it begins at a convex corner."""

WALL = np.dtype(
    [
        ("kind", "<i8"),
        ("place", "<f8", (2,)),
        ("normal", "<f8", (2,)),
        ("radius", "<f8"),
        ("lower", "<f8", (2,)),
        ("upper", "<f8", (2,)),
        ("edges", "<i8"),
        ("count", "<i8"),
        ("stiffness", "<f8"),
        ("damping", "<f8"),
        ("friction", "<f8"),
        ("depth", "<f8"),
        ("inwards", "<f8", (2,)),
        ("push", "<f8"),
        ("drag", "<f8"),
        ("touching", "<i8"),
        ("stretch", "<f8"),
    ]
)
"""A wall: shape, numbers and, from ``depth`` on, state. ``edges`` is the address of ``count`` edges."""

_SIZE = WALL.itemsize
_EDGE_SIZE = EDGE.itemsize
_FAR = 0.01
"""Distance outside the box of a polygon beyond which the exact distance is irrelevant [m]."""


@kernel
def wall_at(address: int, index: int) -> Any:
    """Return wall number `index` of the walls at `address`."""
    return record_at(address + index * _SIZE, WALL)


@kernel
def _in_circle(w: Any, x: float, y: float) -> tuple[float, float, float]:
    """Return depth and gradient in a disc.

    Near the centre, where the direction to the surface is ambiguous, the cone is rounded.
    """
    dx, dy = w.place[0] - x, w.place[1] - y
    r = math.hypot(dx, dy)
    round_off = min(ROUNDING, 0.5 * w.radius)
    if r < round_off:
        return w.radius - 0.5 * (r * r / round_off + round_off), dx / round_off, dy / round_off
    return w.radius - r, dx / r, dy / r


@kernel
def _from_edge(e: Any, x: float, y: float) -> tuple[float, float, float, bool]:
    """Return the distance to an edge, its gradient, and True if a ray to the right crosses it."""
    ex, ey = e.along[0], e.along[1]
    rx, ry = x - e.start[0], y - e.start[1]
    s = rx * ex + ry * ey
    side = ex * ry - ey * rx  # positive on the left, where the solid is
    crosses = (e.start[1] > y) != (e.end[1] > y) and (side < 0.0) == (ey < 0.0)
    if 0.0 <= s <= e.length:
        return (side, -ey, ex, crosses) if side >= 0.0 else (-side, ey, -ex, crosses)
    if s > e.length:
        rx, ry = x - e.end[0], y - e.end[1]
    d = math.hypot(rx, ry)
    return (d, rx / d, ry / d, crosses) if d > 0.0 else (0.0, -ey, ex, crosses)


@kernel
def _nearest(w: Any, x: float, y: float) -> tuple[int, bool]:
    """Return the index of the nearest edge of a polygon, and True if the point is inside."""
    least, nearest, inside = math.inf, 0, False
    for k in range(w.count):
        d, _, _, crosses = _from_edge(record_at(w.edges + k * _EDGE_SIZE, EDGE), x, y)
        inside = inside != crosses
        if d < least:
            least, nearest = d, k
    return nearest, inside


@kernel
def _smaller(a: Any, b: Any) -> tuple[float, float, float]:
    """Return the smoothed minimum of two distances, with its gradient."""
    apart = b[0] - a[0]
    h = max(0.0, 1.0 - abs(apart) / ROUNDING)
    share = 0.5 * h if apart >= 0.0 else 1.0 - 0.5 * h  # weight of b
    least = min(a[0], b[0]) - 0.25 * ROUNDING * h * h
    return least, a[1] + share * (b[1] - a[1]), a[2] + share * (b[2] - a[2])


@kernel
def _in_polygon(w: Any, x: float, y: float) -> tuple[float, float, float]:
    """Return depth and gradient in a polygon, with smoothing between faces.

    A face consists of the edges between two convex corners.
    """
    if x < w.lower[0] - _FAR or x > w.upper[0] + _FAR or y < w.lower[1] - _FAR or y > w.upper[1] + _FAR:
        return -_FAR, 0.0, 0.0
    nearest, inside = _nearest(w, x, y)
    found, face = (math.inf, 0.0, 0.0), (math.inf, 0.0, 0.0)
    for k in range(w.count):
        e = record_at(w.edges + k * _EDGE_SIZE, EDGE)
        d, gx, gy, _ = _from_edge(e, x, y)
        if k == nearest and not inside and d > 0.0:
            d, gx, gy = -d, -gx, -gy
        if e.turns != 0 and k > 0:
            found = _smaller(found, face) if found[0] < math.inf else face
            face = (d, gx, gy)
        elif d < face[0]:
            face = (d, gx, gy)
    return _smaller(found, face) if found[0] < math.inf else face


@kernel
def depth_in(w: Any, x: float, y: float) -> tuple[float, float, float]:
    """Return the depth of (x, y) in the wall `w` [m], negative outside, and its gradient."""
    if w.kind == HALF_PLANE:
        nx, ny = w.normal[0], w.normal[1]
        return (w.place[0] - x) * nx + (w.place[1] - y) * ny, -nx, -ny
    if w.kind == CIRCLE:
        return _in_circle(w, x, y)
    return _in_polygon(w, x, y)


@kernel
def depths(walls: int, points: Any, result: Any) -> None:
    """Fill `result`, (n, 3), with depth and gradient of `points`, (n, 2), in the wall at an address."""
    for k in range(len(points)):
        result[k, 0], result[k, 1], result[k, 2] = depth_in(wall_at(walls, 0), points[k, 0], points[k, 1])


@kernel
def out_of_walls(walls: int, count: int, x: float, y: float) -> tuple[float, float]:
    """Return (x, y) projected to the surface of the walls, or unchanged outside of them."""
    for k in range(count):
        depth, gx, gy = depth_in(wall_at(walls, k), x, y)
        square = gx * gx + gy * gy
        if depth > 0.0 and square > 0.0:
            x, y = x - depth * gx / square, y - depth * gy / square
    return x, y
