"""Settings classes of the experiment file, one for each table.

The session tables are in `apps.settings.config`, the table ``observer`` in `apps.experiment.observers`, the table
``procedure`` in `apps.experiment.procedures`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any, Self
from zoneinfo import ZoneInfo

from apps.experiment.trial import TASKS
from haptics.errors import ConfigurationError
from haptics.settings import bounded, build, check, choice, documented, flag, string, unrestricted

if TYPE_CHECKING:
    from calibration.motions.excitation import Excitation

_share = functools.partial(bounded, minimum=0.0, maximum=1.0)

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_FIELD = re.compile(r"[a-z][a-z0-9_]{0,39}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
FACTOR_NAME = _FIELD
"""Names of factors, which are also names of columns."""


def _table(allowed: str, doc: str) -> Any:
    """Declare a dataclass field that holds a table."""
    return field(default_factory=dict, metadata={"words": allowed, "doc": doc})


def _require(good: bool, name: str, value: Any, allowed: str) -> None:
    """Raise `ConfigurationError` unless the value of the setting `name` is `good`."""
    if not good:
        raise ConfigurationError(f"{name} = {value!r}: must be {allowed}.")


def _are_numbers(values: Any) -> bool:
    return all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)


@documented
@dataclass(frozen=True)
class ExperimentSettings:
    """Table ``experiment``: task and general settings."""

    name: str = string(allowed="small letters, digits and hyphens", doc="name of the experiment, also used for files")
    task: str = choice("discrimination", TASKS, doc="kind of trial")
    title: str = string("", doc="title for participants and reports")
    seed: int = bounded(1, minimum=0, maximum=2**62, doc="seed of all random numbers, including orders and levels")
    language: str = string("en", allowed="a language such as en", doc="language of the displayed texts")
    texts: str = string("", allowed="a TOML file", doc="file with a table of texts for each language")
    blind: bool = flag(False, doc="hide condition, level and track from the experimenter until the session has ended")

    def __post_init__(self) -> None:
        check(self, "experiment")
        good = _NAME.fullmatch(self.name) is not None
        _require(good, "experiment.name", self.name, "small letters, digits and hyphens, such as weber-friction")


@documented
@dataclass(frozen=True)
class StimulusSettings:
    """Table ``stimulus``: the session setting that varies."""

    axis: str = string(
        "law.force", allowed="a parameter of law, element, walls or textures", doc="the setting that varies"
    )
    scale: str = choice("log", ("linear", "log"), doc="scale of levels in fits and figures")
    resolution: float = bounded(
        0.0,
        minimum=0.0,
        unit="N",
        doc="finest step of force that the device renders; 0: the value of its data sheet",
    )

    def __post_init__(self) -> None:
        check(self, "stimulus")


@documented
@dataclass(frozen=True)
class ConditionSettings:
    """Table ``conditions``: settings that are constant within a track."""

    name: str = string(allowed="a name", doc="name in tables and figures")
    reference: float = bounded(0.0, minimum=0.0, doc="value of the reference, in the unit of the axis; 0 for none")
    tracks: int = bounded(1, minimum=1, maximum=8, doc="number of parallel procedures")
    law: Any = _table("a table", "settings of the law that differ")
    element: Any = _table("a table", "settings of the element that differ")
    procedure: Any = _table("a table", "settings of the procedure that differ")
    factors: Any = _table("a table of texts, by factor", "level of each factor, for tables and the report")

    def __post_init__(self) -> None:
        check(self, "conditions")
        good = 0 < len(self.name) <= 40 and not _CONTROL.search(self.name)
        _require(good, "conditions.name", self.name, "a name of up to 40 letters, in one line")
        for name in ("law", "element", "procedure"):
            table = getattr(self, name)
            _require(isinstance(table, dict), f"conditions.{name}", table, "a table")
        levels = self.factors
        good = isinstance(levels, dict) and all(
            FACTOR_NAME.fullmatch(factor)
            and isinstance(level, str)
            and 0 < len(level) <= 40
            and not _CONTROL.search(level)
            for factor, level in levels.items()
        )
        _require(good, "conditions.factors", levels, "a table of texts, such as { load = 'heavy' }")


@documented
@dataclass(frozen=True)
class GroupSettings:
    """Table ``groups``: groups of participants, and how participants are assigned to them."""

    names: Any = unrestricted((), "a list of two or more names", doc="names of the groups")
    shares: Any = unrestricted((), "a list of whole numbers", doc="relative sizes of the groups; default: equal")
    method: str = choice("blocks", ("blocks", "minimisation"), doc="permuted blocks, or minimisation over the fields")
    block: Any = unrestricted(
        (),
        "a multiple of the sum of the shares, or a list of them",
        doc="size of a block, or sizes to draw from; default: twice the sum of the shares",
    )
    fields: Any = unrestricted(
        (), "a list of required fields", doc="fields whose values have blocks of their own, or are balanced"
    )
    probability: float = bounded(
        0.8, above=0.5, maximum=1.0, doc="minimisation: probability of the group that balances best"
    )
    conditions: Any = _table("a table of lists of conditions, by group", "conditions of each group; default: all")
    blind: bool = flag(False, doc="hide the group from the experimenter until the session has ended")

    def __post_init__(self) -> None:
        check(self, "groups")
        names = self.names
        good = isinstance(names, list | tuple) and all(isinstance(one, str) and 0 < len(one) <= 40 for one in names)
        good = good and len(set(names)) == len(names) and len(names) in (0, *range(2, 13))
        _require(good, "groups.names", names, "a list of 2 to 12 different names of up to 40 letters")
        shares = self.shares or (1,) * len(names)
        good = isinstance(shares, list | tuple) and all(type(one) is int and 1 <= one <= 20 for one in shares)
        _require(good and len(shares) == len(names), "groups.shares", shares, "a whole number, 1 to 20, for each group")
        whole = max(sum(shares), 1)
        block = 2 * whole if self.block == () else self.block
        block = block if isinstance(block, list | tuple) else (block,)
        good = all(type(one) is int and 0 < one <= 1000 and one % whole == 0 for one in block) and bool(block)
        _require(good, "groups.block", self.block, f"a multiple of {whole}, the sum of the shares, up to 1000")
        fields = self.fields
        good = isinstance(fields, list | tuple) and all(isinstance(one, str) for one in fields)
        _require(good and len(set(fields)) == len(fields), "groups.fields", fields, "a list of fields, each once")
        if self.method == "minimisation":
            _require(bool(fields), "groups.fields", fields, "given for a minimisation: the fields to balance")
        table = self.conditions
        good = isinstance(table, dict) and all(isinstance(one, list) and one for one in table.values())
        _require(good, "groups.conditions", table, "a table of lists of conditions, by group")
        for name, value in (("names", names), ("shares", shares), ("block", block), ("fields", fields)):
            object.__setattr__(self, name, tuple(value))


@documented
@dataclass(frozen=True)
class CatchSettings:
    """Table ``catch``: trials without a difference, and trials with an obvious one."""

    null: float = bounded(
        0.0, minimum=0.0, maximum=0.3, doc="share of trials with two equal stimuli, or without a stimulus"
    )
    easy: float = bounded(0.05, minimum=0.0, maximum=0.3, doc="share of trials with an easy difference")
    easy_level: float = bounded(
        0.0, minimum=0.0, doc="level of easy trials, in the unit of the axis; 0: equal to the reference"
    )
    most_errors: float = _share(0.2, doc="share of wrong easy trials above which a participant is excluded")

    def __post_init__(self) -> None:
        check(self, "catch")


@documented
@dataclass(frozen=True)
class PracticeSettings:
    """Table ``practice``: easy trials with feedback, until the participant answers them reliably."""

    window: int = bounded(0, minimum=0, maximum=100, doc="number of recent trials that are evaluated; 0: no practice")
    correct: int = bounded(0, minimum=0, maximum=100, doc="number of these trials that must be correct")
    most: int = bounded(40, minimum=1, maximum=500, doc="largest number of practice trials")
    level: float = bounded(0.0, minimum=0.0, doc="level, in the unit of the axis; 0: equal to the reference")
    feedback: bool = flag(True, doc="show whether an answer was correct")
    failing: str = choice("stop", ("stop", "go on"), doc="reaction to a failed practice")

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
        0.3, minimum=0.15, maximum=60.0, unit="s", doc="shortest time between two intervals, without output"
    )
    time_out: float = bounded(
        0.0, minimum=0.0, maximum=600.0, unit="s", doc="time after which an unanswered trial is repeated; 0: no limit"
    )
    feedback: bool = flag(False, doc="show after every trial whether the answer was correct")
    interleave: bool = flag(
        True, doc="interleave all conditions; otherwise they follow each other in orders of a Williams square"
    )
    block: int = bounded(50, minimum=1, maximum=1000, doc="trials between two breaks")
    rest: float = bounded(30.0, minimum=0.0, maximum=3600.0, unit="s", doc="shortest break")
    most_repeated: float = _share(0.2, doc="share of trials that may be repeated before the session stops")
    late_ticks: float = _share(1e-3, doc="share of late ticks that repeats a trial")
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
    reach: float = bounded(0.01, above=0.0, maximum=0.5, unit="m", doc="half of the side of that box")
    rest: float = bounded(0.1, minimum=0.0, maximum=10.0, unit="s", doc="time at rest in the box before an interval")
    rest_speed: float = bounded(0.02, above=0.0, maximum=1.0, unit="m/s", doc="speed below which the hand is at rest")
    patience: float = bounded(60.0, above=0.0, maximum=3600.0, unit="s", doc="longest time to wait for the hand")
    strokes: int = bounded(
        0, minimum=0, maximum=100, doc="number of strokes that end an interval; 0: only the time ends it"
    )
    stroke: float = bounded(0.03, above=0.0, maximum=1.0, unit="m", doc="smallest length of a stroke")
    least_speed: float = bounded(0.0, minimum=0.0, maximum=10.0, unit="m/s", doc="lowest mean speed of a stroke")
    greatest_speed: float = bounded(10.0, above=0.0, maximum=10.0, unit="m/s", doc="highest mean speed of a stroke")
    pacing: str = choice("none", ("none", "target", "tone", "both"), doc="display or sound that paces the strokes")
    eyes: bool = flag(True, doc="show the workspace during a stimulus; otherwise the screen is black")
    cursor: bool = flag(True, doc="show the position of the hand")

    def __post_init__(self) -> None:
        check(self, "exploration")
        start = self.start
        good = isinstance(start, list | tuple) and len(start) in (0, 2) and _are_numbers(start)
        _require(good, "exploration.start", start, "a point [x, y] in m")
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

    keys: Any = _table("a table of lists of keys, by answer", "keys of the keyboard")
    buttons: Any = _table("a table of buttons, 1 to 31, by answer", "buttons of the device, or foot switches")
    step: float = bounded(0.05, above=0.0, maximum=1.0, doc="adjustment: relative change of the value by a key")
    redo: str = string("backspace", allowed="a key", doc="key with which a participant asks to repeat the last trial")
    debounce: float = bounded(0.02, minimum=0.0, maximum=1.0, unit="s", doc="debounce time of contacts")

    def __post_init__(self) -> None:
        check(self, "response")
        for name in ("keys", "buttons"):
            table = getattr(self, name)
            _require(isinstance(table, dict), f"response.{name}", table, "a table by answer")
        for answer, names in self.keys.items():
            good = isinstance(names, list | tuple) and all(isinstance(one, str) and one for one in names)
            _require(good, f"response.keys.{answer}", names, "a list of keys")
        for answer, button in self.buttons.items():
            good = type(button) is int and 1 <= button <= 31
            _require(good, f"response.buttons.{answer}", button, "a button, 1 to 31")


@documented
@dataclass(frozen=True)
class ResumeSettings:
    """Table ``resume``: continuation of an interrupted session."""

    policy: str = choice(
        "resume",
        ("resume", "block", "restart"),
        doc="continue with the interrupted trial, repeat its whole block, or do not continue",
    )
    most_age: float = bounded(
        43200.0, above=0.0, maximum=1e8, unit="s", doc="longest interruption after which a session can be resumed"
    )

    def __post_init__(self) -> None:
        check(self, "resume")


_MOST_DAYS = 3650


@documented
@dataclass(frozen=True)
class ScheduleSettings:
    """Table ``schedule``: number of sessions of a participant, and the days between them."""

    sessions: int = bounded(0, minimum=0, maximum=99, doc="number of sessions of each participant; 0: no schedule")
    minimum_days: Any = unrestricted(
        1,
        "a whole number, or one for each session after the first",
        doc="fewest days after the previous session; 0: the same day",
    )
    maximum_days: Any = unrestricted(
        (),
        "a whole number, or one for each session after the first",
        doc="most days after the previous session; default: no limit",
    )
    training: Any = unrestricted(
        (), "a list of numbers of sessions", doc="sessions that are recorded, but not analysed or exported"
    )
    carry_over: bool = flag(
        False, doc="staircases and QUEST+ begin with the threshold that the participant's last session has found"
    )
    spread: float = bounded(
        0.5,
        above=0.0,
        maximum=5.0,
        doc="carry-over to QUEST+: standard deviation of the change of ln(threshold) between sessions",
    )
    time_zone: str = string(
        "", allowed="a name such as Europe/Berlin", doc="time zone of the days; empty: that of the computer"
    )

    def __post_init__(self) -> None:
        check(self, "schedule")
        gaps = max(self.sessions - 1, 0)
        for name in ("minimum_days", "maximum_days"):
            given = getattr(self, name)
            days = given if isinstance(given, list | tuple) else (given,) * gaps
            good = all(type(one) is int and 0 <= one <= _MOST_DAYS for one in days)
            good = good and (isinstance(given, list | tuple) or type(given) is int)
            good = good and (not self.sessions or len(days) in (0, gaps))
            allowed = f"a whole number of days, 0 to {_MOST_DAYS}, or a list of {gaps} of them"
            _require(good and (bool(days) or not gaps or name == "maximum_days"), f"schedule.{name}", given, allowed)
            object.__setattr__(self, name, tuple(days))
        if any(least > most for least, most in zip(self.minimum_days, self.maximum_days, strict=False)):
            raise ConfigurationError(
                f"schedule.maximum_days = {list(self.maximum_days)}: must be at least schedule.minimum_days = "
                f"{list(self.minimum_days)}."
            )
        training = self.training
        good = isinstance(training, list | tuple) and all(
            type(one) is int and 1 <= one <= self.sessions for one in training
        )
        good = good and len(set(training)) == len(training) < max(self.sessions, 1)
        _require(good, "schedule.training", training, "a list of numbers of sessions, and not all of them")
        object.__setattr__(self, "training", tuple(training))
        _ = self.zone

    @property
    def zone(self) -> tzinfo | None:
        """Time zone of the days, or None for the time zone of the computer."""
        if self.time_zone in ("", "UTC"):  # needs no file of time zones
            return UTC if self.time_zone else None
        try:
            return ZoneInfo(self.time_zone)
        except (KeyError, ValueError, OSError) as error:
            raise ConfigurationError(
                f"schedule.time_zone = {self.time_zone[:60]!r}: must be a time zone of this computer, such as "
                "Europe/Berlin."
            ) from error


@documented
@dataclass(frozen=True)
class FieldSettings:
    """Table ``fields``: required data about a participant before the first trial, never the name."""

    demanded: Any = unrestricted((), "a list of names such as age_band", doc="names of required fields")
    allowed: Any = _table("a table of lists, by name", "allowed values of fields")

    def __post_init__(self) -> None:
        check(self, "fields")
        names = self.demanded
        good = isinstance(names, list | tuple) and all(isinstance(one, str) and _FIELD.fullmatch(one) for one in names)
        _require(good, "fields.demanded", names, "a list of names such as age_band")
        object.__setattr__(self, "demanded", tuple(names))
        good = isinstance(self.allowed, dict) and all(isinstance(one, list) for one in self.allowed.values())
        _require(good, "fields.allowed", self.allowed, "a table of lists")


@documented
@dataclass(frozen=True)
class FrictionSettings:
    """Table ``friction``: measurement of the device's friction in every session."""

    measure_each_session: bool = flag(
        False, doc="measure the device friction before the first block, with hands off the handle, and compensate it"
    )
    excitation: Any = _table(
        "a table as of haptics calibrate friction: slowest, fastest, speeds, rounds, strokes ...",
        "motion of this measurement",
    )

    def __post_init__(self) -> None:
        check(self, "friction")
        _require(isinstance(self.excitation, dict), "friction.excitation", self.excitation, "a table")
        _ = self.motions

    @property
    def motions(self) -> Excitation:
        """Motions of the measurement."""
        from calibration.motions.excitation import Excitation

        return build(Excitation, self.excitation, "friction.excitation")


