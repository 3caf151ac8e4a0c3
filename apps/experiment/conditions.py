"""Conditions of an experiment: listed in the file, multiplied from factors, or read from a CSV file."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from apps.experiment.settings import FACTOR_NAME, ConditionSettings
from apps.experiment.source import KeyPath, Source, dotted
from haptics.errors import ConfigurationError, HapticError
from haptics.files import read_small
from haptics.settings import build, unknown_name

MOST_CONDITIONS = 200
"""Maximum number of conditions from factors or from a CSV file."""

MOST_FACTORS = 6

EXCLUDE = "exclude"
"""Entry of the table ``factors`` with the list of exclusions."""

_SUBTABLES = ("law", "element", "procedure", "factors")
"""Settings of a condition that are tables. A CSV file names their entries in columns such as ``law.viscosity``."""

_SETTINGS = tuple(one.name for one in fields(ConditionSettings) if one.name not in ("name", "factors"))
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_NAMED = re.compile(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*")


@dataclass(frozen=True)
class Origin:
    """Place of a condition in the files of an experiment, for messages.

    Attributes
    ----------
    paths : tuple of KeyPath
        Tables in the experiment file that contain its settings.
    file, line : str, int
        CSV file and line, if the condition is from such a file.
    columns : tuple of str
        Columns of the CSV file.
    """

    paths: tuple[KeyPath, ...] = ()
    file: str = ""
    line: int = 0
    columns: tuple[str, ...] = ()

    @contextlib.contextmanager
    def locating(self, source: Source, *where: str) -> Iterator[None]:
        """Add the place of the setting `where` of the condition to configuration errors raised in the block."""
        try:
            yield
        except HapticError as error:
            named = [name.removeprefix("conditions.") for name in _NAMED.findall(str(error))] + [".".join(where)]
            if self.file:
                column = next((name for name in named if name in self.columns), "name")
                raise self.csv_error(column, str(error)) from error
            path = self.paths[0] if len(self.paths) == 1 else self._level(source, named)
            with source.locating(*path, *where):
                raise

    def csv_error(self, column: str, words: str) -> ConfigurationError:
        """Return an error about a cell of the CSV file."""
        return ConfigurationError(f"{self.file}:{self.line}, column {column!r}: {words}")

    def _level(self, source: Source, settings: Sequence[str]) -> KeyPath:
        """Return the level of a factor that has one of the settings, given by dotted names."""
        for setting, path in itertools.product(settings, self.paths):
            value: Any = source.tables
            for part in (*path, *setting.split(".")):
                value = value.get(part) if isinstance(value, dict) else None
            if setting and value is not None:
                return path
        return ("factors",)


@dataclass(frozen=True)
class Conditions:
    """Conditions of an experiment.

    Attributes
    ----------
    settings : tuple of ConditionSettings
        Conditions in order.
    origins : tuple of Origin
        Place of each condition in the files.
    tables : list of dict
        Conditions as tables ``[[conditions]]``.
    csv_text : str
        Text of the CSV file, empty without one.
    """

    settings: tuple[ConditionSettings, ...]
    origins: tuple[Origin, ...]
    tables: list[dict[str, Any]]
    csv_text: str = field(default="", repr=False)


def read_conditions(source: Source, csv_text: str | None = None) -> Conditions:
    """Return the conditions of an experiment file.

    Parameters
    ----------
    source : Source
        The file.
    csv_text : str, optional
        Text of the CSV file with which a session began. By default the file is read.

    Raises
    ------
    ConfigurationError
        If a condition is invalid. The message contains file, line and key, or line and column of the CSV file.
    """
    given, factors = source.tables.get("conditions", []), source.tables.get("factors")
    if factors is not None and given != []:
        raise source.error(("factors",), "factors: multiply into conditions; leave out either [factors] or conditions.")
    if factors is not None:
        return _build_conditions(source, *_cross_levels(source, factors))
    if isinstance(given, str):
        if csv_text is None:
            csv_text = _csv_text(source, given)
        return _build_conditions(source, *_rows_of_csv(str(source.path.parent / given), csv_text), csv_text)
    if not isinstance(given, list) or not given or not all(isinstance(one, dict) for one in given):
        raise source.error(
            ("conditions",),
            "conditions: at least one table [[conditions]] is needed, or a table [factors], or the name of a CSV file.",
        )
    return _build_conditions(source, given, [Origin((("conditions", number),)) for number in range(len(given))])


def _build_conditions(
    source: Source, tables: list[dict[str, Any]], origins: Sequence[Origin], csv_text: str = ""
) -> Conditions:
    """Build the settings of all conditions."""
    found: list[ConditionSettings] = []
    for table, origin in zip(tables, origins, strict=True):
        with origin.locating(source):
            condition = build(ConditionSettings, table, "conditions")
            if any(one.name == condition.name for one in found):
                raise ConfigurationError(f"conditions.name = {condition.name!r}: there are two of that name.")
            if found and found[0].factors.keys() != condition.factors.keys():
                raise ConfigurationError(
                    f"conditions.factors: {condition.name!r} must have the factors of the first condition: "
                    f"{', '.join(found[0].factors) or 'none'}."
                )
            found.append(condition)
    return Conditions(tuple(found), tuple(origins), tables, csv_text)


# --- factors ---


def _cross_levels(source: Source, table: Any) -> tuple[list[dict[str, Any]], list[Origin]]:
    """Return a condition for each combination of levels that is not excluded, and the places of its levels."""
    factors = {name: levels for name, levels in table.items() if name != EXCLUDE}
    if not 1 <= len(factors) <= MOST_FACTORS:
        raise source.error(("factors",), f"factors: there must be 1 to {MOST_FACTORS} factors.")
    for name, levels in factors.items():
        if not FACTOR_NAME.fullmatch(name):
            raise source.error(("factors", name), f"factors.{name}: must be small letters, digits and underscores.")
        if not isinstance(levels, dict) or len(levels) < 2:
            raise source.error(("factors", name), f"factors.{name}: must be a table of two or more levels.")
        for level, settings in levels.items():
            where = ("factors", name, level)
            if not isinstance(settings, dict):
                raise source.error(where, f"{dotted(where)}: must be a table of settings of a condition.")
            with source.locating(*where):
                for setting in settings:
                    if setting not in _SETTINGS:
                        raise unknown_name("setting", setting, _SETTINGS)
    excluded = _exclusions(source, factors, table.get(EXCLUDE, []))
    tables: list[dict[str, Any]] = []
    origins: list[Origin] = []
    for levels in itertools.product(*factors.values()):
        combination = dict(zip(factors, levels, strict=True))
        if any(all(combination[name] in named for name, named in rule.items()) for rule in excluded):
            continue
        if len(tables) == MOST_CONDITIONS:
            raise source.error(("factors",), f"factors: multiply into more than {MOST_CONDITIONS} conditions.")
        tables.append(_merge_levels(source, factors, combination))
        origins.append(Origin(tuple(("factors", name, level) for name, level in combination.items())))
    if not tables:
        raise source.error(("factors", EXCLUDE), f"factors.{EXCLUDE}: every combination is excluded.")
    return tables, origins


def _exclusions(source: Source, factors: Mapping[str, Any], given: Any) -> list[dict[str, list[str]]]:
    """Return the excluded levels by factor, for each entry of the list of exclusions."""
    where: KeyPath = ("factors", EXCLUDE)
    if not isinstance(given, list) or not all(isinstance(one, dict) and one for one in given):
        raise source.error(where, f"{dotted(where)}: must be a list of tables, each with a level of some factors.")
    rules = []
    for number, table in enumerate(given):
        rule: dict[str, list[str]] = {}
        for name, levels in table.items():
            with source.locating(*where, number):
                if name not in factors:
                    raise unknown_name("factor", name, factors)
                rule[name] = levels if isinstance(levels, list) else [levels]
                for level in rule[name]:
                    if not isinstance(level, str) or level not in factors[name]:
                        raise unknown_name(f"level of {name}", str(level), factors[name])
        rules.append(rule)
    return rules


def _merge_levels(source: Source, factors: Mapping[str, Any], combination: Mapping[str, str]) -> dict[str, Any]:
    """Return the condition of a combination of levels.

    Raises
    ------
    ConfigurationError
        If two levels contain the same setting.
    """
    table: dict[str, Any] = {"name": ", ".join(combination.values())}
    owners: dict[KeyPath, str] = {}
    for factor, level in combination.items():
        for setting, value in factors[factor][level].items():
            entries = value if setting in _SUBTABLES and isinstance(value, dict) else {"": value}
            for entry, one in entries.items():
                key = (setting, entry) if entry else (setting,)
                if key in owners:
                    where = ("factors", factor, level, setting)
                    raise source.error(
                        where,
                        f"{dotted(where)}: the factor {owners[key]!r} sets {dotted(key)} already.",
                    )
                owners[key] = factor
                if entry:
                    table.setdefault(setting, {})[entry] = one
                else:
                    table[setting] = one
    return {**table, "factors": dict(combination)}


# --- CSV ---


def _csv_text(source: Source, name: str) -> str:
    """Return the text of the CSV file that the experiment file names."""
    if not name.endswith(".csv"):
        raise source.error(
            ("conditions",), f"conditions = {name[:60]!r}: must be tables [[conditions]] or a .csv file."
        )
    path = source.path.parent / name
    with source.locating("conditions"):
        data = read_small(path, f"conditions {path}", "name a CSV file beside the file of the experiment")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigurationError(f"{path}:{line}: is no text (byte {error.start} is not UTF-8).") from error


def _rows_of_csv(file: str, text: str) -> tuple[list[dict[str, Any]], list[Origin]]:
    """Return a condition for each row of a CSV file with a header, and its place."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    tables: list[dict[str, Any]] = []
    origins: list[Origin] = []
    columns: tuple[str, ...] = ()
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if not columns:
                columns = tuple(cells)
                _check_header(Origin(file=file, line=reader.line_num, columns=columns))
                continue
            origin = Origin(file=file, line=reader.line_num, columns=columns)
            if len(cells) != len(columns):  # a short line may be the end of a file that was cut off
                raise ConfigurationError(
                    f"{file}:{origin.line}, column {min(len(cells), len(columns)) + 1}: the header has {len(columns)} "
                    f"columns, this line has {len(cells)}."
                )
            if len(tables) == MOST_CONDITIONS:
                raise ConfigurationError(f"{file}:{origin.line}: has more than {MOST_CONDITIONS} conditions.")
            tables.append(_condition_of(origin, cells))
            origins.append(origin)
    except csv.Error as error:
        raise ConfigurationError(f"{file}:{reader.line_num}: is no CSV ({error}).") from error
    if not tables:
        raise ConfigurationError(f"{file}:1: holds no condition; a header and a line for each condition are needed.")
    return tables, origins


