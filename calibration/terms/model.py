"""Terms of a joint's friction model, the model as their sum, and its TOML file.

A term is one or several columns; a model is the sum of its terms, each multiplied by a coefficient. Terms that depend
on a scale (such as a velocity) have variants with the same `name`, of which a model contains at most one. Every term
has a `kind`, because the torque of a motor contains more than friction:

friction
    opposes the motion: sliding, sticking, presliding, increase at rest. Compensation may use these terms.
inertia, load
    errors of the inertia and load that were subtracted before.
drive
    torque by which the motor's controller reacts to ripple of the velocity, and periodic torque of motor and gear.

Sources: viscous and Coulomb friction, (21), and Stribeck friction, (29), of Guedelha et al. 2018; presliding by Dahl
1968, solved exactly for each change of position; load-dependent friction as reviewed by Bittencourt and Gunnarsson
2012; friction that increases at rest and decreases in motion: Rabinowicz 1958.

A file has a table for each term of each joint, with units in the keys::

    [joint.1]
    rotary = true

    [joint.1.presliding]
    scale_rad = 4.85e-05
    coefficient_nm = [362.8]
    interval_95_nm = [[330.0, 395.5]]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording
from calibration.fitting.intervals import ErrorEstimate, relative_error
from devices.common import parameter_keys
from haptics.errors import ConfigurationError
from haptics.files import format_toml, read_toml, write_atomically
from haptics.settings import unknown_name

Array = NDArray[np.float64]

KINDS = ("friction", "inertia", "load", "drive")

_SCALES = {
    "coulomb": (0.001, 0.003, 0.01, 0.03),
    "presliding": (3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
    "bend": (0.1, 0.25, 0.5),
    "stribeck": (0.01, 0.03, 0.1, 0.3),
    "rest": (5e-4, 1e-3, 2e-3, 4e-3, 1e-2),
}
"""Scales of the candidate terms, relative to the top speed or the total travel."""


@dataclass(frozen=True, eq=False)
class Term:
    """One term of a model.

    Attributes
    ----------
    name : str
        Name; a model contains at most one term per name.
    kind : str
        One of `KINDS`.
    dimension : str
        Dimension of its coefficient: ``force`` (or torque), ``viscosity``, ``cubic viscosity``, ``inertia`` (or mass),
        ``slowness`` (1/velocity) or ``ratio``.
    columns : callable
        Maps a `JointRecording` of n samples, and the scale of a variant, to an array (n,) or (n, count).
    positive : bool
        Whether its coefficient must be at least 0.
    once : bool
        Whether it occurs only once in a recording.
    scale : float or None
        Scale of the variant, in SI units.
    scale_dimension : str
        Dimension of the scale: ``velocity``, ``distance`` or ``order`` (1/distance); empty without a scale.
    count : int
        Number of columns.
    """

    name: str
    kind: str
    dimension: str
    columns: Callable[..., Array]
    positive: bool = False
    once: bool = False
    scale: float | None = None
    scale_dimension: str = ""
    count: int = 1

    @property
    def label(self) -> str:
        """Name with the scale of the variant."""
        return self.name if self.scale is None else f"{self.name} ({self.scale:.3g})"

    def matrix(self, recording: JointRecording) -> Array:
        """Return its columns, (n, count)."""
        columns = self.columns(recording) if self.scale is None else self.columns(recording, self.scale)
        return columns.reshape(len(recording), self.count)


def candidate_terms(recording: JointRecording, ripple_orders: tuple[float, ...] = ()) -> tuple[Term, ...]:
    """Return the candidate terms in addition to `BASE`.

    Parameters
    ----------
    recording : JointRecording
        Its top speed and total travel determine the scales of the variants; terms of missing signals are omitted.
    ripple_orders : tuple of float
        Periods of motor or gear ripple per radian (or metre) of the joint, of which at most one is selected. Requires a
        position with the same zero in every recording.
    """
    speed, travel = recording.top_speed, float(recording.travel[-1])
    variants = [
        make_term(name, share * (travel if name in {"presliding", "rest"} else speed))
        for name, shares in _SCALES.items()
        if name != "rest" or recording.starts_at_rest
        for share in shares
    ]
    variants += [make_term("ripple", order) for order in ripple_orders if recording.position is not None]
    plain = ["asymmetric_viscosity", "cubic_viscosity", "inertia", "drive_reaction"]
    if recording.load is not None:
        plain += ["load_coulomb", "load_viscosity", "load"]
    if recording.position is not None and recording.rotary:
        plain.append("pose")
    return (*variants, *map(make_term, plain))


def make_term(name: str, scale: float | None = None) -> Term:
    """Return a term by its name and, if it has variants, its scale.

    Raises
    ------
    ConfigurationError
        If the term is unknown, or its scale is missing, superfluous or not above 0.
    """
    if name not in _TERMS:
        raise unknown_name("term", name, _TERMS)
    term = _TERMS[name]
    if not term.scale_dimension:
        if scale is not None:
            raise ConfigurationError(f'term "{name}" has no scale')
        return term
    if scale is None or not 0.0 < scale < np.inf:
        raise ConfigurationError(f'the scale of term "{name}" is {scale}; must be a number above 0')
    return replace(term, scale=scale)


def dahl(way: Array, length: float, start: float = 0.0) -> Array:
    """Return the presliding state of Dahl 1968 along a path, from 0 (relaxed) to 1 or -1 (sliding).

    dz = dx/length (1 - z sign dx), solved exactly for each change of position.

    Parameters
    ----------
    way : array, (n,)
        Positions.
    length : float
        Distance over which the deviation from sliding decays to 37 %.
    start : float
        State at the first position.
    """
    step = np.diff(way)
    kept, toward = np.exp(-np.abs(step) / length), np.sign(step)
    state = np.full(len(way), start)
    z = start
    for index, (share, end) in enumerate(zip(kept.tolist(), toward.tolist(), strict=True), start=1):
        z = end + (z - end) * share
        state[index] = z
    return state


def _rest(seen: JointRecording, distance: float) -> Array:
    """Return additional friction after a long rest, which decays over a short travel."""
    if not seen.starts_at_rest:
        return np.zeros(len(seen))
    return seen.direction_from_rest(distance) * np.exp(-seen.travel / distance)


def _stribeck(seen: JointRecording, width: float) -> Array:
    return seen.direction() * np.exp(-np.abs(seen.smooth_velocity) / width)


def _ripple(seen: JointRecording, order: float) -> Array:
    return _waves(seen, order) * np.abs(seen.smooth_velocity)[:, None]


def _load(seen: JointRecording) -> Array:
    return np.zeros(len(seen)) if seen.load is None else seen.load


def _waves(seen: JointRecording, order: float = 1.0) -> Array:
    angle = order * (np.zeros(len(seen)) if seen.position is None else seen.position)
    return np.column_stack((np.cos(angle), np.sin(angle)))


_TERMS: Mapping[str, Term] = {
    term.name: term
    for term in (
        Term("offset", "friction", "force", lambda seen: np.ones(len(seen))),
        Term("viscosity", "friction", "viscosity", lambda seen: seen.smooth_velocity, True),
        Term("asymmetric_viscosity", "friction", "viscosity", lambda seen: np.abs(seen.smooth_velocity)),
        Term("cubic_viscosity", "friction", "cubic viscosity", lambda seen: seen.smooth_velocity**3),
        Term("load_coulomb", "friction", "ratio", lambda seen: np.abs(_load(seen)) * seen.direction(), True),
        Term("load_viscosity", "friction", "slowness", lambda seen: np.abs(_load(seen)) * seen.smooth_velocity, True),
        Term("inertia", "inertia", "inertia", lambda seen: seen.known_acceleration),
        Term("load", "load", "ratio", _load),
        Term("pose", "load", "force", _waves, count=2),
        Term("drive_reaction", "drive", "viscosity", lambda seen: -seen.ripple, True),
        Term("coulomb", "friction", "force", JointRecording.direction, True, scale_dimension="velocity"),
        Term("presliding", "friction", "force", lambda seen, d: dahl(seen.path, d), True, scale_dimension="distance"),
        # viscous friction that saturates at higher speed
        Term("bend", "friction", "force", JointRecording.direction, scale_dimension="velocity"),
        Term("stribeck", "friction", "force", _stribeck, True, scale_dimension="velocity"),
        Term("rest", "friction", "force", _rest, True, True, scale_dimension="distance"),
        Term("ripple", "drive", "viscosity", _ripple, scale_dimension="order", count=2),
    )
}
"""All terms by name; those with a dimension of the scale have variants."""

BASE = _TERMS["offset"], _TERMS["viscosity"]
"""Terms of every model."""


# --- models -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Fitted:
    """Term with its coefficients.

    Attributes
    ----------
    term : Term
        The term.
    values : array, (k,)
        Coefficients of its columns, SI units. For a term that occurs only once per recording, they are n/(n + 1) of the
        best fit to n recordings, because each recording has a different event: after a single event, half of its effect
        is the safe estimate.
    low, high : array, (k,)
        Ends of their intervals, by leaving out one block of the recordings at a time (jackknife).
    """

    term: Term
    values: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class TermModel:
    """Sum of terms.

    Attributes
    ----------
    fitted : tuple of Fitted
        Terms with coefficients.
    rotary : bool
        Whether the joint is rotary.
    """

    fitted: tuple[Fitted, ...]
    rotary: bool = True

    def of(self, name: str) -> Fitted | None:
        """Return the term with this name and its coefficients; None if absent."""
        return next((one for one in self.fitted if one.term.name == name), None)

    def predict(self, recording: JointRecording, kinds: Sequence[str] = KINDS) -> Array:
        """Return the predicted friction (n,) [N m or N] of a motion, from terms of the given kinds.

        The `friction` of the recording is not used. For compensation use ``("friction",)``, because effects of the
        drive are not friction.
        """
        total = np.zeros(len(recording))
        for one in self.fitted:
            if one.term.kind in kinds:
                total += one.term.matrix(recording) @ one.values
        return total

    def error(self, recording: JointRecording, kinds: Sequence[str] = KINDS) -> ErrorEstimate:
        """Return the prediction error on a recording, relative to the measured torque."""
        return relative_error(recording, self.predict(recording, kinds))


# --- files ------------------------------------------------------------------------------------------------------------

_UNITS: Mapping[str, tuple[str, str]] = {
    "cubic viscosity": ("nms3_per_rad3", "ns3_per_m3"),
    "slowness": ("s_per_rad", "s_per_m"),
    "ratio": ("ratio", "ratio"),
    "distance": ("rad", "m"),
    "order": ("per_rad", "per_m"),
}
"""Units of dimensions that only terms have, for a rotary and a prismatic joint."""


def write_term_file(path: str | Path, models: Mapping[str, TermModel], facts: Mapping[str, Any]) -> None:
    """Write models to a file atomically.

    Parameters
    ----------
    path : str or Path
        Path of the file.
    models : mapping
        Model of every joint, by name.
    facts : mapping
        Content of the table ``provenance``.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    joints = {name: model_table(model) for name, model in models.items()}
    write_atomically(path, format_toml({"provenance": dict(facts), "joint": joints}))


