"""What MkDocs asks while it builds the site: pages made from the code, links that leave ``docs/``, whole chapters."""

from __future__ import annotations

import logging
from typing import Any

import chapters
import interface
import links
from command_line import command_line_page
from mkdocs.structure.files import File, Files, InclusionLevel

_LOG = logging.getLogger("mkdocs.haptics")
"""MkDocs counts the warnings of loggers in its namespace: with ``--strict`` one of them is an error."""


def on_config(config: Any) -> None:
    """Put the pages of a folder where the navigation names the folder."""
    interface_pages = [page.entry for page in interface.pages()]
    config.nav = chapters.unfolded(config.nav, {"decisions/": chapters.decisions(), "interface/": interface_pages})


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made from the code, and those that links out of ``docs/`` lead to."""
    for name, lines in interface.undocumented():
        _LOG.warning("%s is public and has no docstring%s", name, lines)
    made = {page.path: page.text for page in interface.pages()}
    made["command_line.md"] = command_line_page()
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    for path, text in links.pages_outside():
        level = InclusionLevel.NOT_IN_NAV if path.startswith(links.SOURCES) else InclusionLevel.UNDEFINED
        files.append(File.generated(config, path, content=text, inclusion=level))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links to files outside ``docs/``, and the names of public things, into links to their pages."""
    path = page.file.src_uri
    linked = links.rewritten(markdown, links.origin_of(path), path)
    return linked if path.startswith("interface/") else links.with_names(linked, interface.addresses(), path)
