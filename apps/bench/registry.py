"""The benchmarks by name. A module is imported when its benchmark is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any, Protocol, cast

from apps import catalogue
from apps.bench.outcome import Outcome, Progress

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
"""Name to the module of `apps.bench` that has its ``TITLE`` and its ``run``, in the order in which all are run."""

UNASKED: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("kernel", "loop", "simulation", "mujoco", "network", "quest", "fit", "sweep")},
    "servo": {"duration": 8.0},
    "stage": {},
}
"""Those that are run if none is named, with the options that they are given then."""


class Benchmark(Protocol):
    """What the module of a benchmark has."""

    TITLE: str

    def run(self, progress: Progress, **options: Any) -> Outcome:
        """Measure; raise `apps.bench.outcome.CannotMeasure` where something is missing for it."""


def chosen(names: Iterable[str]) -> list[str]:
    """Return the benchmarks that `names` ask for; see `apps.catalogue.chosen`."""
    return catalogue.chosen("benchmark", names, BENCHMARKS)


def load(name: str) -> Benchmark:
    """Import the module of a benchmark."""
    return cast(Benchmark, importlib.import_module(f"apps.bench.{BENCHMARKS[name]}"))
