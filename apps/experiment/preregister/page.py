"""Preregistration as a Markdown page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from apps.experiment.preregister.facts import Facts

_UNSTATED = "**Not stated yet**: write it into the table `[analysis]` of the file."


def as_markdown(facts: Facts) -> str:
    """Return the preregistration as Markdown."""
    parts = (_head, _hypotheses, _design, _procedure, _trials, _people, _rules, _plan, _random, _file)
    return "\n".join(line for part in parts for line in part(facts))


def _head(facts: Facts) -> Iterator[str]:
    yield f"# Preregistration: {_cell(facts['title'])}"
    yield ""
    yield f"Experiment `{facts['experiment']}`, run by haptics {facts['haptics_version']} from one file. Its SHA-256 is"
    yield f"`{facts['design_sha256']}`; the journal of every session begins with it."
    yield ""


def _hypotheses(facts: Facts) -> Iterator[str]:
    yield from _stated(facts, "Hypotheses", "hypotheses")


def _design(facts: Facts) -> Iterator[str]:
    task, stimulus = facts["task"], facts["stimulus"]
    yield "## Design"
    yield ""
    yield f"- Task: `{task['name']}` ({task['what']})" + (
        "" if task["guess"] is None else f"; guess rate {task['guess']:g}"
    )
    yield f"- What varies: `{stimulus['axis']}`, on a {stimulus['scale']} scale"
    yield f"- Device `{stimulus['device']}`, model `{stimulus['model']}`"
    blind = "does not see condition, level and track until a session has ended" if facts["blind"] else "is not blind"
    yield f"- The experimenter {blind}"
    yield f"- Noted of every participant: {', '.join(facts['fields']) or 'the code'}"
    yield ""
    rows = [
        [one["name"], _plain(one["reference"]), one["tracks"], _settings(one["different"])]
        for one in facts["conditions"]
    ]
    yield from _table(["condition", "reference", "tracks", "different"], rows)


def _procedure(facts: Facts) -> Iterator[str]:
    yield "## Procedure"
    yield ""
    for one in facts["conditions"]:
        yield f"- {_cell(one['name'])}: {_settings(one['procedure'])}"
    yield ""


def _trials(facts: Facts) -> Iterator[str]:
    trials = facts["trials"]
    catch, practice = trials["catch"], trials["practice"]
    yield "## Trials"
    yield ""
    rows = [[one["name"], _span(one["trials"])] for one in facts["conditions"]]
    yield from _table(["condition", "trials of the test"], [*rows, ["all", _span(trials)]])
    yield f"- Catch trials: {catch['null']:.1%} without a difference, {catch['easy']:.1%} with an easy one"
    window = practice["window"]
    told = f"until {practice['correct']} of {window} are right, at most {practice['most']}" if window else "none"
    yield f"- Practice: {told}"
    yield f"- An interval lasts up to {trials['interval']:g} s, the gap {trials['gap']:g} s"
    yield f"- A break of at least {trials['rest']:g} s follows {trials['block']} trials"
    yield f"- Exploration: {_settings(facts['exploration'])}"
    yield ""


def _people(facts: Facts) -> Iterator[str]:
    yield "## Participants"
    yield ""
    count, power = facts["participants"], facts["power"]
    unstated = "**not stated** (--participants N, or --power FILE.json)"
    yield f"Planned: {unstated if count is None else f'{count} participants'}."
    yield ""
    if power is not None:
        told = {
            name: value for name, value in power.items() if isinstance(value, str | int | float) and name != "enough"
        }
        yield f"Power analysis with simulated observers ({_settings(told)}):"
        yield ""
        rows = power["power"]
        names = list(dict.fromkeys(name for row in rows for name in row))
        yield from _table(names, [[_plain(row.get(name)) for name in names] for row in rows])


def _rules(facts: Facts) -> Iterator[str]:
    yield "## Exclusions"
    yield ""
    yield "By the program, before anybody has looked at the answers:"
    yield ""
    yield from (f"- {rule}" for rule in facts["exclusions"])
    yield ""
    yield from _listed(facts, "exclusions")


def _plan(facts: Facts) -> Iterator[str]:
    yield from _stated(facts, "Analysis", "plan")
    further = {
        name: value for name, value in facts["analysis"].items() if name not in ("hypotheses", "exclusions", "plan")
    }
    yield from (f"- {name}: {_cell(_plain(value))}" for name, value in further.items())
    yield from ([""] if further else [])


def _random(facts: Facts) -> Iterator[str]:
    seeds = facts["seeds"]
    yield "## Randomisation"
    yield ""
    yield f"- Seed: {seeds['seed']}"
    yield f"- {seeds['policy']}"
    yield f"- Conditions: {seeds['conditions']}"
    yield f"- {seeds['places']}"
    yield ""


def _file(facts: Facts) -> Iterator[str]:
    longest = max((len(run) for run in re.findall(r"`+", facts["file"])), default=0)
    fence = "`" * max(longest + 1, 3)
    yield "## The file"
    yield ""
    yield f"{fence}toml"
    yield facts["file"].rstrip("\n")
    yield fence
    yield ""


def _stated(facts: Facts, heading: str, name: str) -> Iterator[str]:
    yield f"## {heading}"
    yield ""
    yield from _listed(facts, name)


def _listed(facts: Facts, name: str) -> Iterator[str]:
    value = facts["analysis"].get(name)
    parts = value if isinstance(value, list) else [] if value is None else [value]
    yield from (f"- {_cell(_plain(part))}" for part in parts)
    yield from ([] if parts else [_UNSTATED])
    yield ""


def _table(names: list[str], rows: list[list[Any]]) -> Iterator[str]:
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    yield from (f"| {' | '.join(_cell(str(one)) for one in row)} |" for row in rows)
    yield ""


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in values.items()) or "nothing"


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return f"({_settings(value)})" if value else "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return "; ".join(map(_plain, value)) or "none"
    return "" if value is None else str(value)


def _span(trials: Mapping[str, Any]) -> str:
    least, most = trials["least"], trials["most"]
    return str(least) if least == most else f"{least} to {most}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
