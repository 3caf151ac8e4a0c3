"""Pages of the report: one for the group, and one for each participant."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from apps.experiment.report.analysis import estimates_of
from apps.experiment.report.figures.curves import curves_figure
from apps.experiment.report.figures.numbers import adjustment_figure, magnitude_figure
from apps.experiment.report.figures.stimulus import stimulus_figure, timing_figure
from apps.experiment.report.figures.tracks import tracks_figure
from apps.experiment.report.figures.weber import group_figure, person_figure
from apps.experiment.report.results import ConditionResult, GroupResult, PersonResult
from apps.experiment.report.sessions import Experiment, Person, SessionData
from apps.experiment.report.settings import AnalysisSettings
from apps.experiment.report.tables import (
    catch_table,
    detectability_table,
    difference_table,
    fit_table,
    group_table,
    magnitude_table,
    people_table,
    procedure_table,
    repeated_table,
)
from apps.experiment.report.words import SIMULATED, methods
from apps.shared.html import document, picture, warnings

_STYLE = """
p.methods { background: #f4f7fa; border-left: 4px solid #0072B2; padding: 10px 14px; margin: 10px 0; }
p.simulated { background: #fff6e0; border-left: 4px solid #E69F00; padding: 8px 14px; margin: 10px 0; }
p.legend { color: #555555; font-size: 12.5px; margin: 2px 0 8px; }
div.half img { width: 56%; }
div.wide { overflow-x: auto; }
nav { margin-top: 14px; font-size: 13px; }
nav a { display: inline-block; color: #0072B2; text-decoration: none; margin-right: 14px; }
"""

_PROPORTIONS = {"detection": 'share of "yes"', "same-different": 'share of "different"'}

_TRACK_LEGEND = (
    "Filled: right; open: wrong; large circles: reversals; a colour for each track and session; dashed: the fitted "
    "difference."
)


def report(
    experiment: Experiment, people: Sequence[PersonResult], group: GroupResult, settings: AnalysisSettings
) -> str:
    """Return the report as HTML."""
    both = zip(experiment.people, people, strict=True)
    pages = [_person_page(experiment, person, result) for person, result in both]
    return document(f"Experiment {experiment.name}", [_group_page(experiment, people, group, settings), *pages], _STYLE)


def _group_page(
    experiment: Experiment, people: Sequence[PersonResult], group: GroupResult, settings: AnalysisSettings
) -> str:
    title = str(experiment.table("experiment").get("title") or experiment.name)
    who = f"{_count(len(people), 'participant')}, {_count(len(experiment.sessions), 'session')}"
    parts = [
        "<section>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="lead">Experiment {escape(experiment.name)}: {escape(experiment.task.text)}. {who}.</p>',
        _simulated(experiment.simulated),
        warnings([*_left_out(people), *_only_bounds(group)]),
    ]
    for percent in dict.fromkeys(one.percent for one in group.conditions):
        figure = group_figure(people, group, percent, experiment.unit)
        if figure:
            parts.append(picture(figure, f"Weber fractions at {percent:g} % correct"))
    if group.conditions:
        parts.append(f"<h2>Over participants</h2>{_wide(group_table(group, experiment.unit, _percent(experiment)))}")
    if group.magnitude is not None:
        counted = {one.code for one in people if not one.excluded}
        stimuli = [one for person in experiment.people if person.code in counted for one in estimates_of(person)[0]]
        parts.append(_half(magnitude_figure(group.magnitude, stimuli, experiment.unit), "Power law of the group"))
    parts.append(f'<h2>Methods</h2><p class="methods">{escape(methods(experiment, people, settings))}</p>')
    parts.append(f"<h2>Participants</h2>{_wide(people_table(people))}")
    links = "".join(f'<a href="#{escape(one.code)}">{escape(one.code)}</a>' for one in people)
    return "\n".join([*parts, f"<nav>{links}</nav>", "</section>"])


def _left_out(people: Sequence[PersonResult]) -> list[str]:
    return [f"{one.code} does not count for the group: {why}." for one in people for why in one.excluded]


def _only_bounds(group: GroupResult) -> list[str]:
    """Return warnings about means that lack participants with thresholds beyond the tested levels."""
    return [
        f"{one.name}, {one.percent:g} %: the difference of {_count(one.jnd.bounds, 'participant')} lies beyond the "
        "levels that were tested. Such bounds are not in the mean, which is therefore off to the other side."
        for one in group.conditions
        if one.jnd is not None and one.jnd.bounds
    ]


def _person_page(experiment: Experiment, person: Person, result: PersonResult) -> str:
    unfinished = [session.place.stem for session in person.sessions if session.state.end is None]
    said = [f"Does not count for the group: {why}." for why in result.excluded]
    said += [f"{stem} has not ended." for stem in unfinished]
    said += [words for session in person.sessions for words in (*_changed_friction(session), *session.damaged)]
    said += [f"{one.name}: {note}" for one in result.conditions for note in one.notes]
    parts = [
        f'<section id="{escape(result.code)}">',
        f"<h1>{escape(result.code)}</h1>",
        f'<p class="lead">{escape(_who(person))}</p>',
        _simulated(person.observer is not None),
        warnings(said),
        *_differences(experiment, person, list(result.conditions)),
        *_weber(result, experiment.unit),
        *_numbers(experiment, person, result),
        '<div class="columns">',
        f"<div><h2>Catch trials</h2>{catch_table(result)}</div>",
        f"<div><h2>Repeated</h2>{repeated_table(result)}</div>",
        "</div>",
        *_stimulus(experiment, person),
        "</section>",
    ]
    return "\n".join(parts)


def _changed_friction(session: SessionData) -> list[str]:
    """Return the message about changes of the device's friction, if any."""
    told = session.friction
    if told is None or not any(change["beyond"] for change in told["changes"]):
        return []
    return [f"Session {session.place.session}: {told['words']}"]


def _differences(experiment: Experiment, person: Person, conditions: list[ConditionResult]) -> list[str]:
    """Return the tables of differences and the figures of curves and tracks."""
    unit, parts = experiment.unit, []
    if any(one.differences for one in conditions):
        told = difference_table(conditions, unit, _percent(experiment))
        parts.append(f"<h2>Just noticeable differences</h2>{_wide(told)}")
    fitted = [one for one in conditions if one.fit is not None]
    if not fitted:
        return parts
    asked = _PROPORTIONS.get(experiment.task_name, "proportion correct")
    show = picture if len(fitted) > 1 else _half
    curves = show(curves_figure(fitted, experiment.axis, unit, asked), "Psychometric functions")
    parts.append(f'<h2>Psychometric functions</h2>{curves}<p class="legend">{_curve_legend(person)}</p>')
    parts.append(_wide(fit_table(fitted, unit)))
    if any(one.detectability for one in fitted):
        parts.append(f"<h2>Detectability</h2>{detectability_table(fitted, unit)}")
    tracked = [one for one in fitted if one.procedures]
    if tracked:
        tracks = show(tracks_figure(tracked, unit), "Levels by trial")
        parts.append(f'<h2>Tracks</h2>{tracks}<p class="legend">{_TRACK_LEGEND}</p>')
        parts.append(_wide(procedure_table(tracked, unit)))
    return parts


def _weber(result: PersonResult, unit: str) -> list[str]:
    parts = []
    for percent in dict.fromkeys(one.percent for condition in result.conditions for one in condition.differences):
        figure = person_figure(result, percent, unit)
        if figure:
            parts.append(f"<h2>Weber fraction</h2>{_half(figure, 'Weber fraction against reference')}")
    return parts


def _numbers(experiment: Experiment, person: Person, result: PersonResult) -> list[str]:
    parts, conditions = [], list(result.conditions)
    if result.magnitude is not None:
        figure = magnitude_figure(result.magnitude, estimates_of(person)[0], experiment.unit)
        told = magnitude_table(result.magnitude, next((one["exponent"] for one in result.truth.values()), None))
        parts.append(f"<h2>Magnitude</h2>{told}{_half(figure, 'Power law')}")
    if any(one.settings for one in conditions):
        figure = adjustment_figure(conditions, experiment.unit)
        parts.append(f"<h2>Adjustments</h2>{_half(figure, 'Values that were set')}")
    return parts


def _stimulus(experiment: Experiment, person: Person) -> list[str]:
    parts = []
    figure = stimulus_figure(person.tested, experiment.unit)
    if figure:
        parts.append(f"<h2>Asked, delivered, felt</h2>{picture(figure, 'Stimuli as asked, delivered and felt')}")
    certificates = [one for session in person.sessions for one in session.certificates]
    timed = timing_figure(person.tested, certificates)
    if timed:
        parts.append(f"<h2>Time</h2>{picture(timed, 'Reaction times and starts of ticks')}")
    return parts


def _percent(experiment: Experiment) -> str:
    """Return the word for the responses that a percentage counts."""
    return "noticed" if experiment.task_name in _PROPORTIONS else "correct"


def _curve_legend(person: Person) -> str:
    own = " Diamond: what is true of the simulated observer." if person.observer is not None else ""
    return f"Area of a dot: number of answers. Band and orange bar: 95 % intervals. Orange dot: the difference.{own}"


def _half(figure: str, words: str) -> str:
    return f'<div class="half">{picture(figure, words)}</div>'


def _wide(html: str) -> str:
    return f'<div class="wide">{html}</div>' if html else ""


def _simulated(is_so: bool) -> str:
    return f'<p class="simulated">{escape(SIMULATED)}</p>' if is_so else ""


def _who(person: Person) -> str:
    header, observer = person.sessions[0].header, person.observer
    if observer is not None:
        name = observer.get("name") or f"level {observer.get('level', 1)}"
        others = ", ".join(f"{key} {value}" for key, value in observer.items() if key not in {"name", "level"})
        said = f"Simulated observer, {name}{f' ({others})' if others else ''}."
    else:
        fields = [f"{key.replace('_', ' ')} {value}" for key, value in header["fields"].items()]
        said = f"{'; '.join(fields)}." if fields else "Nothing is noted of the participant."
    days = ", ".join(dict.fromkeys(str(session.header["utc"])[:10] for session in person.sessions))
    return f"{said} {_count(len(person.sessions), 'session')} ({days}), {len(person.tested)} trials that count."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
