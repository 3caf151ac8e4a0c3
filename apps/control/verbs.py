"""Messages of the remote control: the table of verbs, their validation, and their JSON schema.

A request is one JSON object such as ``{"id": 1, "verb": "configure", "law": {"name": "coulomb", "force": 3.0}}``. The
reply has the same ``id``: ``{"id": 1, "ok": true, "result": {"tick": 1204}}``, or ``{"id": 2, "ok": false, "field":
"law.force", "error": "..."}`` for a refused request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

MAX_BYTES = 65_536
"""Maximum size of a message to the server [bytes]."""

MAX_DEPTH = 16
"""Maximum nesting of objects and arrays in a message."""

MAX_ROWS = 2000
"""Maximum number of rows in a reply; the client requests further rows from the last tick on."""

MAX_WAIT = 3600.0
"""Maximum time for which a request may wait [s]."""

MAX_NUMBER = 1e300
"""Largest magnitude of a number in a message."""

_INTEGER_BITS = 63
_MAX_NAMES = 64


class RequestError(ValueError):
    """A message that is refused.

    Attributes
    ----------
    field : str
        Name of the invalid field; empty if the message is no object.
    number : int or str or None
        Its ``id``, if it has a valid one.
    """

    def __init__(self, field: str, words: str, number: int | str | None = None) -> None:
        super().__init__(f"{field}: {words}" if field else words)
        self.field, self.number = field, number


@dataclass(frozen=True)
class Field:
    """A field of a request.

    Attributes
    ----------
    schema : dict
        JSON schema of the value; `check` supports the keywords that occur in `VERBS`.
    doc : str
        Description.
    required : bool
        Whether a request must have it.
    """

    schema: dict[str, Any]
    doc: str
    required: bool = False


_NUMBER = {"type": "number", "minimum": -MAX_NUMBER, "maximum": MAX_NUMBER}
_SECONDS = {"type": "number", "minimum": 0.0, "maximum": MAX_WAIT}
_TABLE = {"type": "object", "maxProperties": _MAX_NAMES}
_NAME = {"type": "string", "maxLength": 256}
_COLUMNS = {"type": "array", "items": _NAME, "maxItems": _MAX_NAMES}
_TICK = {"type": "integer", "minimum": 0, "maximum": 2**_INTEGER_BITS - 1}

_COLUMNS_DOC = "columns to return, with their units, such as position_x_m; by default all"
_TIMEOUT = Field(_SECONDS, "maximum time to wait [s]")

VERBS: dict[str, tuple[str, dict[str, Field]]] = {
    "configure": (
        "change the law, the element, the model or the scene in one tick; returns the first tick with the change",
        {
            "law": Field({"anyOf": [_NAME, _TABLE]}, "name of a law, or its settings"),
            "element": Field({**_TABLE, "additionalProperties": _NUMBER}, "parameters of the element, SI units"),
            "model": Field(_NAME, "model of the same causality"),
            "scene": Field({"anyOf": [_NAME, {"type": "object"}]}, "name of a shipped scene, or a scene; '' for none"),
            "gate": Field({"type": "boolean"}, "whether to fade the output out before the change and in after it"),
        },
    ),
    "gate": ("fade the output in or out", {"open": Field({"type": "boolean"}, "true: in; false: out", required=True)}),
    "mark": (
        "set the column marker of the rows from the next tick on",
        {
            "marker": Field(
                {"type": "integer", "minimum": -(2**_INTEGER_BITS), "maximum": 2**_INTEGER_BITS - 1},
                "number, for example of the trial",
                required=True,
            )
        },
    ),
    "advance": (
        "run a session in simulated time for some time; returns the newest tick",
        {"seconds": Field(_SECONDS, "time [s]", required=True)},
    ),
    "wait": (
        "reply after some time of the session; returns the newest tick",
        {"seconds": Field(_SECONDS, "time [s]", required=True)},
    ),
    "wait_for_button": ("reply when a button is pressed; returns button and tick, or null", {"timeout": _TIMEOUT}),
    "wait_until": (
        "reply when a column crosses a limit; returns the tick, or null",
        {
            "column": Field(_NAME, "column with its unit, such as velocity_x_m_per_s", required=True),
            "above": Field(_NUMBER, "wait until the value is greater"),
            "below": Field(_NUMBER, "wait until the value is smaller"),
            "timeout": _TIMEOUT,
        },
    ),
    "latest": (
        f"return the rows of the last seconds, at most {MAX_ROWS}",
        {"seconds": Field(_SECONDS, "time [s]", required=True), "columns": Field(_COLUMNS, _COLUMNS_DOC)},
    ),
    "since": (
        f"return the rows from a tick on, at most {MAX_ROWS}",
        {"tick": Field(_TICK, "number of the first tick", required=True), "columns": Field(_COLUMNS, _COLUMNS_DOC)},
    ),
    "subscribe": (
        'send messages with the newest rows at an interval, without an id: {"event": "rows", ...}; 0 ends this',
        {
            "interval": Field({"type": "number", "minimum": 0.0, "maximum": 10.0}, "interval [s]", required=True),
            "columns": Field(_COLUMNS, _COLUMNS_DOC),
        },
    ),
    "status": ("return the state of the run, its newest tick, device, model and recording", {}),
    "certificate": ("return the timing certificate; null before the end of the run", {}),
    "stop": ("bring the device to its safe output and end the run", {}),
}
"""Description and fields of every verb."""

_ID = {"anyOf": [_TICK, {"type": "string", "maxLength": 64}]}


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of the requests."""
    kinds = []
    for verb, (doc, fields) in VERBS.items():
        properties = {name: {**field.schema, "description": field.doc} for name, field in fields.items()}
        kinds.append(
            {
                "description": doc,
                "type": "object",
                "properties": {"id": _ID, "verb": {"const": verb}, **properties},
                "required": ["id", "verb", *(name for name, field in fields.items() if field.required)],
                "additionalProperties": False,
            }
        )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Requests to haptics run --control",
        "oneOf": kinds,
    }