@documented
@dataclass(frozen=True)
class ScreenSettings:
    """Table ``screen``: display and sound of the participant's screen."""

    full_screen: bool = flag(True, doc="full screen; otherwise a window of `width` times `height`")
    screen: int = bounded(0, minimum=0, maximum=15, doc="number of the screen; the first is 0")
    width: int = bounded(1280, minimum=640, maximum=7680, unit="pixel", doc="width of the window")
    height: int = bounded(720, minimum=480, maximum=4320, unit="pixel", doc="height of the window")
    theme: str = choice("dark", ("dark", "light"), doc="colours")
    text_scale: float = bounded(1.0, minimum=0.5, maximum=2.0, doc="scale factor of all text")
    noise_level: float = _share(0.0, doc="amplitude of the masking pink noise, as a share of full scale; 0: none")
    tone_level: float = _share(0.2, doc="amplitude of tones, as a share of full scale")

    def __post_init__(self) -> None:
        check(self, "screen")


_OPTIONAL = ("instructions", "groups", "practice", "rest", "end")
"""Texts that may be omitted in any language. Nothing is shown then."""

QUESTIONS = {
    "discrimination": "Which one resisted more?",
    "detection-2ifc": "Which one resisted?",
    "detection": "Did it resist?",
    "same-different": "Were the two the same?",
    "estimation": "How strongly did it resist?",
    "adjustment": "Adjust until both feel the same",
}
"""Default questions by task."""

