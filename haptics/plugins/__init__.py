"""Drivers and laws that other packages bring: what the packages installed here declare as entry points.

A package says in its ``pyproject.toml`` what it brings, and under which name::

    [project.entry-points."haptics.devices"]
    my-stick = "my_package:MY_STICK"

    [project.entry-points."haptics.laws"]
    my-law = "my_package.laws:my_law"

What is behind a name is imported when it is asked for. A package that cannot be imported, or has a name that is taken,
is left out with one sentence; everything else goes on without it.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from haptics.errors import ConfigurationError

DEVICES, LAWS = "haptics.devices", "haptics.laws"
"""Groups of entry points."""

_KINDS = {DEVICES: "device", LAWS: "law"}


@dataclass(frozen=True)
class Plugin:
    """Something that a package brings; as text it says what, and whose.

    Attributes
    ----------
    kind : str
        ``device`` or ``law``.
    name : str
        The name by which it is chosen.
    package, version : str
        The package that brings it.
    entry : EntryPoint
        Where it is.
    """

    kind: str
    name: str
    package: str
    version: str
    entry: EntryPoint

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} of the package {self.origin}"

    @property
    def origin(self) -> str:
        """The package and its version, for a recording."""
        return f"{self.package} {self.version}"

    def load(self) -> Any:
        """Return what is behind the name.

        Raises
        ------
        ConfigurationError
            If it cannot be imported; one sentence says why.
        """
        try:
            return self.entry.load()
        except (Exception, SystemExit) as error:  # whatever a foreign module does when it is imported
            raise self.refused(
                f"cannot be imported ({type(error).__name__}: {' '.join(str(error).split())})"
            ) from error

    def refused(self, reason: str) -> ConfigurationError:
        """Return the error that says for what `reason` it cannot be used."""
        return ConfigurationError(f"{self}: {reason}. Mend it, or remove it: pip uninstall {self.package}.")


@dataclass(frozen=True)
class Plugins:
    """What packages bring of one kind.

    Attributes
    ----------
    usable : dict
        Name to plug-in, none of them imported yet.
    refused : dict
        Name to what is wrong with it, in one sentence.
    """

    usable: dict[str, Plugin]
    refused: dict[str, str]


@functools.cache
def find_plugins(group: str, taken: frozenset[str]) -> Plugins:
    """Return what the packages installed here bring for a `group`, names that are `taken` left out.

    They are looked for once in the life of a process.
    """
    found: defaultdict[str, list[Plugin]] = defaultdict(list)
    for entry in entry_points(group=group):
        package, version = (entry.dist.name, entry.dist.version) if entry.dist else ("(unknown)", "")
        found[entry.name].append(Plugin(_KINDS[group], entry.name, package, version, entry))
    usable, refused = {}, {}
    for name, plugins in sorted(found.items()):
        first, others = plugins[0], [other.origin for other in plugins[1:]]
        if name in taken:
            refused[name] = str(first.refused(f"there is another {first.kind} of that name"))
        elif others:
            refused[name] = str(first.refused(f"{', '.join(others)} brings another one of that name"))
        else:
            usable[name] = first
    return Plugins(usable, refused)
