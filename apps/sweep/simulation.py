"""One job of a sweep: a whole session in simulated time, reduced to its outcomes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from apps.sweep.design import Job, Sweep
from apps.sweep.kernels import SUMS, reduce_rows
from apps.sweep.outcomes import LOWEST_BUZZ, load_function, numbers_of, outcomes_of
from devices import create_device
from haptics.clock import Clock
from haptics.errors import HapticError
from haptics.records import Rows
from haptics.servo.loop import AT_ONCE
from haptics.servo.servo import Servo
from haptics.shared import SharedFile
from haptics.trace import Reader, Trace

Result = dict[str, Any]


def simulate_job(sweep: Sweep, job: Job) -> Result:
    """Run a job and return its outcomes, or under ``error`` why there are none: one that fails stops no other."""
    try:
        return {"outcomes": _outcomes(sweep, job)}
    except HapticError as error:
        return {"error": str(error)}
    except Exception as error:  # of a function of one's own: whatever it is, the others go on
        return {"error": f"{type(error).__name__}: {error}"}


def _outcomes(sweep: Sweep, job: Job) -> dict[str, Any]:
    config, settings = sweep.config(job), sweep.settings
    clock, file = Clock(1.0 / config.session.rate), SharedFile("trace")
    try:
        trace = Trace.create(file.path, capacity=2 * AT_ONCE)
        device = create_device(config.device, config.device_settings, clock=clock)
        servo = Servo(device, config.built_element, trace, clock=clock, limits=config.limits)
        taken = _Taken(trace, clock.period, settings.settle, keep=bool(settings.function))
        servo.run(settings.duration, between=taken)
        taken()
    finally:
        file.close()
    found = outcomes_of(taken.sums[0], config.causality, settings.buzz_limit)
    wanted = settings.outcomes or tuple(found)
    function = load_function(settings.function)
    own = numbers_of(settings.function, function(taken.rows)) if function is not None else {}
    return {**{name: found[name] for name in wanted}, **own}


class _Taken:
    """Follows a run and adds up what its trace gains; keeps the rows only for a function of one's own."""

    def __init__(self, trace: Trace, period: float, settle: float, *, keep: bool) -> None:
        self._trace, self._done = trace, 0
        self._reader = Reader(trace) if keep else None
        self._parts: list[Rows] = []
        self.sums = np.zeros(1, SUMS)
        self.sums["decay"] = 1.0 / (1.0 + 2.0 * math.pi * LOWEST_BUZZ * period)
        self.sums["settle"] = settle

    def __call__(self) -> None:
        count = self._trace.count
        reduce_rows(self.sums, self._trace.slots, self._done, count)
        self._done = count
        if self._reader is not None:
            self._parts.append(self._reader.read())

    @property
    def rows(self) -> Rows:
        """Every row, where they are kept."""
        return np.concatenate(self._parts)