ANSWERS = {
    "1": "first",
    "2": "second",
    "yes": "yes",
    "no": "no",
    "same": "same",
    "different": "different",
    "up": "more",
    "down": "less",
    "compare": "compare",
    "done": "done",
}
"""Default names of the answers, shown next to their keys."""

KEYS = {
    "space": "Space",
    "return": "Enter ↵",
    "enter": "Enter ↵",
    "escape": "Esc",
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "period": ".",
    "backspace": "Backspace",
}
"""Key caps that differ from the key name. All other keys show their name."""


def on_the_cap(key: str) -> str:
    """Return the default cap of a key."""
    return KEYS.get(key, key.upper() if len(key) == 1 else key.capitalize())


@documented
@dataclass(frozen=True)
class TextSettings:
    """Table ``texts``: texts for the participant.

    Pages are lists of texts.
    """

    instructions: Any = unrestricted(
        (), "a list of pages", doc="pages before the first trial, and again after an interruption"
    )
    groups: Any = _table("a table of lists of pages, by group", "pages after the instructions, for each group")
    question: str = string("", doc="question after every trial; empty for the default of the task")
    practice: str = string("", doc="text before the practice")
    rest: str = string("", doc="text in a break")
    end: str = string("", doc="text at the end")
    practice_title: str = string("Practice", doc="title of the text before the practice")
    rest_title: str = string("A break", doc="title of the text in a break")
    pause_title: str = string("Pause", doc="title while the session is paused")
    pause: str = string("Press Esc to go on.", doc="text while the session is paused: how to continue")
    end_title: str = string("Thank you", doc="title of the text at the end")
    park: str = string("Move to the square and wait", doc="instruction to move the hand to the start box")
    hold: str = string("Hold the space bar", doc="instruction to hold the dead-man key")
    let_go_title: str = string("Let go of the handle", doc="title before the device friction is measured")
    let_go: str = string(
        "It is going to move by itself, for about {seconds} s. Keep clear of it.",
        allowed="text; {seconds} is the time",
        doc="text before the device friction is measured",
    )
    measured: str = string("The measurement is done.", doc="text after the device friction was measured")
    go_on: str = string("go on", doc="label of the key that turns a page or ends a break")
    right: str = string("Right", doc="feedback after a correct answer")
    wrong: str = string("Wrong", doc="feedback after a wrong answer")
    button: str = string(
        "button {number}", allowed="text; {number} is the button's", doc="name of a button of the device"
    )
    back: str = string("back", doc="forms: label of the key that goes back to the previous item")
    form_required: str = string("Please give an answer.", doc="forms: shown when an answer is missing")
    form_optional: str = string("You may leave this out.", doc="forms: shown with an item that is not required")
    form_number: str = string(
        "Please enter a number from {minimum} to {maximum}.",
        allowed="text; {minimum} and {maximum} are the range",
        doc="forms: shown when a number is not valid",
    )
    form_whole: str = string(
        "Please enter a whole number from {minimum} to {maximum}.",
        allowed="text; {minimum} and {maximum} are the range",
        doc="forms: shown when a whole number is not valid",
    )
    answers: Any = _table("a table of words, by answer", "labels of the answers")
    forms: Any = _table(
        "a table of tables, by form", "texts of forms: title, and items with text, label, low, high ..."
    )
    consent: Any = _table("a table of texts", "texts of the consent page: title, text, statement, agree, refuse ...")
    keys: Any = _table("a table of words, by key", "labels of keys such as space")

    def __post_init__(self) -> None:
        check(self, "texts")
        pages = self.instructions
        pages = [pages] if isinstance(pages, str) else pages
        good = isinstance(pages, list | tuple) and all(isinstance(page, str) for page in pages)
        _require(good, "texts.instructions", pages, "a list of pages")
        object.__setattr__(self, "instructions", tuple(pages))
        good = isinstance(self.groups, dict) and all(
            isinstance(own, list) and all(isinstance(page, str) for page in own) for own in self.groups.values()
        )
        _require(good, "texts.groups", self.groups, "a table of lists of pages, by group")
        for name in ("answers", "keys"):
            table = getattr(self, name)
            good = isinstance(table, dict) and all(isinstance(word, str) and word for word in table.values())
            _require(good, f"texts.{name}", table, "a table of words")
        good = isinstance(self.forms, dict) and all(isinstance(one, dict) for one in self.forms.values())
        _require(good, "texts.forms", self.forms, "a table of tables")
        _require(isinstance(self.consent, dict), "texts.consent", self.consent, "a table of texts")
        strange = [answer for answer in self.answers if answer not in ANSWERS]
        if strange:
            raise ConfigurationError(
                f"texts.answers.{strange[0]}: is no answer to any task; allowed: {', '.join(ANSWERS)}."
            )

    def answer_label(self, answer: str) -> str:
        """Return the displayed name of an answer."""
        return str(self.answers.get(answer, ANSWERS[answer]))

    def key(self, name: str) -> str:
        """Return the displayed cap of a key."""
        return str(self.keys.get(name, on_the_cap(name)))


