"""The benchmarks by name. A module is imported when its benchmark is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Protocol, cast

from apps.bench.outcome import Outcome, Progress
from haptics.settings import unknown

BENCHMARKS: dict[str, str] = {
    "kernel": "kernel",
    "network": "network",
}
"""Name to the module of `apps.bench` that has its ``TITLE`` and its ``run``, in the order in which all are run."""


class Benchmark(Protocol):
    """What the module of a benchmark has."""

    TITLE: str

    def run(self, progress: Progress) -> Outcome:
        """Measure."""


def chosen(names: Iterable[str]) -> list[str]:
    """Return the benchmarks that `names` ask for, each once, in the order of asking; all for none.

    Raises
    ------
    ConfigurationError
        On an unknown name.
    """
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        if name not in BENCHMARKS:
            raise unknown("benchmark", name, BENCHMARKS)
    return wanted or list(BENCHMARKS)


def load(name: str) -> Benchmark:
    """Import the module of a benchmark."""
    return cast(Benchmark, importlib.import_module(f"apps.bench.{BENCHMARKS[name]}"))
