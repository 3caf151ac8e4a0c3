"""Parallel simulation of observers, with results independent of the number of workers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, as_completed

import numpy as np
from numpy.typing import NDArray

from apps.experiment.power.people import Study, simulate_people

Array = NDArray[np.float64]

_PORTION = 20
"""Observers in a job, which takes some tenths of a second."""


def simulate_pool(
    study: Study,
    people: int,
    *,
    executor: Executor | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Array:
    """Return the results of `people` simulated observers, like `simulate_people`.

    Parameters
    ----------
    study : Study
        The study.
    people : int
        Number of observers. An observer does not depend on the total number.
    executor : Executor, optional
        Executor of the jobs. Without it they run sequentially.
    progress : callable
        Function that takes the completed fraction.
    """
    jobs = [(first, min(_PORTION, people - first)) for first in range(0, people, _PORTION)]
    found = np.empty((people, len(study.arms), 3))
    if executor is None:
        for first, count in jobs:
            found[first : first + count] = simulate_people(study, first, count)
            progress((first + count) / people)
        return found
    waiting = {executor.submit(simulate_people, study, first, count): (first, count) for first, count in jobs}
    try:
        for done, future in enumerate(as_completed(waiting), 1):
            first, count = waiting[future]
            found[first : first + count] = future.result()
            progress(done / len(jobs))
    except BaseException:  # also on Ctrl-C: cancel the jobs that have not started
        for future in waiting:
            future.cancel()
        raise
    return found
