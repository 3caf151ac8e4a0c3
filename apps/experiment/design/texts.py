"""Table ``texts`` of an experiment: all texts that a participant reads, for translation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from haptics.errors import ConfigurationError
from haptics.settings import check, documented, string, unrestricted

_ENGLISH = "en"

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
        (), "a list of pages", doc="before the first trial, and again after an interruption"
    )
    question: str = string("", doc="asked after every trial; a question that suits the task if empty")
    practice: str = string("", doc="before the practice")
    rest: str = string("", doc="in a break")
    end: str = string("", doc="at the end")
    practice_title: str = string("Practice", doc="above the text before the practice")
    rest_title: str = string("A break", doc="above the text in a break")
    pause_title: str = string("Pause", doc="while the session waits")
    pause: str = string("Press Esc to go on.", doc="below it: how to go on")
    end_title: str = string("Thank you", doc="above the text at the end")
    park: str = string("Move to the square and wait", doc="where the hand is to come to the start")
    hold: str = string("Hold the space bar", doc="where force is given only while that is held")
    let_go_title: str = string("Let go of the handle", doc="before the device's own friction is measured")
    let_go: str = string(
        "It is going to move by itself, for about {seconds} s. Keep clear of it.",
        allowed="text; {seconds} is the time",
        doc="below that",
    )
    measured: str = string("The measurement is done.", doc="after that")
    go_on: str = string("go on", doc="beside the key that turns a page or ends a break")
    right: str = string("Right", doc="after a right answer, where that is said")
    wrong: str = string("Wrong", doc="after a wrong one")
    button: str = string(
        "button {number}", allowed="text; {number} is the button's", doc="name of a button of the device"
    )
    answers: Any = field(
        default_factory=dict,
        metadata={"words": "a table of words, by answer", "doc": "what answers are called beside their keys"},
    )
    keys: Any = field(
        default_factory=dict,
        metadata={"words": "a table of words, by key", "doc": "what is written on keys such as space"},
    )

    def __post_init__(self) -> None:
        check(self, "texts")
        pages = self.instructions
        pages = [pages] if isinstance(pages, str) else pages
        if not isinstance(pages, list | tuple) or not all(isinstance(page, str) for page in pages):
            raise ConfigurationError(f"texts.instructions = {pages!r}: must be a list of pages.")
        object.__setattr__(self, "instructions", tuple(pages))
        for name in ("answers", "keys"):
            table = getattr(self, name)
            if not isinstance(table, dict) or not all(isinstance(word, str) and word for word in table.values()):
                raise ConfigurationError(f"texts.{name} = {table!r}: must be a table of words.")
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

    def question_text(self, task: str) -> str:
        """Return the question after a trial."""
        return self.question or QUESTIONS[task]


def require_translated(given: Mapping[str, Any], language: str, answers: tuple[str, ...]) -> None:
    """Raise if texts are missing, so that a participant would read English amid another language.

    Parameters
    ----------
    given : mapping
        Table of texts in the file.
    language : str
        Language of the table.
    answers : tuple of str
        Possible answers in the experiment.

    Raises
    ------
    ConfigurationError
        If texts are missing. The message lists them.
    """
    if language == _ENGLISH or language.startswith(f"{_ENGLISH}-"):
        return
    words = given.get("answers", {})
    missing = [one.name for one in fields(TextSettings) if one.name not in ("answers", "keys", *_OPTIONAL, *given)]
    missing += [f"answers.{answer}" for answer in answers if answer not in words]
    if missing:
        raise ConfigurationError(
            f"texts.{missing[0]} is missing in the language {language!r}; a participant would read English. Missing "
            f"are: {', '.join(missing)}."
        )


_OPTIONAL = ("instructions", "practice", "rest", "end")
"""Texts that may be omitted in any language. Nothing is shown then."""
