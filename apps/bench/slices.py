"""How time is measured: a slice of one candidate, a slice of the next, and so on, round after round.

A machine changes its speed from second to second. Candidates that take turns every few milliseconds all meet the same
machine, so that the ratio of two slices of one round holds where neither time alone would. What counts is processor
time, which other programs on the machine do not lengthen, and the medians over all rounds. Garbage is collected between
the slices only: all of it takes longer than a slice, and would count for whoever was its turn.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROUNDS = 200
"""Slices of each candidate, unless somebody asks for another number."""

_WARM_UP = 3


@dataclass(frozen=True)
class Ratio:
    """How many times longer one candidate takes than another.

    Attributes
    ----------
    median : float
        Median of the ratios of all rounds.
    spread : float
        Interquartile range of these ratios.
    """

    median: float
    spread: float


def measure(candidates: Sequence[Callable[[], object]], rounds: int | None = None) -> NDArray[np.float64]:
    """Return the processor time of every slice, (rounds, candidates) [s]; a few rounds before that do not count."""
    times = np.empty((_WARM_UP + (rounds or ROUNDS), len(candidates)))
    with _no_garbage_collected():
        for row in times:
            for i, candidate in enumerate(candidates):
                start = time.thread_time_ns()
                candidate()
                row[i] = (time.thread_time_ns() - start) * 1e-9
                gc.collect(0)
    return times[_WARM_UP:]


@contextmanager
def _no_garbage_collected() -> Iterator[None]:
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def repeated(candidate: Callable[[], object], count: int) -> Callable[[], None]:
    """Return a call that calls `candidate` so often: a short one is else measured cold, after the others."""

    def call() -> None:
        for _ in range(count):
            candidate()

    return call


def compare(times: NDArray[np.float64], references: NDArray[np.float64]) -> Ratio:
    """Return the ratio of the slices of one candidate to those of another, both (rounds,) [s]."""
    low, median, high = np.percentile(times / references, [25.0, 50.0, 75.0])
    return Ratio(float(median), float(high - low))


def nanoseconds(times: NDArray[np.float64], count: int) -> float:
    """Return the median of `times` [s], each for `count` things, as nanoseconds for one."""
    return float(np.median(times)) / count * 1e9
