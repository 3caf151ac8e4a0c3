"""Tables of the answers to forms, and their codebook, from the events in the journals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from apps.experiment.forms.catalogue import LANGUAGES, base_language
from apps.experiment.forms.forms import CONSENT, FORM_COMPLETED, MOST_ITEMS, Form, form_of
from apps.experiment.journal.tables import Column, Row, Session
from haptics.errors import ConfigurationError

FORM_COLUMNS = (
    Column("participant", "text", "code of the participant"),
    Column("session", "whole", "session of the participant, from 1"),
    Column("experiment", "text", "name of the experiment"),
    Column("observer", "text", "the simulated observer that answered; empty where a person did"),
    Column("form", "text", "name of the form"),
    Column("after_blocks", "whole", "number of test blocks that were finished before the form"),
    Column("entry", "text", "kind of row", levels={"answer": "answer to an item", "score": "score of the form"}),
    Column("item", "text", "name of the item or of the score"),
    Column("answer", "text", "the answer; empty if it was left out"),
    Column("number", "number", "the answer or score as a number; empty if it is no number"),
    Column("completed_utc", "text", "when the form was completed (ISO 8601)"),
)
"""Columns of the table of forms, one row for each answer and each score."""

CODEBOOK_COLUMNS = ("form", "entry", "item", "kind", "question", "minimum", "maximum", "unit", "options", "low", "high")
"""Columns of the codebook, one row for each item and each score."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def completed(session: Session) -> Iterator[dict[str, Any]]:
    """Yield the events of completed forms. Events of another form, as of a damaged journal, are ignored."""
    for event in session.state.events:
        answers, scores = event.get("answers"), event.get("scores")
        if event["name"] != FORM_COMPLETED or not isinstance(answers, dict) or not isinstance(scores, dict):
            continue
        names = [event.get("form"), *answers, *scores]
        good = len(names) <= 3 * MOST_ITEMS and all(isinstance(one, str) and _NAME.fullmatch(one) for one in names)
        plain = all(one is None or isinstance(one, int | float | str) for one in (*answers.values(), *scores.values()))
        if good and plain and type(event.get("after_blocks")) is int:
            yield event


def form_rows(session: Session) -> list[Row]:
    """Return a row with `FORM_COLUMNS` for each answer and each score of the forms of a session."""
    header, rows = session.header, []
    observer = None if header["observer"] is None else str(header["observer"].get("name", "simulated"))
    common = {"participant": header["participant"], "session": header["session"], "experiment": header["experiment"]}
    for event in completed(session):
        for entry, values in (("answer", event["answers"]), ("score", event["scores"])):
            for name, value in values.items():
                number = None if value is None or isinstance(value, str | bool) else float(value)
                cells = {"observer": observer, "form": event["form"], "after_blocks": event["after_blocks"]}
                cells |= {"entry": entry, "item": name, "answer": value, "number": number}
                rows.append({**common, **cells, "completed_utc": event["utc"]})
    return rows


def wide_rows(session: Session) -> dict[str, list[Row]]:
    """Return a row for each completion of each form, with a cell for each item and score."""
    found: dict[str, list[Row]] = {}
    for event in completed(session):
        cells = {"after_blocks": event["after_blocks"], "completed_utc": event["utc"]}
        cells |= event["answers"] | {f"score_{name}": value for name, value in event["scores"].items()}
        found.setdefault(event["form"], []).append(cells)
    return found


def forms_of(session: Session) -> dict[str, Form]:
    """Return the forms of a session from the experiment file in its header; invalid ones are left out.

    A shipped form in a language of the file, whose texts the header does not have, is described in English.
    """
    design = session.header["design"]
    table = design.get("experiment")
    language = str(table.get("language", "en")) if isinstance(table, dict) else "en"
    language = language if base_language(language) in LANGUAGES else "en"
    given = design.get("forms")
    forms: dict[str, Form] = {}
    for one in given if isinstance(given, list) else ():
        try:
            form = form_of(one, {}, language)
            forms[form.name] = form
        except (ConfigurationError, AttributeError, TypeError):
            continue
    return forms


def codebook(sessions: Sequence[Session]) -> list[list[Any]]:
    """Return the rows of the codebook of all forms, below a row of `CODEBOOK_COLUMNS`."""
    forms: dict[str, Form] = {}
    for session in sessions:
        forms |= forms_of(session)
    rows: list[list[Any]] = [list(CODEBOOK_COLUMNS)]
    for form in forms.values():
        for item in form.asked:
            low, high = item.range or (None, None)
            options = "; ".join(f"{value}: {label}" for value, label in item.options.items())
            cells = [item.kind, item.text, low, high, item.unit, options, item.low, item.high]
            rows.append([form.name, "answer", item.name, *cells])
        rows += [[form.name, "score", name, *[None] * 8] for name in form.score_names]
    return rows


def consent_of(session: Session) -> dict[str, Any] | None:
    """Return the event of the consent, None if there was no consent page."""
    return next((one for one in reversed(session.state.events) if one["name"] == CONSENT), None)
