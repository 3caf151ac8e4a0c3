"""Keys of the parameters of friction and motors in files (`devices.common.parameter_keys`)."""

from __future__ import annotations

from devices.common.parameter_keys import UNIT_WORDS, key, unit_key
from haptics.settings import unknown_name

DRIVE_UNITS = ("percent", "count", "duty", "a", "v")

MOTOR_DIMENSIONS = {"offset": "force", "hysteresis": "force", "back_emf_viscosity": "viscosity"}
"""Dimensions of the parameters of a motor besides ``gain``."""


def friction_keys(model: str, rotary: bool) -> dict[str, str]:
    """Return the keys of a friction's parameters by their names.

    Raises
    ------
    ConfigurationError
        If the model is unknown.
    """
    from calibration.friction import DIMENSIONS, MODELS

    if model not in MODELS:
        raise unknown_name("friction model", model, MODELS)
    return {name: key(name, DIMENSIONS[name], rotary) for name in (*MODELS[model].names, "inertia")}


def motor_keys(drive_unit: str, rotary: bool) -> dict[str, str]:
    """Return the keys of a motor's parameters by their names.

    Raises
    ------
    ConfigurationError
        If the drive unit is unknown.
    """
    if drive_unit not in DRIVE_UNITS:
        raise unknown_name("drive unit", drive_unit, DRIVE_UNITS)
    keys = {name: key(name, dimension, rotary) for name, dimension in MOTOR_DIMENSIONS.items()}
    return {"gain": f"gain_{unit_key('force', rotary)}_per_{drive_unit}", **keys}


def parameter_unit(name: str, rotary: bool, drive_unit: str = "") -> str:
    """Return the unit of a friction or motor parameter in conventional notation."""
    from calibration.friction import DIMENSIONS

    if name == "gain":
        return f"{UNIT_WORDS[unit_key('force', rotary)]}/{UNIT_WORDS[drive_unit]}"
    return UNIT_WORDS[unit_key({**DIMENSIONS, **MOTOR_DIMENSIONS}[name], rotary)]
