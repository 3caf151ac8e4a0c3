"""Constants of the recording format and of the envelope, as documented.

They duplicate the program's constants on purpose. Their sources are `docs/formats.md` and `docs/safety.md`.
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
"""Duration of the fade-out [s]."""

GATE_TIME = 0.05
"""Duration of the gate's half cosine [s]."""

SPEED_MARGIN = 0.1
"""Share of the speed limit, just below it, over which a driving force decreases to zero."""

CLOCK_ROUNDING = 1.0 + 1e-9
"""Factor on limits for the rounding of a clock that has run for days."""

PATIENCE = 0.02
"""Time for which the end effector may exceed the maximum speed of a motion [s]."""

LATE_SHARE = 0.5
"""Share of a period after which the start of a tick counts as late."""

EPS = 2.0**-52

ROUNDINGS = 64.0
"""Number of roundings in a value, each half a unit in the last place of the largest term, times two."""

ADMITTANCE, IMPEDANCE = "admittance", "impedance"
MOTION = "motion"


def rounding(*terms: Any) -> Any:
    """Return the rounding bound of a sum of `terms`: numbers or arrays, of any sign."""
    return ROUNDINGS * EPS * sum(abs(term) for term in terms)
