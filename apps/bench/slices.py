"""Time measurement: interleaved slices of all candidates, round after round.

The speed of a machine changes from second to second. Candidates that alternate every few milliseconds run under the
same conditions, so the ratio of two slices of a round is reliable although neither time is. The measured quantity is
processor time, which does not include other programs. Results are medians over all rounds. Garbage is collected between
the slices only, because a full collection takes longer than a slice.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

ROUNDS = 200
"""Default number of slices of each candidate."""

_WARM_UP = 3


def measure(candidates: Sequence[Callable[[], object]], rounds: int | None = None) -> NDArray[np.float64]:
    """Return the processor time of every slice, (rounds, candidates) [s], after several warm-up rounds."""
    times = np.empty((_WARM_UP + (rounds or ROUNDS), len(candidates)))
    collecting = gc.isenabled()
    gc.disable()
    try:
        for row in times:
            for i, candidate in enumerate(candidates):
                start = time.thread_time_ns()
                candidate()
                row[i] = (time.thread_time_ns() - start) * 1e-9
                gc.collect(0)
    finally:
        if collecting:
            gc.enable()
    return times[_WARM_UP:]


def repeated(candidate: Callable[[], object], count: int) -> Callable[[], None]:
    """Return a function that calls `candidate` `count` times.

    A single short call would run with cold caches.
    """

    def call() -> None:
        for _ in range(count):
            candidate()

    return call


def compare(times: NDArray[np.float64], references: NDArray[np.float64]) -> dict[str, float]:
    """Return ``ratio`` and ``spread`` of the slices of two candidates, both (rounds,) [s].

    They are the median and the interquartile range of the ratios of all rounds.
    """
    low, median, high = np.percentile(times / references, [25.0, 50.0, 75.0]).tolist()
    return {"ratio": median, "spread": high - low}


def nanoseconds(times: NDArray[np.float64], count: int) -> float:
    """Return the median of `times` [s], each for `count` operations, in nanoseconds per operation."""
    return float(np.median(times)) / count * 1e9
