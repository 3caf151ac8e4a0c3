"""Many runs in one call of compiled code: the ticks of `haptics.servo.loop_kernels`, without clock and supervision."""

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
"""A run that is to be made: where its records lie, of dtype `LOOP`, `CORE` and `PORT`; the part of its reduction, and
where the record of that lies; and afterwards, why the ticks ended (`haptics.servo.loop_kernels`). All zeros is none."""


@kernel
def run_agenda(agenda: Rows, slots: Rows, neutral: Rows, count: Any, controls: Rows, scratch: Any) -> None:
    """Make the runs in `agenda`, (m,) of dtype `AGENDA`, one after the other; each is on a device with parts.

    Rows go into the few `slots`, (n,), and from there, n at a time, to the reduction; they begin as `neutral`, (1,).
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