def model_table(model: TermModel) -> dict[str, Any]:
    """Return the table of a model."""
    table: dict[str, Any] = {"rotary": model.rotary}
    for one in model.fitted:
        term, unit = one.term, unit_key(one.term.dimension, model.rotary)
        scale = {} if term.scale is None else {f"scale_{unit_key(term.scale_dimension, model.rotary)}": term.scale}
        table[term.name] = {
            **scale,
            f"coefficient_{unit}": one.values.tolist(),
            f"interval_95_{unit}": np.column_stack((one.low, one.high)).tolist(),
        }
    return table


def holds_terms(path: str | Path) -> bool:
    """Return True if the file contains models composed of terms instead of law parameters.

    Raises
    ------
    ConfigurationError
        If it cannot be read.
    """
    joints = read_toml(path).get("joint")
    tables = [joint for joint in joints.values() if isinstance(joint, dict)] if isinstance(joints, dict) else []
    terms = [term for joint in tables for term in joint.values() if isinstance(term, dict)]
    return any(key.startswith("coefficient_") for term in terms for key in term)


def read_term_file(path: str | Path) -> dict[str, TermModel]:
    """Read the models of all joints.

    Raises
    ------
    ConfigurationError
        If the file cannot be read; names the file and the error.
    """
    joints = read_toml(path).get("joint")
    if not isinstance(joints, dict) or not joints:
        raise ConfigurationError(f"{path}: there is no table [joint.NAME].")
    try:
        models = {}
        for name, table in joints.items():
            if not isinstance(table, dict):
                raise ConfigurationError(f"joint.{name} = {table!r}: must be a table")
            rotary = table.get("rotary", True)
            if not isinstance(rotary, bool):
                raise ConfigurationError(f"joint.{name}.rotary = {rotary!r}: must be true or false")
            fitted = tuple(_fitted(term, value, rotary) for term, value in table.items() if term != "rotary")
            models[name] = TermModel(fitted, rotary)
        return models
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {str(error).rstrip('.')}.") from error


