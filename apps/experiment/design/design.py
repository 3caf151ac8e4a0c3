"""An experiment as its file describes it, complete and checked: nothing that is wrong with it is found later."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.experiment.design.checks import check_against_device, check_responses, require_reference
from apps.experiment.design.settings import (
    CatchSettings,
    ConditionSettings,
    ExperimentSettings,
    ExplorationSettings,
    FieldSettings,
    PracticeSettings,
    ResponseSettings,
    ResumeSettings,
    StimulusSettings,
    TextSettings,
    TrialSettings,
)
from apps.experiment.design.source import Source
from apps.experiment.observers import ObserverSettings
from apps.experiment.procedures import procedure_settings
from apps.experiment.screens.settings import ScreenSettings
from apps.experiment.trial import TASKS, Task
from apps.settings.config import TABLES as SESSION_TABLES
from apps.settings.config import SessionConfig, complete
from apps.settings.models import Table
from haptics.errors import ConfigurationError
from haptics.settings import build, unknown

if TYPE_CHECKING:
    from apps.session.mouse import Mouse

OWN_TABLES: dict[str, type[Any]] = {
    "experiment": ExperimentSettings,
    "stimulus": StimulusSettings,
    "catch": CatchSettings,
    "practice": PracticeSettings,
    "trials": TrialSettings,
    "exploration": ExplorationSettings,
    "response": ResponseSettings,
    "resume": ResumeSettings,
    "texts": TextSettings,
    "fields": FieldSettings,
    "screen": ScreenSettings,
}
"""Tables with a class of settings each."""

OTHER_TABLES = ("conditions", "procedure", "observer", "power", "analysis")
"""Tables with a form of their own, and those that other commands read."""

_FILES = ("law", "file"), ("device", "parameters"), ("device", "friction_parameters"), ("hand", "file")
"""Names of files in the session's tables, which are found from the folder of the experiment's."""

_SESSION_ALONE = ("duration", "clock", "record", "picture")
"""Settings of a session that an experiment decides."""


@dataclass(frozen=True)
class Design:
    """An experiment.

    Attributes
    ----------
    path : Path
        Its file.
    text : str
        The file as it stands.
    tables : dict
        What it says.
    experiment, stimulus, catch, practice, trials, exploration, response, resume, texts, fields, screen
        Its tables.
    conditions : tuple of ConditionSettings
        What stays the same in a track.
    procedure : dict
        The table of the procedure; that of a condition is laid over it.
    session : SessionConfig
        What is run: the session of every block, with the reference of the first condition.
    """

    path: Path
    text: str
    tables: dict[str, Any]
    experiment: ExperimentSettings
    stimulus: StimulusSettings
    conditions: tuple[ConditionSettings, ...]
    procedure: Table
    catch: CatchSettings
    practice: PracticeSettings
    trials: TrialSettings
    exploration: ExplorationSettings
    response: ResponseSettings
    resume: ResumeSettings
    texts: TextSettings
    fields: FieldSettings
    screen: ScreenSettings
    session: SessionConfig

    @property
    def task(self) -> Task:
        """The kind of its trials."""
        return TASKS[self.experiment.task]

    @property
    def axis(self) -> str:
        """The setting that varies."""
        return self.stimulus.axis

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def condition(self, name: str) -> ConditionSettings:
        """Return a condition by its name."""
        return next(one for one in self.conditions if one.name == name)

    def procedure_of(self, condition: ConditionSettings) -> Table:
        """Return the table of the procedure in a condition."""
        return {**self.procedure, **condition.procedure}

    def config(self, condition: ConditionSettings, value: float, base: SessionConfig | None = None) -> SessionConfig:
        """Return what is run in a condition with this value of the axis, validated.

        Raises
        ------
        ConfigurationError
            If the session does not allow it.
        """
        base = base or self.session
        different = {name: table for name in ("law", "element") if (table := getattr(condition, name))}
        if different:
            base = base.with_tables(different)
        return base.with_parameter(self.axis, value)

    def practice_level(self, condition: ConditionSettings) -> float:
        """Return the level of practice in a condition."""
        return self.practice.level or condition.reference

    def easy_level(self, condition: ConditionSettings) -> float:
        """Return the level of easy catch trials in a condition."""
        return self.catch.easy_level or condition.reference


def read_design(path: Path) -> Design:
    """Read an experiment.

    Parameters
    ----------
    path : Path
        Its file.

    Raises
    ------
    ConfigurationError
        Naming line and key.
    """
    return design_of(Source.read(path))


def design_of(source: Source) -> Design:
    """Return the experiment in a file that has been read; raise as `read_design`."""
    tables = source.tables
    known = (*OWN_TABLES, *OTHER_TABLES, *SESSION_TABLES)
    for name, table in tables.items():
        if name not in known:
            with source.telling(name):
                raise unknown("table", name, known)
        if not isinstance(table, dict) and name != "conditions":
            raise source.error((name,), f"{name} = {str(table)[:40]!r}: must be a table, [{name}].")
    if "experiment" not in tables:
        raise source.error(("experiment",), "experiment: the table [experiment] is missing.")
    own: dict[str, Any] = {}
    for name, cls in OWN_TABLES.items():
        with source.telling(name):
            own[name] = build(cls, tables.get(name, {}), name)
    with source.telling("experiment", "texts"):
        own["texts"] = _translated(own["experiment"], own["texts"], source.path)
    conditions = _conditions(source)
    session = _session(source)
    design = Design(
        source.path,
        source.text,
        tables,
        conditions=conditions,
        procedure=dict(tables["procedure"]),
        session=session,
        **own,
    )
    _check(source, design)
    return design


def _translated(experiment: ExperimentSettings, texts: TextSettings, file: Path) -> TextSettings:
    """Return the texts in the experiment's language, from its file of texts where it names one."""
    if not experiment.texts:
        return texts
    other = Source.read(file.parent / experiment.texts)
    if experiment.language not in other.tables:
        raise unknown("language", experiment.language, other.tables)
    with other.telling(experiment.language):
        return build(TextSettings, other.tables[experiment.language], "texts")


