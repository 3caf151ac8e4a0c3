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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.coupled import Coupling
from calibration.friction.model import DIMENSIONS, MODELS, negative
from calibration.handle import NAMES, Handle
from devices.common.parameter_keys import UNIT_WORDS, key, unit_key
from haptics.errors import ConfigurationError
from haptics.files import format_toml, read_toml, write_atomically
from haptics.friction.laws import CoulombViscous, GaussianStribeck, Law, Stribeck
from haptics.settings import unknown_name

Array = NDArray[np.float64]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Found:
    """Parameters from one identification, with their quality.

    Attributes
    ----------
    model : str
        Name of the friction model in `calibration.friction.MODELS`, or unit of the motor's drive signal.
    values : mapping
        Parameters by name, SI units.
    intervals : mapping
        95 % intervals of the parameters that have one.
    facts : mapping
        Properties of the fit: samples, exclusions, condition number, residuals.
    warnings : tuple of str
        Reasons to doubt the parameters.
    """

    model: str
    values: Mapping[str, float]
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class JointParameters:
    """Parameters of a joint.

    Attributes
    ----------
    name : str
        Name of the joint.
    rotary : bool
        Whether the joint is rotary (rad, N m) or prismatic (m, N).
    friction, motor : Found or None
        Identified parameters.
    """

    name: str
    rotary: bool
    friction: Found | None = None
    motor: Found | None = None

    def friction_at(self, velocity: Array) -> Array:
        """Return the friction F at velocities of the joint, with their sign, including the identified offset.

        Parameters
        ----------
        velocity : (n,) float array
            Velocity [rad/s] or [m/s].

        Returns
        -------
        (n,) float array
            Friction [N m] or [N].

        Raises
        ------
        ConfigurationError
            If the friction of the joint is unknown.
        """
        found = self.known_friction()
        return np.asarray(MODELS[found.model].evaluate(found.values, velocity))

    @property
    def dead_band(self) -> float | None:
        """Dead band of the friction identification [rad/s] or [m/s], None if unknown."""
        facts = self.known_friction().facts
        return facts.get(key("dead_band", "velocity", self.rotary))

    def law(self, lever_arm: float = 1.0) -> Law:
        """Return the friction as a law that an element can render.

        Such laws have the same levels in both directions: the mean of both, without the offset. `friction_at`
        distinguishes the directions.

        Parameters
        ----------
        lever_arm : float
            For a rotary joint: distance from its axis at which the friction is felt [m].

        Raises
        ------
        ConfigurationError
            If the friction is unknown, the lever arm is not greater than 0, or no supported law permits the levels.
        """
        found, arm = self.known_friction(), lever_arm if self.rotary else 1.0
        if not 0.0 < arm < 1e6:
            raise ConfigurationError(f"lever_arm = {arm!r}: must be a length greater than 0 m.")

        def mean(name: str) -> float:
            names = {name, f"{name}_forward", f"{name}_backward"}
            sides = [value for each, value in found.values.items() if each in names]
            return sum(sides) / len(sides) if sides else 0.0  # a viscous joint has no level

        coulomb, viscosity = mean("coulomb") / arm, mean("viscosity") / arm**2
        kind = MODELS[found.model].stribeck
        if kind == "none":
            return CoulombViscous(coulomb, viscosity)
        shape = {"exponential": Stribeck, "gaussian": GaussianStribeck}[kind]
        return shape(coulomb, mean("static") / arm, found.values["stribeck_velocity"] * arm, viscosity)

    def known_friction(self) -> Found:
        """Return the friction.

        Raises
        ------
        ConfigurationError
            If it is unknown.
        """
        if self.friction is None:
            raise ConfigurationError(
                f"joint {self.name}: its friction is not known; haptics calibrate friction finds it."
            )
        return self.friction


