"""Laws and elements from plain tables, as they stand in configuration files and recordings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from haptics.elements import ELEMENTS, Element
from haptics.friction import LAWS, Law
from haptics.settings import build, unknown


def make_law(table: Mapping[str, Any]) -> Law:
    """Build a law from its ``name`` and parameters; raise `ConfigurationError` naming what is wrong."""
    name = table.get("name", "")
    if name not in LAWS:
        raise unknown("law", str(name), LAWS)
    return build(LAWS[name], {key: value for key, value in table.items() if key != "name"}, "law")


def make_element(model: str, law: Mapping[str, Any], element: Mapping[str, Any], period: float) -> Element:
    """Build the element of `model` (``A`` to ``D``) from the tables of its law and parameters.

    Raises
    ------
    ConfigurationError
        Naming the setting, its value and what is allowed.
    """
    if model not in ELEMENTS:
        raise unknown("model", model, ELEMENTS)
    cls = ELEMENTS[model]
    given = {"law": make_law(law), "period": period}
    names = [field.name for field in dataclasses.fields(cls) if field.name not in given]  # type: ignore[arg-type]
    for name in element:
        if name not in names:
            raise unknown("setting", f"element.{name}", [f"element.{known}" for known in names])
    return build(cls, {**given, **element}, "element")