def _check_header(origin: Origin) -> None:
    columns = origin.columns
    if len(columns) == 1 and (";" in columns[0] or "\t" in columns[0]):
        raise ConfigurationError(
            f"{origin.file}:{origin.line}: the columns must be separated by commas, and decimals have a point."
        )
    for number, column in enumerate(columns, 1):
        table, _, entry = column.partition(".")
        allowed = ("name", *(one for one in _SETTINGS if one not in _SUBTABLES), *(f"{one}.X" for one in _SUBTABLES))
        if column not in allowed and not (table in _SUBTABLES and entry):
            raise ConfigurationError(
                f"{origin.file}:{origin.line}, column {number}: {unknown_name('column', column, allowed)}"
            )
        if columns.index(column) < number - 1:
            raise ConfigurationError(f"{origin.file}:{origin.line}, column {number}: {column!r} occurs twice.")
    if "name" not in columns:
        raise ConfigurationError(f"{origin.file}:{origin.line}: the column 'name' is missing.")


def _condition_of(origin: Origin, cells: Sequence[str]) -> dict[str, Any]:
    """Return the condition in a row.

    Empty cells are left out. Numbers, true, false and lists in brackets are read as in TOML, everything else is text.
    """
    found: dict[str, Any] = {}
    for column, cell in zip(origin.columns, cells, strict=True):
        table, _, entry = column.partition(".")
        if not cell:
            continue
        value: Any = cell
        if column != "name" and table != "factors":
            if _NUMBER.fullmatch(cell):
                value = int(cell) if re.fullmatch(r"[+-]?\d{1,18}", cell) else float(cell)
            elif cell in ("true", "false") or cell[0] == "[":
                try:
                    (value,) = tomllib.loads(f"x = {cell}").values()
                except (ValueError, RecursionError) as error:
                    raise origin.csv_error(column, f"{cell[:40]!r} is no list, such as [0.3, 0.2].") from error
        if entry:
            found.setdefault(table, {})[entry] = value
        else:
            found[column] = value
    if "name" not in found:
        raise origin.csv_error("name", "is empty; every condition needs a name.")
    return found
