"""Standard metrics of runs in simulated time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from haptics.jit import kernel
from haptics.rendering.envelope import UNUSABLE
from haptics.servo.offline.reduction import REDUCTION_FIELDS, Reduction, row_of

_SUMS = np.dtype(
    [
        *REDUCTION_FIELDS,
        ("ticks", "<i8"),
        ("sticking", "<i8"),
        ("unusable", "<i8"),
        ("flags", "<i8"),
        ("force", "<f8"),
        ("force_square", "<f8"),
        ("force_max", "<f8"),
        ("path", "<f8"),
        ("energy_max", "<f8"),
        ("last", "<f8", (2,)),
    ]
)


@dataclass(frozen=True)
class Metrics:
    """Summary of a run.

    Attributes
    ----------
    ticks : int
        Number of executed ticks.
    stick_fraction : float
        Fraction of ticks in which the contact was sticking.
    friction_mean, friction_rms, friction_max : float
        Norm of the friction force on the contact [N].
    path : float
        Path length of the end effector [m].
    injected_max : float
        Largest energy injected by the loop [J].
    unusable_ticks : int
        Number of ticks with the safe output because of an untrusted sample.
    flags : int
        All status bits that occurred (`haptics.records.Status`).
    """

    ticks: int
    stick_fraction: float
    friction_mean: float
    friction_rms: float
    friction_max: float
    path: float
    injected_max: float
    unusable_ticks: int
    flags: int


@kernel
def _add_rows(s: Any, first: float, following: float) -> None:
    """Add the rows from index `first` to `following` (exclusive)."""
    for number in range(int(first), int(following)):
        row = row_of(s, number)
        norm = math.hypot(row.friction_force[0], row.friction_force[1])
        s.force += norm
        s.force_square += norm * norm
        s.force_max = max(s.force_max, norm)
        if s.ticks > 0:
            s.path += math.hypot(row.position[0] - s.last[0], row.position[1] - s.last[1])
        s.last[0], s.last[1] = row.position[0], row.position[1]
        s.energy_max = max(s.energy_max, row.injected_energy)
        s.flags |= row.status
        s.sticking += row.sticking
        if row.status & UNUSABLE != 0:
            s.unusable += 1
        s.ticks += 1


METRICS = Reduction(_add_rows, np.zeros(1, _SUMS))
"""Reduction for `metrics_of`."""


def metrics_of(sums: Any) -> Metrics:
    """Return the metrics of a run from the record of its reduction `METRICS`."""
    ticks = max(int(sums["ticks"]), 1)
    return Metrics(
        ticks=int(sums["ticks"]),
        stick_fraction=float(sums["sticking"]) / ticks,
        friction_mean=float(sums["force"]) / ticks,
        friction_rms=math.sqrt(float(sums["force_square"]) / ticks),
        friction_max=float(sums["force_max"]),
        path=float(sums["path"]),
        injected_max=float(sums["energy_max"]),
        unusable_ticks=int(sums["unusable"]),
        flags=int(sums["flags"]),
    )
