"""Friction laws provided by other packages (`haptics.plugins`), by name.

A plug-in is a function decorated with `friction_law`, or a class derived from `Law` with a kind of
`haptics.friction.laws`. The source of a function is stored in recordings, like every custom law, so that they can be
replayed without the package. A class must be installed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from haptics.elements.catalogue import LAWS, loaded
from haptics.errors import ConfigurationError
from haptics.friction.custom_law import CustomLaw
from haptics.friction.law import Law
from haptics.plugins import LAWS as GROUP
from haptics.plugins import Plugin, Plugins, find_plugins
from haptics.settings import build, unknown


def plugin_laws() -> Plugins:
    """Return the laws that other packages provide, by name."""
    return find_plugins(GROUP, frozenset({*LAWS, CustomLaw.name}))


def require_plugin(name: str) -> Plugin:
    """Return the plug-in with this name.

    Raises
    ------
    ConfigurationError
        If no usable plug-in has this name.
    """
    plugins = plugin_laws()
    if name in plugins.refused:
        raise ConfigurationError(plugins.refused[name])
    if name not in plugins.usable:
        raise unknown("law", name, [*LAWS, CustomLaw.name, *plugins.usable])
    return plugins.usable[name]


def plugin_of(table: Mapping[str, Any]) -> Plugin | None:
    """Return the plug-in that provides the law of a `table`, or None if no installed plug-in does."""
    return plugin_laws().usable.get(str(table.get("name", "")))


def make_plugin_law(plugin: Plugin, values: Mapping[str, Any]) -> Law:
    """Build the law of a plug-in.

    Raises
    ------
    ConfigurationError
        If the plug-in is not a law, or a parameter is invalid.
    """
    found = plugin.load()
    if isinstance(found, type) and issubclass(found, Law):
        if not dataclasses.is_dataclass(found) or getattr(found, "kind", None) not in _kinds():
            raise plugin.refused("must be a frozen dataclass with a kind of haptics.friction.laws")
        if getattr(found, "name", None) != plugin.name:
            raise plugin.refused(f"calls itself {getattr(found, 'name', None)!r}")
        return build(found, values, "law")
    source = getattr(found, "law_source", None)
    if not isinstance(source, str):
        raise plugin.refused("must be a function under @friction_law, or a class derived from Law")
    return CustomLaw.from_table(source, values)


@functools.cache
def _kinds() -> frozenset[int]:
    """Return the kinds of law for which kernels exist."""
    return frozenset(loaded(place).kind for place in LAWS.values())


def plugin_table(plugin: Plugin, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the complete table of a plug-in law, for a recording; for a function with its source.

    Raises
    ------
    ConfigurationError
        Under the same conditions as `make_plugin_law`.
    """
    law = make_plugin_law(plugin, values)
    if isinstance(law, CustomLaw):
        return {"name": plugin.name, "source": law.source, **law.parameters}
    fields = {field.name: getattr(law, field.name) for field in dataclasses.fields(law) if field.init}
    return {"name": plugin.name, **fields}
