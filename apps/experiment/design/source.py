"""Source file of an experiment: its tables, and error messages with line and key."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apps.experiment.design.lines import KeyPath, key_lines
from haptics.errors import ConfigurationError, HapticError
from haptics.reading import parse_toml, read_small

_AT_LINE = re.compile(r"\(at line (\d+),")
_DOTTED = re.compile(r"[A-Za-z_][\w-]*(?:\[\d+\])?(?:\.[A-Za-z_][\w-]*(?:\[\d+\])?)*")
_QUOTED = re.compile(r"'([^']*)'")
_PART = re.compile(r"([A-Za-z_][\w-]*)|\[(\d+)\]")


class Source:
    """A parsed TOML file with line numbers.

    Parameters
    ----------
    path : Path
        Path of the file.
    text : str
        Text of the file.

    Attributes
    ----------
    tables : dict
        Parsed content.

    Raises
    ------
    ConfigurationError
        If the text is not valid TOML. The message contains the line.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        try:
            self.tables: dict[str, Any] = parse_toml(text, str(path))
        except ConfigurationError as error:
            found = _AT_LINE.search(str(error))
            if found is None:
                raise
            raise ConfigurationError(f"{path}:{found[1]}: {str(error).removeprefix(f'{path}: ')}") from error
        self._lines = key_lines(text)

    @classmethod
    def read(cls, path: Path) -> Source:
        """Read a file.

        Raises
        ------
        ConfigurationError
            If the file cannot be read, is not UTF-8, or is not valid TOML.
        """
        data = read_small(path, f"experiment {path}", "name the TOML file of an experiment")
        try:
            return cls(path, data.decode("utf-8-sig").replace("\r\n", "\n"))
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise ConfigurationError(f"{path}:{line}: is no TOML (byte {error.start} is not UTF-8).") from error

    def error(self, path: KeyPath, words: str) -> ConfigurationError:
        """Return an error about the key at `path`, with the line of the key or of its table."""
        name, line = dotted(path), 1
        for length in range(len(path), 0, -1):
            if path[:length] in self._lines:
                line = self._lines[path[:length]]
                break
        told = words if name in words else f"{name}: {words}"
        return ConfigurationError(f"{self.path}:{line}: {told}")

    @contextlib.contextmanager
    def telling(self, *where: str | int) -> Iterator[None]:
        """Add line and key to configuration errors raised in the block.

        The key is the one named in the message, or the part of it that the file contains, otherwise `where`. Names in a
        message are searched below `where` first, and then from the top.
        """
        try:
            yield
        except ConfigurationError as error:
            raise self.error(self._named(str(error), where), str(error)) from error
        except HapticError as error:
            raise self.error(where, str(error)) from error

    def _named(self, words: str, where: KeyPath) -> KeyPath:
        """Return the path of the key that `words` refer to by its name or by its invalid value."""
        names = [parts(found) for found in _DOTTED.findall(words)]
        below = [way for name in names for way in (_below(where, name), (*where, *name)) if way in self._lines]
        if below:
            return below[0] if len(below[0]) > len(where) else max(below, key=len)
        if len(where) > 1:
            return where
        longer = [name for name in names if len(name) > 1]
        found = [name for name in longer if name in self._lines] + self._with_value(words)
        missing = [name for name in longer if name[:-1] in self._lines]
        return next(iter([*found, *missing]), where)

    def _with_value(self, words: str) -> list[KeyPath]:
        """Return the paths of the strings that `words` quote."""
        quoted = set(_QUOTED.findall(words))
        return [way for way in self._lines if quoted and self._value_at(way) in quoted]

    def _value_at(self, way: KeyPath) -> str | None:
        """Return the string at `way`, or None if the value is not a string."""
        value: Any = self.tables
        for part in way:
            value = value[part]
        return value if isinstance(value, str) else None


def _below(where: KeyPath, name: KeyPath) -> KeyPath:
    """Return the path of `name` below `where`.

    `name` may repeat the last table of `where`.
    """
    tables = [part for part in where if isinstance(part, str)]
    return (*where, *name[1:]) if tables and name and name[0] == tables[-1] else (*where, *name)


def parts(name: str) -> KeyPath:
    """Return the path of a dotted name such as ``conditions[2].law.force``."""
    return tuple(word if word else int(number) for word, number in _PART.findall(name))


def dotted(path: KeyPath) -> str:
    """Return a path as a dotted name."""
    name = ""
    for part in path:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return name
