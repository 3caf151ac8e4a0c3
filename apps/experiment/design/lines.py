"""Line numbers of the keys of a TOML file, including inline tables and arrays of tables."""

from __future__ import annotations

import bisect
import tomllib
from collections.abc import Iterator

KeyPath = tuple[str | int, ...]
"""Path to a value: key names, and array indices from 0."""

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


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
        self._read()

    def _read(self) -> None:
        table: KeyPath = ()
        while self._skip():
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    # --- characters ---

    def _peek(self, mark: str) -> bool:
        return self._text.startswith(mark, self._at)

    def _pass(self, mark: str) -> bool:
        """Skip `mark` if it is next.

        Return True if it was.
        """
        found = self._peek(mark)
        self._at += len(mark) if found else 0
        return found

    def _skip(self, marks: str = " \t\r\n") -> bool:
        """Skip white space and, where line breaks are allowed, comments.

        Return True if text remains.
        """
        while self._at < len(self._text):
            if self._text[self._at] in marks:
                self._at += 1
            elif self._text[self._at] == "#" and "\n" in marks:
                self._to(self._text.find("\n", self._at))
            else:
                return True
        return False

    def _to(self, place: int) -> None:
        self._at = len(self._text) if place < 0 else place

    def _note(self, path: KeyPath) -> None:
        self.lines.setdefault(path, bisect.bisect_left(self._ends, self._at) + 1)

    # --- keys ---

    def _key(self) -> Iterator[str]:
        """Yield the parts of a dotted key.

        At each yield, the current position is in the line of the key.
        """
        while True:
            self._skip(" \t")
            start = self._at
            if self._text[start] in "\"'":
                self._string()
                yield next(iter(tomllib.loads(f"{self._text[start : self._at]} = 0")))
            else:
                while self._at < len(self._text) and self._text[self._at] in _BARE:
                    self._at += 1
                yield self._text[start : self._at]
            self._skip(" \t")
            if not self._pass("."):
                return

    def _header(self) -> KeyPath:
        """Read ``[table]`` or ``[[array of tables]]`` and return its path."""
        several = self._pass("[[")
        self._at += 0 if several else 1
        path: KeyPath = ()
        names = list(self._key())
        for number, name in enumerate(names):
            path = (*path, name)
            last = number == len(names) - 1
            self._note(path)
            if several and last:
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
                self._note(path)
        self._to(self._text.find("\n", self._at))
        return path

    def _pair(self, table: KeyPath) -> None:
        """Read ``key = value``."""
        path = table
        for name in self._key():
            path = (*path, name)
            self._note(path)
        self._pass("=")
        self._value(path)

    # --- values ---

    def _value(self, path: KeyPath) -> None:
        self._skip(" \t")
        if self._text[self._at] in "\"'":
            self._string()
        elif self._pass("["):
            self._array(path)
        elif self._pass("{"):
            self._inline(path)
        else:
            while self._at < len(self._text) and self._text[self._at] not in ",]}#\n":
                self._at += 1

    def _array(self, path: KeyPath) -> None:
        number = 0
        while self._skip() and not self._pass("]"):
            self._note((*path, number))
            self._value((*path, number))
            self._skip()
            self._pass(",")
            number += 1

    def _inline(self, path: KeyPath) -> None:
        while self._skip() and not self._pass("}"):
            self._pair(path)
            self._skip()
            self._pass(",")

    def _string(self) -> None:
        """Skip a string of any kind."""
        mark = self._text[self._at]
        long = mark * 3
        if self._pass(long):
            self._to_end_of(long, escapes=mark == '"')
            while self._peek(mark):  # up to two quotes before the delimiter belong to the string
                self._at += 1
        else:
            self._at += 1
            self._to_end_of(mark, escapes=mark == '"')

    def _to_end_of(self, mark: str, *, escapes: bool) -> None:
        while not self._pass(mark):
            self._at += 2 if escapes and self._peek("\\") else 1
