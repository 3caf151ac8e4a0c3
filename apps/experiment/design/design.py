"""Experiment design: the complete, validated content of an experiment file."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.experiment.design.checks import check_against_device, check_responses, possible_answers, require_reference
from apps.experiment.design.session import session_of
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
    TrialSettings,
)
from apps.experiment.design.source import Source
from apps.experiment.design.texts import TextSettings, require_translated
from apps.experiment.friction.settings import FrictionSettings
from apps.experiment.observers import ObserverSettings
from apps.experiment.procedures import procedure_settings
from apps.experiment.report.settings import AnalysisSettings
from apps.experiment.screens.settings import ScreenSettings
from apps.experiment.trial import TASKS, Task
from apps.settings.config import TABLES, SessionConfig
from apps.settings.models import Table
from haptics.errors import ConfigurationError
from haptics.reading import sha256_of
from haptics.settings import build, unknown_name

OWN_TABLES: dict[str, type[Any]] = {
    "experiment": ExperimentSettings,
    "stimulus": StimulusSettings,
    "catch": CatchSettings,
    "practice": PracticeSettings,
    "trials": TrialSettings,
    "exploration": ExplorationSettings,
    "friction": FrictionSettings,
    "response": ResponseSettings,
    "resume": ResumeSettings,
    "texts": TextSettings,
    "fields": FieldSettings,
    "screen": ScreenSettings,
}
"""Tables with a settings class each."""

OTHER_TABLES = ("conditions", "procedure", "observer", "power", "analysis")
"""Tables of other forms, and tables that other commands read."""

_MOST_CONFIGS = 500
"""Maximum number of cached session configurations."""


@dataclass(frozen=True)
class Design:
    """Validated design of an experiment.

    Attributes
    ----------
    path : Path
        File of the experiment.
    text : str
        Text of the file.
    tables : dict
        Parsed content of the file.
    experiment, stimulus, catch, practice, trials, exploration, friction, response, resume, texts, fields, screen
        Settings of the tables of the same names.
    conditions : tuple of ConditionSettings
        Conditions, which are constant within a track.
    procedure : dict
        Table of the procedure. A condition may override its entries.
    session : SessionConfig
        Session of every block, with the reference of the first condition.
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
    friction: FrictionSettings
    response: ResponseSettings
    resume: ResumeSettings
    texts: TextSettings
    fields: FieldSettings
    screen: ScreenSettings
    session: SessionConfig

    @property
    def task(self) -> Task:
        """Task of the trials."""
        return TASKS[self.experiment.task]

    @property
    def axis(self) -> str:
        """Setting that varies between stimuli."""
        return self.stimulus.axis

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 of the experiment file."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def condition(self, name: str) -> ConditionSettings:
        """Return a condition by name."""
        return next(one for one in self.conditions if one.name == name)

    def procedure_of(self, condition: ConditionSettings) -> Table:
        """Return the procedure table of a condition."""
        return {**self.procedure, **condition.procedure}

    def config(self, condition: ConditionSettings, value: float) -> SessionConfig:
        """Return the validated session settings of a condition for one value of the axis.

        Raises
        ------
        ConfigurationError
            If the session does not allow the value.
        """
        key = condition.name, value
        if key not in self._configs:  # procedures repeat values
            if len(self._configs) >= _MOST_CONFIGS:
                self._configs.clear()
            self._configs[key] = self._config(condition, value)
        return self._configs[key]

    @functools.cached_property
    def _configs(self) -> dict[tuple[str, float], SessionConfig]:
        return {}

    def _config(self, condition: ConditionSettings, value: float) -> SessionConfig:
        base = self.session
        different = {name: table for name in ("law", "element") if (table := getattr(condition, name))}
        if different:
            base = base.with_tables(different)
        return base.with_parameter(self.axis, value)

    def with_friction_file(self, file: Path) -> Design:
        """Return the design with the device friction of another file, which updates the data sheet as well.

        Raises
        ------
        ConfigurationError
            If the file is invalid, or a level is below the residual friction of the device.
        """
        session = self.session
        settings = {**session.device_settings, "friction_parameters": str(file)}
        changed = dataclasses.replace(session, device_settings=settings, friction_file_hash=sha256_of(file))
        design = dataclasses.replace(self, session=changed)
        source = Source(self.path, self.text)
        for number in range(len(self.conditions)):
            check_against_device(source, design, number)
        return design

    def practice_level(self, condition: ConditionSettings) -> float:
        """Return the level of practice trials in a condition."""
        return self.practice.level or condition.reference

    def easy_level(self, condition: ConditionSettings) -> float:
        """Return the level of easy catch trials in a condition."""
        return self.catch.easy_level or condition.reference