def _fitted(name: str, table: Any, rotary: bool) -> Fitted:
    if not isinstance(table, dict):
        raise ConfigurationError(f"{name} = {table!r}: must be a table")
    scales = [key for key in table if key.startswith("scale_")]
    term = make_term(name, *[float(_numbers(name, key, table, ())) for key in scales][:1])
    unit = unit_key(term.dimension, rotary)
    keys = [f"coefficient_{unit}", f"interval_95_{unit}"]
    keys += [] if term.scale is None else [f"scale_{unit_key(term.scale_dimension, rotary)}"]
    for key in table:
        if key not in keys:
            raise unknown_name(f"{name} key", key, keys)
    low, high = _numbers(name, keys[1], table, (term.count, 2)).T
    return Fitted(term, _numbers(name, keys[0], table, (term.count,)), low, high)


def _numbers(name: str, key: str, table: Mapping[str, Any], shape: tuple[int, ...]) -> Array:
    try:
        values = np.array(table[key], dtype=np.float64)
    except (KeyError, TypeError, ValueError):
        raise ConfigurationError(f"{name}.{key} is missing, or not made of numbers") from None
    if values.shape != shape or not np.isfinite(values).all():
        raise ConfigurationError(f"{name}.{key} = {table[key]!r}: must be finite numbers in the shape {shape}")
    return values


def unit_key(dimension: str, rotary: bool) -> str:
    """Return the unit of a dimension in the spelling of keys."""
    return _UNITS[dimension][0 if rotary else 1] if dimension in _UNITS else parameter_keys.unit_key(dimension, rotary)
