"""The grammar of keys in parameter files: ``static_forward`` of a joint that turns is ``static_torque_forward_nm``.

A key is the name of a quantity with its unit behind it. Calibrations write by it, devices read by it.
"""

from __future__ import annotations

from collections.abc import Mapping

_UNITS: Mapping[str, tuple[str, str]] = {
    "force": ("nm", "n"),
    "viscosity": ("nms_per_rad", "ns_per_m"),
    "velocity": ("rad_per_s", "m_per_s"),
    "distance": ("rad", "m"),
    "inertia": ("kgm2", "kg"),
}
"""Of every dimension: the unit of a joint that turns, and of one that slides."""

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
"""Units as keys spell them, and as people write them."""


def key(name: str, dimension: str, rotary: bool) -> str:
    """Return the key of a parameter of that dimension."""
    if dimension == "force":  # a level is a torque or a force: the word says which
        first, _, rest = name.partition("_")
        name = "_".join(filter(None, (first, "torque" if rotary else "force", rest)))
    elif name == "inertia" and not rotary:
        name = "mass"
    return f"{name}_{unit_key(dimension, rotary)}"


def unit_key(dimension: str, rotary: bool) -> str:
    """Return the unit of a dimension as keys spell it."""
    return _UNITS[dimension][0 if rotary else 1]
