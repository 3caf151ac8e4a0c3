"""Many simulated people, by any executor of `concurrent.futures`: the same numbers, however many work on them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, as_completed

import numpy as np
from numpy.typing import NDArray

from apps.experiment.power.people import Study, simulate_people

Array = NDArray[np.float64]

_PORTION = 20
"""People in a job: some tenths of a second."""


def simulate_pool(
    study: Study,
    people: int,
    *,
    executor: Executor | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Array:
    """Return what `people` simulated persons came to, as `simulate_people`.

    Parameters
    ----------
    study : Study
        What they do.
    people : int
        How many; the first ones are the same for every number.
    executor : Executor, optional
        Runs the jobs; threads or processes, here or elsewhere. Without it they run one after the other.
    progress : callable
        Takes the share that is done.
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
    except BaseException:  # Ctrl-C, too: what has not begun is not begun
        for future in waiting:
            future.cancel()
        raise
    return found