def parse(text: str | bytes) -> tuple[int | str, str, dict[str, Any]]:
    """Parse and validate a request; return its ``id``, its verb and its arguments.

    Raises
    ------
    RequestError
        With the invalid field.
    """
    if isinstance(text, bytes):
        raise RequestError("", "a request must be a text message, not a binary one")
    try:
        message = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RequestError("", f"not JSON: {error}"[:200]) from None
    if not isinstance(message, dict):
        raise RequestError("", "a request must be a JSON object")
    if "id" not in message:
        raise RequestError("id", "is missing; number your requests")
    number = message.pop("id")
    check("id", number, _ID)
    try:
        _require_shallow(message)
        verb = message.pop("verb", None)
        if not isinstance(verb, str) or verb not in VERBS:
            raise RequestError("verb", f"must be one of {', '.join(VERBS)}")
        fields = VERBS[verb][1]
        for name, value in message.items():
            if name not in fields:
                raise RequestError(name[:64], f"{verb} has no such field; it has {', '.join(fields) or 'none'}")
            check(name, value, fields[name].schema)
        for name, field in fields.items():
            if field.required and name not in message:
                raise RequestError(name, f"is missing; {verb} needs it")
    except RequestError as error:
        error.number = number
        raise
    return number, verb, message


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _require_shallow(value: Any, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise RequestError("", f"objects and arrays are nested more than {MAX_DEPTH} deep")
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _require_shallow(item, depth + 1)


_SIZES = {"maxLength": "characters", "maxItems": "entries", "maxProperties": "entries"}
"""Keywords that limit the size of a value, and the units of the limit."""

_TYPES: dict[str, tuple[type, ...]] = {
    "number": (int, float),
    "integer": (int,),
    "string": (str,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def check(name: str, value: Any, rules: Mapping[str, Any]) -> None:
    """Raise `RequestError` unless `value` satisfies the schema `rules`."""
    if "anyOf" in rules:
        for one in rules["anyOf"]:
            if _is_of(value, one["type"]):
                check(name, value, one)
                return
        raise RequestError(name, f"must be of type {' or '.join(one['type'] for one in rules['anyOf'])}")
    kind = rules["type"]
    if not _is_of(value, kind):
        raise RequestError(name, f"must be of type {kind}")
    if kind in ("number", "integer"):
        low, high = rules.get("minimum", -MAX_NUMBER), rules.get("maximum", MAX_NUMBER)
        if not low <= value <= high:  # not for nan either
            raise RequestError(name, f"must be a number from {low:g} to {high:g}")
    for keyword, label in _SIZES.items():
        if keyword in rules and len(value) > rules[keyword]:
            raise RequestError(name, f"must have at most {rules[keyword]} {label}")
    if "items" in rules:
        for position, item in enumerate(value):
            check(f"{name}[{position}]", item, rules["items"])
    if "additionalProperties" in rules:
        for key, item in value.items():
            check(f"{name}.{key[:64]}", item, rules["additionalProperties"])


def _is_of(value: Any, kind: str) -> bool:
    """Return whether a value has a JSON type; true and false are not numbers."""
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
