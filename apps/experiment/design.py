"""Experiment design: the complete content of an experiment file, validated against the device.

Every error message contains the line and the key. Errors of levels state the limits of the device.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.experiment.conditions import Origin, read_conditions
from apps.experiment.forms.forms import MOST_FORMS, ConsentSettings, Form, consent_form, form_of
from apps.experiment.observers import ObserverSettings
from apps.experiment.procedures.settings import procedure_settings
from apps.experiment.settings import (
    AnalysisSettings,
    CatchSettings,
    ConditionSettings,
    ExperimentSettings,
    ExplorationSettings,
    FieldSettings,
    FrictionSettings,
    GroupSettings,
    PracticeSettings,
    ResponseSettings,
    ResumeSettings,
    ScheduleSettings,
    ScreenSettings,
    StimulusSettings,
    TextSettings,
    TrialSettings,
    require_translated,
)
from apps.experiment.source import Source
from apps.experiment.trial import TASKS, Task
from apps.experiment.triggers.ports import TriggerSettings
from apps.settings.config import TABLES, SessionConfig, complete
from apps.settings.models import Table, is_name, scene_of, with_scene_in_session
from haptics.elements.catalogue import FORCE_SETTINGS
from haptics.errors import ConfigurationError
from haptics.files import sha256_of
from haptics.settings import build, unknown_name

if TYPE_CHECKING:
    from apps.session.service import Mouse

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
    "schedule": ScheduleSettings,
    "texts": TextSettings,
    "fields": FieldSettings,
    "groups": GroupSettings,
    "screen": ScreenSettings,
    "consent": ConsentSettings,
    "triggers": TriggerSettings,
}
"""Tables with a settings class each."""

OTHER_TABLES = ("conditions", "factors", "forms", "procedure", "observer", "power", "analysis")
"""Tables of other forms, and tables that other commands read."""

USUAL_KEYS: dict[str, tuple[str, ...]] = {
    "1": ("1", "left"),
    "2": ("2", "right"),
    "yes": ("y",),
    "no": ("n",),
    "same": ("s",),
    "different": ("d",),
    "up": ("up",),
    "down": ("down",),
    "compare": ("c",),
    "done": ("return",),
}
"""Default keys of the answers."""

STEPS_OF_A_LEVEL = 1.0
"""Minimum size of the smallest level, in steps of the device's force."""

_FILES = (
    *(("law", "file"), ("session", "measured"), ("session", "scene")),
    *(("device", "parameters"), ("device", "friction_parameters"), ("hand", "file")),
)
"""Session settings that are file names, resolved relative to the folder of the experiment file."""

