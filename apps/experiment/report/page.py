"""Pages of the report, one for the group and one for each participant, with the methods paragraph."""

from __future__ import annotations

import contextlib
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from apps.experiment.journal.exclusion import TRAINING, LeftOut
from apps.experiment.procedures.settings import procedure_settings
from apps.experiment.report.analysis import ConditionResult, GroupResult, PersonResult, estimates_of
from apps.experiment.report.data import Experiment, Person
from apps.experiment.report.factors import Effect
from apps.experiment.report.figures import (
    adjustment_figure,
    bracket,
    curves_figure,
    drift_figure,
    group_figure,
    magnitude_figure,
    person_figure,
    stimulus_figure,
    timing_figure,
    tracks_figure,
)
from apps.experiment.report.forms import FormResult
from apps.experiment.schedule import DEVIATIONS, SCHEDULED
from apps.experiment.settings import AnalysisSettings
from apps.shared.display import grouped, microseconds
from apps.shared.html import document, picture, table, warnings
from calibration.psychometric import Estimate
from calibration.psychometric.drift import LEAST_EVIDENCE
from calibration.psychometric.posterior import LAPSES
from haptics.errors import ConfigurationError

SIMULATED = (
    "Simulated observers gave these answers. They check the method and the analysis; they never stand for people, and "
    "nothing here is a finding about human perception."
)

AMONG_OTHERS = (
    "Simulated observers ({codes}) answered besides participants. Results over all of them, such as means, are no "
    "finding about human perception: name the folders of the participants only."
)

_SHAPE_WORDS = {
    "dprime": "proportion correct for a sensitivity d' that grows as a power of the level",
    "weibull": "Weibull function",
    "phi": "cumulative normal function of the logarithm of the level",
    "logistic": "logistic function of the logarithm of the level",
}

_PROCEDURES = {
    "quest+": "QUEST+ (Watson 2017)",
    "constant": "the method of constant stimuli",
    "adjustment": "the method of adjustment",
    "estimation": "magnitude estimation",
    "series": "series at a fixed level",
}


def methods(experiment: Experiment, people: Sequence[PersonResult], settings: AnalysisSettings) -> str:
    """Return the methods paragraph: device, timing, task, procedure, participants, exclusions, analysis."""
    friction = ""
    measured = [one for session in experiment.sessions if (one := session.friction) is not None]
    if measured:
        changed = sum(any(change["beyond"] for change in one["changes"]) for one in measured)
        friction = (
            "Its own friction was measured anew before the first block of "
            f"{len(measured)} of {counted(len(experiment.sessions), 'session')} and compensated as it was then; in "
            f"{changed} it differed from the earlier measurement by more than their 95 % intervals."
        )
    parts = (
        _apparatus(experiment),
        friction,
        timing(experiment),
        _task(experiment),
        _participants(experiment, people),
        _analysis(experiment, settings),
        _simulated_words(experiment),
    )
    return " ".join(part for part in parts if part)


def _simulated_words(experiment: Experiment) -> str:
    """Return the sentences about simulated observers, empty without any."""
    codes = [person.code for person in experiment.people if person.observer is not None]
    if not codes:
        return ""
    return SIMULATED if len(codes) == len(experiment.people) else AMONG_OTHERS.format(codes=_listed(codes))


def _people_words(experiment: Experiment) -> str:
    """Return the numbers of participants and of simulated observers."""
    simulated = sum(person.observer is not None for person in experiment.people)
    numbers = (len(experiment.people) - simulated, "participant"), (simulated, "simulated observer")
    return _listed([counted(number, noun) for number, noun in numbers if number])


