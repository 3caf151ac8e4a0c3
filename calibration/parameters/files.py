"""Parameter files: identification results as TOML, with a table for each joint and units in the keys.

::

    [provenance]
    date = "2026-01-31T12:00:00+00:00"
    method = "..."
    device = "..."
    data_files = ["knee.csv"]
    data_sha256 = ["..."]

    [provenance.versions]
    haptics = "0.1.0"

    [joint.knee]
    rotary = true

    [joint.knee.friction]
    model = "stribeck"
    coulomb_torque_nm = 0.85
    viscosity_nms_per_rad = 17.8
    static_torque_forward_nm = 1.27
    static_torque_backward_nm = 1.95
    stribeck_velocity_rad_per_s = 0.0175
    warnings = []

    [joint.knee.friction.interval_95]
    coulomb_torque_nm = [0.843, 0.857]

    [joint.knee.friction.fit]
    samples = 6000
    condition_number = 42.0

    [joint.knee.motor]
    drive_unit = "percent"
    gain_nm_per_percent = 0.05
    offset_torque_nm = 0.8

    [handle]
    mass_kg = 0.3
    centre_z_m = 0.05
    bias_force_x_n = 2.0
    unknown = []
    resting_wrench_n_nm = [2.0, -1.0, 0.06, 0.02, -0.05, 0.01]
    warnings = []

    [handle.standard_error]
    mass_kg = 0.002

    [handle.fit]
    poses = 24

A prismatic joint has forces: ``coulomb_force_n``, ``viscosity_ns_per_m``. Levels are positive. The friction F has the
sign of the velocity, and an undriven joint exerts the torque -F.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibration.coupled import Coupling
from calibration.handle import NAMES, Handle
from calibration.parameters.keys import friction_keys, motor_keys
from calibration.parameters.parameters import Found, Interval, JointParameters, ParameterFile, Provenance
from calibration.parameters.toml_text import format_toml
from haptics.errors import ConfigurationError
from haptics.files import write_atomically
from haptics.reading import parse_toml, read_toml
from haptics.settings import unknown_name

_INTERVAL = "interval_95"
_ERROR = "standard_error"
_RESTING = "resting_wrench_n_nm"

# --- writing ----------------------------------------------------------------------------------------------------------


def write_parameter_file(path: str | Path, file: ParameterFile) -> None:
    """Write a parameter file atomically.

    Raises
    ------
    ConfigurationError
        If it cannot be written, or contains a negative level or viscosity.
    """
    write_atomically(path, format_parameter_file(file))


def format_parameter_file(file: ParameterFile) -> str:
    """Format a parameter file as TOML. `parse_parameter_file` restores the same numbers."""
    tables: dict[str, Any] = {"provenance": _shown(file.provenance)}
    if file.coupling is not None:
        tables["coupling"] = _shown(file.coupling) | {"matrix": file.coupling.matrix.tolist()}
    tables["joint"] = {joint.name: joint_table(joint) for joint in file.joints}
    if file.handle is not None:
        tables["handle"] = handle_table(file.handle)
    return format_toml(tables)


def _shown(instance: Any) -> dict[str, Any]:
    return {name: getattr(instance, name) for name in instance.__dataclass_fields__}


def joint_table(joint: JointParameters) -> dict[str, Any]:
    """Return the table of a joint, with units in the keys."""
    table: dict[str, Any] = {"rotary": joint.rotary}
    if joint.friction is not None:
        keys = friction_keys(joint.friction.model, joint.rotary)
        _require_friction(joint.friction, keys, f"joint.{joint.name}.friction")
        table["friction"] = {"model": joint.friction.model, **_found_table(joint.friction, keys)}
    if joint.motor is not None:
        keys = motor_keys(joint.motor.model, joint.rotary)
        table["motor"] = {"drive_unit": joint.motor.model, **_found_table(joint.motor, keys)}
    return table


def handle_table(handle: Handle) -> dict[str, Any]:
    """Return the table of a handle."""
    return {
        **handle.values,
        "unknown": list(handle.unknown),
        _RESTING: list(handle.resting),
        "warnings": list(handle.warnings),
        _ERROR: dict(handle.errors),
        "fit": dict(handle.facts),
    }


def _found_table(found: Found, keys: Mapping[str, str]) -> dict[str, Any]:
    values = {keys[name]: value for name, value in found.values.items()}
    intervals = {keys[name]: list(interval) for name, interval in found.intervals.items()}
    return {**values, "warnings": list(found.warnings), _INTERVAL: intervals, "fit": dict(found.facts)}


# --- reading ----------------------------------------------------------------------------------------------------------


def read_parameter_file(path: str | Path) -> ParameterFile:
    """Read a parameter file.

    Raises
    ------
    ConfigurationError
        If it cannot be read; names the file, the table, the wrong key and the allowed values.
    """
    return _parsed(read_toml(path, remedy="haptics calibrate friction makes such a file"), str(path))


def parse_parameter_file(text: str, where: str) -> ParameterFile:
    """Parse the TOML `text` of a parameter file; `where` names it in messages.

    Raises
    ------
    ConfigurationError
        As in `read_parameter_file`.
    """
    return _parsed(parse_toml(text, where), where)


def _parsed(content: dict[str, Any], where: str) -> ParameterFile:
    try:
        return _file(content)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error


def _file(content: dict[str, Any]) -> ParameterFile:
    _require_known(content, ("provenance", "joint", "coupling", "handle"), "table")
    provenance = {key: _as_tuple(value) for key, value in _table(content, "provenance").items()}
    _require_known(provenance, Provenance.__dataclass_fields__, "provenance key")
    joints = _table(content, "joint")
    handle = _handle(_table(content, "handle")) if "handle" in content else None
    if not joints and handle is None:
        raise ConfigurationError("there is no table [joint.NAME].")
    coupling = content.get("coupling")
    return ParameterFile(
        Provenance(**provenance),
        tuple(_joint(name, _table(joints, name, f"joint.{name}")) for name in joints),
        None if coupling is None else read_coupling(_table(content, "coupling")),
        handle,
    )


def read_coupling(table: Any) -> Coupling:
    """Return the coupling from a table ``[coupling]`` with ``joints``, ``motors`` and ``matrix``.

    Raises
    ------
    ConfigurationError
        If the table is invalid.
    """
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"coupling = {table!r}: must be a table.")
    _require_known(table, Coupling.__dataclass_fields__, "coupling key")
    try:
        joints, motors = (tuple(map(str, table[name])) for name in ("joints", "motors"))
        return Coupling(joints, motors, np.array(table["matrix"], dtype=np.float64))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(
            "coupling: must have joints, motors (lists of names) and matrix (n rows of n)."
        ) from error


def _handle(table: dict[str, Any]) -> Handle:
    errors = _table(table, _ERROR, f"handle.{_ERROR}")
    _require_known(table, (*NAMES, "unknown", _RESTING, "warnings", _ERROR, "fit"), "handle key")
    _require_known(errors, NAMES, f"handle.{_ERROR} key")
    resting = table.get(_RESTING)
    if not isinstance(resting, list) or len(resting) != 6:
        raise ConfigurationError(f"handle.{_RESTING} = {resting!r}: must be six numbers.")
    return Handle(
        {name: _number(table[name], f"handle.{name}") for name in NAMES if name in table},
        {name: _number(error, f"handle.{_ERROR}.{name}") for name, error in errors.items()},
        _texts(table, "unknown", "handle"),
        tuple(_number(one, f"handle.{_RESTING}") for one in resting),
        _table(table, "fit", "handle.fit"),
        _texts(table, "warnings", "handle"),
    )


def _joint(name: str, table: dict[str, Any]) -> JointParameters:
    where = f"joint.{name}"
    _require_known(table, ("rotary", "friction", "motor"), f"{where} key")
    rotary = table.get("rotary", True)
    if not isinstance(rotary, bool):
        raise ConfigurationError(f"{where}.rotary = {rotary!r}: must be true or false.")
    friction, motor = (_found(table, kind, rotary, where) for kind in ("friction", "motor"))
    return JointParameters(name, rotary, friction, motor)


def _found(joint: dict[str, Any], kind: str, rotary: bool, joint_name: str) -> Found | None:
    if kind not in joint:
        return None
    where = f"{joint_name}.{kind}"
    table = _table(joint, kind, where)
    word = {"friction": "model", "motor": "drive_unit"}[kind]
    model = table.get(word)
    if not isinstance(model, str):
        raise ConfigurationError(f"{where}.{word} is missing: must be text.")
    keys = (friction_keys if kind == "friction" else motor_keys)(model, rotary)
    names = {key: name for name, key in keys.items()}
    _require_known(table, (*names, word, "warnings", _INTERVAL, "fit"), f"{where} key")
    values = {name: _number(table[key], f"{where}.{key}") for key, name in names.items() if key in table}
    intervals = _table(table, _INTERVAL, f"{where}.{_INTERVAL}") if _INTERVAL in table else {}
    _require_known(intervals, names, f"{where}.{_INTERVAL} key")
    found = Found(
        model,
        values,
        {names[key]: _interval(value, f"{where}.{_INTERVAL}.{key}") for key, value in intervals.items()},
        _table(table, "fit", f"{where}.fit") if "fit" in table else {},
        _texts(table, "warnings", where),
    )
    _require_complete(found, keys, kind, where)
    return found


def _require_complete(found: Found, keys: Mapping[str, str], kind: str, where: str) -> None:
    from calibration.friction import MODELS

    needed = MODELS[found.model].names if kind == "friction" else ("gain", "offset")
    for name in needed:
        if name not in found.values:
            raise ConfigurationError(f"{where}.{keys[name]} is missing.")
    if kind == "friction":
        _require_friction(found, keys, where)


def _require_friction(found: Found, keys: Mapping[str, str], where: str) -> None:
    """Raise `ConfigurationError` if a level or a viscosity is negative."""
    from calibration.friction import negative

    for name in negative(found.values):
        raise ConfigurationError(
            f"{where}.{keys[name]} = {found.values[name]:g}: is no friction; must be at least 0: identify it again "
            "without --unbounded."
        )


def _table(tables: Mapping[str, Any], name: str, where: str = "") -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise ConfigurationError(f"{where or name} = {table!r}: must be a table.")
    return table


def _texts(table: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    texts = table.get(name, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ConfigurationError(f"{where}.{name} = {texts!r}: must be a list of texts.")
    return tuple(texts)


def _require_known(table: Mapping[str, Any], allowed: Any, kind: str) -> None:
    for name in table:
        if name not in allowed:
            raise unknown_name(kind, name, allowed)


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigurationError(f"{where} = {value!r}: must be a finite number.")
    return float(value)


def _interval(value: Any, where: str) -> Interval:
    if not isinstance(value, list) or len(value) != 2:
        raise ConfigurationError(f"{where} = {value!r}: must be two numbers.")
    low, high = (_number(one, where) for one in value)
    return low, high


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