def read_design(path: Path) -> Design:
    """Read and validate the design of an experiment.

    Parameters
    ----------
    path : Path
        File of the experiment.

    Raises
    ------
    ConfigurationError
        If the file is invalid. The message contains line and key.
    """
    return design_of(Source.read(path))


def design_of(source: Source) -> Design:
    """Return the design of a file that has been read.

    Raises like `read_design`.
    """
    tables = source.tables
    known = (*OWN_TABLES, *OTHER_TABLES, *TABLES)
    for name, table in tables.items():
        if name not in known:
            with source.telling(name):
                raise unknown_name("table", name, known)
        if not isinstance(table, dict) and name != "conditions" and not (name == "scene" and isinstance(table, str)):
            raise source.error((name,), f"{name} = {str(table)[:40]!r}: must be a table, [{name}].")
    if "experiment" not in tables:
        raise source.error(("experiment",), "experiment: the table [experiment] is missing.")
    own: dict[str, Any] = {}
    for name, cls in OWN_TABLES.items():
        with source.telling(name):
            own[name] = build(cls, tables.get(name, {}), name)
    with source.telling("experiment", "texts"):
        own["texts"] = _translated(own["experiment"], own["texts"], source)
    conditions = _conditions(source)
    session = session_of(source)
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


def _translated(experiment: ExperimentSettings, texts: TextSettings, source: Source) -> TextSettings:
    """Return the texts in the language of the experiment, from its text file if one is given."""
    answers = possible_answers(experiment.task)
    if not experiment.texts:
        with source.telling("texts"):
            require_translated(source.tables.get("texts", {}), experiment.language, answers)
        return texts
    other = Source.read(source.path.parent / experiment.texts)
    if experiment.language not in other.tables:
        raise unknown_name("language", experiment.language, other.tables)
    with other.telling(experiment.language):
        table = other.tables[experiment.language]
        texts = build(TextSettings, table, "texts")
        require_translated(table, experiment.language, answers)
    return texts


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


def _check(source: Source, design: Design) -> None:
    """Raise unless every condition can be run."""
    if not design.procedure:
        raise source.error(("procedure",), "procedure: the table [procedure] is missing.")
    with source.telling("stimulus", "axis"):
        if design.axis not in design.session.parameters:
            raise unknown_name("axis", design.axis, design.session.parameters)
    for number, condition in enumerate(design.conditions):
        _check_procedure(source, design, number)
        with source.telling("conditions", number):
            design.config(condition, condition.reference)
            require_reference(design, condition)
        check_against_device(source, design, number)
    with source.telling("observer"):
        build(ObserverSettings, design.tables.get("observer", {}), "observer")
    with source.telling("analysis"):
        build(AnalysisSettings, design.tables.get("analysis", {}), "analysis")
    check_responses(source, design)
    with source.telling("friction", "measure_each_session"):
        _require_measurable(design)


def _require_measurable(design: Design) -> None:
    """Raise if the device's friction must be measured in every session but cannot be."""
    if design.friction.measure_each_session:
        from apps.experiment.friction.measuring import require_measurable

        require_measurable(design)


def _check_procedure(source: Source, design: Design, number: int) -> None:
    """Raise if the procedure of condition `number` is invalid, with the position of its key in the file."""
    condition = design.conditions[number]
    try:
        procedure_settings(design.procedure_of(condition))
    except ConfigurationError as error:
        own = any(f"procedure.{name} " in str(error) for name in condition.procedure)
        with source.telling(*(("conditions", number, "procedure") if own else ("procedure",))):
            raise