_OF_FORMS = ("back", "form_required", "form_optional", "form_number", "form_whole")
"""Texts that are needed only if the experiment has forms or a consent page."""

_TABLES = ("answers", "keys", "forms", "consent")


def require_translated(given: Mapping[str, Any], language: str, answers: tuple[str, ...], forms: bool = False) -> None:
    """Raise if texts are missing, so that a participant would read English amid another language.

    Parameters
    ----------
    given : mapping
        Table of texts in the file.
    language : str
        Language of the table.
    answers : tuple of str
        Possible answers in the experiment.
    forms : bool
        Whether the experiment has forms or a consent page.

    Raises
    ------
    ConfigurationError
        If texts are missing. The message lists them.
    """
    if language == "en" or language.startswith("en-"):
        return
    words = given.get("answers", {})
    optional = (*_TABLES, *_OPTIONAL, *(() if forms else _OF_FORMS))
    missing = [one.name for one in fields(TextSettings) if one.name not in (*optional, *given)]
    missing += [f"answers.{answer}" for answer in answers if answer not in words]
    if missing:
        raise ConfigurationError(
            f"texts.{missing[0]} is missing in the language {language!r}; a participant would read English. Missing "
            f"are: {', '.join(missing)}."
        )


SHAPES = ("dprime", "weibull", "phi", "logistic")
STIMULI = ("asked", "delivered", "felt")

