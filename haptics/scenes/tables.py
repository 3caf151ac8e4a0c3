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
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from haptics.elements.tables import CLOSED_FORM_SUFFIX, LAWS
from haptics.errors import ConfigurationError
from haptics.friction.closed_form import ClosedForm
from haptics.friction.law import Law
from haptics.scenes.family import title_of
from haptics.scenes.image_map import MOST_PIXELS, ImageMap
from haptics.scenes.scene import Region, Scene
from haptics.scenes.shapes import Circle, HalfPlane, Polygon, Shape
from haptics.scenes.texture import Texture
from haptics.scenes.walls import Wall
from haptics.scenes.writing import keys_of, law_values
from haptics.settings import build, unknown

Table = Mapping[str, Any]
Keys = tuple[str | int, ...]
ReadLevels = Callable[[str], Any]
_T = TypeVar("_T")

SCENE_KEYS = ("name", "look", "border_m", "law", "regions", "walls")
LISTS = ("regions", "walls")
"""Keys of a scene that contain lists."""

_REGION_KEYS = ("name", "look", "law", "image", "texture", "circle", "polygon", "half_plane")
_IMAGE_KEYS = ("file", "levels_base64", "rows", "columns", "corner_m", "size_m", "lower", "upper")


LONGEST_WORDS = 600
"""Maximum length of an error message, independent of the content of the file."""


class SceneError(ConfigurationError):
    """Invalid entry in the table of a scene.

    Attributes
    ----------
    keys : tuple of str and int
        Path to the entry: names of tables and keys, and indices in lists, from 0.
    """

    def __init__(self, keys: Keys, words: str) -> None:
        super().__init__(words if len(words) <= LONGEST_WORDS else f"{words[:LONGEST_WORDS]} ...")
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
    built = tuple(_region(one, k, law, read_levels) for k, one in enumerate(_list(table, "regions")))
    walls = tuple(_wall(one, k) for k, one in enumerate(_list(table, "walls")))
    values = {
        key: table[name] for name, key in (("name", "name"), ("look", "look"), ("border_m", "border")) if name in table
    }
    try:
        return Scene(law, built, walls=walls, **values)
    except ConfigurationError as error:
        raise _placed(error, table, built) from error


def _placed(error: ConfigurationError, table: Table, regions: tuple[Region, ...]) -> SceneError:
    """Return the error of a scene as a whole with the place that it refers to."""
    words = str(error).replace("scene.border ", "border_m ")
    for k, region in enumerate(regions):
        if words.startswith(f"region {region.name!r}:"):
            return SceneError(("regions", k), words)
    named = next((key for key in ("border_m", "look", "name") if words.startswith((key, f"scene.{key}"))), "")
    return SceneError((named,) if named in table else (), words)


def _list(table: Table, name: str) -> list[Any]:
    found = table.get(name, [])
    if not isinstance(found, list):
        raise SceneError((name,), f"{name}: must be a list of tables, [[{name}]].")
    if len(found) > 1000:
        raise SceneError((name,), f"{name}: {len(found)} {name} are more than any scene has.")
    return found


def _wall(table: Any, k: int) -> Wall:
    keys: Keys = ("walls", k)
    if not isinstance(table, Mapping):
        raise SceneError(keys, f"{_said(keys)}: must be a table, [[walls]].")
    numbers = {key: value for key, value in table.items() if key not in _SHAPES}
    return _settings(Wall, numbers, keys, {"shape": _shape(table, keys)})


def _region(table: Any, k: int, law: Law, read_levels: ReadLevels | None) -> Region:
    keys: Keys = ("regions", k)
    if not isinstance(table, Mapping):
        raise SceneError(keys, f"{_said(keys)}: must be a table, [[regions]].")
    _only(table, _REGION_KEYS, keys, _said(keys))
    name = table.get("name", f"region {k + 1}")
    shape = _shape(table, keys)
    texture = _settings(Texture, table["texture"], (*keys, "texture")) if "texture" in table else None
    if "image" in table and "law" in table:
        raise SceneError((*keys, "image"), f"{_said(keys)}: has both a law and an image; must have one of them.")
    if "image" in table:
        material: Law | ImageMap = _image(_table(table, "image", keys), (*keys, "image"), law, read_levels)
    else:
        material = _law(_table(table, "law", keys), (*keys, "law"), law)
    return _built(keys, lambda: Region(name, shape, material, table.get("look", "plain"), texture))


