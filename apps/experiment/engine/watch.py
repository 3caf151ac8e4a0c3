"""Evaluation of the trace during an interval: strokes, rest, speed, flags and late ticks.

A stroke extends from one reversal of the hand to the next, or to the point where it stops. It counts if it is long
enough. Its speed is its length divided by the time in which the hand moved.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.experiment.design.settings import ExplorationSettings
from haptics.jit import kernel
from haptics.records import Rows, Status

_LATE = int(Status.STARTED_LATE | Status.ENDED_LATE)
_FADE = int(Status.FADE)

_TURN = 0.2
"""Backward displacement that marks a reversal, as a fraction of the stroke length."""

_STOP = 0.02
"""Time of slow motion that ends a stroke [s]."""

WATCH = np.dtype(
    [
        ("period", "<f8"),
        ("marker", "<i8"),
        ("centre", "<f8", (2,)),
        ("reach", "<f8"),
        ("rest_speed", "<f8"),
        ("stroke", "<f8"),
        ("rows", "<i8"),
        ("last_tick", "<i8"),
        ("rested", "<i8"),
        ("steady", "<i8"),
        ("flags", "<i8"),
        ("late", "<i8"),
        ("gap", "<f8"),
        ("last_start", "<f8"),
        ("begun", "<i8"),
        ("anchor", "<f8", (2,)),
        ("far", "<f8", (2,)),
        ("far_distance", "<f8"),
        ("moving", "<i8"),
        ("slow", "<i8"),
        ("strokes", "<i8"),
        ("least_speed", "<f8"),
        ("greatest_speed", "<f8"),
    ]
)
"""Settings and state of a watch.

``marker`` selects the evaluated rows (-1: all). ``rested`` counts the ticks for which the hand has been at rest in the
box, and ``steady`` those since the output was last fading or held down by the gate. ``anchor`` is the start of the
current stroke, and ``far`` the farthest point from it.
"""


@kernel
def _end_stroke(s: Any, length: float) -> None:
    """Count a stroke of this length [m] if it is long enough."""
    if length >= s.stroke and s.moving > 0:
        speed = length / (s.moving * s.period)
        s.least_speed, s.greatest_speed = min(s.least_speed, speed), max(s.greatest_speed, speed)
        s.strokes += 1


@kernel
def _follow(s: Any, x: float, y: float, speed: float) -> None:
    """Update the stroke with the hand position (x, y) [m]."""
    s.slow = s.slow + 1 if speed < s.rest_speed else 0
    s.moving += 1 if speed >= s.rest_speed else 0
    distance = math.hypot(x - s.anchor[0], y - s.anchor[1])
    if distance > s.far_distance:
        s.far_distance, s.far[0], s.far[1] = distance, x, y
    stopped = s.slow * s.period >= _STOP
    back = math.hypot(x - s.far[0], y - s.far[1])
    if not stopped and not (back > _TURN * s.stroke and distance < s.far_distance):
        return
    if stopped and s.far_distance < s.stroke:
        return
    _end_stroke(s, s.far_distance)
    s.anchor[0], s.anchor[1] = s.far[0], s.far[1]
    s.far[0], s.far[1] = x, y
    s.far_distance = math.hypot(x - s.anchor[0], y - s.anchor[1])
    s.moving = 0


@kernel
def watch_rows(watch: Rows, slots: Rows, first: int, following: int) -> None:
    """Evaluate the rows `first` to `following` - 1 of a trace."""
    s = watch[0]
    for k in range(first, following):
        row = slots[k % len(slots)]
        if s.marker >= 0 and row.marker != s.marker:
            continue
        s.last_tick = row.tick
        x, y, speed = row.position[0], row.position[1], math.hypot(row.velocity[0], row.velocity[1])
        inside = abs(x - s.centre[0]) <= s.reach and abs(y - s.centre[1]) <= s.reach
        s.rested = s.rested + 1 if inside and speed < s.rest_speed else 0
        s.steady = s.steady + 1 if row.gate == 1.0 and row.status & _FADE == 0 else 0
        s.flags |= row.status
        s.late += 1 if row.status & _LATE != 0 else 0
        start = row.tick * s.period + row.period_error
        s.gap = max(s.gap, start - s.last_start) if s.rows > 0 else 0.0
        s.last_start = start
        s.rows += 1
        if s.begun == 0:
            s.begun = 1
            s.anchor[0], s.anchor[1], s.far[0], s.far[1], s.far_distance = x, y, x, y, 0.0
        _follow(s, x, y, speed)


class Watch:
    """Incremental evaluation of the trace during or between intervals.

    Parameters
    ----------
    exploration : ExplorationSettings
        Settings of strokes and of the start box.
    period : float
        Sampling period [s].
    first : int
        Index of the first evaluated row of the trace.
    marker : int
        Marker of the evaluated rows, -1 for all.
    """

    def __init__(self, exploration: ExplorationSettings, period: float, first: int, marker: int = -1) -> None:
        self._record: NDArray[Any] = np.zeros(1, WATCH)
        record = self._record
        record["period"], record["marker"], record["rest_speed"] = period, marker, exploration.rest_speed
        record["centre"], record["reach"] = exploration.start or (0.0, 0.0), exploration.reach
        if not exploration.start:
            record["reach"] = math.inf
        record["stroke"], record["least_speed"] = exploration.stroke, math.inf
        self.seen = first

    def evaluate(self, slots: Rows, count: int) -> None:
        """Evaluate the rows up to index `count` - 1, which must still be in `slots`."""
        watch_rows(self._record, slots, max(self.seen, count - len(slots) + 1), count)
        self.seen = count

    def __getattr__(self, name: str) -> Any:
        """Return a value of the state, by the names of `WATCH`."""
        if name.startswith("_") or name not in (WATCH.names or ()):
            raise AttributeError(name)
        return self._record[name][0].item()
