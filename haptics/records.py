"""Records: what a tick leaves behind, row by row, and the flags in it.

A row is the same in the trace (memory), in a recording (disk) and in a replay. Its columns, their units and their
neutral values are declared here, once.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from haptics.device import MOST_CHANNELS

Rows = NDArray[Any]
"""A structured array of trace rows."""


LATE_FRACTION = 0.5
"""A tick that starts later than this part of a period after its deadline is flagged as late."""


class Status(IntFlag):
    """What happened in a tick; `haptics.rendering.envelope` has the order in which its rules are applied."""

    NOT_FINITE = 1 << 0
    """The sample or the element's output was nan or infinite: safe output instead."""
    STALE = 1 << 1
    """The sample was older than the device allows: safe output instead."""
    LIMITED = 1 << 2
    """The norm was clamped (force, or speed of the reference); the direction was kept."""
    SLEW = 1 << 3
    """The slew rate was limited (rate of the force, or acceleration of the reference)."""
    WORKSPACE = 1 << 4
    """The end effector or its reference was at the edge of the workspace."""
    SPEED = 1 << 5
    """Overspeed: the component along the motion was taken out of the force."""
    FADE = 1 << 6
    """The output was fading in (after the start, a release, a change of parameters) or out (before the end)."""
    ENERGY = 1 << 7
    """The loop had injected all the energy it may: what would inject more was taken out of the output."""
    STARTED_LATE = 1 << 8
    """The tick started more than half a period after its deadline."""
    ENDED_LATE = 1 << 9
    """The tick ended after the next deadline."""
    AFTER_SKIP = 1 << 10
    """One or more deadlines before this tick were missed whole and skipped."""
    IMPLAUSIBLE = 1 << 11
    """No hand can have moved the handle there, or so fast, or the force is beyond its sensor's range: safe output."""
    RELEASED = 1 << 12
    """The dead-man's switch was not held: the output was fading out, or was the safe one."""
    PASSIVITY = 1 << 13
    """The passivity controller added damping."""
    ASTRAY = 1 << 14
    """The following error of a motion, or the speed, was larger than the motion allows: safe output."""
    FOLLOWING_ERROR = 1 << 15
    """The end effector was farther from its reference than the device allows, as if it were blocked: safe output."""


UNUSABLE = int(Status.NOT_FINITE | Status.STALE | Status.IMPLAUSIBLE | Status.FOLLOWING_ERROR | Status.ASTRAY)
"""Flags of a tick whose command was the safe output."""


class Permission(IntFlag):
    """What the envelope was told in a tick, besides the sample; a recording keeps it, so that a replay can say it."""

    RELEASED = 1 << 0
    """The dead-man's switch is not held."""
    ENDING = 1 << 1
    """The run is about to end: fade out."""


ROW_UNITS = {
    "tick": "1",
    "time": "s",
    "position": "m",
    "velocity": "m/s",
    "force": "N",
    "command": "N (impedance) or m (admittance)",
    "command_unlimited": "N (impedance) or m (admittance)",
    "proxy": "m",
    "displacement": "m",
    "friction_force": "N",
    "sliding_velocity": "m/s",
    "sample_age": "s",
    "period_error": "s",
    "tick_time": "s",
    "write_time": "s",
    "injected_energy": "J",
    "settings_version": "1",
    "status": "bit flags",
    "sticking": "0 or 1",
    "permission": "bit flags",
    "buttons": "bit flags",
    "marker": "1",
    "gate": "1",
    "region": "1",
    "normal_force": "N",
    "hand_force": "N",
}
"""Columns of a recording with their units, in order; the channels of its device follow."""

COLUMNS = np.dtype(
    [
        ("tick", "<i8"),
        ("time", "<f8"),
        ("position", "<f8", (2,)),
        ("velocity", "<f8", (2,)),
        ("force", "<f8", (2,)),
        ("command", "<f8", (2,)),
        ("command_unlimited", "<f8", (2,)),
        ("proxy", "<f8", (2,)),
        ("displacement", "<f8", (2,)),
        ("friction_force", "<f8", (2,)),
        ("sliding_velocity", "<f8", (2,)),
        ("sample_age", "<f8"),
        ("period_error", "<f8"),
        ("tick_time", "<f8"),
        ("write_time", "<f8"),
        ("injected_energy", "<f8"),
        ("settings_version", "<i8"),
        ("status", "<u4"),
        ("sticking", "<u4"),
        ("permission", "<u4"),
        ("buttons", "<u4"),
        ("marker", "<i8"),
        ("gate", "<f8"),
        ("region", "<i8"),
        ("normal_force", "<f8"),
        ("hand_force", "<f8", (2,)),
    ]
)
"""What a recording has of a tick. ``time`` is nominal (tick x period); ``period_error`` is how late the tick really
started, ``write_time`` how long after that the command had been handed to the device, ``tick_time`` how long the tick
took in all. ``marker`` says which trial or stage the tick belongs to, ``gate`` how much of the output was let through
from outside, ``region`` where in a scene the proxy was (-1: there is no scene), ``normal_force`` what it was pressed
against a wall with (nan: there is none), ``hand_force`` what a virtual hand really did (nan where nobody knows)."""

ROW = np.dtype([*npy.dtype_to_descr(COLUMNS), ("channels", "<f8", (MOST_CHANNELS,))])
"""One tick in a trace: `COLUMNS`, and room for what else a device measures. It is the same for all devices, so that no
kernel is compiled anew for one."""

NEUTRAL = np.zeros(1, ROW)
"""What a row, (1,), holds of which nothing is known: what a column stands for that nobody filled."""
NEUTRAL["gate"], NEUTRAL["region"] = 1.0, -1
NEUTRAL["normal_force"] = NEUTRAL["hand_force"] = NEUTRAL["channels"] = np.nan
NEUTRAL.flags.writeable = False