def _shape(table: Table, keys: Keys) -> Shape:
    given = [name for name in _SHAPES if name in table]
    if len(given) != 1:
        raise SceneError(keys, f"{_said(keys)}: has {len(given)} shapes; must have one of {', '.join(_SHAPES)}.")
    where = (*keys, given[0])
    return _built(where, lambda: _SHAPES[given[0]](_table(table, given[0], keys), where))


def _circle(table: Table, keys: Keys) -> Shape:
    _only(table, ("center_m", "radius_m"), keys, _said(keys))
    return Circle(_given(table, "center_m", keys), _given(table, "radius_m", keys))


def _polygon(table: Table, keys: Keys) -> Shape:
    _only(table, ("points_m",), keys, _said(keys))
    return Polygon(_given(table, "points_m", keys))


def _half_plane(table: Table, keys: Keys) -> Shape:
    _only(table, ("point_m", "normal"), keys, _said(keys))
    return HalfPlane(_given(table, "point_m", keys), _given(table, "normal", keys))


_SHAPES: dict[str, Callable[[Table, Keys], Shape]] = {
    "circle": _circle,
    "polygon": _polygon,
    "half_plane": _half_plane,
}


def _law(table: Table, keys: Keys, background: Law | None) -> Law:
    """Return the law of a table; missing parameters are taken from the law of the background."""
    name = table.get("name", title_of(background) if background is not None else "")
    exact = str(name).removesuffix(CLOSED_FORM_SUFFIX)
    if not isinstance(name, str) or exact not in LAWS:
        allowed = [*LAWS, *(f"{law}{CLOSED_FORM_SUFFIX}" for law in LAWS)]
        raise SceneError(
            (*keys, "name") if "name" in table else keys, f"{_said(keys)}: {unknown('law', str(name), allowed)}"
        )
    same = background is not None and name == title_of(background)
    usual = law_values(background) if background is not None and same else {}
    given = {key: value for key, value in table.items() if key != "name"}
    law = _settings(LAWS[exact], {**usual, **given}, keys)
    return law if exact == name else ClosedForm(law)


def _image(table: Table, keys: Keys, law: Law, read_levels: ReadLevels | None) -> ImageMap:
    _only(table, _IMAGE_KEYS, keys, _said(keys))
    lower = _law(_table(table, "lower", keys), (*keys, "lower"), law)
    upper = _law(_table(table, "upper", keys), (*keys, "upper"), law)
    corner, size = _given(table, "corner_m", keys), _given(table, "size_m", keys)
    levels = _built(keys, lambda: _levels(table, keys, read_levels))
    return _built(keys, lambda: ImageMap(levels, lower, upper, corner, size))


def _levels(table: Table, keys: Keys, read_levels: ReadLevels | None) -> Any:
    file = table.get("file")
    if file is not None:
        if read_levels is None or not isinstance(file, str) or not file:
            raise SceneError((*keys, "file"), f"{_said(keys)}.file = {file!r:.80}: must be the name of an image file.")
        return read_levels(file)
    rows, columns, text = (_given(table, name, keys) for name in ("rows", "columns", "levels_base64"))
    whole = all(type(count) is int and 1 <= count <= MOST_PIXELS for count in (rows, columns))
    if not whole or not isinstance(text, str) or len(text) > 2 * MOST_PIXELS:
        raise SceneError(keys, f"{_said(keys)}: rows, columns and levels_base64 are no image of {MOST_PIXELS} pixels.")
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
            raise SceneError((*keys, key), str(unknown("key", f"{where}.{key}", [f"{where}.{each}" for each in names])))
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


def _only(table: Table, allowed: Iterable[str], keys: Keys, what: str) -> None:
    for name in table:
        if name not in allowed:
            raise SceneError((*keys, name), f"{what}: {unknown('key', str(name)[:60], allowed)}")


def _said(keys: Keys) -> str:
    """Return a path of keys as text: ``region 2, circle.radius_m``."""
    if len(keys) > 1 and keys[0] in LISTS:
        rest = ".".join(str(key) for key in keys[2:])
        return f"{str(keys[0])[:-1]} {int(keys[1]) + 1}" + (f", {rest}" if rest else "")
    return ".".join(str(key) for key in keys)
