"""Keys of parameter files: ``static_forward`` of a rotary joint is ``static_torque_forward_nm``.

A key is the name of a quantity followed by its unit. Calibrations write these keys, and devices read them.
"""

from __future__ import annotations

from collections.abc import Mapping

# Units of every dimension, for a rotary and for a linear joint.
_UNITS: Mapping[str, tuple[str, str]] = {
    "force": ("nm", "n"),
    "viscosity": ("nms_per_rad", "ns_per_m"),
    "velocity": ("rad_per_s", "m_per_s"),
    "distance": ("rad", "m"),
    "inertia": ("kgm2", "kg"),
}

UNIT_WORDS: Mapping[str, str] = {
    "nm": "N m",
    "n": "N",
    "nms_per_rad": "N m s/rad",
    "ns_per_m": "N s/m",
    "rad_per_s": "rad/s",
    "m_per_s": "m/s",
    "rad": "rad",
    "m": "m",
    "kgm2": "kg m²",
    "kg": "kg",
    "percent": "%",
    "count": "counts",
    "duty": "1",
    "a": "A",
    "v": "V",
}
"""Printed form of units, by their form in keys."""


def key(name: str, dimension: str, rotary: bool) -> str:
    """Return the key of a parameter of this dimension."""
    if dimension == "force":  # the name distinguishes torques from forces
        first, _, rest = name.partition("_")
        name = "_".join(filter(None, (first, "torque" if rotary else "force", rest)))
    elif name == "inertia" and not rotary:
        name = "mass"
    return f"{name}_{unit_key(dimension, rotary)}"


def unit_key(dimension: str, rotary: bool) -> str:
    """Return the unit of a dimension in the form used in keys."""
    return _UNITS[dimension][0 if rotary else 1]
