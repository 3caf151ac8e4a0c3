"""Scenes from tables, as in TOML files and recordings, with units in the keys.

::

    name = "two woods"
    border_m = 0.002
    law = { name = "coulomb", force_n = 4.0 }

    [[regions]]
    name = "smooth"
    look = "wood"
    circle = { center_m = [0.0, 0.0], radius_m = 0.02 }
    law = { force_n = 1.0 }

    [[walls]]
    half_plane = { point_m = [0.05, 0.0], normal = [-1.0, 0.0] }
    stiffness_n_per_m = 2000.0
    damping_ns_per_m = 10.0
    friction = 0.4

Parameters that a region's law omits are taken from the law of the scene. Every table results either in a scene that can
be rendered, or in a `SceneError` with the place of the error.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from haptics.elements.tables import CLOSED_FORM_SUFFIX, LAWS
from haptics.errors import ConfigurationError
from haptics.files import parse_toml, read_small, write_atomically
from haptics.friction.laws import ClosedForm, Law
from haptics.scenes.scene import Region, Scene, exact, title_of
from haptics.scenes.shapes import MAX_PIXELS, Circle, HalfPlane, ImageMap, Polygon, Shape, Texture, read_levels
from haptics.scenes.walls import Wall
from haptics.settings import build, unit_suffix, unknown_name

# Class of each shape, and its fields by key.
_SHAPES: dict[str, tuple[type[Shape], dict[str, str]]] = {
    "circle": (Circle, {"center_m": "center", "radius_m": "radius"}),
    "polygon": (Polygon, {"points_m": "points"}),
    "half_plane": (HalfPlane, {"point_m": "point", "normal": "normal"}),
}

# --- scenes to tables -------------------------------------------------------------------------------------------------


def keys_of(cls: Any) -> dict[str, str]:
    """Return the field names of a settings class, by key with unit."""
    return {
        f"{field.name}{unit_suffix(field.metadata.get('unit', ''))}": field.name for field in dataclasses.fields(cls)
    }


def scene_table(scene: Scene) -> dict[str, Any]:
    """Return a scene as a table of plain values, including images; inverse of `scene_from_table`."""
    table = {
        **({"name": scene.name} if scene.name else {}),
        "look": scene.look,
        "border_m": scene.border,
        "law": law_table(scene.law),
        "regions": [_region_table(region) for region in scene.regions],
    }
    if scene.walls:
        table["walls"] = [{**_shape_table(wall.shape), **_values(wall, without="shape")} for wall in scene.walls]
    return table


def law_table(law: Law) -> dict[str, Any]:
    """Return the table of a law, with units in its keys."""
    return {"name": title_of(law), **_values(exact(law))}


def _values(instance: Any, without: str = "") -> dict[str, Any]:
    return {key: getattr(instance, name) for key, name in keys_of(type(instance)).items() if name != without}


def _region_table(region: Region) -> dict[str, Any]:
    table = {"name": region.name, "look": region.look, **_shape_table(region.shape)}
    if isinstance(region.law, ImageMap):
        image = region.law
        rows, columns = image.levels.shape
        table["image"] = {
            "corner_m": list(image.corner),
            "size_m": list(image.size),
            "lower": law_table(image.lower),
            "upper": law_table(image.upper),
            "rows": rows,
            "columns": columns,
            "levels_base64": base64.b64encode(image.levels.tobytes()).decode("ascii"),
        }
    else:
        table["law"] = law_table(region.law)
    return table | ({"texture": _values(region.texture)} if region.texture is not None else {})


def _shape_table(shape: Shape) -> dict[str, Any]:
    name, keys = next((name, keys) for name, (cls, keys) in _SHAPES.items() if isinstance(shape, cls))
    return {name: {key: _plain(getattr(shape, field)) for key, field in keys.items()}}


def _plain(value: Any) -> Any:
    """Return a value with lists in place of tuples, as in a file."""
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


# --- tables to scenes -------------------------------------------------------------------------------------------------

Table = Mapping[str, Any]
Keys = tuple[str | int, ...]
ReadLevels = Callable[[str], Any]
_T = TypeVar("_T")

SCENE_KEYS = ("name", "look", "border_m", "law", "regions", "walls")
_LISTS = ("regions", "walls")  # keys of a scene that contain lists

_REGION_KEYS = ("name", "look", "law", "image", "texture", *_SHAPES)
_IMAGE_KEYS = ("file", "levels_base64", "rows", "columns", "corner_m", "size_m", "lower", "upper")


_MAX_TEXT_LENGTH = 600  # maximum length of an error message, independent of the content of the file


class SceneError(ConfigurationError):
    """Invalid entry in the table of a scene.

    Attributes
    ----------
    keys : tuple of str and int
        Path to the entry: names of tables and keys, and indices in lists, from 0.
    """

    def __init__(self, keys: Keys, words: str) -> None:
        super().__init__(words if len(words) <= _MAX_TEXT_LENGTH else f"{words[:_MAX_TEXT_LENGTH]} ...")
        self.keys = keys


# --- construction from tables ---------------------------------------------------------------------------------------


def scene_from_table(table: Table, read_levels: ReadLevels | None = None) -> Scene:
    """Return the scene of a table.

    Parameters
    ----------
    table : mapping
        Table from a file or a recording.
    read_levels : callable, optional
        Function that returns the grey levels of a named image file. Without it all images must be embedded.

    Raises
    ------
    SceneError
        With the place and the reason.
    """
    _only(table, SCENE_KEYS, (), "the scene")
    law = _law(_table(table, "law", ()), ("law",), None)
    regions = [_region(entry, keys, law, read_levels) for keys, entry in _entries(table, "regions")]
    walls = []
    for keys, entry in _entries(table, "walls"):
        numbers = {key: value for key, value in entry.items() if key not in _SHAPES}
        walls.append(_settings(Wall, numbers, keys, {"shape": _shape(entry, keys)}))
    values = {
        key: table[name] for name, key in (("name", "name"), ("look", "look"), ("border_m", "border")) if name in table
    }
    try:
        return Scene(law, tuple(regions), walls=tuple(walls), **values)
    except ConfigurationError as error:
        words = str(error).replace("scene.border ", "border_m ")
        for k, region in enumerate(regions):
            if words.startswith(f"region {region.name!r}:"):
                raise SceneError(("regions", k), words) from error
        named = next((key for key in ("border_m", "look", "name") if words.startswith((key, f"scene.{key}"))), "")
        raise SceneError((named,) if named in table else (), words) from error


def _entries(table: Table, name: str) -> Iterator[tuple[Keys, Table]]:
    """Yield the tables of a list of a scene with their keys."""
    found = table.get(name, [])
    if not isinstance(found, list):
        raise SceneError((name,), f"{name}: must be a list of tables, [[{name}]].")
    if len(found) > 1000:
        raise SceneError((name,), f"{name}: {len(found)} {name} are more than any scene has.")
    for k, entry in enumerate(found):
        if not isinstance(entry, Mapping):
            raise SceneError((name, k), f"{_said((name, k))}: must be a table, [[{name}]].")
        yield (name, k), entry


def _region(table: Table, keys: Keys, law: Law, read_levels: ReadLevels | None) -> Region:
    _only(table, _REGION_KEYS, keys, _said(keys))
    name = table.get("name", f"region {int(keys[1]) + 1}")
    shape = _shape(table, keys)
    texture = _settings(Texture, table["texture"], (*keys, "texture")) if "texture" in table else None
    if "image" in table and "law" in table:
        raise SceneError((*keys, "image"), f"{_said(keys)}: has both a law and an image; must have one of them.")
    if "image" in table:
        image, at = _table(table, "image", keys), (*keys, "image")
        _only(image, _IMAGE_KEYS, at, _said(at))
        lower, upper = (_law(_table(image, end, at), (*at, end), law) for end in ("lower", "upper"))
        corner, size = _given(image, "corner_m", at), _given(image, "size_m", at)
        levels = _built(at, lambda: _levels(image, at, read_levels))
        material: Law | ImageMap = _built(at, lambda: ImageMap(levels, lower, upper, corner, size))
    else:
        material = _law(_table(table, "law", keys), (*keys, "law"), law)
    return _built(keys, lambda: Region(name, shape, material, table.get("look", "plain"), texture))


def _shape(table: Table, keys: Keys) -> Shape:
    given = [name for name in _SHAPES if name in table]
    if len(given) != 1:
        raise SceneError(keys, f"{_said(keys)}: has {len(given)} shapes; must have one of {', '.join(_SHAPES)}.")
    where, (cls, fields) = (*keys, given[0]), _SHAPES[given[0]]
    entry = _table(table, given[0], keys)
    _only(entry, fields, where, _said(where))
    values = {field: _given(entry, key, where) for key, field in fields.items()}
    return _built(where, lambda: cls(**values))


def _law(table: Table, keys: Keys, background: Law | None) -> Law:
    """Return the law of a table; missing parameters are taken from the law of the background."""
    name = table.get("name", title_of(background) if background is not None else "")
    plain = str(name).removesuffix(CLOSED_FORM_SUFFIX)
    if not isinstance(name, str) or plain not in LAWS:
        allowed = [*LAWS, *(f"{law}{CLOSED_FORM_SUFFIX}" for law in LAWS)]
        raise SceneError(
            (*keys, "name") if "name" in table else keys, f"{_said(keys)}: {unknown_name('law', str(name), allowed)}"
        )
    same = background is not None and name == title_of(background)
    usual = _values(exact(background)) if background is not None and same else {}
    given = {key: value for key, value in table.items() if key != "name"}
    law = _settings(LAWS[plain], {**usual, **given}, keys)
    return law if plain == name else ClosedForm(law)


def _levels(table: Table, keys: Keys, read_levels: ReadLevels | None) -> Any:
    file = table.get("file")
    if file is not None:
        if read_levels is None or not isinstance(file, str) or not file:
            raise SceneError((*keys, "file"), f"{_said(keys)}.file = {file!r:.80}: must be the name of an image file.")
        return read_levels(file)
    rows, columns, text = (_given(table, name, keys) for name in ("rows", "columns", "levels_base64"))
    whole = all(type(count) is int and 1 <= count <= MAX_PIXELS for count in (rows, columns))
    if not whole or not isinstance(text, str) or len(text) > 2 * MAX_PIXELS:
        raise SceneError(keys, f"{_said(keys)}: rows, columns and levels_base64 are no image of {MAX_PIXELS} pixels.")
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise SceneError((*keys, "levels_base64"), f"{_said(keys)}.levels_base64: is no base64 ({error}).") from error
    if len(data) != rows * columns:
        words = f"{_said(keys)}.levels_base64: has {len(data)} grey levels, not {rows} times {columns}."
        raise SceneError((*keys, "levels_base64"), words)
    return np.frombuffer(data, np.uint8).reshape(rows, columns)


def _settings(cls: type[_T], table: Any, keys: Keys, given: Table | None = None) -> _T:
    """Build a settings class from a table whose keys have units; fields in `given` are not read from it."""
    where = _said(keys)
    if not isinstance(table, Mapping):
        raise SceneError(keys, f"{where}: must be a table.")
    names = {key: name for key, name in keys_of(cls).items() if name not in (given or {})}
    for key in table:
        if key not in names:
            raise SceneError(
                (*keys, key), str(unknown_name("key", f"{where}.{key}", [f"{where}.{each}" for each in names]))
            )
    try:
        return build(cls, {**(given or {}), **{names[key]: value for key, value in table.items()}}, where)
    except ConfigurationError as error:
        words = str(error)
        for key, name in names.items():
            for known in (f"{where}.{name} ", f"law.{name} "):
                if words.startswith(known):
                    words = f"{where}.{key} {words.removeprefix(known)}"
                    raise SceneError((*keys, key) if key in table else keys, words) from error
        raise SceneError(keys, words) from error


def _built(keys: Keys, make: Callable[[], _T]) -> _T:
    """Call `make` and convert a `ConfigurationError` to a `SceneError` at this place."""
    try:
        return make()
    except SceneError:
        raise
    except ConfigurationError as error:
        raise SceneError(keys, f"{_said(keys[:2])}: {error}" if keys else str(error)) from error


def _table(table: Table, name: str, keys: Keys) -> Table:
    found = _given(table, name, keys)
    if not isinstance(found, Mapping):
        raise SceneError((*keys, name), f"{_said((*keys, name))}: must be a table.")
    return found


def _given(table: Table, name: str, keys: Keys) -> Any:
    if name not in table:
        raise SceneError(keys, f"{_said((*keys, name))} is missing.")
    return table[name]


def _only(table: Table, allowed: Iterable[str], keys: Keys, label: str) -> None:
    for name in table:
        if name not in allowed:
            raise SceneError((*keys, name), f"{label}: {unknown_name('key', str(name)[:60], allowed)}")


def _said(keys: Keys) -> str:
    """Return a path of keys as text: ``region 2, circle.radius_m``."""
    if len(keys) > 1 and keys[0] in _LISTS:
        rest = ".".join(str(key) for key in keys[2:])
        return f"{str(keys[0])[:-1]} {int(keys[1]) + 1}" + (f", {rest}" if rest else "")
    return ".".join(str(key) for key in keys)


# --- files ------------------------------------------------------------------------------------------------------------
#
# Scenes in TOML files, and the scenes shipped with the program.
#
# A file may refer to images (``file = "bark.pgm"``, relative to the folder of the file). When a scene is written, its
# images are embedded. Errors give the file and the line.

SUFFIX = ".toml"
# Folders of the shipped scenes, in an installed package and in the source tree.
_INSTALLED = Path(__file__).parent / "shipped"
_SOURCES = Path(__file__).parents[2] / "examples" / "scenes"


def shipped_scenes() -> dict[str, Path]:
    """Return the shipped scenes, file by name."""
    folder = _INSTALLED if _INSTALLED.is_dir() else _SOURCES
    return {path.stem: path for path in sorted(folder.glob(f"*{SUFFIX}"))}


def find_scene(name: str | Path) -> Path:
    """Return the file of a scene, given its path or the name of a shipped scene.

    Raises
    ------
    ConfigurationError
        If it is neither.
    """
    shipped, text = shipped_scenes(), str(name)
    if text in shipped:
        return shipped[text]
    if text.endswith(SUFFIX) or "/" in text:
        return Path(text)
    raise ConfigurationError(
        f"{unknown_name('scene', text, shipped)} Give other files by their path, with the suffix {SUFFIX}."
    )


def read_scene(path: str | Path) -> Scene:
    """Return the scene in a TOML file, or a shipped scene by its name.

    Raises
    ------
    ConfigurationError
        With the file, the line and the invalid key.
    """
    file = find_scene(path)
    try:
        text = read_small(file).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: is no TOML (byte {error.start} is not UTF-8).") from error
    table = parse_toml(text, str(file))
    try:
        return scene_from_table(table, lambda name: read_levels(file.parent / name))
    except SceneError as error:
        line = line_of(text, error.keys)
        raise ConfigurationError(f"{file}{f', line {line}' if line else ''}: {error}") from error


def write_scene(scene: Scene, path: str | Path) -> None:
    """Write a scene to a TOML file atomically.

    Raises
    ------
    ConfigurationError
        If the file cannot be written.
    """
    table = scene_table(scene)
    lists = {name: table.pop(name, []) for name in _LISTS}
    parts = [f"\n[[{name}]]\n{_lines(one)}" for name, tables in lists.items() for one in tables]
    write_atomically(path, "".join([_lines(table), *parts]))


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{name} = {_toml(value)}\n" for name, value in table.items())


def _toml(value: Any) -> str:
    """Return a plain value in TOML syntax."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_toml(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    return str(value)


def line_of(text: str, keys: Keys) -> int:
    """Return the line of a key in the TOML text of a scene, counted from 1; 0 if it cannot be found.

    TOML parsers do not keep line numbers. The function searches for the table in its list, and in it for the innermost
    of the keys that appears in the text.
    """
    lines = text.splitlines()
    start, stop = 0, len(lines)
    heads = [k for k, line in enumerate(lines) if re.match(r"\s*\[\[", line)]
    listed = len(keys) > 1 and keys[0] in _LISTS
    if listed:
        own = [k for k in heads if re.match(rf"\s*\[\[\s*{keys[0]}\s*\]\]", lines[k])]
        number = int(keys[1])
        if number >= len(own):
            return 0
        start = own[number]
        stop = next((k for k in heads if k > start), len(lines))
    elif heads:
        stop = heads[0]
    place = start + 1 if listed else 0
    first = start
    for name in (key for key in keys[1 if listed else 0 :] if isinstance(key, str)):  # each after the previous one
        pattern = re.compile(rf"(^|[\s{{,.\[\"']){re.escape(name)}[\"']?\s*(=|\.|\])")
        found = next((k for k in range(first, stop) if pattern.search(lines[k])), None)
        if found is not None:
            first, place = found, found + 1
    return place
