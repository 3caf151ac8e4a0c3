"""Kernel that looks up the numbers of a law at a place of a scene.

`haptics.scenes.scene` contains the array version.

A scene is one block of memory, created by `haptics.scenes.scene`: a head (`HEAD`), its regions (`REGION`), followed by
corners, images and tiles of noise as float64. The kernel receives the address of the block, like the tables of motions
and hands, and is called by address itself, so that it is not compiled without a scene.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from haptics.friction.kernels import LAW_NUMBERS
from haptics.jit import element_at, kernel, record_at
from haptics.records import fields
from haptics.scenes.shapes import CELLS

# --- lookup of the numbers of a law -----------------------------------------------------------------------------------

CIRCLE, POLYGON, HALF_PLANE = range(3)
NO_PATTERN, GRATING, NOISE = range(3)

HEAD = np.dtype([*fields("<i8", "regions forces"), *fields("<f8", "band limit"), ("numbers", "<f8", (LAW_NUMBERS,))])
"""Head of a scene.

``regions`` is the number of regions, ``forces`` the number of leading numbers of the law that are forces, ``band`` the
width of the band along borders [m], ``limit`` the mobility limit of all mixtures, and ``numbers`` the numbers of the
background.
"""

REGION = np.dtype(
    [
        *fields("<i8", "shape corners corners_at"),
        *fields("<f8", "low high point normal", 2),
        ("radius", "<f8"),
        *fields("<f8", "lower upper", LAW_NUMBERS),
        *fields("<i8", "rows columns image_at"),
        *fields("<f8", "corner pitch", 2),
        *fields("<i8", "pattern tile_at"),
        ("amplitude", "<f8"),
        ("wave", "<f8", (2,)),
    ]
)
"""A region: shape, box beyond which it has no weight [m], numbers and texture.

