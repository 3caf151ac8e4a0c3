"""Declaration of settings with type, bounds, unit, default and description.

A *settings* class is a frozen dataclass. The annotation of a field and its `bounded`, `string`, `flag`, `choice` or
`unrestricted` define the allowed values. `check` validates them when an instance is created. `build` creates an
instance from a table (TOML, ``--set``); its errors name the setting, its value and the allowed values. `documented`
adds the fields to the docstring of the class. The settings reference and the sliders of the view are generated from the
same declarations.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import math
import numbers
import re
import textwrap
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar, cast

from haptics.errors import ConfigurationError

_S = TypeVar("_S")
_C = TypeVar("_C", bound=type)

NUMBER_HINT = "Values are plain SI numbers with a point and without a unit, such as 4.5."
"""Hint for values such as ``4N`` or ``4,5``."""

_SECTION = re.compile(r"^\w[\w ]*\n-{3,}$", re.MULTILINE)  # heading of a docstring section

_WITHOUT_UNIT = {"", "1", "bit flags", "0 or 1"}

_LIST = "Attributes\n----------\n"


def bounded(
    default: Any = dataclasses.MISSING,
    *,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    above: float = -math.inf,
    unit: str = "",
    usual: float | tuple[float, float] | None = None,
    slider: tuple[float, float] | None = None,
    doc: str = "",
) -> Any:
    """Declare a dataclass field holding a finite number within bounds.

    The value must satisfy ``minimum <= value <= maximum`` and ``value > above``.

    If the field is annotated as ``int``, the value must be a whole number.

    Parameters
    ----------
    default : float, optional
        Default value; without it the setting is required.
    minimum, maximum, above : float
        Bounds.
    unit : str
        SI unit, empty for a plain number.
    usual : float or (2,) floats, optional
        Value that a session uses for a setting without a default: one value, or one for admittance and one for
        impedance devices.
    slider : (2,) floats, optional
        Useful range during a session; by default the full bounds.
    doc : str
        Short description without the unit.
    """
    bounds = {"minimum": minimum, "maximum": maximum, "above": above}
    meta = {**bounds, "unit": unit, "usual": usual, "slider": slider, "doc": doc}
    return dataclasses.field(default=default, metadata=meta)


def string(default: Any = dataclasses.MISSING, *, allowed: str = "text", digits: bool = False, doc: str = "") -> Any:
    """Declare a dataclass field holding text.

    Parameters
    ----------
    default : str, optional
        Default value; without it the setting is required.
    allowed : str
        Description of the values, such as ``a file``.
    digits : bool
        Whether tables may contain a whole number in place of the text, as TOML reads a decimal serial number.
    doc : str
        Short description.
    """
    return dataclasses.field(default=default, metadata={"words": allowed, "digits": digits, "doc": doc})


def flag(default: bool, *, doc: str = "") -> Any:
    """Declare a dataclass field that is true or false."""
    return dataclasses.field(default=default, metadata={"words": "true or false", "doc": doc})


def choice(default: str, allowed: Iterable[str], doc: str = "") -> Any:
    """Declare a dataclass field holding one of the `allowed` words."""
    return dataclasses.field(default=default, metadata={"allowed": tuple(allowed), "doc": doc})


def unrestricted(default: Any, allowed: str, doc: str = "") -> Any:
    """Declare a dataclass field that its own class validates; `allowed` describes the permitted values."""
    return dataclasses.field(default=default, metadata={"words": allowed, "doc": doc})


def documented(cls: _C) -> _C:
    """Append the declared fields of a dataclass to the section *Attributes* of its docstring.

    All fields with a description are listed, including inherited ones, each with unit, allowed values and default.
    Entries that the docstring already contains (fields without a declaration) remain before them.
    """
    entries = ""
    for field in dataclasses.fields(cls):
        if doc := field.metadata.get("doc"):
            unit = f" [{field.metadata['unit']}]" if field.metadata.get("unit") else ""
            default = "" if field.default is dataclasses.MISSING else f"; default {field.default!r}"
            text = f"{doc[0].upper()}{doc[1:]}{unit}. Allowed: {allowed_text(field)}{default}."
            entries += f"{field.name} : {_type(field)}\n{textwrap.indent(textwrap.fill(text, 110), '    ')}\n"
    lines = inspect.cleandoc(cls.__doc__ or "")
    start = lines.find(_LIST)
    if start < 0:
        following = _SECTION.search(lines)
        start = following.start() if following else len(lines)
        lines = f"{lines[:start].rstrip()}\n\n{_LIST}\n{lines[start:]}"
    following = _SECTION.search(lines, lines.index(_LIST) + len(_LIST))
    end = following.start() if following else len(lines)
    cls.__doc__ = f"{lines[:end].rstrip()}\n{entries}\n{lines[end:]}".rstrip() + "\n"
    return cls


def allowed_text(field: dataclasses.Field[Any]) -> str:
    """Describe the allowed values of a field."""
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
        limits.append(f"greater than {_plain(meta['above'])}{unit}")
    if meta["minimum"] > -math.inf:
        limits.append(f"at least {_plain(meta['minimum'])}{unit}")
    if meta["maximum"] < math.inf:
        limits.append(f"at most {_plain(meta['maximum'])}{unit}")
    kind = "a whole number" if is_whole(field) else "a finite number"
    return kind + (" " + " and ".join(limits) if limits else "")


def is_whole(field: dataclasses.Field[Any]) -> bool:
    """Return True if a field holds a whole number."""
    return _type(field) == "int"


def _is_text(field: dataclasses.Field[Any]) -> bool:
    """Return True if a field holds any text, not one of several words."""
    return _type(field) == "str" and "allowed" not in field.metadata


def _plain(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def unit_suffix(unit: str) -> str:
    """Return the suffix of a column name for a unit: ``m/s`` gives ``_m_per_s``, ``N m`` gives ``_nm``."""
    if unit in _WITHOUT_UNIT:
        return ""
    words = unit.lower().replace(" ", "").replace("^", "").replace("/", "_per_")
    return "_" + re.sub(r"[^a-z0-9_]", "", words)


def check(instance: Any, where: str = "") -> None:
    """Validate every declared field of a dataclass instance, except `unrestricted` ones.

    Raises
    ------
    ConfigurationError
        Naming the setting, its value and the allowed values.
    """
    for name, field in _fields(cast(Hashable, type(instance))).items():
        value = getattr(instance, name)
        if not _acceptable(field)(value):
            raise _refused(where or type(instance).__name__, field, value)


class Checked:
    """Base class of frozen dataclasses whose declared fields are validated on creation.

    Keywords of the class statement become class attributes: ``class Handle(Checked, section="handle")``.

    Attributes
    ----------
    section : str
        Name of the table in messages.
    """

    section: ClassVar[str] = ""

    def __init_subclass__(cls, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(cls, name, value)

    def __post_init__(self) -> None:
        check(self, self.section)


@functools.cache
def _fields(cls: Hashable) -> dict[str, dataclasses.Field[Any]]:
    return {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]


def _refused(where: str, field: dataclasses.Field[Any], value: Any) -> ConfigurationError:
    """Return the error for a rejected value."""
    number = "minimum" in field.metadata and isinstance(value, str) and any(mark.isdigit() for mark in value)
    hint = f" {NUMBER_HINT}" if number else ""
    if _is_text(field) and isinstance(value, int | float) and not isinstance(value, bool):
        hint = f" Write a text of digits in quotation marks: --set '{where}.{field.name}=\"{value}\"'."
    return ConfigurationError(f"{where}.{field.name} = {value!r}: must be {allowed_text(field)}.{hint}")


@functools.cache
def _acceptable(field: dataclasses.Field[Any]) -> Callable[[Any], bool]:
    """Return the validator of a field; cached, because sweeps create settings by the ten thousand."""
    meta = field.metadata
    if "allowed" in meta:
        allowed = meta["allowed"]
        return lambda value: value in allowed
    if "minimum" in meta:
        minimum, maximum, above = meta["minimum"], meta["maximum"], meta["above"]
        kind: Any = int if is_whole(field) else numbers.Real

        def within(value: Any) -> bool:
            if type(value) is not float or kind is int:
                if isinstance(value, bool) or not isinstance(value, kind):
                    return False
            try:
                finite = math.isfinite(value)
            except OverflowError:  # an integer beyond the range of a float
                return False
            return finite and bool(minimum <= value <= maximum and value > above)

        return within
    plain = {"bool": bool, "str": str}.get(_type(field))
    return (lambda value: True) if plain is None else lambda value: isinstance(value, plain)


def _type(field: dataclasses.Field[Any]) -> str:
    """Return the name of a field's type, for annotations stored as strings or as types."""
    return field.type.__name__ if isinstance(field.type, type) else str(field.type)