@dataclass(frozen=True)
class Provenance:
    """Origin of the numbers.

    Attributes
    ----------
    date, method, device : str
        Date, method, and device.
    data_files, data_sha256 : tuple of str
        Input files and their hashes.
    versions : mapping
        Versions of the software.
    """

    date: str = ""
    method: str = ""
    device: str = ""
    data_files: tuple[str, ...] = ()
    data_sha256: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ParameterFile:
    """Content of a parameter file.

    Attributes
    ----------
    provenance : Provenance
        Origin of the numbers.
    joints : tuple of JointParameters
        Parameters of the joints, or of the motors of a coupling.
    coupling : Coupling or None
        Coupling of the joints and motors, if any.
    handle : Handle or None
        Handle on the force sensor, and bias of the sensor.
    """

    provenance: Provenance
    joints: tuple[JointParameters, ...]
    coupling: Coupling | None = None
    handle: Handle | None = None

    def joint(self, name: str) -> JointParameters:
        """Return the joint with this name.

        Raises
        ------
        ConfigurationError
            If there is no such joint.
        """
        for joint in self.joints:
            if joint.name == name:
                return joint
        raise unknown_name("joint", name, [joint.name for joint in self.joints])


# --- uncertainty ------------------------------------------------------------------------------------------------------

NORMAL_95 = 1.959963984540054
"""Half width of the central 95 % interval of the normal distribution, in standard deviations."""

CHANGE = 0.2
"""Relative change of a friction parameter since its identification (standard deviation)."""


def friction_spread(joint: JointParameters, velocity: Array) -> tuple[Array, ...]:
    """Return the change of the friction for one standard deviation of each parameter.

    The result is an argument of `identify_motor`.

    Parameters
    ----------
    joint : JointParameters
        Joint with a friction and its intervals.
    velocity : (n,) float array
        Velocity [rad/s] or [m/s].
    """
    intervals = joint.known_friction().intervals
    sizes = {name: (interval[1] - interval[0]) / (2.0 * NORMAL_95) for name, interval in intervals.items()}
    return _moved(joint, velocity, sizes)


def friction_change(joint: JointParameters, velocity: Array) -> tuple[Array, ...]:
    """Return the possible change of the friction since its identification, for `identify_motor`.

    Each level, viscosity and Stribeck velocity may have changed by 20 % (one standard deviation), as in a warm gear.

    Parameters
    ----------
    joint : JointParameters
        Joint with a friction.
    velocity : (n,) float array
        Velocity [rad/s] or [m/s].
    """
    values = joint.known_friction().values
    return _moved(joint, velocity, {name: CHANGE * abs(value) for name, value in values.items() if name != "offset"})


def _moved(joint: JointParameters, velocity: Array, sizes: Mapping[str, float]) -> tuple[Array, ...]:
    """Return the change of the friction for a step of each of its parameters."""
    found, here = joint.known_friction(), joint.friction_at(velocity)
    moved = [
        Found(found.model, {**found.values, name: found.values[name] + size})
        for name, size in sizes.items()
        if name in found.values and name != "inertia" and size > 0.0
    ]
    return tuple(replace(joint, friction=one).friction_at(velocity) - here for one in moved)


# --- file -------------------------------------------------------------------------------------------------------------

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
    tables: dict[str, Any] = {"provenance": vars(file.provenance)}
    if file.coupling is not None:
        tables["coupling"] = vars(file.coupling) | {"matrix": file.coupling.matrix.tolist()}
    tables["joint"] = {joint.name: joint_table(joint) for joint in file.joints}
    if file.handle is not None:
        tables["handle"] = handle_table(file.handle)
    return format_toml(tables)


def joint_table(joint: JointParameters) -> dict[str, Any]:
    """Return the table of a joint, with units in the keys."""
    table: dict[str, Any] = {"rotary": joint.rotary}
    for kind, found in (("friction", joint.friction), ("motor", joint.motor)):
        if found is None:
            continue
        keys = parameter_keys(kind, found.model, joint.rotary)
        if kind == "friction":
            _require_friction(found, keys, f"joint.{joint.name}.friction")
        table[kind] = {
            _MODEL[kind]: found.model,
            **{keys[name]: value for name, value in found.values.items()},
            "warnings": list(found.warnings),
            _INTERVAL: {keys[name]: list(interval) for name, interval in found.intervals.items()},
            "fit": dict(found.facts),
        }
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


# --- reading ----------------------------------------------------------------------------------------------------------


def read_parameter_file(path: str | Path) -> ParameterFile:
    """Read a parameter file.

    Raises
    ------
    ConfigurationError
        If it cannot be read; names the file, the table, the wrong key and the allowed values.
    """
    return parse_parameter_file(read_toml(path, remedy="haptics calibrate friction makes such a file"), str(path))


