"""Numbers of the recordings' format and of the envelope, as the documentation states them; nothing is computed here.

They stand here a second time on purpose: `docs/formats.md` and `docs/safety.md` say where they come from.
"""

from __future__ import annotations

from typing import Any

NOT_FINITE, STALE, LIMITED, SLEW = 1 << 0, 1 << 1, 1 << 2, 1 << 3
WORKSPACE, SPEED, FADE, ENERGY = 1 << 4, 1 << 5, 1 << 6, 1 << 7
STARTED_LATE, ENDED_LATE, AFTER_SKIP, IMPLAUSIBLE = 1 << 8, 1 << 9, 1 << 10, 1 << 11
RELEASED, PASSIVITY, ASTRAY, FOLLOWING_ERROR = 1 << 12, 1 << 13, 1 << 14, 1 << 15

FLAGS = {
    "NOT_FINITE": NOT_FINITE,
    "STALE": STALE,
    "LIMITED": LIMITED,
    "SLEW": SLEW,
    "WORKSPACE": WORKSPACE,
    "SPEED": SPEED,
    "FADE": FADE,
    "ENERGY": ENERGY,
    "STARTED_LATE": STARTED_LATE,
    "ENDED_LATE": ENDED_LATE,
    "AFTER_SKIP": AFTER_SKIP,
    "IMPLAUSIBLE": IMPLAUSIBLE,
    "RELEASED": RELEASED,
    "PASSIVITY": PASSIVITY,
    "ASTRAY": ASTRAY,
    "FOLLOWING_ERROR": FOLLOWING_ERROR,
}
"""Bits of the column ``status``."""

UNUSABLE = NOT_FINITE | STALE | IMPLAUSIBLE | ASTRAY | FOLLOWING_ERROR
"""Flags of a tick with the safe output."""

ENVELOPE = UNUSABLE | PASSIVITY | RELEASED | FADE | LIMITED | SLEW | SPEED | ENERGY | WORKSPACE

TOLD_RELEASED, TOLD_ENDING = 1, 2
"""Bits of the column ``permission``."""

DEAD_MAN_BUTTON = 1

FADE_OUT = 8e-3
"""Time in which the output goes down [s]."""

GATE_TIME = 0.05
"""Time in which the gate moves, along half a cosine [s]."""

SPEED_MARGIN = 0.1
"""Part of the speed limit below it in which a driving force goes away."""

CLOCK_ROUNDING = 1.0 + 1e-9
"""Two instants on a clock that has run for days differ by this much more than they should."""

PATIENCE = 0.02
"""A motion's end effector may be too fast for this long [s]."""

LATE_SHARE = 0.5
"""A tick that starts later than this part of a period is late."""

EPS = 2.0**-52

ROUNDINGS = 64.0
"""Roundings that may have gone into a number, each of half a unit in the last place of the largest term, twofold."""

ADMITTANCE, IMPEDANCE = "admittance", "impedance"
MOTION = "motion"


def rounding(*terms: Any) -> Any:
    """Return what rounding can leave of a sum of `terms`: numbers or arrays, of any sign."""
    return ROUNDINGS * EPS * sum(abs(term) for term in terms)
