"""Per-tick computation of a stick: reports to positions and velocities, forces to effect levels.

The tick and the threads that communicate with the stick exchange the latest values through latches
(`devices.common.latch`). Two numbers of `devices.joystick.streaming` report to the tick that a thread has ended or that
the stick does not accept a report.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.common.kernels import FORCE_DRIVER_FIELDS, LOST, accept, estimate_velocity, record_time
from devices.common.latch import copy_latest, publish_to
from devices.joystick.parameters import StickParameters
from devices.joystick.streaming import BEGUN, ENDED, HEARD, REPORT, STUCK, Streaming
from haptics.device import DEAD_MAN_BUTTON
from haptics.jit import float_at, kernel, merged_kernel
from haptics.records import fields
from haptics.rendering.envelope import limit_norm

STICK = np.dtype(
    [
        *FORCE_DRIVER_FIELDS,
        *fields("<i8", "reports levels trouble"),
        ("report", "<f8", (REPORT,)),
        ("given", "<f8", (3,)),
        ("centre", "<f8", (2,)),
        *fields("<f8", "counts_to_m newton_to_level", 2, 2),
        ("max_force", "<f8"),
        *fields("<i8", "dimensions dead_man_button"),
    ]
)
"""State of the stick in one record.

``reports``, ``levels`` and ``trouble`` are addresses of the memory that the streaming threads share with the tick.
``report`` is the latest input report, ``given`` the latest command levels.
"""


def fill_stick(record: NDArray[Any], known: StickParameters, streaming: Streaming) -> None:
    """Initialize the record with the parameters of a stick and the addresses of its streams.

    The streams must outlive the use of the record.
    """
    axes = known.axes
    record["centre"], record["counts_to_m"] = axes.centre_counts, axes.counts_to_m
    record["newton_to_level"], record["max_force"] = known.force.newton_to_level, known.force.max_force_n
    record["dimensions"] = len(axes.usages)
    record["dead_man_button"] = known.handle.dead_man_button
    record["reports"], record["levels"] = streaming.reports.place, streaming.levels.place
    record["trouble"] = streaming.trouble.ctypes.data


@merged_kernel
def _is_lost(s: Any) -> bool:
    """Return True if a thread has ended, or the transfer of a report took or takes too long."""
    begun, ended = float_at(s.trouble + 8 * BEGUN), float_at(s.trouble + 8 * ENDED)
    return bool(s.fault == LOST or ended != 0.0 or s.instant - begun > STUCK)


@kernel
def take_stick(s: Any, now: float, elapsed: float) -> None:
    """Read the newest sample at the nominal time `now`, `elapsed` after the clock's zero [s]."""
    record_time(s, now, elapsed)
    if _is_lost(s):
        s.fault = LOST
        return
    if copy_latest(s.reports, s.report):
        x, y = s.report[0] - s.centre[0], s.report[1] - s.centre[1]
        for i in range(2):
            s.position[i] = s.counts_to_m[i, 0] * x + s.counts_to_m[i, 1] * y
        buttons, number = int(s.report[2]), s.dead_man_button
        held = DEAD_MAN_BUTTON if number > 0 and (buttons >> max(number - 1, 0)) & 1 else 0
        s.buttons = buttons << 1 | held
        s.time = s.report[HEARD] - s.origin
    estimate_velocity(s)


@kernel
def give_stick(s: Any, x: float, y: float) -> None:
    """Publish the levels for a force [N], limited to the motors' maximum without changing its direction.

    A wheel uses the component along its rim.
    """
    if not accept(s, x, y):
        return
    total = s.compensation.total
    across = total[1] if s.dimensions > 1 else 0.0
    x, y, _ = limit_norm(total[0], across, s.max_force)
    for i in range(2):
        s.given[i] = s.newton_to_level[i, 0] * x + s.newton_to_level[i, 1] * y
    s.given[2] = s.instant
    publish_to(s.levels, s.given)
    if _is_lost(s):
        s.fault = LOST