_SESSION_ALONE = ("duration", "clock", "record", "picture")
"""Session settings that the experiment determines."""

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
        Parsed content of the file. Conditions from factors or a CSV file are listed.
    experiment, stimulus, catch, practice, trials, exploration, friction, response, resume, schedule, texts, fields,
    screen, consent, triggers, groups
        Settings of the tables of the same names.
    conditions : tuple of ConditionSettings
        Conditions, which are constant within a track.
    forms : tuple of Form
        Questionnaires, in order.
    consent_form : Form or None
        Consent page, None if there is none.
    procedure : dict
        Table of the procedure. A condition may override its entries.
    session : SessionConfig
        Session of every block, with the reference of the first condition.
    task : Task
        Task of the trials.
    axis : str
        Setting that varies between stimuli.
    sha256 : str
        SHA-256 of the experiment file.
    group : str
        Group of the participant, empty before the assignment and without groups.
    csv_text : str
        Text of the CSV file of the conditions, empty without one.
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
    schedule: ScheduleSettings
    texts: TextSettings
    fields: FieldSettings
    groups: GroupSettings
    screen: ScreenSettings
    consent: ConsentSettings
    forms: tuple[Form, ...]
    consent_form: Form | None
    triggers: TriggerSettings
    session: SessionConfig
    group: str = ""
    csv_text: str = field(default="", repr=False)
    origins: tuple[Origin, ...] = field(default=(), repr=False, compare=False)
    task: Task = field(init=False)
    axis: str = field(init=False)
    sha256: str = field(init=False)
    _configs: dict[tuple[str, float], SessionConfig] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "task", TASKS[self.experiment.task])
        object.__setattr__(self, "axis", self.stimulus.axis)
        object.__setattr__(self, "sha256", hashlib.sha256(self.text.encode()).hexdigest())
        object.__setattr__(self, "_configs", {})

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
            different = {name: table for name in ("law", "element") if (table := getattr(condition, name))}
            base = self.session.with_tables(different) if different else self.session
            self._configs[key] = base.with_parameter(self.axis, value)
        return self._configs[key]

    def with_friction_file(self, file: Path) -> Design:
        """Return the design with the device friction of another file, which updates the data sheet as well.

        Raises
        ------
        ConfigurationError
            If the file is invalid, or a level is below the residual friction of the device.
        """
        settings = {**self.session.device_settings, "friction_parameters": str(file)}
        changed = dataclasses.replace(self.session, device_settings=settings, friction_file_hash=sha256_of(file))
        design = dataclasses.replace(self, session=changed)
        source = Source(self.path, self.text)
        for number in range(len(self.conditions)):
            _check_levels(source, design, number)
        return design

    def for_group(self, group: str) -> Design:
        """Return the design with the conditions of a group."""
        names = self.groups.conditions.get(group)
        both = [one for one in zip(self.conditions, self.origins, strict=True) if not names or one[0].name in names]
        conditions, origins = zip(*both, strict=True)
        return dataclasses.replace(self, group=group, conditions=conditions, origins=origins)

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


def design_of(source: Source, csv_text: str | None = None) -> Design:
    """Return the design of a file that has been read.

    `csv_text` replaces the text of its CSV file of conditions. Raises like `read_design`.
    """
    tables = source.tables
    known = (*OWN_TABLES, *OTHER_TABLES, *TABLES)
    for name, table in tables.items():
        if name not in known:
            with source.locating(name):
                raise unknown_name("table", name, known)
        if (
            not isinstance(table, dict)
            and name not in ("conditions", "forms")
            and not (name == "scene" and isinstance(table, str))
        ):
            raise source.error((name,), f"{name} = {str(table)[:40]!r}: must be a table, [{name}].")
    if "experiment" not in tables:
        raise source.error(("experiment",), "experiment: the table [experiment] is missing.")
    own: dict[str, Any] = {}
    for name, cls in OWN_TABLES.items():
        with source.locating(name):
            own[name] = build(cls, tables.get(name, {}), name)
    with source.locating("experiment", "texts"):
        experiment: ExperimentSettings = own["experiment"]
        answers, language, texts = possible_answers(experiment.task), experiment.language, source
        if experiment.texts:
            texts = Source.read(source.path.parent / experiment.texts)
            if language not in texts.tables:
                raise unknown_name("language", language, texts.tables)
        name = language if experiment.texts else "texts"
        with texts.locating(name):
            own["texts"] = build(TextSettings, texts.tables.get(name, {}), "texts")
            asks = bool(tables.get("forms")) or bool(own["consent"].version)
            require_translated(texts.tables.get(name, {}), language, answers, asks)
    with source.locating("consent"):
        consent = consent_form(own["consent"], own["texts"].consent, language)
    forms = _forms(source, own["texts"].forms, language)
    if experiment.blind:
        own["groups"] = dataclasses.replace(own["groups"], blind=True)
    conditions, session = read_conditions(source, csv_text), _session(source)
    if conditions.tables is not tables.get("conditions"):
        tables = {**tables, "conditions": conditions.tables}
    if not tables.get("procedure"):
        raise source.error(("procedure",), "procedure: the table [procedure] is missing.")
    design = Design(
        source.path,
        source.text,
        tables,
        conditions=conditions.settings,
        csv_text=conditions.csv_text,
        origins=conditions.origins,
        procedure=dict(tables["procedure"]),
        session=session,
        forms=forms,
        consent_form=consent,
        **own,
    )
    _check(source, design)
    return design


