"""Answers to forms in the report: scores and numerical answers over participants, by group and session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean, stdev

from apps.experiment.export.forms import completed, forms_of
from apps.experiment.report.data import Experiment


@dataclass(frozen=True)
class FormResult:
    """Score or answer of a form in a group and a session.

    Attributes
    ----------
    form, entry, name : str
        Form; ``score`` or ``answer``; score or item.
    range : (float, float) or None
        Smallest and largest possible answer.
    group : str or None
        Group, None without groups.
    session : int
        Session of the participants.
    mean : float
        Mean over participants. A participant who has completed the form several times in the session has the mean of
        these.
    sd : float or None
        Standard deviation between participants, None for one participant.
    participants : int
        Number of participants with a value.
    """

    form: str
    entry: str
    name: str
    range: tuple[float, float] | None
    group: str | None
    session: int
    mean: float
    sd: float | None
    participants: int


def analyse_forms(experiment: Experiment, excluded: Collection[str]) -> list[FormResult]:
    """Return the scores, and the answers to numerical, Likert and analogue items, without `excluded` participants."""
    values: dict[tuple[str, str, str], dict[tuple[str, int], list[float]]] = defaultdict(dict)
    ranges: dict[tuple[str, str, str], tuple[float, float] | None] = {}
    for person in (one for one in experiment.people if one.code not in excluded):
        for session in person.sessions:
            items = {(form.name, item.name): item for form in forms_of(session).values() for item in form.asked}
            found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
            for event in completed(session):
                for entry, given in (("score", event["scores"]), ("answer", event["answers"])):
                    for name, value in given.items():
                        item = items.get((event["form"], name)) if entry == "answer" else None
                        numerical = entry == "score" or (item is not None and item.range is not None)
                        if numerical and isinstance(value, int | float) and not isinstance(value, bool):
                            found[event["form"], entry, name].append(float(value))
                            ranges[event["form"], entry, name] = item.range if item is not None else None
            for key, own in found.items():
                values[key].setdefault((person.group or "", session.place.session), []).append(fmean(own))
    return [
        FormResult(*key, ranges[key], group or None, number, fmean(own), stdev(own) if len(own) > 1 else None, len(own))
        for key, cells in values.items()
        for (group, number), own in sorted(cells.items())
    ]
