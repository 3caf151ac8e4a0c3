"""Forms of an experiment: the tables ``forms`` and ``consent``, permitted answers, scores, and simulated answers."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from apps.experiment.forms.catalogue import CONSENT_WORDS, LANGUAGES, TLX_SCALES, base_language, shipped_form
from haptics.errors import ConfigurationError
from haptics.settings import bounded, build, check, choice, documented, flag, string, unrestricted

KINDS = ("likert", "analogue", "number", "choice", "text", "page")
"""Kinds of items. A page has only a text."""

WHEN = ("before", "between", "after")
USES = ("", "nasa-tlx", "nasa-tlx-weighted", "demographic")
RULES = ("mean", "sum")

MOST_FORMS, MOST_ITEMS, MOST_OPTIONS, LONGEST_LABEL, LONGEST_WORDS = 20, 100, 12, 200, 2000
"""Maximum numbers of forms, of items in a form, and of options, and maximum lengths of texts [characters]."""

CONSENT = "consent"
"""Name of the form with the consent, and of its event in the journal."""

AGREED = "agreed"
"""Name of the item of the consent that a participant agrees to with ``yes``. The form ends with any other answer."""

FORM_ANSWER, FORM_COMPLETED = "form-answer", "form-completed"
"""Names of the events with a confirmed answer, and with all answers and scores of a form."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,39}")
_LONGEST_TITLE = 80
_NAMES = "small letters, digits and underscores"

Value = int | float | str | None
"""Answer to an item; None if it was left out."""


@documented
@dataclass(frozen=True)
class ItemSettings:
    """Item of a form."""

    name: str = string(allowed=_NAMES, doc="name of the item in the data")
    text: str = string(doc="question, or text of a page")
    kind: str = choice("likert", KINDS, doc="kind of answer; a page has none")
    label: str = string("", doc="short name in large letters; empty: the title of the form")
    required: bool = flag(True, doc="whether the item must be answered")
    low: str = string("", doc="label of the lower end of a scale")
    high: str = string("", doc="label of the upper end of a scale")
    points: int = bounded(7, minimum=2, maximum=11, doc="likert: number of points")
    steps: int = bounded(0, minimum=0, maximum=100, doc="analogue: number of steps from 0 to 100; 0: continuous")
    minimum: float = bounded(0.0, doc="number: smallest value")
    maximum: float = bounded(100.0, doc="number: largest value")
    whole: bool = flag(False, doc="number: whether it must be a whole number")
    unit: str = string("", doc="number: unit")
    options: Any = unrestricted(
        (), "a list of texts, or a table of texts by value", doc="choice: the options; likert: labels of the points"
    )
    longest: int = bounded(500, minimum=1, maximum=LONGEST_WORDS, unit="characters", doc="text: maximum length")

    def __post_init__(self) -> None:
        check(self, "items")
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(f"items.name = {self.name!r}: must be {_NAMES}.")
        if self.name in ("after_blocks", "completed_utc") or self.name.startswith("score_"):
            raise ConfigurationError(f"items.name = {self.name!r}: is a column of every form; choose another name.")
        for name, most in (("text", LONGEST_WORDS), ("label", _LONGEST_TITLE), ("low", 80), ("high", 80), ("unit", 40)):
            if len(getattr(self, name)) > most:
                raise ConfigurationError(f"items.{name} of {self.name!r}: must have at most {most} characters.")
        if not self.text.strip():
            raise ConfigurationError(f"items.text of {self.name!r}: must be a text.")
        if not self.minimum < self.maximum:
            raise ConfigurationError(
                f"items.minimum = {self.minimum:g} of {self.name!r}: must be less than items.maximum."
            )
        if self.whole and np.ceil(self.minimum) > self.maximum:
            raise ConfigurationError(f"items.whole of {self.name!r}: there is no whole number in its range.")
        object.__setattr__(self, "options", self._checked_options())

    def _checked_options(self) -> dict[str, str]:
        """Return the labels of the options by their values."""
        given, numbered = self.options, self.kind == "likert"
        labels = {str(number): label for number, label in enumerate(given, 1)} if numbered else {}
        if isinstance(given, Mapping):
            labels = dict(given)
        elif isinstance(given, list | tuple) and not numbered:
            labels = {str(one): one for one in given}
            if len(labels) < len(given):
                raise ConfigurationError(f"items.options of {self.name!r}: an option is there twice.")
        good = isinstance(given, Mapping | list | tuple) and all(
            isinstance(label, str) and 0 < len(label) <= LONGEST_LABEL for label in labels.values()
        )
        if not good:
            raise ConfigurationError(
                f"items.options of {self.name!r}: must be a list of texts, or a table of texts by value."
            )
        if isinstance(given, Mapping):
            for value in labels:
                if not _VALUE.fullmatch(value):
                    raise ConfigurationError(
                        f"items.options of {self.name!r}: the value {value[:60]!r} must be letters and digits."
                    )
        if self.kind == "choice" and not 2 <= len(labels) <= MOST_OPTIONS:
            raise ConfigurationError(f"items.options of {self.name!r}: a choice has 2 to {MOST_OPTIONS} options.")
        if numbered and labels and sorted(labels) != sorted(str(number + 1) for number in range(self.points)):
            raise ConfigurationError(
                f"items.options of {self.name!r}: must have a label for each of the {self.points} points."
            )
        if labels and self.kind not in ("choice", "likert"):
            raise ConfigurationError(f"items.options of {self.name!r}: only a choice or a likert item has options.")
        if numbered:  # the labels are drawn below the points 1, 2 ..., in whatever order a table has them
            labels = {value: labels[value] for value in sorted(labels, key=int)}
        return labels

    @property
    def range(self) -> tuple[float, float] | None:
        """Smallest and largest numerical answer, None if the answer is not a number."""
        ranges = {"likert": (1.0, float(self.points)), "analogue": (0.0, 100.0), "number": (self.minimum, self.maximum)}
        return ranges.get(self.kind)

    def fits(self, value: Any) -> bool:
        """Return True if a value is a permitted answer. None is permitted if the item is not required."""
        if value is None:
            return not self.required or self.kind == "page"
        if self.kind == "choice":
            return isinstance(value, str) and value in self.options
        if self.kind == "text":
            return isinstance(value, str) and 0 < len(value) <= self.longest
        if self.range is None or isinstance(value, bool) or not isinstance(value, int | float):
            return False
        whole = self.kind == "likert" or self.whole
        return self.range[0] <= value <= self.range[1] and (not whole or float(value).is_integer())


