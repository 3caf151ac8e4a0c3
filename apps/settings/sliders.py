"""Which parameters of a session can be changed while it runs, and over which range a slider moves them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from apps.front_ends.messages import Parameter
from apps.settings.config import SessionConfig
from haptics.friction.closed_form import ClosedForm

_RANGES: dict[str, tuple[float, float]] = {
    "law.force": (0.0, 8.0),
    "law.kinetic_force": (0.0, 8.0),
    "law.force_x": (0.05, 8.0),
    "law.force_y": (0.05, 8.0),
    "law.forward_force": (0.05, 8.0),
    "law.backward_force": (0.05, 8.0),
    "law.sideways_force": (0.05, 8.0),
    "law.angle": (-1.6, 1.6),
    "law.dead_zone": (0.0, 1.0),
    "law.static_force": (0.0, 8.0),
    "law.viscosity": (0.0, 50.0),
    "law.stribeck_velocity": (0.001, 1.0),
    "element.mass": (0.01, 20.0),
    "element.stiffness": (100.0, 50000.0),
    "element.damping": (0.1, 1000.0),
    "element.threshold": (0.001, 0.5),
}
"""Lowest and highest value that is of use; other parameters can be moved as far as they are declared to go."""

_DECADES = 100.0
"""Ratio of a range from which on equal ratios are equally far apart on its slider."""

_Field = dataclasses.Field[Any]


def sliders(config: SessionConfig) -> tuple[Parameter, ...]:
    """Return a slider for every number of the law and of the element."""
    declared = _declared(config)
    return tuple(_slider(key, value, declared.get(key)) for key, value in values_in_force(config).items())


def values_in_force(config: SessionConfig) -> dict[str, float]:
    """Return every number of the law and of the element by its key."""
    tables = (("law", config.law), ("element", config.element))
    return {
        f"{table}.{name}": float(value)
        for table, values in tables
        for name, value in values.items()
        if not isinstance(value, str)
    }


def _declared(config: SessionConfig) -> dict[str, _Field]:
    """Return the fields with which law and element declare their numbers; a custom law declares none."""
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
    minimum, maximum = _range(key, value, bounds)
    logarithmic = minimum > 0.0 and maximum >= _DECADES * minimum
    whole = field is not None and field.type in {int, "int"}
    return Parameter(key, value, minimum, maximum, str(bounds.get("unit", "")), logarithmic, whole)


def _range(key: str, value: float, bounds: Mapping[str, Any]) -> tuple[float, float]:
    """Return a range of allowed values around `value`, which is allowed."""
    lowest, highest = bounds.get("minimum", -math.inf), bounds.get("maximum", math.inf)
    if bounds and key in _RANGES:
        minimum, maximum = _RANGES[key]
    elif bounds.get("above", -math.inf) >= 0.0:
        minimum, maximum = value / _DECADES, value * _DECADES
    else:
        minimum = lowest if lowest > -math.inf else min(0.0, 2.0 * value)
        maximum = highest if highest < math.inf else max(1.0, 2.0 * value)
    return min(max(minimum, lowest), value), max(min(maximum, highest), value)
