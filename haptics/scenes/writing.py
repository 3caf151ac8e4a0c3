"""Conversion of scenes to plain tables with units in the keys; `haptics.scenes.tables` is the inverse."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

from haptics.errors import ConfigurationError
from haptics.friction.law import Law
from haptics.scenes.family import exact, title_of
from haptics.scenes.image_map import ImageMap
from haptics.scenes.scene import Region, Scene
from haptics.scenes.shapes import Circle, HalfPlane, Polygon, Shape
from haptics.scenes.walls import Wall
from haptics.settings import unit_suffix


def keys_of(cls: Any) -> dict[str, str]:
    """Return the field names of a settings class, by key with unit."""
    return {
        f"{field.name}{unit_suffix(field.metadata.get('unit', ''))}": field.name for field in dataclasses.fields(cls)
    }


def scene_table(scene: Scene) -> dict[str, Any]:
    """Return a scene as a table of plain values, including images; inverse of `scene_from_table`."""
    return {
        **({"name": scene.name} if scene.name else {}),
        "look": scene.look,
        "border_m": scene.border,
        "law": law_table(scene.law),
        "regions": [_region_table(region) for region in scene.regions],
        **({"walls": [_wall_table(wall) for wall in scene.walls]} if scene.walls else {}),
    }


def law_table(law: Law) -> dict[str, Any]:
    """Return the table of a law, with units in its keys."""
    return {"name": title_of(law), **law_values(law)}


def law_values(law: Law) -> dict[str, Any]:
    """Return the numbers of a law, with units in the keys."""
    return _values(exact(law))


def _values(instance: Any) -> dict[str, Any]:
    return {key: getattr(instance, name) for key, name in keys_of(type(instance)).items()}


def _region_table(region: Region) -> dict[str, Any]:
    return {
        "name": region.name,
        "look": region.look,
        **_shape_table(region.shape),
        **({"image": _image_table(region.law)} if isinstance(region.law, ImageMap) else {"law": law_table(region.law)}),
        **({"texture": _values(region.texture)} if region.texture is not None else {}),
    }


def _wall_table(wall: Wall) -> dict[str, Any]:
    numbers = {key: value for key, value in _values(wall).items() if key != "shape"}
    return {**_shape_table(wall.shape), **numbers}


def _shape_table(shape: Shape) -> dict[str, Any]:
    match shape:
        case Circle(center, radius):
            return {"circle": {"center_m": list(center), "radius_m": radius}}
        case Polygon(points):
            return {"polygon": {"points_m": [list(one) for one in points]}}
        case HalfPlane(point, normal):
            return {"half_plane": {"point_m": list(point), "normal": list(normal)}}
    raise ConfigurationError(
        f"{type(shape).__name__}: is no shape that a file can have; use a Circle, a Polygon or a HalfPlane."
    )


def _image_table(image: ImageMap) -> dict[str, Any]:
    rows, columns = image.levels.shape
    return {
        "corner_m": list(image.corner),
        "size_m": list(image.size),
        "lower": law_table(image.lower),
        "upper": law_table(image.upper),
        "rows": rows,
        "columns": columns,
        "levels_base64": base64.b64encode(image.levels.tobytes()).decode("ascii"),
    }
