"""Fenced blocks of the documents, and their marks, which control the tests.

A mark is an HTML comment in the line above a fence: ``<!-- not run: REASON -->`` with one of `REASONS`, ``<!-- exit
status: N -->`` for a command with a nonzero exit status, and ``<!-- file: NAME -->`` for a block that is the content of
a file.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

from tests.processes import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

REASONS = ("hardware", "display", "administrator", "minutes", "data of your own", "the repository")
"""Reasons not to run a block. It needs a device or a display, changes the machine, takes minutes, needs a recording
that is not included, or runs this test.
"""

_MARK = re.compile(r"<!-- (not run|exit status|file): (.+) -->")
_COMMAND = re.compile(r"`(haptics [a-z][^`]*)`")
_ENDS = {"|", "||", "&&", ";"}


@dataclass(frozen=True)
class Block:
    """Fenced block with its first line, language, text, and marks."""

    page: str
    line: int
    language: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def where(self):
        return f"{self.page}:{self.line}"

    @property
    def lines(self):
        """Commands of a block: continued lines are joined, empty lines and comments are removed."""
        joined = self.text.replace("\\\n", " ").splitlines()
        return [line for line in joined if shlex.split(line, comments=True)]


def blocks_of(page):
    return list(_blocks(page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8").splitlines()))


def _blocks(name, lines):
    marks: dict[str, str] = {}
    start = None
    for number, line in enumerate(lines):
        if start is not None:
            if line == "```":
                text = "\n".join(lines[start:number]) + "\n"
                yield Block(name, start + 1, lines[start - 1].removeprefix("```"), text, marks)
                start, marks = None, {}
        elif line.startswith("```"):
            start = number + 1
        elif mark := _MARK.fullmatch(line):
            marks = {**marks, mark[1]: mark[2]}
        else:
            assert not marks, f"{name}:{number + 1}: a mark stands directly above a fence"
    assert start is None, f"{name}: a block does not end"


def commands_of(page):
    """Return every command ``haptics`` or ``./run`` on a page, with its location and words."""
    found = []
    for block in blocks_of(page):
        if block.language == "sh":
            found += [(block.where, words) for line in block.lines for words in _simple_commands(line)]
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    name = page.relative_to(ROOT).as_posix()
    found += [(name, shlex.split(" ".join(words.split()))) for words in _COMMAND.findall(text)]
    return [(where, words) for where, words in found if words[0] in {"haptics", "./run"}]


def _simple_commands(line):
    words: list[str] = []
    for word in _words(line):
        if word in _ENDS:
            yield words
            words = []
        else:
            words.append(word)
    if words:
        yield words


def _words(line):
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    return list(lexer)
