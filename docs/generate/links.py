"""Links that leave ``docs/``: in the repository they lead to a file, on the site to a page that shows that file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SOURCES = "source/"
"""Folder of the pages that show a source file."""

_TEXTS = {"README.md": "overview.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Texts of the repository that are pages of the site."""

_LINK = re.compile(r"(\]\()([^)\s]+)")
_NAME = re.compile(r"(?<![\[`])`([a-z_]+(?:\.\w+)+)`(?!`)")
_FENCE = re.compile(r"^(```+).*?^\1$", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".py": "python", ".toml": "toml", ".md": "markdown", ".c": "c", ".csv": "text", ".txt": "text"}
_MOST_LINES = 400


def origin_of(page: str) -> str:
    """Return the path in the repository of the source of the page at `page`."""
    for text, made in _TEXTS.items():
        if page == made:
            return text
    return f"docs/{page}"


def rewritten(markdown: str, origin: str, page: str) -> str:
    """Return `markdown` from the file `origin` with its links adapted to the site's page `page`."""
    return _outside_fences(markdown, _LINK, lambda found: found[1] + _target(found[2], origin, page))


def with_names(markdown: str, addresses: dict[str, str], page: str) -> str:
    """Return `markdown` with each name in code that has an address, as `haptics.Law`, turned into a link to it."""

    def replace(found: re.Match[str]) -> str:
        address = addresses.get(found[1])
        return f"[{found[0]}]({posixpath.relpath(address, posixpath.dirname(page))})" if address else found[0]

    return _outside_fences(markdown, _NAME, replace)


def _outside_fences(markdown: str, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str]) -> str:
    parts, last = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [pattern.sub(replace, markdown[last : fence.start()]), fence[0]]
        last = fence.end()
    return "".join([*parts, pattern.sub(replace, markdown[last:])])


def pages_outside() -> Iterator[tuple[str, str]]:
    """Yield the pages of the site whose sources are outside ``docs/``: path and Markdown."""
    texts = [ROOT / name for name in _TEXTS]
    shown = {path for text in (*texts, *(ROOT / "docs").rglob("*.md")) for path in _leaving(text)}
    for path in sorted(shown - _TEXTS.keys()):
        yield _page_of(path), _folder(path) if (ROOT / path).is_dir() else _listing(path)
    for text in texts:
        yield _TEXTS[text.name], text.read_text(encoding="utf-8")


def _leaving(text: Path) -> Iterator[str]:
    """Yield the files and folders outside ``docs/`` that a text links to."""
    origin = text.relative_to(ROOT).as_posix()
    for _, target in _LINK.findall(_FENCE.sub("", text.read_text(encoding="utf-8"))):
        path = _path(target, origin)
        if path and not _on_site(path):
            yield path
            if (ROOT / path).is_dir():
                yield from _inside(path)


def _path(target: str, origin: str) -> str:
    """Return the target of a link relative to the top of the repository; empty if it is outside or missing."""
    plain = target.partition("#")[0]
    if not plain or ":" in plain:
        return ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), plain))
    return path if not path.startswith("..") and (ROOT / path).exists() else ""


def _on_site(path: str) -> bool:
    return path.startswith("docs/") and not path.startswith("docs/generate")


def _page_of(path: str) -> str:
    if _on_site(path):
        return path.removeprefix("docs/")
    if path in _TEXTS:
        return _TEXTS[path]
    return f"{SOURCES}{path}/index.md" if (ROOT / path).is_dir() else f"{SOURCES}{path}.md"


def _target(target: str, origin: str, page: str) -> str:
    path = _path(target, origin)
    if not path or (_on_site(path) and _on_site(origin)):
        return target
    _, mark, anchor = target.partition("#")
    return posixpath.relpath(_page_of(path), posixpath.dirname(page)) + mark + anchor


def _inside(folder: str) -> list[str]:
    return [
        path.relative_to(ROOT).as_posix() for path in sorted((ROOT / folder).iterdir()) if path.suffix in _LANGUAGES
    ]


def _folder(path: str) -> str:
    entries = "".join(f"- [{name.rpartition('/')[2]}]({name.rpartition('/')[2]}.md)\n" for name in _inside(path))
    return _unsearched(f"`{path}/`", entries)


def _listing(path: str) -> str:
    file = ROOT / path
    lines = file.read_text(encoding="utf-8").splitlines()
    rest = [f"... {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
    text = "\n".join([*lines[:_MOST_LINES], *rest])
    return _unsearched(f"`{path}`", f"`````{_LANGUAGES.get(file.suffix, 'text')}\n{text}\n`````\n")


def _unsearched(title: str, text: str) -> str:
    return f"---\nsearch:\n  exclude: true\n---\n# {title}\n\n{text}"
