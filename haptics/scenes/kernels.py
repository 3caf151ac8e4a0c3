"""Kernel that looks up the numbers of a law at a place of a scene.

`haptics.scenes.scene` contains the array version.

A scene is one block of memory, created by `haptics.scenes.record`: a head (`HEAD`), its regions (`REGION`), followed by
corners, images and tiles of noise as float64. The kernel receives the address of the block, like the tables of motions
and hands, and is called by address itself, so that it is not compiled without a scene.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from haptics.friction.sliding_kernels import LAW_NUMBERS
from haptics.jit import inlined_kernel, kernel
from haptics.parts import float_at, record_at
from haptics.scenes.texture import CELLS

CIRCLE, POLYGON, HALF_PLANE = range(3)
NO_PATTERN, GRATING, NOISE = range(3)

HEAD = np.dtype(
    [
        ("regions", "<i8"),
        ("forces", "<i8"),
        ("band", "<f8"),
        ("limit", "<f8"),
        ("numbers", "<f8", (LAW_NUMBERS,)),
    ]
)
"""Head of a scene.

``regions`` is the number of regions, ``forces`` the number of leading numbers of the law that are forces, ``band`` the
width of the band along borders [m], ``limit`` the mobility limit of all mixtures, and ``numbers`` the numbers of the
background.
"""

REGION = np.dtype(
    [
        ("shape", "<i8"),
        ("corners", "<i8"),
        ("corners_at", "<i8"),
        ("low", "<f8", (2,)),
        ("high", "<f8", (2,)),
        ("point", "<f8", (2,)),
        ("normal", "<f8", (2,)),
        ("radius", "<f8"),
        ("lower", "<f8", (LAW_NUMBERS,)),
        ("upper", "<f8", (LAW_NUMBERS,)),
        ("rows", "<i8"),
        ("columns", "<i8"),
        ("image_at", "<i8"),
        ("corner", "<f8", (2,)),
        ("pitch", "<f8", (2,)),
        ("pattern", "<i8"),
        ("tile_at", "<i8"),
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


@inlined_kernel
def _number(place: int, index: int) -> float:
    """Return element `index` of the float64 array at address `place`."""
    return float(float_at(place + 8 * index))


@kernel
def _polygon_distance(corners: int, count: int, x: float, y: float) -> float:
    """Return the signed distance [m] of (x, y) from a polygon with `count` corners."""
    nearest, inside = math.inf, False
    ax, ay = _number(corners, 2 * count - 2), _number(corners, 2 * count - 1)
    for k in range(count):
        bx, by = _number(corners, 2 * k), _number(corners, 2 * k + 1)
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
def _distance(region: Any, table: int, x: float, y: float) -> float:
    """Return the signed distance [m] of (x, y) from the outline of a region, negative inside."""
    dx, dy = x - region.point[0], y - region.point[1]
    if region.shape == CIRCLE:
        return math.sqrt(dx * dx + dy * dy) - float(region.radius)
    if region.shape == HALF_PLANE:
        return float(dx * region.normal[0] + dy * region.normal[1])
    return float(_polygon_distance(table + region.corners_at, region.corners, x, y))


@kernel
def _image_share(region: Any, table: int, x: float, y: float) -> float:
    """Return the mixing fraction of the numbers of white at (x, y), 0 to 1; bilinear between pixels."""
    rows, columns, image = region.rows, region.columns, table + region.image_at
    u = min(max((x - region.corner[0]) / region.pitch[0] - 0.5, 0.0), columns - 1.0)
    v = min(max(rows - 0.5 - (y - region.corner[1]) / region.pitch[1], 0.0), rows - 1.0)
    j, i = min(int(u), max(columns - 2, 0)), min(int(v), max(rows - 2, 0))
    right, below = min(j + 1, columns - 1), min(i + 1, rows - 1)
    u, v = u - j, v - i
    a, b = _number(image, i * columns + j), _number(image, i * columns + right)
    c, d = _number(image, below * columns + j), _number(image, below * columns + right)
    above, under = a + u * (b - a), c + u * (d - c)
    return float(above + v * (under - above))


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
    a, b = _number(tile, i * CELLS + j), _number(tile, i * CELLS + right)
    c, d = _number(tile, below * CELLS + j), _number(tile, below * CELLS + right)
    low, high = a + u * (b - a), c + u * (d - c)
    return float(low + v * (high - low))


@kernel
def _mix(p: Any, region: Any, table: int, forces: int, weight: float, x: float, y: float) -> None:
    """Blend the numbers of a region into the numbers `p` with a `weight`."""
    share = _image_share(region, table, x, y) if region.rows != 0 else 0.0
    factor = 1.0 + region.amplitude * _pattern(region, table, x, y) if region.pattern != NO_PATTERN else 1.0
    for i in range(_LIMIT):
        number = region.lower[i] + share * (region.upper[i] - region.lower[i])
        if i < forces:
            number *= factor
        p[i] = number if weight >= 1.0 else p[i] + weight * (number - p[i])


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