def unknown_name(kind: str, name: str, allowed: Iterable[str]) -> ConfigurationError:
    """Return the error for an unknown name, with the closest match and all allowed names."""
    names = sorted(allowed)
    small = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name, names, n=1) or difflib.get_close_matches(name.lower(), small, n=1)
    hint = f" Did you mean {small.get(near[0], near[0])!r}?" if near else ""
    return ConfigurationError(f"unknown {kind} {name!r}.{hint} Allowed: {', '.join(names) or 'none'}.")


def subtable(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the table `name`, which is empty if absent; raise `ConfigurationError` if it is not a table."""
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise ConfigurationError(f"{name} = {table!r}: must be a table.")
    return table


def build(cls: type[_S], table: Mapping[str, Any], where: str) -> _S:
    """Create a settings instance of `cls` from `table`.

    Parameters
    ----------
    cls : type
        A frozen dataclass that calls `check` on creation, or has no bounds.
    table : mapping
        Values by setting name.
    where : str
        Name of the table in messages (``element``, ``device.hand``).

    Raises
    ------
    ConfigurationError
        On an unknown or missing setting or a value out of bounds.
    """
    fields = {name: field for name, field in _fields(cast(Hashable, cls)).items() if field.init}
    for name in table:
        if name not in fields:
            raise unknown_name("setting", f"{where}.{name}", [f"{where}.{field}" for field in fields])
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in table:
            raise ConfigurationError(f"{where}.{name} is missing: must be {allowed_text(field)}.")
    values: dict[str, Any] = {}
    for name, value in table.items():
        if is_whole(fields[name]) and isinstance(value, float) and value.is_integer():  # sliders produce floats
            values[name] = int(value)
        elif fields[name].metadata.get("digits") and type(value) is int:
            values[name] = str(value)
        else:
            values[name] = value
    for name, value in values.items():
        if not _acceptable(fields[name])(value):
            raise _refused(where, fields[name], value)
    return cls(**{name: float(value) if _type(fields[name]) == "float" else value for name, value in values.items()})