_TEXTS = "a text or a list of texts"

USUAL_PERCENT = 75.0
"""Midpoint between guessing and certainty in two intervals [%]."""


DRIFTS = ("none", "auto")


@documented
@dataclass(frozen=True)
class AnalysisSettings:
    """Table ``analysis``: fitted function and percentages of difference thresholds."""

    shape: str = choice("dprime", SHAPES, doc="psychometric function, of the logarithm of the level")
    percent: Any = unrestricted(
        (),
        "a list of percentages",
        doc="percentages correct that define differences; default: 75, or the targets of the staircases",
    )
    stimulus: str = choice("asked", STIMULI, doc="levels to fit")
    probability: float = bounded(0.95, minimum=0.5, maximum=0.999, doc="probability of the intervals")
    drift: str = choice(
        "none", DRIFTS, doc="auto: the threshold may change slowly within a session, as far as the data show it"
    )
    hypotheses: Any = unrestricted((), _TEXTS, doc="hypotheses, for the preregistration")
    exclusions: Any = unrestricted(
        (), _TEXTS, doc="exclusion rules in addition to those of the file, for the preregistration"
    )
    plan: Any = unrestricted((), _TEXTS, doc="planned analysis, for the preregistration")

    def __post_init__(self) -> None:
        check(self, "analysis")
        given = self.percent if isinstance(self.percent, list | tuple) else [self.percent]
        good = _are_numbers(given) and all(50.0 < one < 100.0 for one in given)
        _require(good, "analysis.percent", self.percent, "percentages between 50 and 100, such as [75, 84]")
        for name in ("hypotheses", "exclusions", "plan"):
            value = getattr(self, name)
            if not all(isinstance(one, str) for one in (value if isinstance(value, list | tuple) else [value])):
                raise ConfigurationError(f"analysis.{name} = {str(value)[:40]!r}: must be {_TEXTS}.")
        object.__setattr__(self, "percent", tuple(float(one) for one in given) or (USUAL_PERCENT,))

    @classmethod
    def of(cls, table: Mapping[str, Any], percent: Sequence[float] = ()) -> Self:
        """Return the settings in a table ``analysis``, ignoring entries of earlier versions.

        Parameters
        ----------
        table : mapping
            Table ``analysis``.
        percent : sequence of float
            Percentages that replace those in the table, if any.

        Raises
        ------
        ConfigurationError
            If a value is invalid.
        """
        own = {one.name: table[one.name] for one in fields(cls) if one.name in table}
        return build(cls, own | ({"percent": list(percent)} if percent else {}), "analysis")


