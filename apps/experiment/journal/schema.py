"""Schema of the journal: the kinds of records with their fields and permitted values."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from haptics.files import MAX_NESTING

FORMAT = 1
"""Format version that is written. Journals of later versions are rejected."""

LONGEST_TEXT = 20_000
"""Maximum length of a text in a record [characters]."""

Record = dict[str, Any]
"""Line of a journal as a JSON object."""

RESPONSES = ("1", "2", "yes", "no", "same", "different")
KINDS_OF_TRIAL = ("test", "practice", "catch-null", "catch-easy")
OUTCOMES = ("ok", "repeat", "aborted")
SOURCES = ("button", "key", "screen", "observer")

OWN_FRICTION = "own-friction"
"""Name of the event with the friction measured before the first block."""

TRIGGERS_OPENED, TRIGGERS = "triggers-opened", "triggers"
"""Names of the events with the output of the triggers, and with codes that were sent (``sent``)."""

GROUP = "group"
"""Name of the event with the group of the participant."""

BLOCK_REPEATED = "the block begins again"
"""Reason (``why``) of an event ``redo`` by which a resumed session repeats a whole block."""

THRESHOLDS, CARRIED = "thresholds", "carried-over"
"""Names of the events with the thresholds that a session has found, and with those of earlier sessions."""


@dataclass(frozen=True)
class Field:
    """Field of a record.

    Attributes
    ----------
    words : str
        Description of the permitted values for messages.
    fits : callable
        Function that returns True for a permitted value.
    doc : str
        Meaning of the field.
    unit : str
        SI unit.
    nullable : bool
        Whether the value may be null or missing, which is equivalent.
    """

    words: str
    fits: Callable[[Any], bool]
    doc: str
    unit: str = ""
    nullable: bool = False


def is_number(value: Any) -> bool:
    """Return True for a finite number, with at most 64 bits if it is an integer."""
    return -(2**63) <= value < 2**63 if type(value) is int else isinstance(value, float) and math.isfinite(value)


def _whole(doc: str, minimum: int = 0, *, unit: str = "", nullable: bool = False) -> Field:
    words = f"a whole number of at least {minimum}"
    return Field(words, lambda value: type(value) is int and minimum <= value < 2**63, doc, unit, nullable)


def _number(doc: str, *, unit: str = "", nullable: bool = False) -> Field:
    return Field("a finite number", is_number, doc, unit, nullable)


def _instance(kind: type[Any], words: str, doc: str, *, nullable: bool = False) -> Field:
    return Field(words, lambda value: isinstance(value, kind), doc, nullable=nullable)


_text = functools.partial(_instance, str, "text")
_flag = functools.partial(_instance, bool, "true or false")
_table = functools.partial(_instance, dict, "a JSON object")


def _one_of(allowed: tuple[Any, ...], doc: str, *, nullable: bool = False) -> Field:
    words = "one of " + ", ".join(map(str, allowed))
    exact = [(type(one), one) for one in allowed]  # True is not 1
    return Field(words, lambda value: (type(value), value) in exact, doc, nullable=nullable)


def _list(of: str, doc: str, fits: Callable[[Any], bool]) -> Field:
    return Field(f"a list of {of}", lambda value: isinstance(value, list) and all(map(fits, value)), doc)


_TRIAL = _whole("number of the trial, counted over the session", 1)
_ATTEMPT = _whole("which attempt at it", 1)
_BLOCK = _whole("number of the block", 1)

KINDS: dict[str, dict[str, Field]] = {
    "header": {
        "format": _one_of((FORMAT,), "format of the journal"),
        "experiment": _text("name of the experiment"),
        "design_sha256": _text("SHA-256 of the experiment's file"),
        "design": _table("the file, as tables"),
        "participant": _text("the participant's code"),
        "session": _whole("which session of the participant", 1),
        "seed": _whole("the seed that everything random comes from"),
        "fields": _table("what else was noted of the participant: age band, hand, consent id ..."),
        "observer": _table("the simulated observer that answers; null for a person", nullable=True),
        "device": _table("data sheet and identity of the device"),
        "versions": _table("versions of the software"),
        "blind": _text("SHA-256 of the sealed code table; null in a session that is not blind", nullable=True),
        "slot": _whole("the participant's place in the order of arrival, which chooses an order", nullable=True),
    },
    "block_start": {
        "block": _BLOCK,
        "conditions": _list("texts", "the conditions in it", lambda one: isinstance(one, str)),
        "recording": _text("folder of its recording, relative to the session's; null if there is none", nullable=True),
        "attempt": _whole("how often the block has been begun", 1),
    },
    "trial_start": {
        "trial": _TRIAL,
        "block": _BLOCK,
        "attempt": _ATTEMPT,
        "kind": _one_of(KINDS_OF_TRIAL, "kind of trial"),
        "condition": _text("condition"),
        "track": _text("track of the procedure; null outside tracks", nullable=True),
        "reference": _number("value of the reference stimulus, in the unit of the axis", nullable=True),
        "level": _number("level that the procedure chose", nullable=True),
        "comparison_interval": _one_of((1, 2), "interval with the comparison", nullable=True),
        "values": _list(
            "numbers or null", "value of the axis in each interval", lambda one: one is None or is_number(one)
        ),
        "axis": _text("the setting that varies"),
        "markers": _list("whole numbers", "marker of the rows of each interval", lambda one: type(one) is int),
    },
    "response": {
        "trial": _TRIAL,
        "attempt": _ATTEMPT,
        "response": Field(
            f"{', '.join(RESPONSES)} or a number",
            lambda value: value in RESPONSES if isinstance(value, str) else is_number(value),
            "what was answered",
        ),
        "correct": _flag("whether that was right; null where nothing is", nullable=True),
        "reaction_time_s": _number("from the end of the last interval to the answer", unit="s", nullable=True),
        "tick": _whole("tick of the answer in the block's recording", nullable=True),
        "source": _one_of(SOURCES, "what it was given with"),
        "key": _text("key or button", nullable=True),
    },
    "trial_end": {
        "trial": _TRIAL,
        "attempt": _ATTEMPT,
        "outcome": _one_of(OUTCOMES, "whether the trial counts"),
        "reasons": _list("texts", "why it does not", lambda one: isinstance(one, str)),
    },
    "event": {"name": _text("what happened")},
    "note": {"text": _text("what somebody wrote down"), "by": _text("who did")},
    "end": {
        "reason": _text("why the session ended"),
        "trials": _whole("trials that count"),
        "repeated": _whole("attempts that had to be repeated"),
    },
}
"""Fields of each kind of record, in addition to `COMMON`. An ``event`` may have further fields."""

COMMON: dict[str, Field] = {
    "record": _one_of(tuple(KINDS), "kind of record"),
    "number": _whole("number of the record; the first line is 0"),
    "utc": _text("when it was written"),
    "monotonic_ns": _whole("the same by the monotonic clock, which recordings have too", unit="ns"),
}
"""Fields of all records."""


def checked(record: Any) -> Record:
    """Validate a record and return it with all fields of its kind, null where missing.

    Raises
    ------
    ValueError
        If the record is invalid. The message does not contain the line.
    """
    if not isinstance(record, dict):
        raise ValueError("must be a JSON object")
    kind = record.get("record")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"record = {str(kind)[:40]!r}: must be one of {', '.join(KINDS)}")
    fields = COMMON | KINDS[kind]
    strangers = [name for name in record if name not in fields]
    if strangers and kind != "event":
        raise ValueError(f"{kind} has no field {str(strangers[0])[:40]!r}; it has {', '.join(KINDS[kind])}")
    for name, field in fields.items():
        value = record.get(name)
        if value is None and field.nullable:
            continue
        if name not in record:
            raise ValueError(f"{kind} lacks {name}, which must be {field.words}")
        if not field.fits(value):
            null = " or null" if field.nullable else ""
            raise ValueError(f"{kind}: {name} = {repr(value)[:60]}: must be {field.words}{null}")
    _require_plain(record)
    return {name: record.get(name) for name in fields} | {name: record[name] for name in strangers}


def _require_plain(record: Record) -> None:
    """Raise `ValueError` unless a record is finite JSON of bounded depth that can be encoded as UTF-8."""
    left: list[tuple[Any, int]] = [(record, 0)]
    while left:
        value, depth = left.pop()
        if depth > MAX_NESTING:
            raise ValueError(f"is nested deeper than {MAX_NESTING}")
        members: list[Any] = value if isinstance(value, list) else []
        if isinstance(value, str):
            if "\0" in value:
                raise ValueError("a text holds a zero byte")
            if len(value) > LONGEST_TEXT:
                raise ValueError(f"a text has {len(value)} characters; {LONGEST_TEXT} at most")
            try:
                value.encode("utf-8")
            except UnicodeEncodeError as error:
                raise ValueError("a text has half a character (a lone surrogate)") from error
        elif isinstance(value, dict):
            if not all(isinstance(name, str) for name in value):
                raise ValueError("has a name that is no text")
            members = [*value, *value.values()]
        elif value is not None and not isinstance(value, bool | list) and not is_number(value):
            raise ValueError(f"{repr(value)[:60]} is neither text, true, false, null nor a finite number of 64 bits")
        left.extend((member, depth + 1) for member in members)
