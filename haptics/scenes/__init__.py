"""Scenes: planes of several materials, in which the numbers of the friction law depend on the place.

A *scene* has one family of laws. Its background and its regions differ only in the numbers of that law, and the numbers
are blended at the borders. Mass, stiffness and damping of the element are constant: only the surface on which its proxy
slides changes from place to place.

============  =========================================================================================
module        content
============  =========================================================================================
`shapes`      circle, polygon, half-plane: signed distances and outlines; image maps and textures
`scene`       regions, the scene, its numbers at points; which laws can be mixed; condition (15) for all
              mixtures; the memory block of a scene for the kernels
`walls`       solid parts, with friction proportional to the normal force
`kernels`     lookup of the numbers at a point, and geometry of walls
`tables`      scenes as tables in files and recordings, and the scenes shipped with the program
============  =========================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from haptics.lazy import public_names

if TYPE_CHECKING:
    from haptics.scenes.scene import LOOKS, Region, Scene, fitted, require_solvable
    from haptics.scenes.shapes import Circle, HalfPlane, ImageMap, Polygon, Shape, Texture, read_levels
    from haptics.scenes.tables import find_scene, read_scene, scene_from_table, scene_table, shipped_scenes, write_scene
    from haptics.scenes.walls import Wall

_HOMES = {
    "scene": ("LOOKS", "Region", "Scene", "fitted", "require_solvable"),
    "shapes": ("Circle", "HalfPlane", "ImageMap", "Polygon", "Shape", "Texture", "read_levels"),
    "tables": ("find_scene", "read_scene", "scene_from_table", "scene_table", "shipped_scenes", "write_scene"),
    "walls": ("Wall",),
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