def possible_answers(task: str) -> tuple[str, ...]:
    """Return the possible meanings of a key or button in a trial of a task."""
    return TASKS[task].responses or (("up", "down", "compare", "done") if task == "adjustment" else ())


def keys_of(design: Design) -> dict[str, str]:
    """Return the answer of each key."""
    named = {
        answer: design.response.keys.get(answer, USUAL_KEYS[answer])
        for answer in possible_answers(design.experiment.task)
    }
    return {key: answer for answer, keys in named.items() for key in keys}


def levels_of(table: Mapping[str, Any]) -> tuple[float, float]:
    """Return the lowest and highest level that the procedure in a table can present."""
    settings: Any = procedure_settings(table)
    for name in ("levels", "starts"):
        if hasattr(settings, name):
            return min(getattr(settings, name)), max(getattr(settings, name))
    if hasattr(settings, "level"):
        return settings.level, settings.level
    return settings.minimum, settings.maximum


# --- parts of a design ---


def _forms(source: Source, words: Mapping[str, Any], language: str) -> tuple[Form, ...]:
    """Return the questionnaires, with their texts in the language of the experiment."""
    given = source.tables.get("forms", [])
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given) or len(given) > MOST_FORMS:
        raise source.error(("forms",), f"forms: must be at most {MOST_FORMS} tables, [[forms]].")
    found: list[Form] = []
    for number, table in enumerate(given):
        with source.locating("forms", number):
            form = form_of(table, words.get(str(table.get("name")), {}), language)
            if any(one.name.replace("_", "") == form.name.replace("_", "") for one in found):  # a BIDS label
                raise ConfigurationError(f"forms.name = {form.name!r}: there are two of that name.")
            found.append(form)
    for name in words:
        if name not in (form.name for form in found):
            raise source.error(
                ("texts", "forms", name), f"texts.forms.{name}: the experiment has no form of that name."
            )
    return tuple(found)


def _session(source: Source) -> SessionConfig:
    """Return the session settings of the blocks."""
    from haptics.scenes.tables import SceneError

    given = {name: source.tables[name] for name in TABLES if name in source.tables}
    tables = {name: dict(table) for name, table in with_scene_in_session(given).items()}
    for name in _SESSION_ALONE:
        if name in tables.get("session", {}):
            raise source.error(("session", name), f"session.{name}: an experiment decides that; leave it out.")
    for table, name in _FILES:
        named = tables.get(table, {}).get(name)
        if isinstance(named, str) and named and not (name == "scene" and is_name(named)):
            tables[table][name] = str(source.path.parent / named)
    if tables.get("hand", {}).get("name") == "mouse":
        tables["hand"]["target"] = _mouse_placeholder().path
    if "scene" in source.tables and "scene" in source.tables.get("session", {}):
        raise source.error(("session", "scene"), "session.scene: there is a scene in the file already; leave one out.")
    try:
        with source.locating(*(("scene",) if "scene" in source.tables else ("session", "scene"))):
            scene_of(tables)
    except ConfigurationError as error:
        if isinstance(source.tables.get("scene"), dict) and isinstance(error.__cause__, SceneError):
            raise source.error(("scene", *error.__cause__.keys), str(error.__cause__)) from error
        raise
    with source.locating(next((name for name in TABLES if name in tables), "session")):
        return complete(tables)


@functools.cache
def _mouse_placeholder() -> Mouse:
    """Return a placeholder for the mouse target, which is needed to validate the device settings.

    Each session replaces it with its own target.
    """
    from apps.session.service import Mouse

    return Mouse()


# --- validation ---


