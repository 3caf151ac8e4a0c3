"""Lines of keys: whatever form a key has in a TOML file, its line is found."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.experiment.design import key_lines
from apps.experiment.design.lines import KeyPath

NAMES = st.sampled_from(["a", "b-1", "c_2", "Über", "with space", 'quo"te', "x.y", "7"])
SCALARS = st.one_of(
    st.integers(-5, 5),
    st.booleans(),
    st.sampled_from(["", "# no comment", "a = 1", "]", "}", "'", '"', "\\", 'say "a", \\ b', "[t]"]),
)
INLINE = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
TABLE = st.dictionaries(NAMES, INLINE, max_size=4)
DOCUMENT = st.dictionaries(NAMES, st.one_of(TABLE, st.lists(TABLE, min_size=1, max_size=3)), max_size=4)


class Writer:
    """Writes a document in TOML and knows on which line it put what."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self.lines = [""]
        self.places: dict[KeyPath, int] = {}

    def text(self) -> str:
        return "\n".join(self.lines)

    def put(self, words: str) -> None:
        *whole, self.lines[-1] = (self.lines[-1] + words).split("\n")
        self.lines[-1:-1] = whole

    def note(self, path: KeyPath) -> None:
        self.places.setdefault(path, len(self.lines))

    def key(self, name: str) -> None:
        bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        self.put(name if bare and self._draw(st.booleans()) else json.dumps(name, ensure_ascii=False))

    def value(self, value: Any, path: KeyPath) -> None:
        if isinstance(value, dict):
            self.put("{ ")
            for number, (name, inner) in enumerate(value.items()):
                self.put(", " if number else "")
                self.pair(name, inner, path)
            self.put(" }")
        elif isinstance(value, list):
            self.put("[")
            for number, inner in enumerate(value):
                self.put(self._draw(st.sampled_from(["", " ", "\n", " # ] a comment }\n  "])))
                self.note((*path, number))
                self.value(inner, (*path, number))
                self.put(",")
            self.put("]")
        elif isinstance(value, str) and "'" not in value and self._draw(st.booleans()):
            self.put(self._draw(st.sampled_from([f"'{value}'", f"'''\n{value}'''"])))
        elif isinstance(value, str) and self._draw(st.booleans()):
            inside = value.replace("\\", "\\\\").replace('"', '\\"')
            self.put(f'"""\n\n{inside}\\\n   """')
        else:
            self.put(json.dumps(value))

    def pair(self, name: str, value: Any, path: KeyPath) -> None:
        self.note((*path, name))
        self.key(name)
        self.put(self._draw(st.sampled_from(["=", " = "])))
        self.value(value, (*path, name))

    def table(self, name: str, table: dict[str, Any], number: int | None) -> None:
        path: KeyPath = (name,)
        self.note(path)
        if number is not None:
            path = (name, number)
            self.note(path)
        marks = ("[", "]") if number is None else ("[[", "]]")
        self.put(marks[0])
        self.key(name)
        self.put(marks[1] + self._draw(st.sampled_from(["\n", "  # [not] a table\n", "\n\n"])))
        for inner, value in table.items():
            self.pair(inner, value, path)
            self.put(self._draw(st.sampled_from(["\n", " # = 3\n", "\n# a comment\n"])))


@given(DOCUMENT, st.data())
def test_every_key_of_any_document_has_its_line(document: dict[str, Any], data: st.DataObject) -> None:
    writer = Writer(data.draw)
    for name, table in document.items():
        for number, one in enumerate(table if isinstance(table, list) else [table]):
            writer.table(name, one, number if isinstance(table, list) else None)
    text = writer.text()
    tomllib.loads(text)
    assert key_lines(text) == writer.places


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a.b.c = 1\na.b.d = 2", ("a", "b", "d"), 2),
        ("[a.b]\n\n[[a.c]]\nx = 1\n[[a.c]]\nx = 2\n[a.c.deep]\ny = 3", ("a", "c", 1, "deep", "y"), 8),
        ("[t]\nwhen = 1979-05-27 07:32:00 # x\nz = 1.5e3", ("t", "z"), 3),
        ('s = """four quotes: """"\nz = 1', ("z",), 2),
        ("z = 0x1f", ("z",), 1),
    ],
)
def test_forms_that_are_rare(text: str, path: KeyPath, line: int) -> None:
    tomllib.loads(text)
    assert key_lines(text)[path] == line
