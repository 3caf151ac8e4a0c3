"""The reference of the public names, one page a package, from the docstrings.

A package that has ``__all__`` is public, and so are the names in it; in `haptics` so is a module that has one. Of the
calibration, which is used module by module, all names without a leading underscore are public. Nothing is imported for
it: the sources are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import griffe
from docstrings import as_markdown
from links import ROOT

_PACKAGES = ("haptics", "devices", "calibration", "apps")
_BY_MODULE = "calibration"


@dataclass(frozen=True)
class InterfacePage:
    """One page of the reference.

    Attributes
    ----------
    package : str
        The package it is about.
    text : str
        Its Markdown, in which mkdocstrings puts the docstrings.
    """

    package: str
    text: str

    @property
    def path(self) -> str:
        """Where it is, from the top of the site."""
        return f"interface/{self.package}.md"

    @property
    def entry(self) -> dict[str, str]:
        """Its entry in the navigation."""
        return {self.package: self.path}


@cache
def pages() -> tuple[InterfacePage, ...]:
    """Return the pages of all public packages and modules."""
    return tuple(InterfacePage(package.path, _page(package)) for package in _public_packages())


@cache
def addresses() -> dict[str, str]:
    """Return where the public names and packages are on the site: page and anchor, by the name with its package."""
    found = {package.path: f"interface/{package.path}.md" for package in _public_packages()}
    for package in _public_packages():
        for item in _names(package):
            path = f"{package.path}.{item.name}"
            found[path] = f"interface/{package.path}.md#{path}"
    return found


def undocumented() -> Iterator[tuple[str, str]]:
    """Yield the public names that have no docstring, and in which file they are."""
    for package in _public_packages():
        for name in map(str, package.exports or ()):
            if name not in package.members:
                yield f"{package.path}.{name}", ": it is nowhere"
        for item in _names(package):
            yield from _without_docstring(item)


@cache
def _tree() -> dict[str, griffe.Module]:
    loader = griffe.GriffeLoader(search_paths=[ROOT], docstring_parser="numpy")
    tree = {name: loader.load(name) for name in _PACKAGES}
    loader.resolve_aliases(implicit=False, external=False)
    return tree


def _modules(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for _, inner in sorted(module.modules.items()):
        if not inner.is_alias:
            yield from _modules(inner)


def _public_packages() -> list[griffe.Module]:
    every = [module for top in _tree().values() for module in _modules(top)]
    return [module for module in every if _names(module)]


def _names(package: griffe.Module) -> list[griffe.Object | griffe.Alias]:
    """Return the public names of a package, or for the calibration the modules in it, each once."""
    if package.exports is not None and (_is_package(package) or package.path.split(".")[0] == "haptics"):
        return [package.members[str(name)] for name in package.exports if str(name) in package.members]
    if package.path.split(".")[0] != _BY_MODULE or not _is_package(package):
        return []
    inside = sorted(package.modules.items())
    return [module for name, module in inside if not (_hidden(name) or _is_package(module) or module.exports)]


def _is_package(module: griffe.Module) -> bool:
    return module.is_package or module.is_subpackage


def _hidden(name: str) -> bool:
    return name.startswith("_")


def _page(package: griffe.Module) -> str:
    """Return the page of a package: its names by the modules that they come from."""
    homes: dict[str, list[griffe.Object | griffe.Alias]] = {}
    for item in _names(package):
        homes.setdefault(_home(item, package), []).append(item)
    parts = [f"# `{package.path}`", _docstring(package)]
    for home, items in sorted(homes.items(), key=lambda home: home[0]):
        if home:
            parts += [f"## {home}", _docstring(package.members[home]).partition("\n")[0]]
        level = 3 if home else 2
        parts += [f"::: {package.path}.{item.name}\n    options:\n      heading_level: {level}" for item in items]
    return "\n\n".join(parts) + "\n"


def _home(item: griffe.Object | griffe.Alias, package: griffe.Module) -> str:
    """Return which module or package inside `package` a name comes from; empty for its own."""
    inside = item.canonical_path.removeprefix(f"{package.path}.")
    home, _, rest = inside.partition(".")
    return home if rest and home in package.modules else ""


def _docstring(item: griffe.Object | griffe.Alias) -> str:
    return as_markdown(item.docstring.value) if item.docstring else ""


def _without_docstring(item: griffe.Object | griffe.Alias) -> Iterator[tuple[str, str]]:
    """Yield `item` and its public members that have no docstring."""
    target = item.final_target if item.is_alias else item
    if not _documented(target):
        yield item.path, f" ({target.relative_package_filepath}:{target.lineno})"
    if target.is_module or target.is_class:
        for member in target.members.values():
            if not member.is_alias and not _hidden(member.name) and (member.is_function or member.is_class):
                yield from _without_docstring(member)


def _documented(target: griffe.Object) -> bool:
    """Return True if `target` or the member that it overrides has a docstring."""
    if target.has_docstring:
        return True
    owner = target.parent
    if owner is None or not owner.is_class:
        return False
    return any(target.name in base.members and base.members[target.name].has_docstring for base in owner.mro())