``lower`` and ``upper`` differ for an image, where they belong to both ends of the scale. Fields that end with ``_at``
are offsets from the beginning of the scene in bytes.
"""

_HEAD_SIZE, _REGION_SIZE = HEAD.itemsize, REGION.itemsize
_LIMIT = LAW_NUMBERS - 1


@kernel
def _distance(region: Any, table: int, x: float, y: float) -> float:
    """Return the signed distance [m] of (x, y) from the outline of a region, negative inside."""
    dx, dy = x - region.point[0], y - region.point[1]
    if region.shape == CIRCLE:
        return math.sqrt(dx * dx + dy * dy) - float(region.radius)
    if region.shape == HALF_PLANE:
        return float(dx * region.normal[0] + dy * region.normal[1])
    corners, count = table + region.corners_at, region.corners
    nearest, inside = math.inf, False
    ax, ay = element_at(corners, 2 * count - 2), element_at(corners, 2 * count - 1)
    for k in range(count):
        bx, by = element_at(corners, 2 * k), element_at(corners, 2 * k + 1)
        ex, ey = bx - ax, by - ay
        along = min(max(((x - ax) * ex + (y - ay) * ey) / (ex * ex + ey * ey), 0.0), 1.0)
        dx, dy = x - ax - along * ex, y - ay - along * ey
        nearest = min(nearest, dx * dx + dy * dy)
        if (ay > y) != (by > y) and x < ax + (y - ay) * ex / ey:
            inside = not inside
        ax, ay = bx, by
    distance = math.sqrt(nearest)
    return -distance if inside else distance


@kernel
def _pattern(region: Any, table: int, x: float, y: float) -> float:
    """Return the pattern of a texture at (x, y), -1 to 1."""
    kx, ky = region.wave[0], region.wave[1]
    if region.pattern == GRATING:
        return math.sin(2.0 * math.pi * (kx * x + ky * y))
    u, v = kx * x + ky * y, kx * y - ky * x
    column, row = math.floor(u), math.floor(v)
    u, v = u - column, v - row
    u, v = u * u * (3.0 - 2.0 * u), v * v * (3.0 - 2.0 * v)
    j, i, tile = int(column) % CELLS, int(row) % CELLS, table + region.tile_at
    right, below = (j + 1) % CELLS, (i + 1) % CELLS
    a, b = element_at(tile, i * CELLS + j), element_at(tile, i * CELLS + right)
    c, d = element_at(tile, below * CELLS + j), element_at(tile, below * CELLS + right)
    low, high = a + u * (b - a), c + u * (d - c)
    return float(low + v * (high - low))


@kernel
def _mix(p: Any, region: Any, table: int, forces: int, weight: float, x: float, y: float) -> None:
    """Blend the numbers of a region into the numbers `p` with a `weight`.

    An image gives the mixing fraction of the numbers of white, bilinear between its pixels; a texture gives the factor
    on the forces, from a pattern between -1 and 1.
    """
    share = 0.0
    if region.rows != 0:
        rows, columns, image = region.rows, region.columns, table + region.image_at
        u = min(max((x - region.corner[0]) / region.pitch[0] - 0.5, 0.0), columns - 1.0)
        v = min(max(rows - 0.5 - (y - region.corner[1]) / region.pitch[1], 0.0), rows - 1.0)
        j, i = min(int(u), max(columns - 2, 0)), min(int(v), max(rows - 2, 0))
        right, below = min(j + 1, columns - 1), min(i + 1, rows - 1)
        u, v = u - j, v - i
        a, b = element_at(image, i * columns + j), element_at(image, i * columns + right)
        c, d = element_at(image, below * columns + j), element_at(image, below * columns + right)
        above, under = a + u * (b - a), c + u * (d - c)
        share = above + v * (under - above)
    factor = 1.0
    if region.pattern != NO_PATTERN:
        factor = 1.0 + region.amplitude * _pattern(region, table, x, y)
    for k in range(_LIMIT):
        number = region.lower[k] + share * (region.upper[k] - region.lower[k])
        if k < forces:
            number *= factor
        p[k] = number if weight >= 1.0 else p[k] + weight * (number - p[k])


@kernel
def look_up(s: Any, x: float, y: float) -> None:
    """Set the law in the record `s` to the numbers of its scene at (x, y) [m], and set the region.

    The background is used if a coordinate is NaN.
    """
    table = s.scene.table
    head = record_at(table, HEAD)
    p = s.law.numbers
    for i in range(LAW_NUMBERS):
        p[i] = head.numbers[i]
    found = 0
    for k in range(head.regions):
        region = record_at(table + _HEAD_SIZE + k * _REGION_SIZE, REGION)
        if not (region.low[0] <= x <= region.high[0] and region.low[1] <= y <= region.high[1]):
            continue
        distance = _distance(region, table, x, y)
        if distance < 0.0:
            found = k + 1
        t = min(max(0.5 - distance / head.band, 0.0), 1.0)
        if t > 0.0:
            _mix(p, region, table, head.forces, t * t * (3.0 - 2.0 * t), x, y)
    p[_LIMIT] = head.limit
    s.region = found


# --- geometry of walls ------------------------------------------------------------------------------------------------
#
# Kernels for the geometry of walls: depth of a point in a wall, with a continuous gradient.
#
# The *depth* :math:`d(x)` is the distance to the surface, positive inside; its gradient g points inwards. Where two
# faces are equally close, the distance has a kink, and the force of a wall would change its direction in one tick. At a
# convex corner the smaller of two distances is therefore smoothed:
#
# .. math:: \min(a, b) - \tfrac{w}{4} h^2, \qquad h = \max(0, 1 - |a - b| / w),
#
# with the width `ROUNDING`. The gradient is then continuous, with length 1 on a face and shorter in between. The force
# of a wall is the gradient of its energy everywhere, so that no path through a corner gains energy. A corner of 90
# degrees is rounded by a quarter of the width. In a wall that is thin enough to be pushed through, the force passes
# through zero. At a concave corner distances are smooth already: the nearest point is the corner.

ROUNDING = 2e-3
"""Width of the smoothing between two faces [m], measured in the difference of their distances."""

WALL_HALF_PLANE, WALL_CIRCLE, WALL_POLYGON = range(3)

EDGE = np.dtype([*fields("<f8", "start end along", 2), ("length", "<f8"), ("turns", "<i8")])
"""Edge of a polygon, with the solid on its left. ``turns`` is 1 if it begins at a convex corner."""

WALL = np.dtype(
    [
        ("kind", "<i8"),
        *fields("<f8", "place normal", 2),
        ("radius", "<f8"),
        *fields("<f8", "lower upper", 2),
        *fields("<i8", "edges count"),
        *fields("<f8", "stiffness damping friction depth"),
        ("inwards", "<f8", (2,)),
        *fields("<f8", "push drag"),
        ("touching", "<i8"),
        ("stretch", "<f8"),
    ]
)
"""A wall: shape, numbers and, from ``depth`` on, state. ``edges`` is the address of ``count`` edges."""

_SIZE = WALL.itemsize
_EDGE_SIZE = EDGE.itemsize
_FAR = 0.01  # distance outside the box of a polygon beyond which the exact distance is irrelevant [m]


@kernel
def wall_at(address: int, index: int) -> Any:
    """Return wall number `index` of the walls at `address`."""
    return record_at(address + index * _SIZE, WALL)


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
    least, nearest, inside = math.inf, 0, False
    for k in range(w.count):
        distance, _, _, crosses = _from_edge(record_at(w.edges + k * _EDGE_SIZE, EDGE), x, y)
        inside = inside != crosses
        if distance < least:
            least, nearest = distance, k
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
    if w.kind == WALL_HALF_PLANE:
        nx, ny = w.normal[0], w.normal[1]
        return (w.place[0] - x) * nx + (w.place[1] - y) * ny, -nx, -ny
    if w.kind == WALL_CIRCLE:
        dx, dy = w.place[0] - x, w.place[1] - y
        r = math.hypot(dx, dy)
        round_off = min(ROUNDING, 0.5 * w.radius)
        if r < round_off:
            return w.radius - 0.5 * (r * r / round_off + round_off), dx / round_off, dy / round_off
        return w.radius - r, dx / r, dy / r
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
