"""The command ``haptics bench``: benchmarks, every figure as a ratio to a reference measured in the same run."""

from __future__ import annotations

import argparse
import functools

from apps.answer import Answer
from apps.catalogue import listed
from apps.progress import Line, bar


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="which ones; default: all; see --list")
    parser.add_argument("--list", action="store_true", help="list the names and what is measured")


def run(options: argparse.Namespace) -> Answer:
    """Run the benchmarks asked for."""
    from apps.bench.registry import chosen, load

    modules = {name: load(name) for name in chosen(options.names)}
    if options.list:
        titles = {name: module.TITLE for name, module in modules.items()}
        return Answer({"benchmarks": {name: {"title": title} for name, title in titles.items()}}, listed(titles))
    _require_compiled()
    outcomes = {}
    with Line() as line:
        for name, module in modules.items():
            outcomes[name] = module.run(functools.partial(_show, line, name))
    text = "\n\n".join(f"{name}: {modules[name].TITLE}\n\n{outcome.text}" for name, outcome in outcomes.items())
    error = " ".join(f"{name}: {outcome.error}" for name, outcome in outcomes.items() if outcome.error)
    result = {"benchmarks": {name: outcome.result for name, outcome in outcomes.items()}}
    return Answer(result, text, status=1 if error else 0, error=error)


def _show(line: Line, benchmark: str, share: float, words: str) -> None:
    line.show(f"{benchmark} {bar(share)} {words}")


def _require_compiled() -> None:
    import numba

    from haptics.errors import ConfigurationError

    if numba.config.DISABLE_JIT:
        raise ConfigurationError("NUMBA_DISABLE_JIT is set: the kernels are not compiled, what there is to measure.")
