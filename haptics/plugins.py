"""Plug-ins: drivers and laws that installed packages declare as entry points.

A package declares its plug-ins and their names in ``pyproject.toml``::

    [project.entry-points."haptics.devices"]
    my-stick = "my_package:MY_STICK"

    [project.entry-points."haptics.laws"]
    my-law = "my_package.laws:my_law"

A plug-in is imported on first use. A plug-in that cannot be imported, or whose name is already in use, is reported in
one sentence and ignored.
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
    """Plug-in of an installed package; ``str()`` gives its kind, name and package.

    Attributes
    ----------
    kind : str
        ``device`` or ``law``.
    name : str
        Name in settings.
    package, version : str
        Package that provides it.
    entry : EntryPoint
        Entry point of the object.
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
        """Package and version, for a recording."""
        return f"{self.package} {self.version}"

    def load(self) -> Any:
        """Import the plug-in and return the object.

        Raises
        ------
        ConfigurationError
            If it cannot be imported, with the reason in one sentence.
        """
        try:
            return self.entry.load()
        except (Exception, SystemExit) as error:  # a foreign module may raise any error on import
            raise self.refused(
                f"cannot be imported ({type(error).__name__}: {' '.join(str(error).split())})"
            ) from error

    def refused(self, reason: str) -> ConfigurationError:
        """Return the error for a plug-in that cannot be used for this `reason`."""
        return ConfigurationError(f"{self}: {reason}. Mend it, or remove it: pip uninstall {self.package}.")


@dataclass(frozen=True)
class Plugins:
    """Plug-ins of one kind.

    Attributes
    ----------
    usable : dict
        Plug-in by name; not imported yet.
    refused : dict
        Reason in one sentence, by the name of the unusable plug-in.
    """

    usable: dict[str, Plugin]
    refused: dict[str, str]


@functools.cache
def find_plugins(group: str, taken: frozenset[str]) -> Plugins:
    """Return the installed plug-ins of a `group`, except those whose names are `taken`.

    The result is cached for the lifetime of the process.
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
