"""Settings: each is declared once, with its type, bounds, unit, default and text; everything else comes from that.

A *settings* class is a frozen dataclass. The annotation of a field and its `bounded`, `string`, `flag`, `choice` or
`free` say what it may hold. `check` enforces that when an instance is built; `build` makes an instance from a table
(TOML, ``--set``) and names the setting, its value and what is allowed when something is wrong; `documented` writes the
fields into the docstring of the class. The reference of settings and the sliders of the view come from them too.
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
from typing import Any, TypeVar, cast

from haptics.errors import ConfigurationError

_S = TypeVar("_S")
_C = TypeVar("_C", bound=type)

NUMBER_HINT = "Values are plain SI numbers with a point and without a unit, such as 4.5."
"""What to say to somebody who wrote ``4N`` or ``4,5``."""

_SECTION = re.compile(r"^\w[\w ]*\n-{3,}$", re.MULTILINE)
"""The heading of a section in a docstring."""

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
    """Declare a dataclass field holding a finite number with ``minimum <= value <= maximum`` and ``value > above``.

    Where the field is annotated as ``int`` it must be a whole number.

    Parameters
    ----------
    default : float, optional
        What it is when nothing is said; without it the setting must be given.
    minimum, maximum, above : float
        Bounds.
    unit : str
        SI unit, empty for a plain number.
    usual : float or (2,) floats, optional
        What a session takes for a setting without a default: a value, or one for admittance and one for impedance
        devices.
    slider : (2,) floats, optional
        Lowest and highest value that is of use while a session runs; by default as far as the bounds go.
    doc : str
        What it is, without the unit, in a few words.
    """
    bounds = {"minimum": minimum, "maximum": maximum, "above": above}
    meta = {**bounds, "unit": unit, "usual": usual, "slider": slider, "doc": doc}
    return dataclasses.field(default=default, metadata=meta)


def string(default: Any = dataclasses.MISSING, *, allowed: str = "text", doc: str = "") -> Any:
    """Declare a dataclass field holding text; `allowed` says in words what, such as ``a file``."""
    return dataclasses.field(default=default, metadata={"words": allowed, "doc": doc})


def flag(default: bool, *, doc: str = "") -> Any:
    """Declare a dataclass field that is true or false."""
    return dataclasses.field(default=default, metadata={"words": "true or false", "doc": doc})


def choice(default: str, allowed: Iterable[str], doc: str = "") -> Any:
    """Declare a dataclass field holding one of the `allowed` words."""
    return dataclasses.field(default=default, metadata={"allowed": tuple(allowed), "doc": doc})


def free(default: Any, allowed: str, doc: str = "") -> Any:
    """Declare a dataclass field that its own class checks; `allowed` says in words what it may hold."""
    return dataclasses.field(default=default, metadata={"words": allowed, "doc": doc})


def documented(cls: _C) -> _C:
    """Write the declared fields of a dataclass into its docstring, as entries of the section *Attributes*.

    Fields with a text are listed, those of its bases too, each with unit, allowed values and default. What the
    docstring lists by hand, fields without a declaration, stays in front of them.
    """
    entries = "".join(_entry(field) for field in dataclasses.fields(cls) if field.metadata.get("doc"))
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


def _entry(field: dataclasses.Field[Any]) -> str:
    """Return what a docstring says of a declared field."""
    meta = field.metadata
    unit = f" [{meta['unit']}]" if meta.get("unit") else ""
    default = "" if field.default is dataclasses.MISSING else f"; default {field.default!r}"
    said = f"{meta['doc'][0].upper()}{meta['doc'][1:]}{unit}. Allowed: {allowed_text(field)}{default}."
    return f"{field.name} : {_type(field)}\n{textwrap.indent(textwrap.fill(said, 110), '    ')}\n"


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
        limits.append(f"greater than {_plain(meta['above'])}{unit}")
    if meta["minimum"] > -math.inf:
        limits.append(f"at least {_plain(meta['minimum'])}{unit}")
    if meta["maximum"] < math.inf:
        limits.append(f"at most {_plain(meta['maximum'])}{unit}")
    kind = "a whole number" if is_whole(field) else "a finite number"
    return kind + (" " + " and ".join(limits) if limits else "")


def is_whole(field: dataclasses.Field[Any]) -> bool:
    """Whether a field holds a whole number."""
    return _type(field) == "int"


def _plain(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def unit_suffix(unit: str) -> str:
    """Return what the name of a column or key ends with for a unit: ``m/s`` is ``_m_per_s``, ``N m`` is ``_nm``."""
    if unit in _WITHOUT_UNIT:
        return ""
    words = unit.lower().replace(" ", "").replace("^", "").replace("/", "_per_")
    return "_" + re.sub(r"[^a-z0-9_]", "", words)


def check(instance: Any, where: str = "") -> None:
    """Validate every declared field of a dataclass instance; of a `free` one its own class knows what it may hold.

    Raises
    ------
    ConfigurationError
        Naming the setting, its value and the allowed values.
    """
    for name, field in _fields(cast(Hashable, type(instance))).items():
        value = getattr(instance, name)
        if not _acceptable(field)(value):
            raise _refused(where or type(instance).__name__, field, value)


@functools.cache
def _fields(cls: Hashable) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields of a dataclass by name."""
    return {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]