def _apparatus(experiment: Experiment) -> str:
    header, design = experiment.sessions[0].header, experiment.design
    device, versions = header["device"], header["versions"]
    stimulus = [f"The stimulus was {experiment.axis}" + (f" [{experiment.unit}]" if experiment.unit else "")]
    if law := experiment.table("law").get("name"):
        stimulus.append(f"of the {law} law")
    scene = design.get("scene") or design.get("session", {}).get("scene", "")
    if scene := str(scene.get("name", "of the file") if isinstance(scene, Mapping) else scene):
        stimulus.append(f"on the scene {scene}")
    if model := experiment.table("session").get("model"):
        stimulus.append(f"rendered by model {model}")
    program = f"haptics {versions['haptics']}" if "haptics" in versions else "haptics"
    known = device.get("parameter_file_hash") or device.get("calibration_sha256")
    words = f"its calibration has the SHA-256 {str(known)[:16]}" if known else "it was used without a calibration file"
    if friction := device.get("friction_file_hash"):
        words += f", the measurement of its own friction {str(friction)[:16]}"
    return f"{' '.join(stimulus)} on the device {device.get('name', 'not named')} by {program}; {words}."


def timing(experiment: Experiment) -> str:
    """Return the sentence that summarises the certificates of all recordings."""
    found = [one for session in experiment.sessions for one in session.certificates if one.get("ticks")]
    if not found:
        return "There are no recordings with a certificate of their timing."
    ticks = sum(int(one["ticks"]) for one in found)
    late = sum(int(one.get("overruns", 0)) for one in found)
    subject = f"The {len(found)} recordings have" if len(found) > 1 else "The recording has"
    share = f"{grouped(late)} ({100.0 * late / ticks:.2g} %)" if late else "none"
    first = f"{subject} {grouped(ticks)} ticks, of which {share} were late"
    delays = [one["period_error_us"] for one in found if one.get("period_error_us")]
    if delays and not any(one["max"] for one in delays):
        return f"{first}; time was simulated, so that none could be."
    if delays:
        middle = microseconds(max(float(one["p50"]) for one in delays))
        most = microseconds(max(float(one["p99"]) for one in delays))
        first += f"; ticks started at most {middle} (median) and {most} (99th percentile) late in the worst recording"
    unfit = sum(one.get("fit") is False for one in found)
    if len(found) == 1:
        words = f"{first}. It is {'unfit' if unfit else 'fit'} by its limits."
    else:
        words = f"{first}. {f'{unfit} of them are unfit' if unfit else 'All are fit'} by their limits."
    begun = sum(one["recording"] is not None for session in experiment.sessions for one in session.state.block_starts)
    if begun > len(found):
        words += f" {counted(begun - len(found), 'other recording')} of the sessions have no certificate."
    return words


def _task(experiment: Experiment) -> str:
    table = experiment.table("procedure")
    procedure = _PROCEDURES.get(str(table.get("kind")), "")
    if table.get("kind") == "staircase":
        procedure = "staircases"
        with contextlib.suppress(ConfigurationError):
            settings: Any = procedure_settings(table)
            procedure += (
                f" ({settings.down}-down/1-up, step ratio {settings.step_ratio:g}), which aim at "
                f"{100.0 * settings.target:.1f} % correct"
            )
    references = sorted({float(row["reference"]) for s in experiment.sessions for row in s.counted if row["reference"]})
    words = f"Task: {experiment.task.text}."
    if references and experiment.task_name != "estimation":
        unit = f" {experiment.unit}" if experiment.unit else ""
        words += f" References were {_listed([f'{one:g}' for one in references])}{unit}."
    return words + (f" Levels were chosen by {procedure}." if procedure else "")