@documented
@dataclass(frozen=True)
class ScoreSettings:
    """Score of a form: the mean or the sum of numerical items."""

    items: Any = unrestricted((), "a list of items", doc="items of the score; default: all numerical items")
    rule: str = choice("mean", RULES, doc="how the answers are combined")
    reverse: Any = unrestricted((), "a list of items", doc="items whose scale is reversed")

    def __post_init__(self) -> None:
        check(self, "scores")
        for name in ("items", "reverse"):
            given = getattr(self, name)
            if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
                raise ConfigurationError(f"scores.{name} = {str(given)[:60]!r}: must be a list of names of items.")
            if len(set(given)) < len(given):
                raise ConfigurationError(f"scores.{name} = {list(given)}: an item is there twice.")
            object.__setattr__(self, name, tuple(given))
        if self.items and (stray := [one for one in self.reverse if one not in self.items]):
            raise ConfigurationError(f"scores.reverse: {stray[0]!r} is not in scores.items.")


@documented
@dataclass(frozen=True)
class FormSettings:
    """Each table of ``forms``: a questionnaire on the participant's screen."""

    name: str = string(allowed=_NAMES, doc="name of the form in the data")
    use: str = choice("", USES, doc="shipped form whose items are used; empty: those of the file")
    when: str = choice("before", WHEN, doc="before the first block, between blocks, or after the last block")
    every: int = bounded(1, minimum=1, maximum=1000, doc="between: number of blocks after which it is shown")
    title: str = string("", doc="title of every page; a shipped form has one")
    shuffle: bool = flag(False, doc="show the items in a random order")
    items: Any = unrestricted((), "a list of tables", doc="items; see forms.items")
    scores: Any = field(
        default_factory=dict,
        metadata={"words": "a table of tables, by score", "doc": "scores; see forms.scores"},
    )

    def __post_init__(self) -> None:
        check(self, "forms")
        if not _NAME.fullmatch(self.name) or self.name == CONSENT:
            raise ConfigurationError(f"forms.name = {self.name!r}: must be {_NAMES}, and not {CONSENT!r}.")
        items = self.items
        if not isinstance(items, list | tuple) or not all(isinstance(one, dict) for one in items):
            raise ConfigurationError("forms.items: must be tables, [[forms.items]].")
        if bool(items) == bool(self.use):
            raise ConfigurationError(f"forms.items of {self.name!r}: must be given, or forms.use, and not both.")
        if len(items) > MOST_ITEMS:
            raise ConfigurationError(f"forms.items of {self.name!r}: must be at most {MOST_ITEMS}.")
        scores = self.scores
        if not isinstance(scores, dict) or not all(isinstance(one, dict) for one in scores.values()):
            raise ConfigurationError("forms.scores: must be a table of tables, by the name of the score.")
        if scores and self.use:
            raise ConfigurationError(f"forms.scores of {self.name!r}: a shipped form has its own scores.")


