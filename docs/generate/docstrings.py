"""What docstrings have of reStructuredText, as Markdown: roles, tables, and blocks after a double colon."""

from __future__ import annotations

import importlib
import re
from typing import Any

import griffe

_ROLE = re.compile(r":[a-z]+:`~?([^`]*)`", re.DOTALL)
_DOUBLE = re.compile(r"(?<!`)``(?!`)(.+?)``(?!`)", re.DOTALL)
_SYMBOLS = {r"\Phi": "Φ", r"\ge": "≥", r"\le": "≤", r"\,": " ", r"\lambda": "λ", r"\|": "|"}
"""What formulas have of LaTeX, as letters: the site fetches nothing that could set them."""

_RULE = r" *=+(?: +=+)+ *"
_TABLE = re.compile(rf"^{_RULE}\n(?:.+\n)+?(?:{_RULE}\n(?:.+\n)+?)?{_RULE}$", re.MULTILINE)
_BLOCK = re.compile(r"^(?: *\.\. [a-z-]+::.*|(?P<before>.*):: *)\n(?P<text>\n*(?: +\S.*(?:\n+|\Z))+)", re.MULTILINE)


def as_markdown(text: str) -> str:
    """Return the docstring `text` with its tables, literal blocks and roles as Markdown has them."""
    fenced = _BLOCK.sub(_fenced_block, _TABLE.sub(_table, text))
    parts = re.split(r"(^```.*?^```)", fenced, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _inline(part) for part in parts)


def _table(found: re.Match[str]) -> str:
    rule, *lines, _ = found[0].splitlines()
    starts = [column.start() for column in re.finditer("=+", rule)]
    columns = [slice(start, end) for start, end in zip(starts, [*starts[1:], None], strict=True)]
    rows: list[list[str]] = []
    for line in lines:
        cells = [line[column].strip() for column in columns]
        if line.strip() and not line.strip("= "):
            rows.append(["---"] * len(columns))
        elif cells[0] or not rows:
            rows.append(cells)
        else:  # continues the line above
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True)]
    if ["---"] * len(columns) not in rows:
        rows = [[""] * len(columns), ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _inline(text: str) -> str:
    return _DOUBLE.sub(r"`\1`", _ROLE.sub(_formula, text))


def _formula(found: re.Match[str]) -> str:
    plain = found[1]
    for symbol, letter in _SYMBOLS.items():
        plain = plain.replace(symbol, letter)
    return f"`{plain}`"


def _fenced_block(found: re.Match[str]) -> str:
    before = f"{found['before']}:\n\n" if (found["before"] or "").strip() else ""
    lines = found["text"].strip("\n").splitlines()
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return f"{before}```text\n" + "\n".join(line[indent:] for line in lines).rstrip() + "\n```\n\n"


class Markdown(griffe.Extension):
    """Turns every docstring into Markdown before it is parsed; of settings, the one that has their declarations."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Turn the docstring of one object (griffe calls this)."""
        if obj.is_class and any(str(decorator.value) == "documented" for decorator in obj.decorators):
            obj.docstring = griffe.Docstring(_written(obj), parent=obj, parser="numpy")
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def _written(settings: griffe.Object) -> str:
    """Return the docstring that a class of settings has once `haptics.settings.documented` has written it."""
    module = importlib.import_module(settings.module.path)
    return str(getattr(module, settings.name).__doc__)
