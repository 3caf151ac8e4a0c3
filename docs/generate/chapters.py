"""Chapters of the navigation that are as long as a folder."""

from __future__ import annotations

from typing import Any

from links import ROOT


def decisions() -> list[dict[str, str]]:
    """Return the entries of the decisions, with their titles."""
    files = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    return [{_title(file.read_text(encoding="utf-8")): f"decisions/{file.name}"} for file in files]


def _title(markdown: str) -> str:
    return markdown.partition("\n")[0].removeprefix("# ")


def unfolded(nav: list[Any], chapters: dict[str, list[dict[str, str]]]) -> list[Any]:
    """Return the navigation `nav` with each name of a folder replaced by the entries of that chapter."""
    return [{title: _unfolded(entry, chapters) for title, entry in part.items()} for part in nav]


def _unfolded(entry: Any, chapters: dict[str, list[dict[str, str]]]) -> Any:
    return unfolded(entry, chapters) if isinstance(entry, list) else chapters.get(entry, entry)
