"""Materials, shades, and borders of the plane as small arrays for the ground shader. No pyglet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apps.opengl.plane import Corners

if TYPE_CHECKING:
    from haptics.friction.laws import Law
    from haptics.scenes import Scene

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]

LOOKS = ("plain", "ice", "wood", "rubber", "metal", "glass")
"""Looks of materials, in the order of the shares in the shader; unknown looks are drawn as plain."""

CELL = 3
"""Size of a cell [pixel] in either direction; the graphics card interpolates between cells."""

REACH = 4.0
"""Largest distance to a border that the arrays represent [mm], inside and outside."""


@dataclass(frozen=True)
class Label:
    """A name on the plane, at a position [m]."""

    words: str
    place: tuple[float, float]


@dataclass(frozen=True)
class Ground:
    """The plane as numbers from 0 to 255, lowest row first.

    Attributes
    ----------
    looks : (rows, columns, 4) array
        Shares of ice, wood, rubber and metal.
    others : (rows, columns, 4) array
        Share of glass, shade (255 is dark), and the distances to the borders of regions and walls: 0 is `REACH` inside,
        255 is `REACH` outside.
    labels : tuple of Label
        Names of regions.
    walls : bool
        Whether there are walls.
    """

    looks: Bytes
    others: Bytes
    labels: tuple[Label, ...] = ()
    walls: bool = False


def ground_of(scene: Scene | None, corners: Corners, size: tuple[float, float]) -> Ground:
    """Return the plane between `corners` [m] for a drawing of `size` [pixel]; plain without a scene."""
    points = grid(corners, size if scene is not None else (0.0, 0.0))
    flat = points.reshape(-1, 2)
    if scene is None:
        return _numbers(points, _share_of("plain", flat), np.zeros(len(flat)), _far(flat), _far(flat))
    distances = [region.shape.distance(flat) for region in scene.regions]
    walls = [wall.shape.distance(flat) for wall in scene.walls]
    around = np.min(walls, axis=0) if walls else _far(flat)
    shares, shade = _shares(scene, flat, distances), _shade(scene, flat, distances)
    ground = _numbers(points, shares, shade, _visible_border(flat, distances), around)
    labels = tuple(_labels(scene, points, distances, around))
    return Ground(ground.looks, ground.others, labels, bool(walls))


def grid(corners: Corners, size: tuple[float, float]) -> Floats:
    """Return the positions of the cells of a plane between `corners` [m], drawn with `size` [pixel].

    Returns
    -------
    (rows, columns, 2) float array
        Centres of the cells [m], lowest row first.
    """
    (left, low), (right, high) = corners
    columns, rows = (max(round(length / CELL), 2) for length in size)
    x = left + (np.arange(columns) + 0.5) / columns * (right - left)
    y = low + (np.arange(rows) + 0.5) / rows * (high - low)
    return np.stack(np.meshgrid(x, y), axis=2)


def _shares(scene: Scene, flat: Floats, distances: Sequence[Floats]) -> Floats:
    """Return the share of each look at points. Looks blend at borders like the parameters of the law."""
    from haptics.scenes.scene import blend

    shares = _share_of(scene.look, flat)
    for region, distance in zip(scene.regions, distances, strict=True):
        weight = blend(distance, scene.border)[:, None]
        shares += weight * (_share_of(region.look, flat) - shares)
    return shares


def _shade(scene: Scene, flat: Floats, distances: Sequence[Floats]) -> Floats:
    """Return the darkness of points, (n,), from 0 to 1.

    It follows the friction where the look is plain or the region has an image or a texture, and is 0.5 elsewhere.
    """
    from haptics.scenes.scene import blend

    level = scene.numbers_at(flat)[:, 0]
    relative = (level - level.min()) / max(float(np.ptp(level)), 1e-9)
    shown = np.full(len(flat), float(scene.look == "plain"))
    for region, distance in zip(scene.regions, distances, strict=True):
        varies = region.look == "plain" or region.texture is not None or len(region.laws) > 1
        shown += blend(distance, scene.border) * (varies - shown)
    return np.asarray(0.5 + shown * (relative - 0.5))


def _share_of(look: str, flat: Floats) -> Floats:
    shares = np.zeros((len(flat), len(LOOKS)))
    shares[:, LOOKS.index(look) if look in LOOKS else 0] = 1.0
    return shares


def _visible_border(flat: Floats, distances: Sequence[Floats]) -> Floats:
    """Return the signed distance [m] of points from the nearest outline not covered by a later region."""
    nearest = _far(flat)
    for distance in distances:
        covered = distance < 0.0
        # Inside a region, only the outlines of this region and of later ones are visible.
        nearest = np.where(covered | (np.abs(distance) < np.abs(nearest)), distance, nearest)
    return nearest


def _far(flat: Floats) -> Floats:
    return np.full(len(flat), 1.0)


def _labels(scene: Scene, points: Floats, distances: Sequence[Floats], around: Floats) -> list[Label]:
    """Return the names of the regions, each at the position with the largest clearance."""
    flat = points.reshape(-1, 2)
    room = np.minimum(_to_the_edge(points).reshape(-1), around)
    found = []
    for number, region in enumerate(scene.regions):
        depth = np.minimum(room, -distances[number])
        for later in distances[number + 1 :]:
            depth = np.minimum(depth, later)
        if depth.max() > 0.0:
            x, y = _roomy(flat, depth)
            found.append(Label(f"{region.name}  {_levels(region.laws)} N", (x, y)))
    return found


def _roomy(flat: Floats, depth: Floats) -> tuple[float, float]:
    """Return the point nearest to the centroid of the visible region among the points of large clearance."""
    middle = flat[depth > 0.0].mean(axis=0)
    candidates = flat[depth >= 0.85 * depth.max()]
    x, y = candidates[np.argmin(np.hypot(*(candidates - middle).T))].tolist()
    return x, y


def _to_the_edge(points: Floats) -> Floats:
    """Return the distances of the grid points from the edges of the grid [m]."""
    low, high = points[0, 0], points[-1, -1]
    return np.asarray(np.minimum(points - low, high - points).min(axis=2))


def _levels(laws: Sequence[Law]) -> str:
    """Format the range of the break-away forces of a region."""
    forces = [law.breakaway_force for law in laws]
    low, high = min(forces), max(forces)
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _numbers(points: Floats, shares: Floats, level: Floats, border: Floats, wall: Floats) -> Ground:
    rows, columns, _ = points.shape
    away = [0.5 + 0.5e3 / REACH * distance for distance in (border, wall)]
    others = np.column_stack((shares[:, 5], level, *away))
    return Ground(_bytes(shares[:, 1:5]).reshape(rows, columns, 4), _bytes(others).reshape(rows, columns, 4))


def _bytes(shares: Floats) -> Bytes:
    return np.round(255 * np.clip(shares, 0.0, 1.0)).astype(np.uint8)