@documented
@dataclass(frozen=True)
class ConsentSettings:
    """Table ``consent``: information and consent of the participant before anything else."""

    version: str = string("", allowed="text such as 1.2", doc="version of the information; empty: no consent page")
    date: str = string("", allowed="a date such as 2026-11-01", doc="date of the information")
    text: Any = unrestricted((), "a list of pages", doc="information for the participant")
    title: str = string("", doc="title of every page; default in English and German")
    statement: str = string("", doc="statement that the participant agrees to; default in English and German")
    agree: str = string("", doc="label of the consent; default in English and German")
    refuse: str = string("", doc="label of the refusal; default in English and German")
    sharing: str = string("", doc="statement about publication of the data, answered separately; empty: not asked")

    def __post_init__(self) -> None:
        check(self, "consent")
        pages = [self.text] if isinstance(self.text, str) else self.text
        good = isinstance(pages, list | tuple) and all(isinstance(one, str) and one.strip() for one in pages)
        if not good:
            raise ConfigurationError(f"consent.text = {str(pages)[:60]!r}: must be a list of pages.")
        object.__setattr__(self, "text", tuple(pages))
        if not self.version:
            stray = [name for name in ("date", "text", "title", "statement", "sharing") if getattr(self, name)]
            if stray:
                raise ConfigurationError(f"consent.version is missing: consent.{stray[0]} is given.")
            return
        if not pages:
            raise ConfigurationError("consent.text is missing: the information for the participant.")
        try:
            date.fromisoformat(self.date)
        except ValueError as error:
            raise ConfigurationError(f"consent.date = {self.date!r}: must be a date such as '2026-11-01'.") from error


@dataclass(frozen=True)
class Form:
    """Validated form.

    Attributes
    ----------
    name, use, when, every, title, shuffle
        As in `FormSettings`.
    items : tuple of ItemSettings
        Items in order.
    scores : dict
        `ScoreSettings` by the name of the score, empty for a shipped form.
    """

    name: str
    use: str
    when: str
    every: int
    title: str
    shuffle: bool
    items: tuple[ItemSettings, ...]
    scores: dict[str, ScoreSettings]

    @property
    def asked(self) -> tuple[ItemSettings, ...]:
        """Items that have an answer."""
        return tuple(item for item in self.items if item.kind != "page")

    @property
    def score_names(self) -> tuple[str, ...]:
        """Names of the scores, in order."""
        if self.use == "nasa-tlx-weighted":
            return ("raw", "weighted", *(f"weight_{scale}" for scale in TLX_SCALES))
        return ("raw",) if self.use == "nasa-tlx" else tuple(self.scores)

    def arranged(self, rng: np.random.Generator) -> tuple[ItemSettings, ...]:
        """Return the items in the order of display: pages stay, and pairs of NASA-TLX are always shuffled."""
        pairs = self.use == "nasa-tlx-weighted"
        moving = [
            place
            for place, item in enumerate(self.items)
            if (item.kind == "choice" if pairs else self.shuffle and item.kind != "page")
        ]
        items = list(self.items)
        for place, source in zip(moving, rng.permutation(moving).tolist(), strict=True):
            items[place] = self.items[source]
        return tuple(items)

    def score(self, answers: Mapping[str, Value]) -> dict[str, float | None]:
        """Return the scores of the answers; None where an answer that belongs to a score is missing."""
        if self.use.startswith("nasa-tlx"):
            return _tlx_scores(answers, weighted=self.use.endswith("weighted"))
        ranges = {item.name: item.range for item in self.items}
        scores: dict[str, float | None] = {}
        for name, rule in self.scores.items():
            values = []
            for item in rule.items or [one.name for one in self.items if one.range is not None]:
                value, limits = answers.get(item), ranges[item]
                if value is None or isinstance(value, str) or limits is None:
                    break
                values.append(limits[0] + limits[1] - value if item in rule.reverse else value)
            else:
                scores[name] = float(sum(values)) / (len(values) if rule.rule == "mean" else 1)
                continue
            scores[name] = None
        return scores


