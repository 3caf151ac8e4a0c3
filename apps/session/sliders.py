"""Which parameters of a session can be changed while it runs, and over which range a slider moves them."""

from __future__ import annotations

import dataclasses
from typing import Any

from apps.session.config import SessionConfig
from apps.session.messages import Parameter
from haptics.closed_form import ClosedForm

_RANGES: dict[str, tuple[float, float, bool]] = {
    "law.force": (0.0, 8.0, False),
    "law.kinetic_force": (0.0, 8.0, False),
    "law.force_x": (0.05, 8.0, False),
    "law.force_y": (0.05, 8.0, False),
    "law.forward_force": (0.05, 8.0, False),
    "law.backward_force": (0.05, 8.0, False),
    "law.sideways_force": (0.05, 8.0, False),
    "law.angle": (-1.6, 1.6, False),
    "law.dead_zone": (0.0, 1.0, False),
    "law.static_force": (0.0, 8.0, False),
    "law.viscosity": (0.0, 50.0, False),
    "law.stribeck_velocity": (0.001, 1.0, True),
    "element.mass": (0.01, 20.0, True),
    "element.stiffness": (100.0, 50000.0, True),
    "element.damping": (0.1, 1000.0, True),
}
"""Lowest and highest value, and whether equal ratios are equally far apart; others get a range around their value."""


def sliders(config: SessionConfig) -> tuple[Parameter, ...]:
    """Return a slider for every number of the law and of the element."""
    values = {f"law.{name}": value for name, value in config.law.items() if not isinstance(value, str)}
    values |= {f"element.{name}": value for name, value in config.element.items()}
    return tuple(_slider(config, key, float(value)) for key, value in values.items())


def _slider(config: SessionConfig, key: str, value: float) -> Parameter:
    minimum, maximum, logarithmic = _RANGES.get(key, (min(0.0, 2.0 * value), max(1.0, 2.0 * value), False))
    minimum, maximum = min(minimum, value), max(maximum, value)
    return Parameter(key, value, minimum, maximum, _unit(config, key), logarithmic and value > 0.0)


def _unit(config: SessionConfig, key: str) -> str:
    """Return the unit with which the law or the element declares its parameter; a custom law declares none."""
    table, _, name = key.partition(".")
    element = config.make_element()
    law = element.law.law if isinstance(element.law, ClosedForm) else element.law
    owner: Any = law if table == "law" else element
    units = {field.name: str(field.metadata.get("unit", "")) for field in dataclasses.fields(owner)}
    return units.get(name, "")
