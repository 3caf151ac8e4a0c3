"""Registry of the benchmarks by name.

The module of a benchmark is imported on demand.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any, Protocol, cast

from apps.bench.outcome import Outcome, Progress
from apps.shared.command import select

BENCHMARKS: dict[str, str] = {
    "kernel": "kernel",
    "loop": "whole.loop",
    "simulation": "whole.simulation",
    "mujoco": "rubbing",
    "network": "network",
    "quest": "quest",
    "fit": "whole.fit",
    "sweep": "whole.sweep",
    "servo": "live.servo",
    "soak": "live.soak",
    "hours": "hours",
    "stage": "live.stage",
    "stream": "live.stream",
}
"""Name to the module of `apps.bench` with its ``TITLE`` and ``run``, in the order of execution."""

UNASKED: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("kernel", "loop", "simulation", "mujoco", "network", "quest", "fit", "sweep")},
    "servo": {"duration": 8.0},
    "stage": {},
}
"""Benchmarks that run if none is named, with their options."""


class Benchmark(Protocol):
    """Interface of the module of a benchmark."""

    TITLE: str

    def run(self, progress: Progress, **options: Any) -> Outcome:
        """Run the benchmark.

        Raise `apps.bench.outcome.CannotMeasure` if a requirement is missing.
        """


def chosen(names: Iterable[str]) -> list[str]:
    """Return the requested benchmarks; see `apps.shared.command.select`."""
    return select("benchmark", names, BENCHMARKS)


def load(name: str) -> Benchmark:
    """Import and return the module of a benchmark."""
    return cast(Benchmark, importlib.import_module(f"apps.bench.{BENCHMARKS[name]}"))