def _tlx_scores(answers: Mapping[str, Value], *, weighted: bool) -> dict[str, float | None]:
    """Return the scores of NASA-TLX, 0 to 100: mean of the scales, and mean weighted by the comparisons of pairs."""
    ratings = {scale: answers.get(scale) for scale in TLX_SCALES}
    numbers = {scale: float(value) for scale, value in ratings.items() if isinstance(value, int | float)}
    whole = len(numbers) == len(TLX_SCALES)
    scores: dict[str, float | None] = {"raw": sum(numbers.values()) / len(TLX_SCALES) if whole else None}
    if weighted:
        pairs = [value for name, value in answers.items() if name not in TLX_SCALES and value in TLX_SCALES]
        complete = whole and len(pairs) == 15
        weights = {scale: float(pairs.count(scale)) for scale in TLX_SCALES}
        scores["weighted"] = sum(weights[scale] * numbers[scale] for scale in TLX_SCALES) / 15 if complete else None
        scores |= {f"weight_{scale}": weight if len(pairs) == 15 else None for scale, weight in weights.items()}
    return scores


def form_of(table: Mapping[str, Any], words: Mapping[str, Any], language: str) -> Form:
    """Return the form of a table of ``forms``.

    Parameters
    ----------
    table : mapping
        The table.
    words : mapping
        Texts of the form in the language of the experiment (``texts.forms.NAME``): ``title``, and ``items`` with
        ``label``, ``text``, ``low``, ``high`` and ``options`` by the name of the item. They replace the
        texts of the form.
    language : str
        Language of the experiment.

    Raises
    ------
    ConfigurationError
        If a setting is invalid, or a shipped form has no texts in the language.
    """
    settings = build(FormSettings, table, "forms")
    source: Mapping[str, Any] = shipped_form(settings.use, language) if settings.use else table
    names = [one.get("name") for one in source["items"]]
    own = _checked_words(settings, words, names, language)
    items: list[ItemSettings] = []
    for one in source["items"]:
        item = build(ItemSettings, {**one, **own.get(one.get("name"), {})}, "items")
        if any(item.name == other.name for other in items):
            raise ConfigurationError(f"items.name = {item.name!r}: there are two of that name.")
        before = build(ItemSettings, {"text": item.text, **one}, "items")
        if item.options.keys() != before.options.keys() and before.options:
            raise ConfigurationError(
                f"texts.forms.{settings.name}.items.{item.name}.options: must be a table of the values "
                f"{', '.join(before.options)}."
            )
        items.append(item)
    if not any(item.kind != "page" for item in items):
        raise ConfigurationError(f"forms.items of {settings.name!r}: at least one item must have an answer.")
    title = words.get("title", settings.title or source.get("title", ""))
    if not isinstance(title, str) or len(title) > _LONGEST_TITLE:
        raise ConfigurationError(f"forms.title of {settings.name!r}: must have at most {_LONGEST_TITLE} characters.")
    same = {name: getattr(settings, name) for name in ("name", "use", "when", "every", "shuffle")}
    return Form(**same, title=title, items=tuple(items), scores=_scores(settings, items))


def _checked_words(
    settings: FormSettings, words: Mapping[str, Any], names: Sequence[Any], language: str
) -> Mapping[str, Any]:
    """Return the texts of the items in the language of the experiment, by the name of the item."""
    where, own = f"texts.forms.{settings.name}", words.get("items", {})
    if not isinstance(own, dict) or not all(isinstance(one, dict) for one in own.values()):
        raise ConfigurationError(f"{where}.items: must be a table of tables, by item.")
    for stray in words.keys() - {"title", "items"}:
        raise ConfigurationError(f"{where}.{stray}: is no text of a form; allowed: title, items.")
    for name, texts in own.items():
        if name not in names:
            raise ConfigurationError(f"{where}.items.{name}: is no item of the form.")
        for stray in texts.keys() - {"label", "text", "low", "high", "options"}:
            raise ConfigurationError(f"{where}.items.{name}.{stray}: is no text of an item.")
    if settings.use and base_language(language) not in LANGUAGES:
        missing = [f"items.{name}" for name in names if "text" not in own.get(name, {})]
        missing += [] if "title" in words else ["title"]
        if missing:
            raise ConfigurationError(
                f"forms.use = {settings.use!r}: has texts in {', '.join(LANGUAGES)}; in the language {language!r} give "
                f"{where}: {', '.join(missing)}."
            )
    return own


