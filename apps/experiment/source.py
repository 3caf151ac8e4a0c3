"""Source file of an experiment: its tables, the line numbers of its keys, and messages with line and key."""

from __future__ import annotations

import bisect
import contextlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from haptics.errors import ConfigurationError, HapticError
from haptics.files import parse_toml, read_small

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
        text = words if name in words else f"{name}: {words}"
        return ConfigurationError(f"{self.path}:{line}: {text}")

    @contextlib.contextmanager
    def locating(self, *where: str | int) -> Iterator[None]:
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
        last = next((part for part in reversed(where) if isinstance(part, str)), None)
        below = []
        for name in names:  # a name may repeat the last table of `where`
            inner = name[1:] if last is not None and name and name[0] == last else name
            below += [way for way in ((*where, *inner), (*where, *name)) if way in self._lines]
        if below:
            return below[0] if len(below[0]) > len(where) else max(below, key=len)
        if len(where) > 1:
            return where
        longer = [name for name in names if len(name) > 1]
        found = [name for name in longer if name in self._lines]
        quoted = set(_QUOTED.findall(words))
        for way in self._lines if quoted else ():
            value: Any = self.tables
            for part in way:
                value = value[part]
            if isinstance(value, str) and value in quoted:
                found.append(way)
        missing = [name for name in longer if name[:-1] in self._lines]
        return next(iter([*found, *missing]), where)


def parts(name: str) -> KeyPath:
    """Return the path of a dotted name such as ``conditions[2].law.force``."""
    return tuple(word if word else int(number) for word, number in _PART.findall(name))


def dotted(path: KeyPath) -> str:
    """Return a path as a dotted name."""
    name = ""
    for part in path:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return name


KeyPath = tuple[str | int, ...]
"""Path to a value: key names, and array indices from 0."""

_BLANK = r"[ \t]*"
_STRING = r"""\"{3}(?:\\.|[^\\])*?\"{3,}|'{3}.*?'{3,}|"(?:\\.|[^"\\])*"|'[^']*'"""
"""String of any kind. Up to two quotes before a delimiter of three belong to the string."""


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line number, from 1, of every key, table and array element of a TOML document.

    Parameters
    ----------
    text : str
        A document that `tomllib` accepts. It is not validated here.
    """
    return _Scanner(text).lines


class _Scanner:
    """Single-pass scanner of a TOML document.

    `_at` is the current position.
    """

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._ends = [place for place, mark in enumerate(text) if mark == "\n"]
        self._counts: dict[KeyPath, int] = {}
        self.lines: dict[KeyPath, int] = {}
        table: KeyPath = ()
        while self._skip():
            if text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _take(self, pattern: str) -> str:
        """Skip the text at the current position that matches `pattern`, and return it."""
        found = re.compile(pattern, re.DOTALL).match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found[0] if found else ""

    def _skip(self) -> bool:
        """Skip white space, line breaks and comments. Return True if text remains."""
        self._take(r"(?:[ \t\r\n]|#[^\n]*)*")
        return self._at < len(self._text)

    def _note(self, path: KeyPath) -> None:
        self.lines.setdefault(path, bisect.bisect_left(self._ends, self._at) + 1)

    def _key(self) -> Iterator[str]:
        """Yield the parts of a dotted key.

        At each yield, the current position is in the line of the key.
        """
        while True:
            self._take(_BLANK)
            quoted = self._take(_STRING)
            yield next(iter(tomllib.loads(f"{quoted} = 0"))) if quoted else self._take(r"[A-Za-z0-9_-]*")
            if not self._take(rf"{_BLANK}\."):
                return

    def _header(self) -> KeyPath:
        """Read ``[table]`` or ``[[array of tables]]`` and return its path."""
        several = self._take(r"\[\[?") == "[["
        path: KeyPath = ()
        names = list(self._key())
        for number, name in enumerate(names, 1):
            path = (*path, name)
            self._note(path)
            if several and number == len(names):
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
                self._note(path)
        self._take(r"[^\n]*")
        return path

    def _pair(self, table: KeyPath) -> None:
        """Read ``key = value``."""
        path = table
        for name in self._key():
            path = (*path, name)
            self._note(path)
        self._take(rf"{_BLANK}=")
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._take(_BLANK)
        if self._take(_STRING):
            return
        if self._take(r"\["):
            number = 0
            while self._skip() and not self._take(r"\]"):
                self._note((*path, number))
                self._value((*path, number))
                self._skip()
                self._take(",")
                number += 1
        elif self._take(r"\{"):
            while self._skip() and not self._take(r"\}"):
                self._pair(path)
                self._skip()
                self._take(",")
        else:
            self._take(r"[^,\]}#\n]*")
