from haptics.scenes.scene import LOOKS, Region, Scene, fitted, require_solvable
from haptics.scenes.shapes import Circle, HalfPlane, ImageMap, Polygon, Shape, Texture, read_levels
from haptics.scenes.tables import find_scene, read_scene, scene_from_table, scene_table, shipped_scenes, write_scene
from haptics.scenes.walls import Wall

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
