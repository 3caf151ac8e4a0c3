"""Command ``haptics experiment power``: estimate the number of participants that an experiment needs."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.shared.answer import Answer
from apps.shared.progress import Line, bar
from apps.shared.words import wrapped
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.experiment.design import Design
    from apps.experiment.power.people import Array, Study
    from apps.experiment.power.settings import PowerSettings

STATEMENT = (
    "Simulated observers answered, not people. The plan holds as far as people's acuity, its spread, their lapses and "
    "the effect are as assumed; it is no evidence about people."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("file", metavar="FILE.toml", type=Path, help="the experiment; its table power is the question")
    parser.add_argument("--ratio", metavar="R", type=float, help="effect to be found, in place of power.ratio")
    parser.add_argument("--people", metavar="N", type=int, help="simulate so many people, in place of power.people")
    parser.add_argument(
        "--participants", metavar="N,N,...", help="numbers of participants to try, in place of power.participants"
    )
    parser.add_argument("--seed", metavar="N", type=int, help="seed of the simulation, in place of power.seed")
    parser.add_argument("--workers", metavar="N", type=int, default=0, help="processes; default: one a processor")
    parser.add_argument(
        "--executor", choices=("processes", "threads"), default="processes", help="what simulates people here"
    )
    parser.add_argument("--cluster", metavar="ADDRESS|local", help="a scheduler of Dask's, or one started here")


def run(options: argparse.Namespace) -> Answer:
    """Simulate observers and estimate the power."""
    from apps.experiment.power.study import outcome

    if options.workers < 0:
        raise ConfigurationError(f"--workers {options.workers}: must be at least 0; 0 is one a processor.")
    design, settings, study, reaction_time = _read(options)
    start = time.monotonic()
    results = _simulated(study, settings.people, options)
    seconds = time.monotonic() - start
    result = outcome(design, study, settings, results, reaction_time)
    result |= {"seconds": seconds, "statement": STATEMENT}
    return Answer(result, describe(result))


def _read(options: argparse.Namespace) -> tuple[Design, PowerSettings, Study, float]:
    """Read the experiment file.

    Options override its table ``power``.
    """
    from apps.experiment.design import Source, design_of
    from apps.experiment.observers import ObserverSettings
    from apps.experiment.power.settings import PowerSettings
    from apps.experiment.power.study import make_study
    from haptics.settings import build

    source = Source.read(options.file)
    design = design_of(source)
    given = {name: getattr(options, name) for name in ("ratio", "people", "seed")}
    given = {name: value for name, value in given.items() if value is not None}
    if options.participants is not None:
        given["participants"] = _numbers(options.participants)
    with source.telling("power") if not given else contextlib.nullcontext():
        settings = build(PowerSettings, {**source.tables.get("power", {}), **given}, "power")
    observer = source.tables.get("observer", {})
    with source.telling("observer"):
        reaction_time = build(ObserverSettings, observer, "observer").reaction_time
    with source.telling("power"):
        return design, settings, make_study(design, settings, observer), reaction_time


def _numbers(text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",")]
    except ValueError as error:
        raise ConfigurationError(
            f"--participants {text}: must be whole numbers with commas, such as 8,12,16."
        ) from error


def _simulated(study: Study, people: int, options: argparse.Namespace) -> Array:
    """Simulate the observers in parallel and show the progress."""
    from concurrent.futures import BrokenExecutor

    from apps.experiment.power.pool import simulate_pool
    from apps.shared.workers import workers

    with Line() as line:

        def show(share: float) -> None:
            line.show(f"{bar(share)} {round(share * people)} of {people} simulated people")

        if options.workers == 1 and not options.cluster:
            return simulate_pool(study, people, progress=show)
        try:
            with workers(options.cluster or options.executor, options.workers) as (executor, _):
                return simulate_pool(study, people, executor=executor, progress=show)
        except BrokenExecutor as error:
            raise ConfigurationError(
                "a worker has died, perhaps for want of memory: take fewer of them, such as --workers 1."
            ) from error


def describe(result: dict[str, Any]) -> str:
    """Return the result of the power analysis as text."""
    names = " and ".join(repr(name) for name in result["trials"])
    asked = {
        "difference": f"how often {names} are told apart, their Weber fractions having the ratio {result['ratio']:g}",
        "precision": f"how often {names} is known within {result['precision']:.0%}",
    }[result["question"]]
    trials = " + ".join(f"{count:.0f}" for count in result["trials"].values())
    head = [
        f"{result['experiment']}: {asked}",
        f"{result['people']} simulated people with {trials} trials each, {result['seconds']:.1f} s; recovered "
        f"{result['found']:.3g}, in truth {result['truth']:.3g}; {result['left_out']} without a threshold",
        f"a participant takes {result['minutes']:.0f} min at most",
        "",
        "participants  power  95 % interval  result known within",
    ]
    rows = [
        f"{row['participants']:>12}  {row['power']:>5.2f}  {row['low']:.2f} to {row['high']:.2f}   "
        f"{row['half_width']:>7.0%}"
        for row in result["power"]
    ]
    return "\n".join([*map(wrapped, head), *rows, "", *map(wrapped, (*_advice(result), STATEMENT))])


def _advice(result: dict[str, Any]) -> Iterator[str]:
    """Yield the conclusions from the power analysis."""
    if result["enough"] is None:
        yield f"None of these numbers has a power of {result['wanted']:g}: take more participants or trials."
    else:
        yield f"{result['enough']} participants are enough for a power of {result['wanted']:g}."
    if result["left_out"] > _MANY * result["people"]:
        yield (
            f"Of {result['left_out'] / result['people']:.0%} of the people only a bound is known at a proportion of "
            f"{result['proportion']:g}. They are left out, which makes the plan doubtful: read thresholds off where "
            "the procedure presents its trials (power.proportion), or give it more trials or other levels."
        )


_MANY = 0.05
"""Fraction of observers without a threshold above which a warning is given."""