def _check(source: Source, design: Design) -> None:
    """Raise unless every condition can be run."""
    with source.locating("stimulus", "axis"):
        if design.axis not in design.session.parameters:
            raise unknown_name("axis", design.axis, design.session.parameters)
    for number, (condition, origin) in enumerate(zip(design.conditions, design.origins, strict=True)):
        try:
            procedure_settings(design.procedure_of(condition))
        except ConfigurationError as error:
            own = [name for name in condition.procedure if f"procedure.{name} " in str(error)]
            with origin.locating(source, "procedure", *own[:1]) if own else source.locating("procedure"):
                raise
        with origin.locating(source):
            design.config(condition, condition.reference)
            if design.experiment.task == "discrimination" and not condition.reference > 0.0:
                raise ConfigurationError(
                    f"conditions.reference = {condition.reference:g}: a discrimination needs one greater than 0; for "
                    "the least that is felt at all choose experiment.task = 'detection-2ifc'."
                )
            for key, used, level in (
                ("catch.easy_level", design.catch.easy, design.easy_level(condition)),
                ("practice.level", design.practice.window, design.practice_level(condition)),
            ):
                if used and design.task.responses and not level > 0.0:
                    raise ConfigurationError(
                        f"{key} is missing: without a reference, a level that is obvious must be given."
                    )
        _check_levels(source, design, number)
    share = design.catch.null + design.catch.easy
    if design.task.responses and share > 0.5:
        raise source.error(
            ("catch", "null"), f"catch.null + catch.easy = {share:g}: must be at most 0.5; 0.05 to 0.1 is usual."
        )
    with source.locating("observer"):
        build(ObserverSettings, design.tables.get("observer", {}), "observer")
    with source.locating("analysis"):
        build(AnalysisSettings, design.tables.get("analysis", {}), "analysis")
    _check_responses(source, design)
    _check_groups(source, design)
    if "schedule" in design.tables and not design.schedule.sessions:
        raise source.error(("schedule", "sessions"), "schedule.sessions: is missing; give the number of sessions.")
    kinds = {design.procedure_of(condition)["kind"] for condition in design.conditions}
    if design.schedule.carry_over and not kinds & {"staircase", "quest+"}:
        raise source.error(
            ("schedule", "carry_over"), "schedule.carry_over = true: needs a staircase or QUEST+ in a condition."
        )
    if design.friction.measure_each_session:
        from apps.experiment.friction import require_measurable

        with source.locating("friction", "measure_each_session"):
            require_measurable(design.session, design.friction.motions)


def _check_groups(source: Source, design: Design) -> None:
    """Raise if the table ``groups`` names unknown groups, conditions or fields."""
    groups, fields, conditions = design.groups, design.fields, [one.name for one in design.conditions]
    if "groups" in design.tables and not groups.names:
        raise source.error(("groups", "names"), "groups.names: is missing; name two or more groups.")
    for name in groups.fields:
        if name not in fields.demanded or not fields.allowed.get(name):
            raise source.error(
                ("groups", "fields"),
                f"groups.fields: {name!r} must be in fields.demanded, and have its values in fields.allowed.",
            )
    for name, own in groups.conditions.items():
        with source.locating("groups", "conditions"):
            if name not in groups.names:
                raise unknown_name("group", name, groups.names)
            for condition in own:
                if condition not in conditions:
                    raise unknown_name("condition", str(condition), conditions)
    used = [name for group in groups.names for name in groups.conditions.get(group, conditions)]
    if groups.names and (unused := [name for name in conditions if name not in used]):
        raise source.error(("groups", "conditions"), f"groups.conditions: {unused[0]!r} is in no group.")
    if groups.blind and groups.conditions and not design.experiment.blind:
        raise source.error(
            ("groups", "blind"),
            "groups.blind = true: the conditions reveal the group; give experiment.blind = true as well.",
        )
    for name in design.texts.groups:
        if name not in groups.names:
            with source.locating("texts"):
                raise unknown_name("group", name, groups.names)