_NUMBERS = "a list of whole numbers from 2 to 1000, in rising order"


@documented
@dataclass(frozen=True)
class PowerSettings:
    """Table ``power``: question of the study, and number of simulated observers."""

    question: str = choice(
        "difference",
        ("difference", "groups", "precision"),
        doc="question: difference of two conditions, of two groups, or precision of one condition",
    )
    first: str = string(
        "", allowed="a condition", doc="the condition, or the first of two; empty: the first of the file"
    )
    second: str = string("", allowed="a condition", doc="the second condition; empty: the second of the file")
    ratio: float = bounded(1.3, above=0.0, maximum=10.0, doc="true ratio of the second Weber fraction to the first")
    ratio_spread: float = bounded(
        0.1, minimum=0.0, maximum=2.0, doc="standard deviation of that ratio between people, as a share"
    )
    precision: float = bounded(
        0.15, above=0.0, maximum=2.0, doc="required half width of the 95 % interval of the group's mean, relative"
    )
    proportion: float = bounded(0.75, above=0.5, maximum=0.99, doc="proportion correct that defines thresholds")
    shape: str = choice(
        "weibull",
        ("weibull", "phi", "logistic", "dprime"),
        doc="psychometric function, fitted to the logarithm of the level",
    )
    alpha: float = bounded(0.05, above=0.0, maximum=0.5, doc="significance level of the two-sided test")
    wanted: float = bounded(0.8, above=0.0, maximum=0.999, doc="required power")
    participants: Any = unrestricted(
        (4, 6, 8, 10, 12, 16, 20, 24, 32), _NUMBERS, doc="numbers of participants to evaluate"
    )
    people: int = bounded(2000, minimum=20, maximum=1_000_000, doc="number of simulated participants")
    seed: int = bounded(1, minimum=0, maximum=2**62, doc="seed of the simulation")

    def __post_init__(self) -> None:
        check(self, "power")
        given = self.participants
        good = isinstance(given, list | tuple) and all(type(each) is int and 2 <= each <= 1000 for each in given)
        _require(good and bool(given) and sorted(given) == list(given), "power.participants", given, _NUMBERS)
        if self.question == "groups":
            _require(given[0] >= 4, "power.participants", given, "at least 4 for two groups")
        object.__setattr__(self, "participants", tuple(given))  # frozen: lists come from files