def _participants(experiment: Experiment, people: Sequence[PersonResult]) -> str:
    included = [one for one in people if not one.excluded]
    tests = [sum(len(condition.rows) for condition in one.conditions) for one in people]
    words = f"{_people_words(experiment)} gave {grouped(sum(tests))} answers that count"
    if len(set(tests)) == 1:
        words += f" ({tests[0]} each)"
    sizes = Counter(person.group for person in experiment.people if person.group is not None)
    if sizes:
        method = "minimisation" if experiment.table("groups").get("method") == "minimisation" else "permuted blocks"
        words += f", assigned by {method} to {_listed([f'{name} ({count})' for name, count in sorted(sizes.items())])}"
    catches = sum(one.catches.easy + one.catches.null for one in people)
    words += f", besides {catches} catch trials." if catches else "."
    repeated: Counter[str] = Counter()
    for one in people:
        repeated.update(one.repeated)
    if repeated:
        reasons = _listed([f"{why}: {count}" for why, count in repeated.items()])
        number = sum(session.state.repeated for session in experiment.sessions)
        words += f" {counted(number, 'attempt')} did not count ({reasons})."
    excluded = [one for one in people if one.excluded]
    words += left_out_words(experiment.left_out)
    if not excluded:
        return words if experiment.left_out else f"{words} None was excluded."
    why = "; ".join(f"{one.code} ({', '.join(one.excluded)})" for one in excluded)
    return f"{words} By the rules of the experiment's file {len(included)} count for the group, without {why}."


def left_out_words(left_out: Sequence[LeftOut]) -> str:
    """Return the sentences about excluded participants and training, empty without any."""
    why = {one.participant: one.reason.removeprefix("excluded: ") for one in left_out if one.reason != TRAINING}
    words = ""
    if why:
        listed = "; ".join(f"{code} ({reason})" for code, reason in sorted(why.items()))
        words += f" Excluded by the experimenter: {listed}."
    training = sum(one.reason == TRAINING for one in left_out)
    return words + (
        f" {counted(training, 'training session')} {'is' if training == 1 else 'are'} not analysed." if training else ""
    )


