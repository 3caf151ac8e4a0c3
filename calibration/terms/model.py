"""Model of a joint's friction composed of terms, and its prediction for a motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording
from calibration.fitting.intervals import ErrorEstimate, relative_error
from calibration.parameter_files import format_toml
from calibration.terms.terms import KINDS, Term, make_term
from devices.common import parameter_keys
from haptics.errors import ConfigurationError
from haptics.files import write_atomically
from haptics.reading import read_toml
from haptics.settings import unknown_name

Array = NDArray[np.float64]


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

    @property
    def terms(self) -> tuple[Term, ...]:
        """Terms without coefficients."""
        return tuple(one.term for one in self.fitted)

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
