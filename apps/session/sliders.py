"""Which parameters of a session can be changed while it runs, and over which range a slider moves them."""

from __future__ import annotations

from apps.session.config import SessionConfig
from apps.session.messages import Parameter

_RANGES: dict[str, tuple[float, float, str, bool]] = {
    "law.force": (0.0, 8.0, "N", False),
    "law.kinetic_force": (0.0, 8.0, "N", False),
    "law.static_force": (0.0, 8.0, "N", False),
    "law.viscosity": (0.0, 50.0, "N s/m", False),
    "law.stribeck_velocity": (0.001, 1.0, "m/s", True),
    "element.mass": (0.01, 20.0, "kg", True),
    "element.stiffness": (100.0, 50000.0, "N/m", True),
    "element.damping": (0.1, 1000.0, "N s/m", True),
}


def sliders(config: SessionConfig) -> tuple[Parameter, ...]:
    """Return a slider for every number of the law and of the element."""
    values = {f"law.{name}": value for name, value in config.law.items() if name != "name"}
    values |= {f"element.{name}": value for name, value in config.element.items()}
    return tuple(_slider(key, float(value)) for key, value in values.items())


def _slider(key: str, value: float) -> Parameter:
    minimum, maximum, unit, logarithmic = _RANGES[key]
    return Parameter(key, value, min(minimum, value), max(maximum, value), unit, logarithmic and value > 0.0)