def parse_parameter_file(content: Mapping[str, Any], where: str) -> ParameterFile:
    """Return the parameters in the tables of a file; `where` names it in messages.

    Raises
    ------
    ConfigurationError
        As in `read_parameter_file`.
    """
    try:
        _require_known(content, ("provenance", "joint", "coupling", "handle"), "table")
        facts = _table(content, "provenance")
        provenance: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()
        }
        _require_known(provenance, Provenance.__dataclass_fields__, "provenance key")
        joints = _table(content, "joint")
        handle = _handle(_table(content, "handle")) if "handle" in content else None
        if not joints and handle is None:
            raise ConfigurationError("there is no table [joint.NAME].")
        return ParameterFile(
            Provenance(**provenance),
            tuple(_joint(name, joints) for name in joints),
            None if content.get("coupling") is None else read_coupling(_table(content, "coupling")),
            handle,
        )
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error


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


def _joint(name: str, joints: dict[str, Any]) -> JointParameters:
    where = f"joint.{name}"
    table = _table(joints, name, where)
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
    word = _MODEL[kind]
    model = table.get(word)
    if not isinstance(model, str):
        raise ConfigurationError(f"{where}.{word} is missing: must be text.")
    keys = parameter_keys(kind, model, rotary)
    names = {key: name for name, key in keys.items()}
    _require_known(table, (*names, word, "warnings", _INTERVAL, "fit"), f"{where} key")
    values = {name: _number(table[key], f"{where}.{key}") for key, name in names.items() if key in table}
    given = _table(table, _INTERVAL, f"{where}.{_INTERVAL}")
    _require_known(given, names, f"{where}.{_INTERVAL} key")
    intervals: dict[str, Interval] = {}
    for each, value in given.items():
        if not isinstance(value, list) or len(value) != 2:
            raise ConfigurationError(f"{where}.{_INTERVAL}.{each} = {value!r}: must be two numbers.")
        low, high = (_number(end, f"{where}.{_INTERVAL}.{each}") for end in value)
        intervals[names[each]] = low, high
    facts = _table(table, "fit", f"{where}.fit")
    found = Found(model, values, intervals, facts, _texts(table, "warnings", where))
    for name in MODELS[model].names if kind == "friction" else ("gain", "offset"):
        if name not in found.values:
            raise ConfigurationError(f"{where}.{keys[name]} is missing.")
    if kind == "friction":
        _require_friction(found, keys, where)
    return found


def _require_friction(found: Found, keys: Mapping[str, str], where: str) -> None:
    """Raise `ConfigurationError` if a level or a viscosity is negative."""
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


# --- keys -------------------------------------------------------------------------------------------------------------

DRIVE_UNITS = ("percent", "count", "duty", "a", "v")

MOTOR_DIMENSIONS = {"offset": "force", "hysteresis": "force", "back_emf_viscosity": "viscosity"}
"""Dimensions of the parameters of a motor besides ``gain``."""


def parameter_keys(kind: str, model: str, rotary: bool) -> dict[str, str]:
    """Return the keys of the parameters of a ``friction`` model, or of a ``motor`` and its drive unit, by their names.

    Raises
    ------
    ConfigurationError
        If the model or the drive unit is unknown.
    """
    if kind == "friction":
        if model not in MODELS:
            raise unknown_name("friction model", model, MODELS)
        return {name: key(name, DIMENSIONS[name], rotary) for name in (*MODELS[model].names, "inertia")}
    if model not in DRIVE_UNITS:
        raise unknown_name("drive unit", model, DRIVE_UNITS)
    keys = {name: key(name, dimension, rotary) for name, dimension in MOTOR_DIMENSIONS.items()}
    return {"gain": f"gain_{unit_key('force', rotary)}_per_{model}", **keys}


def parameter_unit(name: str, rotary: bool, drive_unit: str = "") -> str:
    """Return the unit of a friction or motor parameter in conventional notation."""
    if name == "gain":
        return f"{UNIT_WORDS[unit_key('force', rotary)]}/{UNIT_WORDS[drive_unit]}"
    return UNIT_WORDS[unit_key({**DIMENSIONS, **MOTOR_DIMENSIONS}[name], rotary)]


_MODEL = {"friction": "model", "motor": "drive_unit"}
"""Key of the model of each kind of parameters."""
