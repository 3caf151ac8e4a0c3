"""Parameters of a session that can be changed during a run, and the ranges of their sliders."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from apps.front_ends.messages import Parameter
from apps.settings.config import SessionConfig
from haptics.friction.laws import ClosedForm
from haptics.settings import is_whole

_DECADES = 100.0
"""Ratio between the ends of a range from which on its slider is logarithmic."""

_Field = dataclasses.Field[Any]


def sliders(config: SessionConfig) -> tuple[Parameter, ...]:
    """Return a slider for every number of the law and the element."""
    declared = _declared(config)
    return tuple(_slider(key, value, declared.get(key)) for key, value in values_in_force(config).items())


def values_in_force(config: SessionConfig) -> dict[str, float]:
    """Return every number of the law and the element by its key."""
    tables = (("law", config.law), ("element", config.element))
    return {
        f"{table}.{name}": float(value)
        for table, values in tables
        for name, value in values.items()
        if not isinstance(value, str)
    }


def _declared(config: SessionConfig) -> dict[str, _Field]:
    """Return the fields that declare the numbers of law and element; a custom law declares none."""
    element = config.built_element
    law = element.law.law if isinstance(element.law, ClosedForm) else element.law
    owners: tuple[tuple[str, Any], ...] = (("law", law), ("element", element))
    return {
        f"{table}.{field.name}": field
        for table, owner in owners
        for field in dataclasses.fields(owner)
        if "minimum" in field.metadata
    }


def _slider(key: str, value: float, field: _Field | None) -> Parameter:
    bounds: Mapping[str, Any] = field.metadata if field else {}
    minimum, maximum = _range(value, bounds)
    logarithmic = minimum > 0.0 and maximum >= _DECADES * minimum
    whole = field is not None and is_whole(field)
    return Parameter(key, value, minimum, maximum, str(bounds.get("unit", "")), logarithmic, whole)


def _range(value: float, bounds: Mapping[str, Any]) -> tuple[float, float]:
    """Return a range of allowed values that contains `value`, which must be allowed."""
    lowest, highest = bounds.get("minimum", -math.inf), bounds.get("maximum", math.inf)
    if bounds.get("slider"):
        minimum, maximum = bounds["slider"]
    elif bounds.get("above", -math.inf) >= 0.0:
        minimum, maximum = value / _DECADES, value * _DECADES
    else:
        minimum = lowest if lowest > -math.inf else min(0.0, 2.0 * value)
        maximum = highest if highest < math.inf else max(1.0, 2.0 * value)
    return min(max(minimum, lowest), value), max(min(maximum, highest), value)
