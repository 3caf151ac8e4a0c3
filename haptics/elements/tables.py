"""Construction of laws and elements from tables in configuration files and recordings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from haptics.device import Causality
from haptics.elements import catalogue
from haptics.elements.catalogue import CLASSIC_MODELS, FOUR_MODELS, all_loaded, loaded
from haptics.elements.models import Element
from haptics.elements.plugin_laws import make_plugin_law, require_plugin
from haptics.errors import ConfigurationError
from haptics.friction.closed_form import ClosedForm
from haptics.friction.custom_law import CustomLaw
from haptics.friction.law import Law
from haptics.settings import build, unknown

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


def element_class(model: str, causality: Causality | None = None) -> type[Element]:
    """Return the class of `model`; `causality` is needed if there are two.

    Raises
    ------
    ConfigurationError
        If the model is unknown or does not have this causality.
    """
    if model not in MODELS:
        raise unknown("model", model, MODELS)
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
    model: str,
    law: Mapping[str, Any],
    element: Mapping[str, Any],
    period: float,
    causality: Causality | None = None,
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
            raise unknown("setting", f"element.{name}", [f"element.{known}" for known in names])
    return build(cls, {**element, "law": make_law(law), "period": period}, "element")
