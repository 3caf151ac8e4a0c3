"""Conversion of a scene to one block of memory for the kernel (`haptics.scenes.kernels`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.scenes.kernels import CIRCLE, GRATING, HALF_PLANE, HEAD, NOISE, POLYGON, REGION
from haptics.scenes.scene import BAND, Region, Scene, forces_of, mobility_limit, numbers_of
from haptics.scenes.shapes import Circle, Floats, HalfPlane, ImageMap, Polygon


def scene_record(scene: Scene) -> NDArray[np.float64]:
    """Return the memory block of a scene for the kernel, (n,) 8-byte words.

    The caller must keep the array alive while its address is in use.
    """
    head: NDArray[Any] = np.zeros(1, HEAD)
    regions: NDArray[Any] = np.zeros(len(scene.regions), REGION)
    head["regions"], head["forces"] = len(regions), len(forces_of(scene.law))
    head["band"], head["limit"] = BAND * scene.border, mobility_limit(scene)
    head["numbers"] = numbers_of(scene.law)
    tables = _Tables(head.nbytes + regions.nbytes)
    for region, record in zip(scene.regions, regions, strict=True):
        margin = 0.5 * BAND * scene.border
        low, high = region.shape.bounds
        record["low"], record["high"] = np.array(low) - margin, np.array(high) + margin
        match region.shape:
            case Circle(center, radius):
                record["shape"], record["point"], record["radius"] = CIRCLE, center, radius
            case HalfPlane(point, normal):
                record["shape"], record["point"], record["normal"] = HALF_PLANE, point, normal
            case Polygon(points):
                record["shape"], record["corners"] = POLYGON, len(points)
                record["corners_at"] = tables.add(np.array(points))
        _write_numbers(region, record, tables, scene.border)
    return np.concatenate((head.view(np.float64), regions.view(np.float64), *tables.parts))


class _Tables:
    """Collector of the tables that follow the regions in the block."""

    def __init__(self, begin: int) -> None:
        self.parts: list[Floats] = []
        self._end = begin

    def add(self, values: Floats) -> int:
        """Add an array and return its offset from the beginning of the scene in bytes."""
        place = self._end
        self.parts.append(np.ascontiguousarray(values, dtype=np.float64).ravel())
        self._end += self.parts[-1].nbytes
        return place


def _write_numbers(region: Region, record: Any, tables: _Tables, border: float) -> None:
    record["lower"] = record["upper"] = numbers_of(region.laws[0])
    if isinstance(region.law, ImageMap):
        record["upper"] = numbers_of(region.law.upper)
        record["rows"], record["columns"] = region.law.levels.shape
        record["corner"], record["pitch"] = region.law.corner, region.law.pitch
        record["image_at"] = tables.add(region.law.smoothed(border))
    if region.texture is not None:
        noise = region.texture.pattern == "noise"
        record["pattern"] = NOISE if noise else GRATING
        record["amplitude"], record["wave"] = region.texture.amplitude, region.texture.wave
        record["tile_at"] = tables.add(region.texture.tile) if noise else 0