def _refused(where: str, field: dataclasses.Field[Any], value: Any) -> ConfigurationError:
    """Return the error for a value that a field may not hold."""
    number = "minimum" in field.metadata and isinstance(value, str) and any(mark.isdigit() for mark in value)
    hint = f" {NUMBER_HINT}" if number else ""
    return ConfigurationError(f"{where}.{field.name} = {value!r}: must be {allowed_text(field)}.{hint}")


@functools.cache
def _acceptable(field: dataclasses.Field[Any]) -> Callable[[Any], bool]:
    """Return what tells whether a field may hold a value, made once: sweeps build settings by the ten thousand."""
    meta = field.metadata
    if "allowed" in meta:
        allowed = meta["allowed"]
        return lambda value: value in allowed
    if "minimum" in meta:
        return _within(meta["minimum"], meta["maximum"], meta["above"], int if is_whole(field) else numbers.Real)
    plain = {"bool": bool, "str": str}.get(_type(field))
    return (lambda value: True) if plain is None else lambda value: isinstance(value, plain)


def _within(minimum: float, maximum: float, above: float, kind: Any) -> Callable[[Any], bool]:
    """Return what tells whether a value is a finite number of a `kind` within bounds."""

    def test(value: Any) -> bool:
        if type(value) is not float or kind is int:
            if isinstance(value, bool) or not isinstance(value, kind):
                return False
        return _finite(value) and bool(minimum <= value <= maximum and value > above)

    return test


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
    fields = {name: field for name, field in _fields(cast(Hashable, cls)).items() if field.init}
    for name in table:
        if name not in fields:
            raise unknown("setting", f"{where}.{name}", [f"{where}.{field}" for field in fields])
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in table:
            raise ConfigurationError(f"{where}.{name} is missing: must be {allowed_text(field)}.")
    values = {name: _whole(fields[name], value) for name, value in table.items()}
    for name, value in values.items():
        if not _acceptable(fields[name])(value):
            raise _refused(where, fields[name], value)
    return cls(**{name: _converted(fields[name], value) for name, value in values.items()})


def _whole(field: dataclasses.Field[Any], value: Any) -> Any:
    """Return 2.0 as 2 where a whole number is asked for: a slider moves in floats."""
    return int(value) if is_whole(field) and isinstance(value, float) and value.is_integer() else value


def _converted(field: dataclasses.Field[Any], value: Any) -> Any:
    return float(value) if _type(field) == "float" else value