def _scores(settings: FormSettings, items: Sequence[ItemSettings]) -> dict[str, ScoreSettings]:
    """Return the scores of a form by their names."""
    scores = {name: build(ScoreSettings, one, "scores") for name, one in settings.scores.items()}
    numeric = [item.name for item in items if item.range is not None]
    for name, score in scores.items():
        if bad := [one for one in (*score.items, *score.reverse) if one not in numeric]:
            raise ConfigurationError(f"scores.{name} of {settings.name!r}: {bad[0]!r} is no numerical item.")
        if not _NAME.fullmatch(name) or any(item.name == name for item in items) or not numeric:
            raise ConfigurationError(
                f"scores.{name} of {settings.name!r}: needs numerical items, and a name of {_NAMES} that no item has."
            )
    return scores


def consent_form(settings: ConsentSettings, words: Mapping[str, Any], language: str) -> Form | None:
    """Return the consent as a form of pages and choices, None if the experiment has no consent page.

    Raises
    ------
    ConfigurationError
        If a text is missing in the language of the experiment.
    """
    if not settings.version:
        return None
    allowed = ("title", "text", "statement", "agree", "refuse", "sharing")
    if stray := [name for name in words if name not in allowed]:
        raise ConfigurationError(f"texts.consent.{stray[0]}: is no text of the consent; allowed: {', '.join(allowed)}.")
    given = {name: getattr(settings, name) for name in allowed if getattr(settings, name)} | dict(words)
    merged = {**CONSENT_WORDS.get(base_language(language), {}), **given}
    missing = [name for name in ("title", "text", "statement", "agree", "refuse") if name not in merged]
    if missing:
        raise ConfigurationError(f"consent.{missing[0]} is missing in the language {language!r}.")
    one = build(ConsentSettings, {**merged, "version": settings.version, "date": settings.date}, "consent")
    options = {"yes": one.agree, "no": one.refuse}
    pages = [
        ItemSettings(name=f"page_{number}", kind="page", text=text, label=one.title)
        for number, text in enumerate(one.text, 1)
    ]
    asked = [ItemSettings(name=AGREED, kind="choice", text=one.statement, label=one.title, options=options)]
    if one.sharing:
        asked.append(ItemSettings(name="sharing", kind="choice", text=one.sharing, label=one.title, options=options))
    return Form(CONSENT, "", "before", 1, one.title, False, (*pages, *asked), {})


def text_sha256(form: Form) -> str:
    """Return the SHA-256 of all displayed texts of a form, as evidence of the wording."""
    shown = [[item.label, item.text, item.low, item.high, item.options] for item in form.items]
    return hashlib.sha256(json.dumps([form.title, shown], ensure_ascii=False).encode()).hexdigest()


def simulated_answers(form: Form, rng: np.random.Generator) -> dict[str, Value]:
    """Return random permitted answers of a simulated participant. It agrees to every consent."""
    answers: dict[str, Value] = {}
    for item in form.asked:
        if form.name == CONSENT:
            answers[item.name] = "yes"
        elif item.kind == "choice":
            answers[item.name] = str(rng.choice(list(item.options)))
        elif item.kind == "text":
            answers[item.name] = "simulated"[: item.longest]
        elif item.range is not None:
            low, high = item.range
            steps = {"likert": item.points - 1, "analogue": item.steps or 1000}.get(item.kind, 1000)
            value = low + (high - low) * int(rng.integers(steps + 1)) / steps
            whole = item.kind == "likert" or item.whole
            answers[item.name] = min(max(round(value), int(np.ceil(low))), int(high)) if whole else round(value, 3)
    return answers


def due_forms(forms: Sequence[Form], when: str, blocks: int) -> list[Form]:
    """Return the forms that are due before the first, between, or after the last of `blocks` finished blocks."""
    return [form for form in forms if form.when == when and (when != "between" or blocks % form.every == 0)]
