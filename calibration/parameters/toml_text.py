"""Formatting of tables of numbers and texts as TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any


def format_toml(tables: Mapping[str, Any], prefix: str = "") -> str:
    """Format nested tables as TOML: numbers, texts, flags, lists of them, and tables by name.

    Values of None are omitted. Numbers are written with full precision.
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