def _conditions(source: Source) -> tuple[ConditionSettings, ...]:
    given = source.tables.get("conditions", [])
    if not isinstance(given, list) or not given or not all(isinstance(one, dict) for one in given):
        raise source.error(("conditions",), "conditions: at least one table [[conditions]] is needed.")
    found: list[ConditionSettings] = []
    for number, table in enumerate(given):
        with source.telling("conditions", number):
            condition = build(ConditionSettings, table, "conditions")
            if any(one.name == condition.name for one in found):
                raise ConfigurationError(f"conditions.name = {condition.name!r}: there are two of that name.")
            found.append(condition)
    return tuple(found)


def _session(source: Source) -> SessionConfig:
    """Return the session of every block."""
    tables = {name: dict(source.tables[name]) for name in SESSION_TABLES if name in source.tables}
    for name in _SESSION_ALONE:
        if name in tables.get("session", {}):
            raise source.error(("session", name), f"session.{name}: an experiment decides that; leave it out.")
    for table, name in _FILES:
        if isinstance(named := tables.get(table, {}).get(name), str) and named:
            tables[table][name] = str(source.path.parent / named)
    if tables.get("hand", {}).get("name") == "mouse":
        tables["hand"]["target"] = _place_of_the_mouse().path
    where = next((name for name in SESSION_TABLES if name in tables), "session")
    with source.telling(where):
        return complete(tables)


@functools.cache
def _place_of_the_mouse() -> Mouse:
    """Return a place for the mouse that is the hand, without which no device is built; a session puts in its own."""
    from apps.session.mouse import Mouse

    return Mouse()


def _check(source: Source, design: Design) -> None:
    """Raise unless every condition can be run."""
    if not design.procedure:
        raise source.error(("procedure",), "procedure: the table [procedure] is missing.")
    table, _, name = design.axis.partition(".")
    with source.telling("stimulus", "axis"):
        parameters = {"law": design.session.law, "element": design.session.element}.get(table, {})
        if name not in parameters or name in ("name", "source"):
            names = [f"law.{one}" for one in design.session.law if one not in ("name", "source")]
            raise unknown("axis", design.axis, [*names, *(f"element.{one}" for one in design.session.element)])
    for number, condition in enumerate(design.conditions):
        _check_procedure(source, design, number)
        with source.telling("conditions", number):
            design.config(condition, condition.reference)
            require_reference(design, condition)
        check_against_device(source, design, number)
    with source.telling("observer"):
        build(ObserverSettings, design.tables.get("observer", {}), "observer")
    check_responses(source, design)


def _check_procedure(source: Source, design: Design, number: int) -> None:
    """Raise where the procedure of condition `number` cannot be, in its own table if that has the key."""
    condition = design.conditions[number]
    try:
        procedure_settings(design.procedure_of(condition))
    except ConfigurationError as error:
        own = any(f"procedure.{name} " in str(error) for name in condition.procedure)
        with source.telling(*(("conditions", number, "procedure") if own else ("procedure",))):
            raise