def _analysis(experiment: Experiment, settings: AnalysisSettings) -> str:
    interval = f"{100.0 * settings.probability:g} %"
    if experiment.task_name == "estimation":
        return (
            "Estimates were normalised by their geometric means (modulus equalisation); exponents are slopes of "
            f"logarithms, their mean has the {interval} interval of Student's t."
        )
    if experiment.task_name == "adjustment":
        return (
            "The just noticeable difference is the standard deviation of adjustments, which stands for 84.13 % "
            f"correct, with the {interval} interval of chi squared."
        )
    percents = _listed([f"{percent:g} %" for percent in settings.percent])
    guess = experiment.task.guess
    chance = f"guessing fixed at {guess:g}" if guess is not None else "the share of guesses found with it"
    criterion = "correct, without lapses" if guess is not None else "noticed, without guesses and lapses"
    drift = (
        " The threshold may change slowly within a session; estimates are averages over fits with and without such a "
        f"change, weighted by their evidence. A Bayes factor above {LEAST_EVIDENCE:g} counts as a change."
        if settings.drift == "auto"
        else ""
    )
    return (
        f"Just noticeable differences are read off at {percents} {criterion}, from a "
        f"{_SHAPE_WORDS[settings.shape]}, fitted to all trials ({settings.stimulus} levels; {chance}; lapses with the "
        f"prior Beta({LAPSES.a:g}, {LAPSES.b:g})): medians of the posterior with {interval} credible intervals. Means "
        f"over participants are geometric, with the {interval} interval of Student's t on logarithms."
        f"{drift}"
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural if necessary."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


# --- pages ------------------------------------------------------------------------------------------------------------

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

_SIMULATED = f'<p class="simulated">{escape(SIMULATED)}</p>'

_CURVE_LEGEND = (
    "Area of a dot: number of answers. Band: 95 % interval. Orange dot and bar: the difference and its interval."
)

_TRIGGER_LEGEND = (
    "Delay of the code from the start of its tick until the operating system had accepted it; jitter: standard "
    "deviation. An answer is accepted some time after its key."
)

_TRACK_LEGEND = (
    "Filled: right; open: wrong; large circles: reversals; a colour for each track and session; dashed: the fitted "
    "difference."
)

_EFFECT_LEGEND = (
    "Geometric means over participants of the ratio of thresholds at two levels of a factor, in conditions with the "
    "same levels of the other factors, with intervals of Student's t on logarithms; between groups, the ratio of "
    "geometric means with intervals of Welch. A ratio of 1 is no effect. By group: the ratio of the effects, in "
    "brackets, in two groups; 1 is no interaction of group and factor."
)

_FORM_LEGEND = (
    "Mean and standard deviation over participants, and the number of participants in brackets. A participant who has "
    "completed a form several times in a session counts with the mean."
)

_DRIFT_LEGEND = (
    "The difference by trial with its interval, if it changes at all; a colour for each session; dashed: the fitted "
    "difference."
)


def report(
    experiment: Experiment,
    people: Sequence[PersonResult],
    group: GroupResult,
    settings: AnalysisSettings,
    effects: Sequence[Effect] = (),
    forms: Sequence[FormResult] = (),
) -> str:
    """Return the report as HTML."""
    both = zip(experiment.people, people, strict=True)
    pages = [_person_page(experiment, person, result) for person, result in both]
    first = _group_page(experiment, people, group, settings, effects, forms)
    return document(f"Experiment {experiment.name}", [first, *pages], _STYLE)


def _group_page(
    experiment: Experiment,
    people: Sequence[PersonResult],
    group: GroupResult,
    settings: AnalysisSettings,
    effects: Sequence[Effect],
    forms: Sequence[FormResult],
) -> str:
    title = str(experiment.table("experiment").get("title") or experiment.name)
    who = f"{_people_words(experiment)}, {counted(len(experiment.sessions), 'session')}"
    messages = [f"{one.code} does not count for the group: {why}." for one in people for why in one.excluded]
    messages += [one] if (one := left_out_words(experiment.left_out).strip()) else []
    messages += [words for person in experiment.people for words in _unfinished(person)]
    if experiment.designs > 1:
        messages.append(
            f"The sessions were run with {experiment.designs} different experiment files. Percentages, rules of "
            f"exclusion and the text about the methods are those of the file of {experiment.sessions[0].place.stem}."
        )
    messages += [
        f"{one.name}, {one.percent:g} %: the difference of {counted(one.jnd.bounds, 'participant')} lies beyond the "
        "levels that were tested. Such bounds are not in the mean, which is therefore off to the other side."
        for one in group.conditions
        if one.jnd is not None and one.jnd.bounds
    ]
    parts = [
        "<section>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="lead">Experiment {escape(experiment.name)}: {escape(experiment.task.text)}. {who}.</p>',
        f'<p class="simulated">{escape(words)}</p>' if (words := _simulated_words(experiment)) else "",
        warnings(messages),
    ]
    for percent in dict.fromkeys(one.percent for one in group.conditions):
        figure = group_figure(people, group, percent, experiment.unit)
        if figure:
            parts.append(picture(figure, f"Weber fractions at {percent:g} % correct"))
    if group.conditions:
        heading = _responses_counted(experiment)
        parts.append(f"<h2>Over participants</h2>{_wide(group_table(group, experiment.unit, heading))}")
    if effects:
        heading = "Groups and factors" if any(one.factor == "group" for one in effects) else "Factors"
        parts.append(f"<h2>{heading}</h2>{_wide(effect_table(effects))}")
        parts.append(f'<p class="legend">{_EFFECT_LEGEND}</p>')
    if forms:
        parts.append("<h2>Questionnaires</h2>")
        parts += [_wide(form_table(form, forms)) for form in dict.fromkeys(one.form for one in forms)]
        parts.append(f'<p class="legend">{_FORM_LEGEND}</p>')
    if group.magnitude is not None:
        codes = {one.code for one in people if not one.excluded}
        stimuli = [one for person in experiment.people if person.code in codes for one in estimates_of(person)[0]]
        parts.append(_half(magnitude_figure(group.magnitude, stimuli, experiment.unit), "Power law of the group"))
    parts.append(f'<h2>Methods</h2><p class="methods">{escape(methods(experiment, people, settings))}</p>')
    parts.append(f"<h2>Participants</h2>{_wide(people_table(experiment, people))}")
    links = "".join(f'<a href="#{escape(one.code)}">{escape(one.code)}</a>' for one in people)
    return "\n".join([*parts, f"<nav>{links}</nav>", "</section>"])


def _person_page(experiment: Experiment, person: Person, result: PersonResult) -> str:
    unit, conditions = experiment.unit, list(result.conditions)
    messages = [f"Does not count for the group: {why}." for why in result.excluded]
    messages += _unfinished(person)
    for session in person.sessions:
        for event in session.state.events:
            if event["name"] == SCHEDULED and event.get("outside") in DEVIATIONS:
                why = str(event.get("reason"))[:200]
                messages.append(
                    f"Session {session.place.session} deviates from the schedule ({event['outside']}): {why}"
                )
        friction = session.friction
        if friction is not None and any(change["beyond"] for change in friction["changes"]):
            messages.append(f"Session {session.place.session}: {friction['words']}")
        messages += session.damaged
    messages += [f"{one.name}: {note}" for one in conditions for note in one.notes]
    parts = [
        f'<section id="{escape(result.code)}">',
        f"<h1>{escape(result.code)}</h1>",
        f'<p class="lead">{escape(_lead(person))}</p>',
        _SIMULATED if person.observer is not None else "",
        warnings(messages),
        *_differences(experiment, person, conditions),
    ]
    for percent in dict.fromkeys(one.percent for condition in conditions for one in condition.differences):
        figure = person_figure(result, percent, unit)
        if figure:
            parts.append(f"<h2>Weber fraction</h2>{_half(figure, 'Weber fraction against reference')}")
    if result.magnitude is not None:
        figure = magnitude_figure(result.magnitude, estimates_of(person)[0], unit)
        true = next((one["exponent"] for one in result.truth.values()), None)
        cells = ["power law", *number(result.magnitude.exponent), "" if true is None else f"{true:.3g}"]
        found = _used(["", "exponent", "interval", "true"], [cells])
        parts.append(f"<h2>Magnitude</h2>{found}{_half(figure, 'Power law')}")
    if any(one.settings for one in conditions):
        figure = adjustment_figure(conditions, unit)
        parts.append(f"<h2>Adjustments</h2>{_half(figure, 'Values that were set')}")
    repeated = "<p>No trial was repeated.</p>"
    if result.repeated:
        repeated = table(["why", "attempts"], [[reason, str(count)] for reason, count in result.repeated.items()])
    parts += [
        '<div class="columns">',
        f"<div><h2>Catch trials</h2>{catch_table(result)}</div>",
        f"<div><h2>Repeated</h2>{repeated}</div>",
        "</div>",
    ]
    changed = experiment.task_name == "adjustment" and person.observer is None  # by the participant
    figure = None if changed else stimulus_figure(person.trials(), unit)
    if figure:
        parts.append(f"<h2>Asked, delivered, felt</h2>{picture(figure, 'Stimuli as asked, delivered and felt')}")
    if any(session.trigger_delays for session in person.sessions):
        parts.append(f'<h2>Triggers</h2>{trigger_table(person)}<p class="legend">{_TRIGGER_LEGEND}</p>')
    figure = timing_figure(person.trials(), [one for session in person.sessions for one in session.certificates])
    if figure:
        parts.append(f"<h2>Time</h2>{picture(figure, 'Reaction times and starts of ticks')}")
    return "\n".join([*parts, "</section>"])


def _unfinished(person: Person) -> list[str]:
    """Return a sentence for each session that has not ended, or ended early."""
    messages = []
    for session in person.sessions:
        end = session.state.end
        if end is None:
            messages.append(f"{session.place.stem} has not ended.")
        elif end["reason"] != "completed":
            messages.append(f"{session.place.stem} ended early ({end['reason']}).")
    return messages


def _lead(person: Person) -> str:
    """Return the sentences that describe a participant and the sessions."""
    observer = person.observer
    if observer is not None:
        name = observer.get("name") or f"level {observer.get('level', 1)}"
        others = ", ".join(f"{key} {value}" for key, value in observer.items() if key not in {"name", "level"})
        lead = f"Simulated observer, {name}{f' ({others})' if others else ''}."
    else:
        fields = [f"{key.replace('_', ' ')} {value}" for key, value in person.sessions[0].header["fields"].items()]
        lead = f"{'; '.join(fields)}." if fields else "Nothing is noted of the participant."
    if person.group is not None:
        lead += f" Group {person.group}."
    days = ", ".join(dict.fromkeys(str(session.header["utc"])[:10] for session in person.sessions))
    sessions = counted(len(person.sessions), "session")
    return f"{lead} {sessions} ({days}), {len(person.trials())} trials that count."


def _differences(experiment: Experiment, person: Person, conditions: list[ConditionResult]) -> list[str]:
    """Return the tables of differences and the figures of curves and tracks."""
    unit, parts = experiment.unit, []
    if any(one.differences for one in conditions):
        differences = difference_table(conditions, unit, _responses_counted(experiment))
        parts.append(f"<h2>Just noticeable differences</h2>{_wide(differences)}")
    fitted = [one for one in conditions if one.fit is not None]
    if not fitted:
        return parts
    show = picture if len(fitted) > 1 else _half
    label = _PROPORTIONS.get(experiment.task_name, "proportion correct")
    curves = show(curves_figure(fitted, experiment.axis, unit, label), "Psychometric functions")
    legend = _CURVE_LEGEND + (
        " Diamond: what is true of the simulated observer." if person.observer is not None else ""
    )
    parts.append(f'<h2>Psychometric functions</h2>{curves}<p class="legend">{legend}</p>')
    parts.append(_wide(fit_table(fitted, unit)))
    drifting = [one for one in fitted if one.drift is not None and one.differences]
    if drifting:
        course = (show if len(drifting) > 1 else _half)(drift_figure(drifting, unit), "Threshold over the trials")
        parts.append(f'<h2>Change within the sessions</h2>{course}<p class="legend">{_DRIFT_LEGEND}</p>')
        parts.append(_wide(drift_table(drifting)))
    rows = [
        [condition.name, f"{level:.3g} {unit}".strip(), *number(one.d_prime), *number(one.criterion)]
        for condition in fitted
        for level, one in condition.detectability.items()
    ]
    if rows:
        head = ["condition", "level", "d'", "interval", "criterion", "interval"]
        parts.append(f"<h2>Detectability</h2>{table(head, rows)}")
    tracked = [one for one in fitted if one.procedures]
    if tracked:
        tracks = show(tracks_figure(tracked, unit), "Levels by trial")
        parts.append(f'<h2>Tracks</h2>{tracks}<p class="legend">{_TRACK_LEGEND}</p>')
        parts.append(_wide(procedure_table(tracked, unit)))
    return parts


def _responses_counted(experiment: Experiment) -> str:
    """Return the word for the responses that a percentage counts."""
    return "noticed" if experiment.task_name in _PROPORTIONS else "correct"


def _half(figure: str, words: str) -> str:
    return f'<div class="half">{picture(figure, words)}</div>'


def _wide(html: str) -> str:
    return f'<div class="wide">{html}</div>'


# --- tables ---

_HELD = {True: "yes", False: "no", None: ""}


def number(one: Estimate | None, scale: float = 1.0, form: str = ".3g") -> list[str]:
    """Return the value and the interval as two cells.

    Infinite ends are written as ``open``.
    """
    if one is None:
        return ["", ""]
    sign = {"": "", "above": "> ", "below": "< "}[one.bound]
    low, high = ("open" if math.isinf(end) else format(end * scale, form) for end in (one.low, one.high))
    return [f"{sign}{one.value * scale:{form}}", f"{low} to {high}"]


def with_interval(one: Estimate | None, scale: float = 1.0) -> str:
    """Return the value with its interval in one cell."""
    if one is None:
        return ""
    value, ends = number(one, scale, ".2g")
    return f"{value} ({ends})"


def _used(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table without empty columns."""
    kept = [k for k in range(len(head)) if any(row[k] for row in rows)]
    return table([head[k] for k in kept], [[row[k] for k in kept] for row in rows])


def _heads(unit: str, percent: str) -> list[str]:
    differences = [f"difference{bracket(unit)}", "interval", "Weber fraction [%]", "interval"]
    return ["condition", percent, *differences]


def difference_table(conditions: Sequence[ConditionResult], unit: str, percent: str) -> str:
    """Return the table of just noticeable differences; `percent` is the heading of their percentages."""
    rows = []
    for condition in conditions:
        for one in condition.differences:
            row = [condition.name, f"{one.percent:g} %", *number(one.jnd), *number(one.weber, 100.0)]
            row.append("" if one.true_jnd is None else f"{one.true_jnd:.3g}")
            row.append("" if one.true_weber is None else f"{100.0 * one.true_weber:.3g}")
            rows.append([*row, _HELD[one.holds_truth]])
    return _used([*_heads(unit, percent), f"true{bracket(unit)}", "true [%]", "held"], rows)


def effect_table(effects: Sequence[Effect]) -> str:
    """Return the table of the effects of factors."""
    quantities = {"weber_fraction": "Weber fraction", "jnd": "difference"}
    rows = []
    for one in effects:
        compared = [one.factor, f"{one.second} / {one.first}", f"{one.percent:g} %", quantities[one.quantity]]
        rows.append([*compared, *number(one.ratio), str(one.participants)])
    return table(["factor", "levels", "correct", "quantity", "ratio", "interval", "participants"], rows)


def form_table(form: str, results: Sequence[FormResult]) -> str:
    """Return the table of the scores and answers of a form, with a column for each group and session."""
    own = [one for one in results if one.form == form]
    cells = sorted({(one.group or "", one.session) for one in own})
    several = len({session for _, session in cells}) > 1
    head = [", ".join(filter(None, (group, f"session {session}" if several else ""))) for group, session in cells]
    rows = []
    for entry, name in dict.fromkeys((one.entry, one.name) for one in own):
        found = {(one.group or "", one.session): one for one in own if (one.entry, one.name) == (entry, name)}
        limits = next(iter(found.values())).range
        row = [("score " if entry == "score" else "") + name.replace("_", " ")]
        row.append("" if limits is None else f"{limits[0]:g} to {limits[1]:g}")
        for cell in cells:
            one = found.get(cell)
            spread = "" if one is None or one.sd is None else f" ± {one.sd:.2g}"
            row.append("" if one is None else f"{one.mean:.3g}{spread} [{one.participants}]")
        rows.append(row)
    return _used([form, "range", *(text or "mean" for text in head)], rows)


def fit_table(conditions: Sequence[ConditionResult], unit: str) -> str:
    """Return the table of slope, lapses, goodness of fit and further checks of every condition."""
    head = ["condition", "trials", "exponent", "lapses [%]", "deviance", "p", f"Spearman-Karber{bracket(unit)}"]
    head += [f"second seems more by{bracket(unit)}", "second preferred by [%]"]
    rows = []
    for one in conditions:
        fit = one.fit
        if fit is None:
            continue
        order = ("", "")
        if one.order is not None:
            order = with_interval(one.order.level), with_interval(one.order.preference, 100.0)
        cells = [with_interval(fit.exponent or fit.slope), with_interval(fit.lapse, 100.0)]
        cells += [f"{fit.deviance:.1f}", f"{fit.deviance_p:.2g}", with_interval(one.check), *order]
        rows.append([one.name, str(len(one.rows)), *cells])
    return _used(head, rows)


def drift_table(conditions: Sequence[ConditionResult]) -> str:
    """Return the table of the evidence for a change of the threshold."""
    rows = [
        [
            one.name,
            f"{one.drift.bayes_factor:.2g}",
            "changes" if one.drift.changes else "no evidence of a change",
            *number(one.drift.size, form=".2g"),
        ]
        for one in conditions
        if one.drift is not None
    ]
    head = ["condition", "Bayes factor for a change", "threshold", "spread of its logarithm", "95 % interval"]
    return table(head, rows)


def procedure_table(conditions: Sequence[ConditionResult], unit: str) -> str:
    """Return the table of the procedures' estimates."""
    rows = []
    for condition in conditions:
        for one in condition.procedures:
            kind = f"{one['kind']} {one.get('rule', '')}".strip()
            estimate = "" if one["estimate"] is None else f"{one['estimate']:.3g}"
            reversals = str(len(one["reversals"])) if "reversals" in one else ""
            clamped = str(len(one["clamped"])) if one.get("clamped") else ""
            percent = f"{one['target_percent']:.1f} %"
            rows.append([one["track"], kind, str(one["trials"]), estimate, percent, reversals, clamped])
    head = ["track", "procedure", "trials", f"its estimate{bracket(unit)}", "correct", "reversals", "at an end"]
    return _used(head, rows)


def group_table(group: GroupResult, unit: str, percent: str) -> str:
    """Return the table of means over participants; `percent` as in `difference_table`."""
    truth = any(one.simulated for one in group.conditions)
    head = [*_heads(unit, percent), "between people (CV)", "participants"]
    head += ["true [%]", "intervals that hold it"] if truth else []
    rows = []
    for one in group.conditions:
        jnd, weber = (None if which is None else which.mean for which in (one.jnd, one.weber))
        spread = ["", "0"]
        if one.jnd is not None:
            between = "" if math.isnan(one.jnd.cv_between) else f"{one.jnd.cv_between:.0%}"
            spread = [between, f"{one.jnd.count}" + (f" and {one.jnd.bounds} bounds" if one.jnd.bounds else "")]
        row = [one.name, f"{one.percent:g} %", *number(jnd), *number(weber, 100.0), *spread]
        if truth:
            row.append("" if one.true_weber is None else f"{100.0 * one.true_weber:.3g}")
            row.append(f"{one.held} of {one.simulated}")
        rows.append(row)
    return _used(head, rows)


def people_table(experiment: Experiment, people: Sequence[PersonResult]) -> str:
    """Return the table with a row for every participant."""
    rows = []
    for person, one in zip(experiment.people, people, strict=True):
        trials = sum(len(condition.rows) for condition in one.conditions)
        wrong = f"{one.catches.easy_wrong} of {one.catches.easy}" if one.catches.easy else ""
        covered = [difference.holds_truth for condition in one.conditions for difference in condition.differences]
        held = [each for each in covered if each is not None]
        holding = f"{sum(held)} of {len(held)}" if held else ""
        counts = "no" if one.excluded else "yes"
        repeated = sum(session.state.repeated for session in person.sessions)
        rows.append([one.code, str(trials), wrong, str(repeated), holding, counts])
    head = ["participant", "trials", "easy catch trials wrong", "repeated", "intervals that hold the truth", "counts"]
    return _used(head, rows)


def trigger_table(person: Person) -> str:
    """Return the table of the delays of the triggers over all sessions."""
    delays: dict[str, list[float]] = {}
    for session in person.sessions:
        for event, own in session.trigger_delays.items():
            delays.setdefault(event, []).extend(own)
    rows = []
    for event, own in delays.items():
        ordered = sorted(1e3 * one for one in own)
        quantiles = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.99, 1.0))
        cells = [f"{one:.2f}" for one in (*quantiles, statistics.pstdev(ordered))]
        rows.append([event.replace("_", " "), str(len(own)), *cells])
    return table(["event", "sent", "median [ms]", "99 % [ms]", "longest [ms]", "jitter [ms]"], rows)


def catch_table(result: PersonResult) -> str:
    """Return the table of the catch trials."""
    catches, rows = result.catches, []
    if catches.easy:
        rows.append(
            ["easy ones, wrong", f"{catches.easy_wrong} of {catches.easy}", *number(catches.lapse, 100.0, ".2g")]
        )
    if catches.null:
        phrase = "none at all: second, yes or different"
        rows.append([phrase, f"{catches.null_second} of {catches.null}", *number(catches.preference, 100.0, ".2g")])
    return table(["", "trials", "share [%]", "interval"], rows) if rows else "<p>There were none.</p>"
