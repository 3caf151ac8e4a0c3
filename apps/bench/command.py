"""The command ``haptics bench``: benchmarks with ratios to a reference measured in the same run."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apps.bench.outcome import CannotMeasure
from apps.shared.command import Answer, listed, select
from apps.shared.terminal import Line, bar
from haptics.errors import ConfigurationError


@dataclass(frozen=True)
class Benchmark:
    """Benchmark.

    Attributes
    ----------
    function : str
        ``module:function`` in `apps.bench`. The function takes a `apps.bench.outcome.Progress` and the options of the
        benchmark, returns an `Answer`, and raises `CannotMeasure` if a requirement is missing.
    title : str
        Description in ``--list``.
    default : dict or None
        Options with which it runs if no benchmark is named; None if it runs only if named.
    """

    function: str
    title: str
    default: dict[str, Any] | None = field(default_factory=dict)


BENCHMARKS: dict[str, Benchmark] = {
    "kernel": Benchmark(
        "kernel:run", "time of a step of each element in a compiled loop, as a ratio to the same loop in C"
    ),
    "loop": Benchmark("simulation:run_loop", "time of a tick of the whole loop, as a ratio to a step of its element"),
    "mujoco": Benchmark(
        "simulators:run_mujoco",
        "exact friction as a callback in MuJoCo, beside MuJoCo's own: creep, sliding force, time of a step as a ratio",
    ),
    "network": Benchmark(
        "network:run",
        "contacts that one processor core simulates in a tick of 1 ms, as a ratio to contacts alone in C",
    ),
    "quest": Benchmark(
        "simulation:run_quest", "time of a trial of QUEST+, as a ratio to the same choice with whole arrays of NumPy"
    ),
    "fit": Benchmark(
        "simulation:run_fit",
        "a simulated person with 60 trials of QUEST+ and a fit, as a ratio to 60 trials of QUEST+",
    ),
    "sweep": Benchmark("simulation:run_sweep", "sessions of a sweep on all processors, as a ratio to one of them"),
    "servo": Benchmark(
        "servo:run",
        "punctuality of the servo, as ratios to cyclictest in alternating slices, with and without a live view",
        {"duration": 8.0},
    ),
    "soak": Benchmark(
        "soak:run",
        "one long session: no tick lost, memory flat, replay bit-exact (only if named; an hour by default)",
        None,
    ),
    "hours": Benchmark(
        "hours:run",
        "memory and time of every command against the length of a recording (only if named; up to an hour by default)",
        None,
    ),
    "stage": Benchmark("stage:run", "time of a frame of the stage, as a ratio to a window that is only cleared"),
    "stream": Benchmark(
        "stream:run",
        "punctuality of the servo while its ticks are streamed to a client, as ratios to itself without "
        "(only if named)",
        None,
    ),
    "triggers": Benchmark(
        "triggers:run",
        "delay of the codes of experiments over a pseudo terminal, and punctuality of the servo as a ratio to none "
        "(only if named)",
        None,
    ),
    "script": Benchmark(
        "script:run",
        "punctuality of the servo beside scripts that block, compute or are stopped, as ratios to none; time to the "
        "safe output when a script ends; delay of random changes (only if named)",
        None,
    ),
}
"""Benchmarks by name, in the order of execution."""


@dataclass(frozen=True)
class Option:
    """Option of some benchmarks, which check its value.

    Attributes
    ----------
    name, metavar : str
        ``--name METAVAR``.
    kind : type
        Type of the value.
    takers : tuple of str
        Benchmarks that accept it.
    text : str
        Help text.
    """

    name: str
    metavar: str
    kind: type
    takers: tuple[str, ...]
    text: str


_TURNS = ("servo", "stream", "triggers", "script")
"""Benchmarks with real-time slices."""

_LONG = ("soak", "hours")
"""Benchmarks with long recordings."""

OPTIONS = (
    Option(
        "duration",
        "S",
        float,
        (*_TURNS, *_LONG),
        "length of the whole measurement (80), of the soak or the longest recording (3600)",
    ),
    Option("rate", "HZ", float, (*_TURNS, *_LONG), "servo rate (1000)"),
    Option("slice", "S", float, _TURNS, "length of one slice of each candidate (10, or what fits)"),
    Option("scheduling", "CLASS", str, _TURNS, "auto, fifo or other, for both candidates (auto)"),
    Option("cpu", "N", int, _TURNS, "the processor that both candidates stay on (any)"),
    Option("stream", "KIND", str, ("stream",), "in turns with none: udp, websocket or both (both)"),
    Option("changes", "N", int, ("script",), "number of random changes of the settings (1000)"),
    Option(
        "view",
        "WHEN",
        str,
        ("servo",),
        "with a live view: on, off, both; stage: with it and the stage, and with neither (both)",
    ),
    Option("device", "NAME", str, _LONG, "backend name (virtual-joystick)"),
    Option("model", "NAME", str, _LONG, "friction model (the one that suits the device)"),
    Option("record", "DIR", str, _LONG, "folder of the recordings; those of the soak are kept"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="benchmarks to run; default: all short ones; see --list"
    )
    parser.add_argument("--list", action="store_true", help="list the names and measured quantities")
    parser.add_argument(
        "--history",
        metavar="FILE",
        type=Path,
        help=("append the results to this file, and compare them with its earlier ratios"),
    )
    for option in OPTIONS:
        takers = ", ".join(option.takers)
        parser.add_argument(
            f"--{option.name}", metavar=option.metavar, type=option.kind, help=f"{takers}: {option.text}"
        )


def run(options: argparse.Namespace) -> Answer:
    """Run the requested benchmarks."""
    named = select("benchmark", options.names, BENCHMARKS) if options.names else []
    if options.list:
        titles = {name: BENCHMARKS[name].title for name in named or BENCHMARKS}
        entries = {name: {"title": title} for name, title in titles.items()}
        return Answer({"benchmarks": entries}, listed(titles))
    given = options_by_benchmark(options, named)
    if not named:
        given = {name: benchmark.default for name, benchmark in BENCHMARKS.items() if benchmark.default is not None}
    import numba

    if numba.config.DISABLE_JIT:
        raise ConfigurationError("NUMBA_DISABLE_JIT is set: kernels are not compiled, so there is nothing to measure.")
    outcomes = {}
    with Line() as line:
        for name, benchmark_options in given.items():
            try:
                outcomes[name] = load(name)(
                    lambda share, words, name=name: line.show(f"{name} {bar(share)} {words}"), **benchmark_options
                )
            except CannotMeasure as error:
                if named:
                    raise
                outcomes[name] = Answer({"left_out": str(error)}, f"left out: {error}")
    text = "\n\n".join(f"{name}: {BENCHMARKS[name].title}\n\n{outcome.text}" for name, outcome in outcomes.items())
    doubts = " ".join(f"{name}: {outcome.error}" for name, outcome in outcomes.items() if outcome.error)
    results = {name: outcome.result for name, outcome in outcomes.items()}
    own = results[named[0]] if len(named) == 1 else {}
    result: dict[str, Any] = {**own, "benchmarks": results}
    if options.history is not None:
        from apps.bench.history import append, describe, entry, lines_of

        before = lines_of(options.history)
        append(options.history, entry(results))
        result |= {"history": str(options.history), "runs": len(before) + 1}
        text += f"\n\n{options.history}: {len(before) + 1} runs\n\n{describe(before, results)}"
    return Answer(result, text, status=1 if doubts else 0, error=doubts)


def options_by_benchmark(options: argparse.Namespace, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the options given to each of the benchmarks `names`.

    Raises
    ------
    ConfigurationError
        If an option is accepted by none of them, or no benchmark was named.
    """
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    for option in OPTIONS:
        value = getattr(options, option.name)
        if value is None:
            continue
        takers = [name for name in names if name in option.takers]
        if not takers:
            raise ConfigurationError(
                f"--{option.name} goes with the benchmark {' or '.join(option.takers)} only: "
                + (f"{', '.join(names)} cannot use it." if names else f"haptics bench {option.takers[0]} ...")
            )
        for name in takers:
            found[name][option.name] = value
    return found


def load(name: str) -> Callable[..., Answer]:
    """Import the module of a benchmark and return its function."""
    module, function = BENCHMARKS[name].function.split(":")
    loaded: Callable[..., Answer] = getattr(importlib.import_module(f"apps.bench.{module}"), function)
    return loaded
