"""Tables of numbers and words as TOML, and files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from haptics.errors import ConfigurationError


def format_toml(tables: Mapping[str, Any], prefix: str = "") -> str:
    """Return nested tables as TOML: numbers, words, flags, lists of them, and tables by their names.

    What is None is left out. Numbers come back to the last digit.
    """
    values = {key: value for key, value in tables.items() if value is not None and not isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in values.items()]
    head = [f"[{prefix}]"] if prefix and lines else []
    block = "\n".join([*head, *lines])
    below = [
        format_toml(table, f"{prefix}.{_key(key)}" if prefix else _key(key))
        for key, table in tables.items()
        if isinstance(table, Mapping)
    ]
    return "\n\n".join(filter(None, [block, *(text.rstrip("\n") for text in below)])) + "\n"


def write_whole(path: str | Path, text: str) -> None:
    """Write a file, all of it or nothing: whatever happens, one that was there is not half overwritten.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    try:
        where = Path(os.path.realpath(path))  # the file, where it is a link to one
        with tempfile.TemporaryDirectory(prefix=f".{where.name}.", dir=where.parent) as folder:
            whole = Path(folder) / where.name
            with whole.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            whole.replace(where)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}).") from error


def _key(key: str) -> str:
    bare = key and key.isascii() and all(character.isalnum() or character in "-_" for character in key)
    return key if bare else _quoted(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    return repr(int(value)) if isinstance(value, Integral) else repr(float(value))


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08x}"
