"""Scenes in TOML files, and the scenes shipped with the program.

A file may refer to images (``file = "bark.pgm"``, relative to the folder of the file). When a scene is written, its
images are embedded. Errors give the file and the line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from haptics.errors import ConfigurationError
from haptics.files import write_whole
from haptics.reading import parse_toml, read_small
from haptics.scenes.image_map import read_levels
from haptics.scenes.scene import Scene
from haptics.scenes.tables import LISTS, Keys, SceneError, scene_from_table
from haptics.scenes.writing import scene_table
from haptics.settings import unknown

SUFFIX = ".toml"
_INSTALLED = Path(__file__).parent / "shipped"
_SOURCES = Path(__file__).parents[2] / "examples" / "scenes"
"""Folders of the shipped scenes, in an installed package and in the source tree."""


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
        f"{unknown('scene', text, shipped)} A file of one's own is named with its ending, {SUFFIX}."
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
    write_whole(path, scene_toml(scene))


def scene_toml(scene: Scene) -> str:
    """Return a scene as TOML text."""
    table = scene_table(scene)
    lists = {name: table.pop(name, []) for name in LISTS}
    parts = [f"\n[[{name}]]\n{_lines(one)}" for name, tables in lists.items() for one in tables]
    return "".join([_lines(table), *parts])


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
    listed = len(keys) > 1 and keys[0] in LISTS
    if listed:
        own = [k for k in heads if re.match(rf"\s*\[\[\s*{keys[0]}\s*\]\]", lines[k])]
        number = int(keys[1])
        if number >= len(own):
            return 0
        start = own[number]
        stop = next((k for k in heads if k > start), len(lines))
    elif heads:
        stop = heads[0]
    names = [str(key) for key in keys[1 if listed else 0 :] if isinstance(key, str)]
    found = _line_of_name(lines[start:stop], names)
    if found is not None:
        return start + found + 1
    return start + 1 if listed else 0


def _line_of_name(lines: list[str], names: Iterable[str]) -> int | None:
    """Return the line of the last nested name that is found, searching each after the previous one."""
    place: int | None = None
    for name in names:
        pattern = re.compile(rf"(^|[\s{{,.\[\"']){re.escape(name)}[\"']?\s*(=|\.|\])")
        following = [k for k in range(place or 0, len(lines)) if pattern.search(lines[k])]
        if following:
            place = following[0]
    return place
