"""Selectable options of a session with descriptions, and sliders for its parameters."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any

from apps.front_ends.messages import Parameter
from apps.settings.config import SessionConfig
from apps.settings.models import fitting
from devices import describe_backends, is_virtual
from devices.virtual.hands.registry import HANDS
from haptics.elements.tables import LAWS, MODELS
from haptics.friction.laws import ClosedForm
from haptics.settings import is_whole

_HANDS_WITH_FILES = ("recorded", "scripted-force")

ABOUT_HANDS = {
    "minimum-jerk": "A hand in software: smooth strokes and curves, with rests and a little tremor.",
    "scripted-force": "A hand in software that only pushes: a force written down over time.",
    "recorded": "A hand in software that repeats a path from a file.",
    "mouse": "Your mouse over the plane is the hand.",
}
"""One-line descriptions of the hands."""

_SOURCE = re.compile(r" \((?=[^()]*\b(?:19|20)\d\d)")
"""Start of a literature reference in a sentence."""


def offers(config: SessionConfig) -> dict[str, Any]:
    """Return ``choices``, ``hands``, ``laws`` and ``about``, as in `messages.SessionStarted`.

    Selectable in a window are virtual devices, hands that need no file, and laws defined by parameters alone, besides
    the present ones. A model with two forms is described in the form for the causality of the device.
    """
    present = config.law["name"]
    models = {name: forms.get(config.causality, next(iter(forms.values()))) for name, forms in MODELS.items()}
    return {
        "choices": {name: fit for name, fit in fitting().items() if is_virtual(name) or name == config.device},
        "hands": tuple(name for name in HANDS if name == config.hand or name not in _HANDS_WITH_FILES),
        "laws": (*LAWS, *(() if present in LAWS else (present,))),
        "about": {
            "device": {backend.name: backend.description for backend in describe_backends()},
            "model": {name: _first_sentence(cls) for name, cls in models.items()},
            "law": {name: _first_sentence(cls) for name, cls in LAWS.items()},
            "hand": dict(ABOUT_HANDS),
        },
    }


def _first_sentence(cls: type) -> str:
    """Return the first line of a docstring without its TeX formula and its literature reference."""
    line = (cls.__doc__ or "").strip().splitlines()[0]
    return f"{_SOURCE.split(line.partition(': :math:')[0])[0].rstrip('.')}."


_DECADES = 100.0
"""Ratio between the ends of a range from which on its slider is logarithmic."""


def sliders(config: SessionConfig) -> tuple[Parameter, ...]:
    """Return a slider for every number of the law and the element."""
    element = config.built_element
    law = element.law.law if isinstance(element.law, ClosedForm) else element.law
    owners: tuple[tuple[str, Any], ...] = (("law", law), ("element", element))
    declared = {  # a custom law declares no bounds
        f"{table}.{field.name}": field
        for table, owner in owners
        for field in dataclasses.fields(owner)
        if "minimum" in field.metadata
    }
    found = []
    for key, value in values_in_force(config).items():
        field = declared.get(key)
        bounds: Mapping[str, Any] = field.metadata if field else {}
        minimum, maximum = _range(value, bounds)
        logarithmic = minimum > 0.0 and maximum >= _DECADES * minimum
        whole = field is not None and is_whole(field)
        found.append(Parameter(key, value, minimum, maximum, str(bounds.get("unit", "")), logarithmic, whole))
    return tuple(found)


def values_in_force(config: SessionConfig) -> dict[str, float]:
    """Return every number of the law and the element by its key."""
    tables = (("law", config.law), ("element", config.element))
    return {
        f"{table}.{name}": float(value)
        for table, values in tables
        for name, value in values.items()
        if not isinstance(value, str)
    }


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
