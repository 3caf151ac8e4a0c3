"""Materials, shades, and borders of the plane as small arrays for the ground shader. No pyglet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apps.opengl.plane import Corners

if TYPE_CHECKING:
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
    """Return the plane between `corners` [m] for a drawing of `size` [pixel]; plain without a scene.

    Looks blend at borders like the parameters of the law. The darkness follows the friction where the look is plain or
    the region has an image or a texture, and is 0.5 elsewhere.
    """
    points = grid(corners, size if scene is not None else (0.0, 0.0))
    flat = points.reshape(-1, 2)
    border = around = np.full(len(flat), 1.0)
    shares, shade = _share_of("plain" if scene is None else scene.look, flat), np.zeros(len(flat))
    labels: tuple[Label, ...] = ()
    if scene is not None:
        from haptics.scenes.scene import blend

        around = np.min([wall.shape.distance(flat) for wall in scene.walls], axis=0) if scene.walls else around
        level = scene.numbers_at(flat)[:, 0]
        shown = np.full(len(flat), float(scene.look == "plain"))
        distances = [region.shape.distance(flat) for region in scene.regions]
        for region, distance in zip(scene.regions, distances, strict=True):
            # The signed distance [m] from the nearest outline that is not covered by a later region. Inside a region,
            # only the outlines of this region and of later ones are visible.
            border = np.where((distance < 0.0) | (np.abs(distance) < np.abs(border)), distance, border)
            weight = blend(distance, scene.border)
            varies = region.look == "plain" or region.texture is not None or len(region.laws) > 1
            shares += weight[:, None] * (_share_of(region.look, flat) - shares)
            shown += weight * (varies - shown)
        shade = 0.5 + shown * ((level - level.min()) / max(float(np.ptp(level)), 1e-9) - 0.5)
        labels = tuple(_labels(scene, points, distances, around))
    away = [0.5 + 0.5e3 / REACH * distance for distance in (border, around)]
    pictures = (shares[:, 1:5], np.column_stack((shares[:, 5], shade, *away)))
    looks, others = (
        np.round(255 * np.clip(one, 0.0, 1.0)).astype(np.uint8).reshape(*points.shape[:2], 4) for one in pictures
    )
    return Ground(looks, others, labels, scene is not None and bool(scene.walls))


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


def _share_of(look: str, flat: Floats) -> Floats:
    shares = np.zeros((len(flat), len(LOOKS)))
    shares[:, LOOKS.index(look) if look in LOOKS else 0] = 1.0
    return shares


def _labels(scene: Scene, points: Floats, distances: Sequence[Floats], around: Floats) -> Iterator[Label]:
    """Yield the names of the regions with the range of their break-away forces.

    A name is placed where the clearance is large, near the centroid of the visible part of the region.
    """
    flat = points.reshape(-1, 2)
    low, high = points[0, 0], points[-1, -1]
    room = np.minimum(np.minimum(points - low, high - points).min(axis=2).reshape(-1), around)
    for number, region in enumerate(scene.regions):
        depth = np.minimum.reduce([room, -distances[number], *distances[number + 1 :]])
        if depth.max() > 0.0:
            middle = flat[depth > 0.0].mean(axis=0)
            candidates = flat[depth >= 0.85 * depth.max()]
            x, y = candidates[np.argmin(np.hypot(*(candidates - middle).T))].tolist()
            forces = [law.breakaway_force for law in region.laws]
            least, most = min(forces), max(forces)
            levels = f"{least:.3g}" if least == most else f"{least:.3g} to {most:.3g}"
            yield Label(f"{region.name}  {levels} N", (x, y))
