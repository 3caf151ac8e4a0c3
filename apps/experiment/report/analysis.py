"""Analysis of a participant: fits for each task, and the true parameters of simulated observers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from apps.experiment.journal.tables import Row
from apps.experiment.observers import make_observer
from apps.experiment.procedures import make_procedure, person_seed, procedure_settings, trial_seed
from apps.experiment.procedures.settings import StaircaseSettings
from apps.experiment.report.results import CatchResult, ConditionResult, PersonResult
from apps.experiment.report.sessions import Experiment, Person
from apps.experiment.report.settings import AnalysisSettings
from apps.experiment.report.tasks import adjusted, answered_words, chosen
from calibration.psychometric import Magnitude, magnitude_exponent, proportion
from haptics.errors import ConfigurationError

_USUAL_ERRORS = 0.2
"""Default fraction of easy catch trials that may be wrong."""

Truth = Mapping[str, Any]


def analyse(experiment: Experiment, person: Person, settings: AnalysisSettings) -> PersonResult:
    """Return the results of a participant."""
    catches = catch_trials(person, settings.probability)
    truth = {name: _truth(experiment, person, reference) for name, reference in conditions_of(person).items()}
    found = [
        _condition(experiment, person, name, reference, settings, truth[name])
        for name, reference in conditions_of(person).items()
    ]
    return PersonResult(
        person.code,
        tuple(found),
        catches,
        _magnitude(experiment, person, settings),
        {name: one for name, one in truth.items() if one},
        tuple(_exclusions(experiment, catches, person)),
        repeated_trials(person),
    )


def conditions_of(person: Person) -> dict[str, float]:
    """Return the conditions of a participant's trials with their references, in order."""
    found = {str(row["condition"]): float(row["reference"] or 0.0) for row in person.tested}
    return dict(sorted(found.items(), key=lambda one: (one[1], one[0])))


def _condition(
    experiment: Experiment, person: Person, name: str, reference: float, settings: AnalysisSettings, truth: Truth
) -> ConditionResult:
    rows = [row for row in person.tested if str(row["condition"]) == name]
    procedures = tuple(_procedures(experiment, person, name))
    if experiment.task_name == "estimation":
        return ConditionResult(name, reference, rows)
    if experiment.task_name == "adjustment":
        return adjusted(name, reference, rows, settings, truth)
    if experiment.task.guess is None:
        null = [row for row in person.of_kind("catch-null") if str(row["condition"]) == name]
        return answered_words(name, reference, rows, null, experiment.task_name, settings, procedures)
    return chosen(name, reference, rows, experiment.task.guess, settings, procedures, truth)


def catch_trials(person: Person, probability: float) -> CatchResult:
    """Return the results of the catch trials."""
    easy, null = person.of_kind("catch-easy"), person.of_kind("catch-null")
    wrong = sum(not row["correct"] for row in easy)
    second = sum(str(row["response"]) in {"2", "yes", "different"} for row in null)
    return CatchResult(
        len(easy),
        wrong,
        len(null),
        second,
        proportion(wrong, len(easy), probability) if easy else None,
        proportion(second, len(null), probability) if null else None,
    )


def repeated_trials(person: Person) -> dict[str, int]:
    """Return the numbers of attempts that do not count, by reason."""
    reasons: Counter[str] = Counter()
    for row in person.rows:
        if row["outcome"] != "ok":
            reasons.update(str(row["reasons"] or row["outcome"]).split("; "))
        elif not row["counts"]:
            reasons["asked for by the participant"] += 1
    return dict(sorted(reasons.items()))


def _exclusions(experiment: Experiment, catches: CatchResult, person: Person) -> list[str]:
    """Return the reasons for which the experiment's rules exclude a participant from the group."""
    most = float(experiment.table("catch").get("most_errors", _USUAL_ERRORS))
    found = []
    if catches.easy and catches.easy_wrong / catches.easy > most:
        found.append(
            f"{catches.easy_wrong} of {catches.easy} easy catch trials were answered wrongly, more than {most:.0%}"
        )
    if not person.tested:
        found.append("no trial counts")
    return found


def _truth(experiment: Experiment, person: Person, reference: float) -> Truth:
    """Return the true parameters of a simulated observer, empty for a participant.

    The observer is constructed from the settings in the journal and the seed, as in the session.
    """
    header = person.sessions[0].header
    if header["observer"] is None:
        return {}
    table = {key: value for key, value in header["observer"].items() if key != "name"}
    seed = person_seed(int(header["seed"]), person.code)
    return make_observer(table, seed=seed).truth(experiment.axis, reference)


def _procedures(experiment: Experiment, person: Person, condition: str) -> list[dict[str, Any]]:
    """Return the report of each track's procedure after replaying its answers."""
    table = _procedure_table(experiment, condition)
    if table.get("kind") not in {"staircase", "quest+"}:
        return []
    found = []
    for session in person.sessions:
        rows = [row for row in session.counted if row["kind"] == "test" and str(row["condition"]) == condition]
        for track in sorted({str(row["track"]) for row in rows}):
            own = [row for row in rows if str(row["track"]) == track]
            found.append({"session": session.place.session, "track": track, **_replayed(experiment, table, own)})
    return found


def _procedure_table(experiment: Experiment, condition: str) -> dict[str, Any]:
    given = experiment.design.get("conditions")
    named = given if isinstance(given, list) else []
    own = next((one.get("procedure") or {} for one in named if str(one.get("name")) == condition), {})
    return {**experiment.table("procedure"), **own}


def staircase_percent(experiment: Experiment) -> list[float]:
    """Return the target percentages of the staircases of an experiment [%].

    A staircase stays near its target, so that thresholds at other percentages are often outside its levels.
    """
    settings = [procedure_settings(table) for table in _tables(experiment) if table.get("kind") == "staircase"]
    return sorted({round(100.0 * float(one.target), 2) for one in settings if isinstance(one, StaircaseSettings)})


def _tables(experiment: Experiment) -> list[dict[str, Any]]:
    names = {str(row["condition"]) for session in experiment.sessions for row in session.rows}
    return [_procedure_table(experiment, name) for name in sorted(names)]


def _replayed(experiment: Experiment, table: dict[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    procedure = make_procedure(table, guess=experiment.task.guess or 0.0, seed=trial_seed(0, 0, 0, 0, 0))
    for row in rows:
        procedure.add_outcome(float(row["level"]), bool(row["correct"]))
    return procedure.report()


def _magnitude(experiment: Experiment, person: Person, settings: AnalysisSettings) -> Magnitude | None:
    if experiment.task_name != "estimation":
        return None
    stimuli, estimates = estimates_of(person)
    try:
        return magnitude_exponent(stimuli, estimates, probability=settings.probability)
    except ConfigurationError:
        return None  # too few different stimuli; the trials are still reported


def estimates_of(person: Person) -> tuple[list[float], list[float]]:
    """Return the stimuli and the responses of magnitude estimation."""
    rows = [row for row in person.tested if row["response"] is not None and row["asked_1"]]
    return [float(row["asked_1"]) for row in rows], [float(row["response"]) for row in rows]
