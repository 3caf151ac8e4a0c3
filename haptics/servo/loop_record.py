"""Record of a run: its parameters, its progress and its watched processes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.device import MOST_CHANNELS, Causality, DeviceSpec
from haptics.rendering.envelope import FADE_OUT, Limits
from haptics.servo.supervision import WATCH_FIELDS

NO_KEY, KEY, BUTTON = range(3)
"""Kinds of dead-man's switches: none, the key of the view, the button of the device."""

LOOP = np.dtype(
    [
        ("period", "<f8"),
        ("live", "<i8"),
        ("origin_ns", "<i8"),
        ("spin_ns", "<i8"),
        ("dead_man", "<i8"),
        ("fade_ticks", "<i8"),
        ("brake_ticks", "<i8"),
        ("take", "<i8"),
        ("give", "<i8"),
        ("wake", "<i8"),
        ("tick", "<i8"),
        ("fading", "<i8"),
        ("last", "<i8"),
        ("end", "<i8"),
        ("noticed_ns", "<i8"),
        ("flags", "<i8"),
        ("late", "<f8"),
        ("opening", "<f8"),
        ("count", "<i8"),
        ("channels", "<i8"),
        ("incoming", "<f8", (MOST_CHANNELS,)),
        ("bad_ticks", "<i8"),
        ("first_bad", "<i8"),
        *WATCH_FIELDS,
    ]
)
"""Parameters, progress and watched processes of a run.

``end`` is 0 until there is a reason to end (`END_REASONS`). ``opening`` is the opening of the gate, 0 to 1.
``channels`` is the total number of values in the channels of the device.
"""

_DEAD_MEN = {"none": NO_KEY, "key": KEY, "button": BUTTON}


def new_record(period: float, spec: DeviceSpec, limits: Limits) -> NDArray[Any]:
    """Return the initial record of a run, (1,) of dtype `haptics.servo.loop_kernels.LOOP`."""

    def ticks_in(duration: float) -> int:
        return math.ceil(duration / period * (1 - 1e-9)) + 1  # one more for rounding

    record = np.zeros(1, LOOP)
    record["period"] = period
    record["dead_man"] = _DEAD_MEN[limits.dead_man]
    record["channels"] = sum(size for _, _, size in spec.channels)
    record["fade_ticks"] = record["brake_ticks"] = ticks_in(FADE_OUT)
    if spec.causality is Causality.ADMITTANCE:  # the reference brakes with the maximum acceleration
        record["brake_ticks"] = max(ticks_in(FADE_OUT), ticks_in(limits.max_speed / limits.max_acceleration))
    return record
