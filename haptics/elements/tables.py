"""Construction of laws and elements from tables in configuration files and recordings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from haptics.device import Causality
from haptics.elements import catalogue
from haptics.elements.catalogue import CLASSIC_MODELS, FOUR_MODELS, all_loaded, loaded
from haptics.elements.models import Element
from haptics.errors import ConfigurationError
from haptics.friction.custom_law import CustomLaw
from haptics.friction.laws import ClosedForm, Law
from haptics.plugins import LAWS as GROUP
from haptics.plugins import Plugin, Plugins, find_plugins
from haptics.settings import build, unknown_name

# --- laws of plugins --------------------------------------------------------------------------------------------------
#
# Friction laws provided by other packages (`haptics.plugins`), by name.
#
# A plug-in is a function decorated with `friction_law`, or a class derived from `Law` with a kind of
# `haptics.friction.laws`. The source of a function is stored in recordings, like every custom law, so that they can be
# replayed without the package. A class must be installed.


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
        raise unknown_name("law", name, [*LAWS, CustomLaw.name, *plugins.usable])
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
        if not dataclasses.is_dataclass(found) or getattr(found, "kind", None) not in {
            law.kind for law in LAWS.values()
        }:
            raise plugin.refused("must be a frozen dataclass with a kind of haptics.friction.laws")
        if getattr(found, "name", None) != plugin.name:
            raise plugin.refused(f"calls itself {getattr(found, 'name', None)!r}")
        return build(found, values, "law")
    source = getattr(found, "law_source", None)
    if not isinstance(source, str):
        raise plugin.refused("must be a function under @friction_law, or a class derived from Law")
    return CustomLaw.from_table(source, values)


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


# --- elements and laws from tables ------------------------------------------------------------------------------------

MODELS: dict[str, dict[Causality, type[Element]]] = all_loaded(FOUR_MODELS | CLASSIC_MODELS)
"""Classes of every model, by name and causality."""

LAWS: dict[str, type[Law]] = {name: loaded(place) for name, place in catalogue.LAWS.items()}
"""Class of every parametric law, by its name in settings."""

CLOSED_FORM_SUFFIX = "-closed-form"
"""Suffix of the name of a law that is solved by the closed-form approximation of the paper."""


def make_law(table: Mapping[str, Any]) -> Law:
    """Build a law from its ``name``, parameters, and ``source`` for a custom law or plug-in function.

    Raises
    ------
    ConfigurationError
        If the name or a parameter is invalid.
    """
    name = str(table.get("name", ""))
    values = {key: value for key, value in table.items() if key != "name"}
    if name == CustomLaw.name or "source" in values:
        source = values.pop("source", None)
        if not isinstance(source, str):
            raise ConfigurationError("law.source is missing: a custom law is the text of a function; give law.file.")
        return CustomLaw.from_table(source, values)
    exact = name.removesuffix(CLOSED_FORM_SUFFIX)
    law = build(LAWS[exact], values, "law") if exact in LAWS else make_plugin_law(require_plugin(name), values)
    return law if exact == name or exact not in LAWS else ClosedForm(law)


def law_settings(law: Law) -> dict[str, Any]:
    """Return the table from which `make_law` builds an equal law."""
    if isinstance(law, CustomLaw):
        return {"name": law.name, "source": law.source, **law.parameters}
    if isinstance(law, ClosedForm):
        table = law_settings(law.law)
        return {**table, "name": f"{table['name']}{CLOSED_FORM_SUFFIX}"}
    return {"name": law.name, **{one.name: getattr(law, one.name) for one in dataclasses.fields(law) if one.init}}


def element_class(model: str, causality: Causality | None = None) -> type[Element]:
    """Return the class of `model`; `causality` is needed if there are two.

    Raises
    ------
    ConfigurationError
        If the model is unknown or does not have this causality.
    """
    if model not in MODELS:
        raise unknown_name("model", model, MODELS)
    forms = MODELS[model]
    if causality is None:
        causality = next(iter(forms))
    if causality not in forms:
        raise ConfigurationError(f"model {model} is an {' and an '.join(forms)}, not an {causality}.")
    return forms[causality]


def element_fields(cls: type[Element]) -> list[dataclasses.Field[Any]]:
    """Return the fields of `cls` that the table ``element`` may set."""
    return [field for field in dataclasses.fields(cls) if field.name not in {"law", "period"}]  # type: ignore[arg-type]


def make_element(
    model: str, law: Mapping[str, Any], element: Mapping[str, Any], period: float, causality: Causality | None = None
) -> Element:
    """Build the element of `model` from the tables of its law and parameters.

    Raises
    ------
    ConfigurationError
        With the setting, its value and the allowed values.
    """
    cls = element_class(model, causality)
    names = [field.name for field in element_fields(cls)]
    for name in element:
        if name not in names:
            raise unknown_name("setting", f"element.{name}", [f"element.{known}" for known in names])
    return build(cls, {**element, "law": make_law(law), "period": period}, "element")
