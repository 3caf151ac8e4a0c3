"""Benchmark ``loop``: a tick of the whole loop without a clock, compared with a step of its element.

In addition to the step, a tick contains the plant in ten substeps, the hand with its tremor, the encoder and its
velocities, the envelope, the energy ledger, and a row of the trace. The time is computed from the difference of long
and short sessions, which removes the time to create a session.
"""

from __future__ import annotations

import numpy as np

from apps.bench.loop import empty_results, own_loop
from apps.bench.outcome import Outcome, Progress, table
from apps.bench.slices import compare, measure
from apps.bench.whole.sessions import MANY, together
from apps.bench.workload import PERIOD, STEPS, plainest
from haptics.device import Causality

TITLE = "time of a tick of the whole loop, as a ratio to a step of its element"

SHORT, LONG = 0.1, 4.1
"""Durations of the sessions [s]."""

_ROUNDS = 30


def run(progress: Progress) -> Outcome:
    """Measure the ticks and the steps."""
    progress(0.0, "model C on the virtual joystick")
    step = own_loop(plainest(Causality.IMPEDANCE), empty_results())
    times = measure([together(SHORT), together(LONG), step], _ROUNDS)
    tick = np.maximum(times[:, 1] - times[:, 0], 0.0) / (MANY * (LONG - SHORT) / PERIOD)
    reference = times[:, 2] / STEPS
    ratio = compare(tick, reference)
    row = {
        "ns_per_tick": float(np.median(tick)) * 1e9,
        "reference_ns_per_step": float(np.median(reference)) * 1e9,
        "ratio": ratio.median,
        "spread": ratio.spread,
    }
    return Outcome({"rows": [row]}, table([("ns/tick", "ns/step", "ratio", "spread"), list(row.values())]))
