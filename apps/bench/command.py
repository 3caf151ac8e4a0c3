"""The command ``haptics bench``: benchmarks with ratios to a reference measured in the same run."""

from __future__ import annotations

import argparse
import functools
from dataclasses import replace
from pathlib import Path

from apps.bench import options as passed_on
from apps.bench.outcome import CannotMeasure, Outcome
from apps.shared.command import Answer, listed
from apps.shared.terminal import Line, bar


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="benchmarks to run; default: all short ones; see --list"
    )
    parser.add_argument("--list", action="store_true", help="list the names and what is measured")
    parser.add_argument(
        "--history", metavar="FILE", type=Path, help="add the results to this file, and show its ratios beside them"
    )
    passed_on.add(parser)


def run(options: argparse.Namespace) -> Answer:
    """Run the requested benchmarks."""
    from apps.bench.registry import UNASKED, chosen, load

    named = chosen(options.names) if options.names else []
    if options.list:
        titles = {name: load(name).TITLE for name in named or chosen(())}
        return Answer({"benchmarks": {name: {"title": title} for name, title in titles.items()}}, listed(titles))
    given = passed_on.options_by_benchmark(options, named)
    _require_compiled()
    outcomes = {}
    with Line() as line:
        for name in named or UNASKED:
            try:
                benchmark_options = given[name] if named else UNASKED[name]
                outcomes[name] = load(name).run(functools.partial(_show, line, name), **benchmark_options)
            except CannotMeasure as error:
                if named:
                    raise
                outcomes[name] = Outcome({"left_out": str(error)}, f"left out: {error}")
    answer = _answer(outcomes, alone=len(named) == 1)
    return answer if options.history is None else _remembered(answer, options.history)


def _answer(outcomes: dict[str, Outcome], *, alone: bool) -> Answer:
    """Combine the outcomes.

    With `alone`, the result of the benchmark is also at the top level.
    """
    from apps.bench.registry import load

    text = "\n\n".join(f"{name}: {load(name).TITLE}\n\n{outcome.text}" for name, outcome in outcomes.items())
    error = " ".join(f"{name}: {outcome.error}" for name, outcome in outcomes.items() if outcome.error)
    results = {name: outcome.result for name, outcome in outcomes.items()}
    own = next(iter(results.values())) if alone else {}
    return Answer({**own, "benchmarks": results}, text, status=1 if error else 0, error=error)


def _remembered(answer: Answer, path: Path) -> Answer:
    """Append the results to the history at `path`, and compare them with the earlier runs."""
    from apps.bench.history import append, describe, entry, lines_of

    before, results = lines_of(path), answer.result["benchmarks"]
    append(path, entry(results))
    text = f"{answer.text}\n\n{path}: {len(before) + 1} runs\n\n{describe(before, results)}"
    return replace(answer, result={**answer.result, "history": str(path), "runs": len(before) + 1}, text=text)


def _show(line: Line, benchmark: str, share: float, words: str) -> None:
    line.show(f"{benchmark} {bar(share)} {words}")


def _require_compiled() -> None:
    import numba

    from haptics.errors import ConfigurationError

    if numba.config.DISABLE_JIT:
        raise ConfigurationError("NUMBA_DISABLE_JIT is set: kernels are not compiled, so there is nothing to measure.")
