"""Execution of many runs in one compiled call, without clock and supervision."""

from __future__ import annotations

from typing import Any

import numpy as np

from haptics.jit import kernel
from haptics.parts import call_part, record_at
from haptics.records import Rows
from haptics.rendering.kernels import CORE
from haptics.servo.loop_kernels import GOES_ON, OVER, PORT, due, serve
from haptics.servo.loop_record import LOOP

AGENDA = np.dtype([(name, "<i8") for name in ("loop", "core", "port", "reduction", "sums", "outcome")])
"""Entry of a run.

It contains the addresses of the run's records of dtype `LOOP`, `CORE` and `PORT`, of the part of its reduction and of
the reduction's record. ``outcome`` is the reason for the end of the run (`haptics.servo.loop_kernels`). An entry of
zeros is skipped.
"""


@kernel
def run_agenda(agenda: Rows, slots: Rows, neutral: Rows, count: Any, controls: Rows, scratch: Any) -> None:
    """Execute the runs in `agenda`, (m,) of dtype `AGENDA`, in sequence; all devices must provide parts.

    The rows are written to `slots`, (n,), which are initialised with `neutral`, (1,), and passed to the reduction n at
    a time.
    """
    control = controls[0]
    for j in range(len(agenda)):
        entry = agenda[j]
        if entry.loop == 0:
            continue
        s, c, port = record_at(entry.loop, LOOP), record_at(entry.core, CORE), record_at(entry.port, PORT)
        for k in range(len(slots)):
            slots[k] = neutral[0]
        outcome = GOES_ON
        while outcome == GOES_ON:
            first = s.count
            for k in range(len(slots)):
                if s.tick >= s.last or not due(s, c, 0.0, 0):
                    outcome = OVER
                    break
                outcome = serve(s, c, port, port, slots[k], count, control, scratch)
                if outcome != GOES_ON:
                    break
            call_part(entry.reduction, entry.sums, float(first), float(s.count))
        entry.outcome = outcome
