"""Scenes: planes of several materials, in which the numbers of the friction law depend on the place.

A *scene* has one family of laws. Its background and its regions differ only in the numbers of that law, and the numbers
are blended at the borders. Mass, stiffness and damping of the element are constant: only the surface on which its proxy
slides changes from place to place.

============  =========================================================================================
module        content
============  =========================================================================================
`shapes`      circle, polygon, half-plane: signed distances and outlines
`image_map`   numbers of a law from the grey levels of an image
`texture`     spatial modulation of the level: gratings and noise
`scene`       regions, the scene, its numbers at points
`walls`       solid parts, with friction proportional to the normal force; `wall_kernels` has their geometry
`condition`   condition (15) for all mixtures in a scene, and the width of its borders for an element
`family`      which laws can be mixed, and which of their numbers are forces
`tables`      scenes from tables in files and recordings; `writing` creates such tables
`files`       TOML files, and the scenes shipped with the program
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
