"""The command ``haptics bench``: benchmarks, every figure as a ratio to a reference measured in the same run."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time

from apps.answer import Answer

_EVERY = 0.1


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
        width = max(map(len, titles))
        text = "\n".join(f"{name:<{width}}  {title}" for name, title in titles.items())
        return Answer({"benchmarks": {name: {"title": title} for name, title in titles.items()}}, text)
    _require_compiled()
    outcomes = {}
    bar = _Bar()
    try:
        for name, module in modules.items():
            bar.benchmark = name
            outcomes[name] = module.run(bar.show)
    finally:
        bar.clear()
    text = "\n\n".join(f"{name}: {modules[name].TITLE}\n\n{outcome.text}" for name, outcome in outcomes.items())
    error = " ".join(f"{name}: {outcome.error}" for name, outcome in outcomes.items() if outcome.error)
    result = {"benchmarks": {name: outcome.result for name, outcome in outcomes.items()}}
    return Answer(result, text, status=1 if error else 0, error=error)


def _require_compiled() -> None:
    import numba

    from haptics.errors import ConfigurationError

    if numba.config.DISABLE_JIT:
        raise ConfigurationError("NUMBA_DISABLE_JIT is set: the kernels are not compiled, what there is to measure.")


class _Bar:
    """Keeps one line of standard error up to date; silent where that is not a terminal."""

    benchmark = ""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._next = 0.0

    def show(self, done: float, words: str) -> None:
        """Show the share of the benchmark that is done and what is measured now."""
        now = time.monotonic()
        if self._shown and now >= self._next:
            self._next = now + _EVERY
            filled = round(24 * done)
            self._write(f"{self.benchmark} [{'#' * filled}{'.' * (24 - filled)}] {words}")

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            self._write("")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
