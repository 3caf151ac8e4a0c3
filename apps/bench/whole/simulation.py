"""Benchmark ``simulation``: offline sessions of 2 s, many in one call compared with one by one."""

from __future__ import annotations

import numpy as np

from apps.bench.outcome import Outcome, Progress, table
from apps.bench.slices import compare, measure
from apps.bench.whole.sessions import MANY, alone, together

TITLE = "time of a session of 2 s made in a batch, as a ratio to one made alone, with a trace"

DURATION = 2.0
"""Duration of a session [s]."""

_ROUNDS = 20


def run(progress: Progress) -> Outcome:
    """Measure both."""
    progress(0.0, f"{MANY} sessions at a time")
    times = measure([together(DURATION), alone(DURATION)], _ROUNDS) / MANY
    ratio = compare(times[:, 0], times[:, 1])
    own, reference = np.median(times, axis=0)
    row = {
        "ms_per_session": float(own) * 1e3,
        "reference_ms_per_session": float(reference) * 1e3,
        "ratio": ratio.median,
        "spread": ratio.spread,
        "real_time_factor": DURATION / float(own),
    }
    heading = ("ms/session", "alone ms/session", "ratio", "spread", "times real time")
    return Outcome({"rows": [row]}, table([heading, list(row.values())]))
