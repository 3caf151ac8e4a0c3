"""Methods paragraph and other sentences of the report, suitable for a publication."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from apps.experiment.procedures import procedure_settings
from apps.experiment.report.data import Experiment
from apps.experiment.report.results import PersonResult
from apps.experiment.settings import AnalysisSettings
from apps.shared.display import grouped, microseconds
from calibration.psychometric.posterior import LAPSES
from haptics.errors import ConfigurationError

SIMULATED = (
    "Simulated observers gave these answers. They check the method and the analysis; they never stand for people, and "
    "nothing here is a finding about human perception."
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
    parts = (
        _apparatus(experiment),
        _own_friction(experiment),
        timing(experiment),
        _task(experiment),
        _participants(experiment, people),
        _analysis(experiment, settings),
        SIMULATED if experiment.simulated else "",
    )
    return " ".join(part for part in parts if part)


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


def _own_friction(experiment: Experiment) -> str:
    """Return the sentence about the friction measurements of the sessions and their changes."""
    measured = [one for session in experiment.sessions if (one := session.friction) is not None]
    if not measured:
        return ""
    changed = sum(any(change["beyond"] for change in one["changes"]) for one in measured)
    of = f"{len(measured)} of {counted(len(experiment.sessions), 'session')}"
    return (
        f"Its own friction was measured anew before the first block of {of} and compensated as it was then; in "
        f"{changed} it differed from the earlier measurement by more than their 95 % intervals."
    )


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
        return f"{first}. It is {'unfit' if unfit else 'fit'} by its limits."
    return f"{first}. {f'{unfit} of them are unfit' if unfit else 'All are fit'} by their limits."


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
    who = "simulated observer" if experiment.simulated else "participant"
    tests = [sum(len(condition.rows) for condition in one.conditions) for one in people]
    words = f"{counted(len(people), who)} gave {grouped(sum(tests))} answers that count"
    if len(set(tests)) == 1:
        words += f" ({tests[0]} each)"
    catches = sum(one.catches.easy + one.catches.null for one in people)
    words += f", besides {catches} catch trials." if catches else "."
    repeated: Counter[str] = Counter()
    for one in people:
        repeated.update(one.repeated)
    if repeated:
        reasons = _listed([f"{why}: {count}" for why, count in repeated.items()])
        words += f" {counted(sum(repeated.values()), 'attempt')} did not count and were made again ({reasons})."
    excluded = [one for one in people if one.excluded]
    if not excluded:
        return f"{words} None was excluded."
    why = "; ".join(f"{one.code} ({', '.join(one.excluded)})" for one in excluded)
    return f"{words} By the rules of the experiment's file {len(included)} count for the group, without {why}."


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
    return (
        f"Just noticeable differences are read off at {percents} {criterion}, from a "
        f"{_SHAPE_WORDS[settings.shape]}, fitted to all trials ({settings.stimulus} levels; {chance}; lapses with the "
        f"prior Beta({LAPSES.a:g}, {LAPSES.b:g})): medians of the posterior with {interval} credible intervals. Means "
        f"over participants are geometric, with the {interval} interval of Student's t on logarithms."
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural if necessary."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
