"""Turning text and tables into validated parameters: the rules every configurable dataclass shares.

A *settings* class is a frozen dataclass whose fields are bounded numbers, words or flags. `bounded` states the bounds
where the field is declared; `check` enforces them when an instance is built; `build` makes an instance from a table
(TOML, ``--set``) and names the setting, its value and what is allowed when something is wrong.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from haptics.errors import ConfigurationError

_S = TypeVar("_S")

NUMBER_HINT = "Values are plain SI numbers with a point and without a unit, such as 4.5."
"""What to say to somebody who wrote ``4N`` or ``4,5``."""


def bounded(
    default: Any = dataclasses.MISSING,
    *,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    above: float = -math.inf,
    unit: str = "",
    doc: str = "",
) -> Any:
    """Declare a dataclass field holding a finite number with ``minimum <= value <= maximum`` and ``value > above``."""
    bounds = {"minimum": minimum, "maximum": maximum, "above": above, "unit": unit, "doc": doc}
    return dataclasses.field(default=default, metadata=bounds)


def choice(default: str, allowed: Iterable[str], doc: str = "") -> Any:
    """Declare a dataclass field holding one of the `allowed` words."""
    return dataclasses.field(default=default, metadata={"allowed": tuple(allowed), "doc": doc})


def free(default: Any, allowed: str, doc: str = "") -> Any:
    """Declare a dataclass field that its own class checks; `allowed` says in words what it may hold."""
    return dataclasses.field(default=default, metadata={"words": allowed, "doc": doc})


def allowed_text(field: dataclasses.Field[Any]) -> str:
    """Say in words what a field may hold."""
    meta = field.metadata
    if "allowed" in meta:
        return "one of " + ", ".join(meta["allowed"])
    if "words" in meta:
        return str(meta["words"])
    if "minimum" not in meta:
        return {"bool": "true or false", "str": "text"}.get(_type(field), "a value of its kind")
    unit = f" {meta['unit']}" if meta["unit"] else ""
    limits = []
    if meta["above"] > -math.inf:
        limits.append(f"greater than {meta['above']:g}{unit}")
    if meta["minimum"] > -math.inf:
        limits.append(f"at least {meta['minimum']:g}{unit}")
    if meta["maximum"] < math.inf:
        limits.append(f"at most {meta['maximum']:g}{unit}")
    return "a finite number" + (" " + " and ".join(limits) if limits else "")


def check(instance: Any, where: str = "") -> None:
    """Validate every `bounded` and `choice` field of a dataclass instance.

    Raises
    ------
    ConfigurationError
        Naming the setting, its value and the allowed values.
    """
    prefix = where or type(instance).__name__
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        if not _acceptable(field, value):
            raise _refused(prefix, field, value)


def _refused(where: str, field: dataclasses.Field[Any], value: Any) -> ConfigurationError:
    """Return the error for a value that a field may not hold."""
    number = "minimum" in field.metadata and isinstance(value, str) and any(mark.isdigit() for mark in value)
    hint = f" {NUMBER_HINT}" if number else ""
    return ConfigurationError(f"{where}.{field.name} = {value!r}: must be {allowed_text(field)}.{hint}")


def _acceptable(field: dataclasses.Field[Any], value: Any) -> bool:
    meta = field.metadata
    if "allowed" in meta:
        return value in meta["allowed"]
    if "minimum" in meta:
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not _finite(value):
            return False
        return bool(meta["minimum"] <= value <= meta["maximum"] and value > meta["above"])
    plain = {"bool": bool, "str": str}.get(_type(field))
    return plain is None or isinstance(value, plain)


def _finite(value: numbers.Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def _type(field: dataclasses.Field[Any]) -> str:
    """Return the name of a field's type, whether annotations are kept as text or not."""
    return field.type.__name__ if isinstance(field.type, type) else str(field.type)


def unknown(kind: str, name: str, allowed: Iterable[str]) -> ConfigurationError:
    """Return the error for a name that does not exist, with the nearest one and all that do."""
    names = sorted(allowed)
    small = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name, names, n=1) or difflib.get_close_matches(name.lower(), small, n=1)
    hint = f" Did you mean {small.get(near[0], near[0])!r}?" if near else ""
    return ConfigurationError(f"unknown {kind} {name!r}.{hint} Allowed: {', '.join(names) or 'none'}.")


def build(cls: type[_S], table: Mapping[str, Any], where: str) -> _S:
    """Make a settings instance of `cls` from `table`.

    Parameters
    ----------
    cls : type
        A frozen dataclass that calls `check` when built, or has no bounds.
    table : mapping
        Setting names to values.
    where : str
        How a person names this table (``element``, ``device.hand``), for messages.

    Raises
    ------
    ConfigurationError
        On an unknown or missing setting or a value out of bounds.
    """
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]
    for name in table:
        if name not in fields:
            raise unknown("setting", f"{where}.{name}", [f"{where}.{field}" for field in fields])
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in table:
            raise ConfigurationError(f"{where}.{name} is missing: must be {allowed_text(field)}.")
        if name in table and not _acceptable(field, table[name]):
            raise _refused(where, field, table[name])
    return cls(**{name: _converted(fields[name], value) for name, value in table.items()})


def _converted(field: dataclasses.Field[Any], value: Any) -> Any:
    return float(value) if _type(field) == "float" else value
