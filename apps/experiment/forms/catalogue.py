"""Shipped forms with their texts in English and German: NASA-TLX, raw and weighted, and demographic data.

NASA-TLX: Hart and Staveland 1988, *Advances in Psychology* 52, 139-183; unweighted: Hart 2006, *Proc. HFES* 50,
904-908. The scales are in the public domain.
"""

from __future__ import annotations

import itertools
from typing import Any

Table = dict[str, Any]

TLX_SCALES = ("mental", "physical", "temporal", "performance", "effort", "frustration")
"""Names of the six scales of NASA-TLX, in their order."""

_WORDS: dict[str, dict[str, Table]] = {
    "en": {
        "tlx": {
            "title": "Workload",
            "mental": ("Mental demand", "How mentally demanding was the task?", "very low", "very high"),
            "physical": ("Physical demand", "How physically demanding was the task?", "very low", "very high"),
            "temporal": (
                "Temporal demand",
                "How hurried or rushed was the pace of the task?",
                "very low",
                "very high",
            ),
            "performance": (
                "Performance",
                "How successful were you in accomplishing what you were asked to do?",
                "perfect",
                "failure",
            ),
            "effort": (
                "Effort",
                "How hard did you have to work to accomplish your level of performance?",
                "very low",
                "very high",
            ),
            "frustration": (
                "Frustration",
                "How insecure, discouraged, irritated, stressed, and annoyed were you?",
                "very low",
                "very high",
            ),
            "pair": "Which of the two contributed more to the workload of this task?",
        },
        "demographic": {
            "title": "About you",
            "age_band": "How old are you?",
            "gender": "What is your gender?",
            "handedness": "With which hand do you write?",
            "experience": "How often have you used a haptic device before, such as a force-feedback joystick?",
            "age": ("younger than 20", "20 to 29", "30 to 39", "40 to 49", "50 to 59", "60 or older"),
            "genders": ("female", "male", "other", "I prefer not to say"),
            "hands": ("the right", "the left", "both"),
            "times": ("never", "once or twice", "several times", "regularly"),
        },
    },
    "de": {
        "tlx": {
            "title": "Beanspruchung",
            "mental": (
                "Geistige Anforderung",
                "Wie hoch waren die geistigen Anforderungen der Aufgabe?",
                "sehr gering",
                "sehr hoch",
            ),
            "physical": (
                "Körperliche Anforderung",
                "Wie hoch waren die körperlichen Anforderungen der Aufgabe?",
                "sehr gering",
                "sehr hoch",
            ),
            "temporal": (
                "Zeitliche Anforderung",
                "Wie stark fühlten Sie sich durch das Tempo der Aufgabe unter Zeitdruck?",
                "sehr gering",
                "sehr hoch",
            ),
            "performance": (
                "Leistung",
                "Wie gut ist Ihnen gelungen, was von Ihnen verlangt wurde?",
                "vollkommen",
                "gar nicht",
            ),
            "effort": (
                "Anstrengung",
                "Wie sehr mussten Sie sich anstrengen, um Ihre Leistung zu erreichen?",
                "sehr wenig",
                "sehr stark",
            ),
            "frustration": (
                "Frustration",
                "Wie verunsichert, entmutigt, gereizt, gestresst und verärgert waren Sie?",
                "sehr wenig",
                "sehr stark",
            ),
            "pair": "Was von beiden trug mehr zur Beanspruchung durch diese Aufgabe bei?",
        },
        "demographic": {
            "title": "Zu Ihrer Person",
            "age_band": "Wie alt sind Sie?",
            "gender": "Welches Geschlecht haben Sie?",
            "handedness": "Mit welcher Hand schreiben Sie?",
            "experience": "Wie oft haben Sie schon ein haptisches Gerät benutzt, etwa einen Force-Feedback-Joystick?",
            "age": ("jünger als 20", "20 bis 29", "30 bis 39", "40 bis 49", "50 bis 59", "60 oder älter"),
            "genders": ("weiblich", "männlich", "divers", "keine Angabe"),
            "hands": ("mit der rechten", "mit der linken", "mit beiden"),
            "times": ("noch nie", "ein- oder zweimal", "mehrmals", "regelmäßig"),
        },
    },
}

_AGES = ("under-20", "20-29", "30-39", "40-49", "50-59", "60-or-older")
_GENDERS = ("female", "male", "other", "not-stated")
_HANDS = ("right", "left", "both")
_TIMES = ("never", "once-or-twice", "several-times", "regularly")

CONSENT_WORDS = {
    "en": {
        "title": "Consent",
        "statement": "I have read the information, and I agree to take part.",
        "agree": "I agree",
        "refuse": "I do not agree",
    },
    "de": {
        "title": "Einwilligung",
        "statement": "Ich habe die Information gelesen und bin mit der Teilnahme einverstanden.",
        "agree": "Ich bin einverstanden",
        "refuse": "Ich bin nicht einverstanden",
    },
}
"""Texts of the consent page by language."""

LANGUAGES = tuple(_WORDS)
"""Languages of the shipped forms."""


def base_language(language: str) -> str:
    """Return the language of a tag: ``de`` for ``de-AT``."""
    return language.split("-", maxsplit=1)[0].lower()


def shipped_form(use: str, language: str) -> Table:
    """Return the table of a shipped form.

    Parameters
    ----------
    use : str
        ``nasa-tlx``, ``nasa-tlx-weighted`` or ``demographic``.
    language : str
        Language of the texts. A language that is not shipped gives English.
    """
    words = _WORDS.get(base_language(language), _WORDS["en"])
    return _demographic(words["demographic"]) if use == "demographic" else _tlx(words["tlx"], use.endswith("weighted"))


def _tlx(words: Table, weighted: bool) -> Table:
    items = []
    for name in TLX_SCALES:
        label, text, low, high = words[name]
        one = {"name": name, "kind": "analogue", "steps": 20, "label": label, "text": text, "low": low, "high": high}
        items.append(one)
    for first, second in itertools.combinations(TLX_SCALES, 2) if weighted else ():
        options = {first: words[first][0], second: words[second][0]}
        items.append({"name": f"{first}_{second}", "kind": "choice", "text": words["pair"], "options": options})
    return {"title": words["title"], "items": items}


def _demographic(words: Table) -> Table:
    options = {"age_band": (_AGES, "age"), "gender": (_GENDERS, "genders")}
    options |= {"handedness": (_HANDS, "hands"), "experience": (_TIMES, "times")}
    items = [
        {
            "name": name,
            "kind": "choice",
            "text": words[name],
            "options": dict(zip(values, words[labels], strict=True)),
        }
        for name, (values, labels) in options.items()
    ]
    return {"title": words["title"], "items": items}
