"""Scenes: a plane of several materials, and which numbers the friction law has at each place of it.

A *scene* has one family of laws. Its background and its regions differ in the numbers of that law only, and where two
of them meet the numbers go over into each other. The element keeps its mass, stiffness and damping: what changes from
place to place is the surface that its proxy slides on.

============  =========================================================================================
module        holds
============  =========================================================================================
`shapes`      circle, polygon, half-plane: signed distances and outlines
`image_map`   a law's numbers from the grey levels of an image
`texture`     a level that is modulated in space: gratings and noise
`scene`       regions, the scene, its numbers at points
`walls`       solid parts, with friction proportional to the normal force; `wall_kernels` has their geometry
`condition`   condition (15) for all that a scene can mix, and how wide its borders are for an element
`family`      which laws can be mixed, and which of their numbers are forces
`tables`      scenes from plain tables, as files and recordings have them; `writing` makes such tables
`files`       TOML files, and the scenes that are shipped
============  =========================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from haptics.lazy import public_names

if TYPE_CHECKING:
    from haptics.scenes.condition import fitted, require_solvable
    from haptics.scenes.files import find_scene, read_scene, shipped_scenes, write_scene
    from haptics.scenes.image_map import ImageMap, read_levels
    from haptics.scenes.scene import LOOKS, Region, Scene
    from haptics.scenes.shapes import Circle, HalfPlane, Polygon, Shape
    from haptics.scenes.tables import scene_from_table
    from haptics.scenes.texture import Texture
    from haptics.scenes.walls import Wall
    from haptics.scenes.writing import scene_table

_HOMES = {
    "condition": ("fitted", "require_solvable"),
    "files": ("find_scene", "read_scene", "shipped_scenes", "write_scene"),
    "image_map": ("ImageMap", "read_levels"),
    "scene": ("LOOKS", "Region", "Scene"),
    "shapes": ("Circle", "HalfPlane", "Polygon", "Shape"),
    "tables": ("scene_from_table",),
    "texture": ("Texture",),
    "walls": ("Wall",),
    "writing": ("scene_table",),
}

__all__ = [
    "LOOKS",
    "Circle",
    "HalfPlane",
    "ImageMap",
    "Polygon",
    "Region",
    "Scene",
    "Shape",
    "Texture",
    "Wall",
    "find_scene",
    "fitted",
    "read_levels",
    "read_scene",
    "require_solvable",
    "scene_from_table",
    "scene_table",
    "shipped_scenes",
    "write_scene",
]

__getattr__, __dir__ = public_names(__name__, _HOMES)
