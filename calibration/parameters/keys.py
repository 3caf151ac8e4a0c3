"""What parameters are called in files: ``static_forward`` of a joint that turns is ``static_torque_forward_nm``."""

from __future__ import annotations

from collections.abc import Mapping

from haptics.settings import unknown

_UNITS: Mapping[str, tuple[str, str]] = {
    "force": ("nm", "n"),
    "viscosity": ("nms_per_rad", "ns_per_m"),
    "velocity": ("rad_per_s", "m_per_s"),
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
    "kgm2": "kg m²",
    "kg": "kg",
    "percent": "%",
    "count": "counts",
    "duty": "1",
    "a": "A",
    "v": "V",
}
"""Units as keys spell them, and as people write them."""

DRIVE_UNITS = ("percent", "count", "duty", "a", "v")

MOTOR_DIMENSIONS = {"offset": "force", "hysteresis": "force", "back_emf_viscosity": "viscosity"}
"""Of a motor, besides ``gain``: what each parameter is."""


def friction_keys(model: str, rotary: bool) -> dict[str, str]:
    """Return the keys of a friction's parameters by their names.

    Raises
    ------
    ConfigurationError
        If there is no such model.
    """
    from calibration.friction import DIMENSIONS, MODELS

    if model not in MODELS:
        raise unknown("friction model", model, MODELS)
    return {name: key(name, DIMENSIONS[name], rotary) for name in (*MODELS[model].names, "inertia")}


def motor_keys(drive_unit: str, rotary: bool) -> dict[str, str]:
    """Return the keys of a motor's parameters by their names.

    Raises
    ------
    ConfigurationError
        If nothing is driven in that unit.
    """
    if drive_unit not in DRIVE_UNITS:
        raise unknown("drive unit", drive_unit, DRIVE_UNITS)
    keys = {name: key(name, dimension, rotary) for name, dimension in MOTOR_DIMENSIONS.items()}
    return {"gain": f"gain_{unit_key('force', rotary)}_per_{drive_unit}", **keys}


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


def parameter_unit(name: str, rotary: bool, drive_unit: str = "") -> str:
    """Return the unit of a friction's or a motor's parameter as people write it."""
    from calibration.friction import DIMENSIONS

    if name == "gain":
        return f"{UNIT_WORDS[unit_key('force', rotary)]}/{UNIT_WORDS[drive_unit]}"
    return UNIT_WORDS[unit_key({**DIMENSIONS, **MOTOR_DIMENSIONS}[name], rotary)]