def _check_levels(source: Source, design: Design, number: int) -> None:
    """Raise if condition `number` has levels that the device cannot render.

    Raises
    ------
    ConfigurationError
        With line and key in the file, and the levels that can be rendered.
    """
    condition = design.conditions[number]
    reference, (lowest, highest) = condition.reference, levels_of(design.procedure_of(condition))
    origin = design.origins[number]

    def locating(*names: str) -> contextlib.AbstractContextManager[None]:
        """Add the place of the first of these keys, in the procedure of the condition or the common one, to errors."""
        own = next((name for name in names if name in condition.procedure), None)
        common = next((name for name in names if name in design.procedure), None)
        if own is not None:
            return origin.locating(source, "procedure", own)
        if common is not None:
            return source.locating("procedure", common)
        return origin.locating(source, "procedure") if condition.procedure else source.locating("procedure")

    levels = [highest]
    if design.task.responses:
        levels += [design.easy_level(condition)] if design.catch.easy else []
        levels += [design.practice_level(condition)] if design.practice.window else []
    with locating("maximum", "levels", "starts", "level"):
        for level in levels:
            design.config(condition, reference + level)
            value, most = reference + level, design.session.limits.max_force
            if design.axis in FORCE_SETTINGS and value > most:
                # the smallest level with which the value is reached from a reference of the conditions
                gaps = (value - one.reference for one in design.conditions if one.reference <= value)
                highest_level = max(most - (value - min(gaps, default=value)), 0.0)
                raise ConfigurationError(
                    f"{design.axis} = {value:g} N: is more than envelope.max_force = {most:g} N of "
                    f"{design.session.device}; the highest level on this reference is {highest_level:g} N."
                )
    device = design.session.device
    step = design.stimulus.resolution or design.session.spec.force_resolution or None
    if step is not None and design.axis not in FORCE_SETTINGS:
        speed = design.exploration.least_speed  # a viscosity acts at least at the lowest speed of the hand
        step = step / speed if design.axis == "law.viscosity" and speed else None
    with locating("minimum", "levels", "starts", "level"):
        if step is not None and lowest < STEPS_OF_A_LEVEL * step:
            pedestal = f"on the pedestal of {reference:g} " if reference else ""
            raise ConfigurationError(
                f"a level of {lowest:g} is finer than {device} renders in {design.axis}; the smallest "
                f"increment {pedestal}is {STEPS_OF_A_LEVEL * step:.3g}."
            )
    least = design.session.spec.least_friction
    detected = design.experiment.task.startswith("detection") and design.axis in FORCE_SETTINGS
    if detected and least and reference + lowest < least and reference < least:
        with source.locating("experiment", "task"):
            raise ConfigurationError(
                f"experiment.task = {design.experiment.task!r} with a lowest level of {lowest:g} N: {device} has "
                f"{least:.3g} N of residual friction, and less cannot be distinguished from none. "
                f"Detect an increment on that pedestal instead: conditions.reference = {_rounded_up(least):g}."
            )


def _rounded_up(value: float) -> float:
    """Return `value` rounded up to a short decimal number."""
    for digits in range(6):
        rounded = round(value, digits)
        if rounded >= value and rounded > 0.0 and rounded < 1.5 * value:
            return rounded
        if (more := rounded + 10.0**-digits) < 1.5 * value and more >= value:
            return round(more, digits)
    return value


def _check_responses(source: Source, design: Design) -> None:
    """Raise if keys, buttons or codes belong to answers that the task does not have, or keys are assigned twice."""
    answers = possible_answers(design.experiment.task)
    codes = design.triggers.codes.get("answer")
    for answer in codes if isinstance(codes, Mapping) else ():
        if answer not in design.task.responses:
            allowed = ", ".join(design.task.responses) or "none: the answer is a number; give one code"
            raise source.error(
                ("triggers", "codes", "answer", answer),
                f"triggers.codes.answer.{answer}: is no answer to this task; allowed: {allowed}.",
            )
    for table, given in (("keys", design.response.keys), ("buttons", design.response.buttons)):
        taken: dict[Any, str] = {}
        for answer, marks in given.items():
            where = ("response", table, answer)
            if answer not in answers:
                allowed = ", ".join(answers) or "none: a number is entered"
                raise source.error(where, f"response.{table}.{answer}: is no answer to this task; allowed: {allowed}.")
            for mark in marks if table == "keys" else (marks,):
                if taken.setdefault(mark, answer) != answer:
                    raise source.error(where, f"response.{table}.{answer}: {mark!r} is {taken[mark]!r} already.")
