"""Settings classes of the experiment file.

The session tables are in `apps.settings.config`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from apps.experiment.trial import TASKS
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented, flag, string, unrestricted

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_FIELD = re.compile(r"[a-z][a-z0-9_]{0,39}")


def _table(allowed: str, doc: str) -> dict[str, str]:
    """Return the metadata of a dataclass field that holds a table."""
    return {"words": allowed, "doc": doc}


@documented
@dataclass(frozen=True)
class ExperimentSettings:
    """Table ``experiment``: task and general settings."""

    name: str = string(allowed="small letters, digits and hyphens", doc="name, also of the files")
    task: str = choice("discrimination", TASKS, doc="kind of trial")
    title: str = string("", doc="what it is about, for people")
    seed: int = bounded(1, minimum=0, maximum=2**62, doc="seed of everything random, orders and levels included")
    language: str = string("en", allowed="a language such as en", doc="which of the texts are shown")
    texts: str = string("", allowed="a TOML file", doc="file with a table of texts for each language")
    blind: bool = flag(False, doc="hide condition, level and track from the experimenter until the session has ended")

    def __post_init__(self) -> None:
        check(self, "experiment")
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"experiment.name = {self.name!r}: must be small letters, digits and hyphens, such as weber-friction."
            )


@documented
@dataclass(frozen=True)
class StimulusSettings:
    """Table ``stimulus``: the session setting that varies."""

    axis: str = string("law.force", allowed="a parameter of law, element or walls", doc="the setting that varies")
    scale: str = choice("log", ("linear", "log"), doc="scale of levels in fits and figures")
    resolution: float = bounded(
        0.0,
        minimum=0.0,
        unit="N",
        doc="finest step of force that the device renders; 0: that of its data sheet, if it has one",
    )

    def __post_init__(self) -> None:
        check(self, "stimulus")


@documented
@dataclass(frozen=True)
class ConditionSettings:
    """Table ``conditions``: settings that are constant within a track."""

    name: str = string(allowed="a name", doc="what it is called in tables and figures")
    reference: float = bounded(
        0.0, minimum=0.0, doc="value of the reference, in the unit of the axis; 0 where there is no stimulus"
    )
    tracks: int = bounded(1, minimum=1, maximum=8, doc="procedures side by side")
    law: Any = field(default_factory=dict, metadata=_table("a table", "what is different in the law"))
    element: Any = field(default_factory=dict, metadata=_table("a table", "what is different in the element"))
    procedure: Any = field(default_factory=dict, metadata=_table("a table", "what is different in the procedure"))

    def __post_init__(self) -> None:
        check(self, "conditions")
        if not self.name or len(self.name) > 40:
            raise ConfigurationError(f"conditions.name = {self.name!r}: must be a name of up to 40 letters.")
        for table in ("law", "element", "procedure"):
            if not isinstance(getattr(self, table), dict):
                raise ConfigurationError(f"conditions.{table} = {getattr(self, table)!r}: must be a table.")


@documented
@dataclass(frozen=True)
class CatchSettings:
    """Table ``catch``: trials without a difference, and trials with an obvious one."""

    null: float = bounded(0.0, minimum=0.0, maximum=0.3, doc="share of trials with two equal stimuli, or with none")
    easy: float = bounded(0.05, minimum=0.0, maximum=0.3, doc="share of trials with a difference that is easy")
    easy_level: float = bounded(
        0.0, minimum=0.0, doc="level of the easy ones, in the unit of the axis; 0: as large as the reference itself"
    )
    most_errors: float = bounded(
        0.2, minimum=0.0, maximum=1.0, doc="share of easy ones that may be wrong before a session is excluded"
    )

    def __post_init__(self) -> None:
        check(self, "catch")


@documented
@dataclass(frozen=True)
class PracticeSettings:
    """Table ``practice``: easy trials with feedback, until the participant answers them reliably."""

    window: int = bounded(0, minimum=0, maximum=100, doc="the last so many trials are looked at; 0: no practice")
    correct: int = bounded(0, minimum=0, maximum=100, doc="so many of them must be right")
    most: int = bounded(40, minimum=1, maximum=500, doc="after so many it ends in any case")
    level: float = bounded(0.0, minimum=0.0, doc="level, in the unit of the axis; 0: as large as the reference itself")
    feedback: bool = flag(True, doc="say whether an answer was right")
    failing: str = choice("stop", ("stop", "go on"), doc="what follows when it was not passed")

    def __post_init__(self) -> None:
        check(self, "practice")
        if self.correct > self.window:
            raise ConfigurationError(
                f"practice.correct = {self.correct}: must be at most practice.window = {self.window}."
            )


@documented
@dataclass(frozen=True)
class TrialSettings:
    """Table ``trials``: times, breaks, order, and repetition of disturbed trials."""

    interval: float = bounded(4.0, minimum=0.1, maximum=600.0, unit="s", doc="longest time of an interval")
    gap: float = bounded(
        0.3, minimum=0.15, maximum=60.0, unit="s", doc="shortest time between two intervals, the output being down"
    )
    time_out: float = bounded(
        0.0, minimum=0.0, maximum=600.0, unit="s", doc="an answer later than this repeats the trial; 0: any time"
    )
    feedback: bool = flag(False, doc="say after every trial whether the answer was right")
    interleave: bool = flag(True, doc="mix all conditions; else one after the other, in orders of a Williams square")
    block: int = bounded(50, minimum=1, maximum=1000, doc="trials between two breaks")
    rest: float = bounded(30.0, minimum=0.0, maximum=3600.0, unit="s", doc="shortest break")
    most_repeated: float = bounded(
        0.2, minimum=0.0, maximum=1.0, doc="share of trials that may be repeated before the session stops"
    )
    late_ticks: float = bounded(1e-3, minimum=0.0, maximum=1.0, doc="share of late ticks that repeats a trial")
    longest_gap: float = bounded(
        5e-3, above=0.0, maximum=1.0, unit="s", doc="time between two ticks that repeats a trial"
    )

    def __post_init__(self) -> None:
        check(self, "trials")


@documented
@dataclass(frozen=True)
class ExplorationSettings:
    """Table ``exploration``: start position, motion, and speed limits of the hand."""

    start: Any = unrestricted(
        (), "a point [x, y] in m", doc="centre of the box in which the hand rests before an interval"
    )
    reach: float = bounded(0.01, above=0.0, maximum=0.5, unit="m", doc="half the side of that box")
    rest: float = bounded(0.1, minimum=0.0, maximum=10.0, unit="s", doc="time at rest in it before an interval")
    rest_speed: float = bounded(0.02, above=0.0, maximum=1.0, unit="m/s", doc="slower is at rest")
    patience: float = bounded(60.0, above=0.0, maximum=3600.0, unit="s", doc="so long is waited for the hand")
    strokes: int = bounded(0, minimum=0, maximum=100, doc="strokes that end an interval; 0: only time does")
    stroke: float = bounded(0.03, above=0.0, maximum=1.0, unit="m", doc="length from which a motion is a stroke")
    least_speed: float = bounded(0.0, minimum=0.0, maximum=10.0, unit="m/s", doc="lowest mean speed of a stroke")
    greatest_speed: float = bounded(10.0, above=0.0, maximum=10.0, unit="m/s", doc="highest mean speed of a stroke")
    pacing: str = choice("none", ("none", "target", "tone", "both"), doc="what sets the pace")
    eyes: bool = flag(True, doc="show the workspace; else nothing can be seen while a stimulus is felt")
    cursor: bool = flag(True, doc="show where the hand is")

    def __post_init__(self) -> None:
        check(self, "exploration")
        start = self.start
        plain = isinstance(start, list | tuple) and len(start) in (0, 2)
        if not plain or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in start):
            raise ConfigurationError(f"exploration.start = {start!r}: must be a point [x, y] in m.")
        object.__setattr__(self, "start", tuple(float(one) for one in start))
        if not self.least_speed < self.greatest_speed:
            raise ConfigurationError(
                f"exploration.least_speed = {self.least_speed:g} m/s: must be less than "
                f"exploration.greatest_speed = {self.greatest_speed:g} m/s."
            )


@documented
@dataclass(frozen=True)
class ResponseSettings:
    """Table ``response``: keys and buttons by answer.

    Button n of the device is bit n.
    """

    keys: Any = field(
        default_factory=dict, metadata=_table("a table of lists of keys, by answer", "keys of the keyboard")
    )
    buttons: Any = field(
        default_factory=dict,
        metadata=_table("a table of buttons, 1 to 31, by answer", "buttons of the device, or foot switches"),
    )
    step: float = bounded(0.05, above=0.0, maximum=1.0, doc="adjustment: part of the value that a key changes")
    redo: str = string("backspace", allowed="a key", doc="key with which a participant asks to repeat the last trial")
    debounce: float = bounded(0.02, minimum=0.0, maximum=1.0, unit="s", doc="contacts may bounce for so long")

    def __post_init__(self) -> None:
        check(self, "response")
        for name in ("keys", "buttons"):
            if not isinstance(getattr(self, name), dict):
                raise ConfigurationError(f"response.{name} = {getattr(self, name)!r}: must be a table by answer.")
        for answer, names in self.keys.items():
            if not isinstance(names, list | tuple) or not all(isinstance(one, str) and one for one in names):
                raise ConfigurationError(f"response.keys.{answer} = {names!r}: must be a list of keys.")
        for answer, button in self.buttons.items():
            if type(button) is not int or not 1 <= button <= 31:
                raise ConfigurationError(f"response.buttons.{answer} = {button!r}: must be a button, 1 to 31.")


@documented
@dataclass(frozen=True)
class ResumeSettings:
    """Table ``resume``: continuation of an interrupted session."""

    policy: str = choice(
        "resume",
        ("resume", "block", "restart"),
        doc="go on with the interrupted trial, with its whole block, or not at all",
    )
    most_age: float = bounded(
        43200.0, above=0.0, maximum=1e8, unit="s", doc="after a longer interruption a session is not taken up again"
    )

    def __post_init__(self) -> None:
        check(self, "resume")


@documented
@dataclass(frozen=True)
class FieldSettings:
    """Table ``fields``: required data about a participant before the first trial, never the name."""

    demanded: Any = unrestricted((), "a list of names such as age_band", doc="without these there is no session")
    allowed: Any = field(
        default_factory=dict, metadata=_table("a table of lists, by name", "the values that a field may have")
    )

    def __post_init__(self) -> None:
        check(self, "fields")
        names = self.demanded
        good = isinstance(names, list | tuple) and all(isinstance(one, str) and _FIELD.fullmatch(one) for one in names)
        if not good:
            raise ConfigurationError(f"fields.demanded = {names!r}: must be a list of names such as age_band.")
        object.__setattr__(self, "demanded", tuple(names))
        if not isinstance(self.allowed, dict) or not all(isinstance(one, list) for one in self.allowed.values()):
            raise ConfigurationError(f"fields.allowed = {self.allowed!r}: must be a table of lists.")
