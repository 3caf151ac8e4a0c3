"""Delivered stimulus: commands of an interval compared with the output of the element, tick by tick."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from haptics.device import Causality
from haptics.records import Rows
from haptics.rendering.envelope import ENVELOPE_FLAGS


@dataclass(frozen=True)
class Delivered:
    """Delivered stimulus of an interval.

    Attributes
    ----------
    share : float or None
        Ratio of commanded force to the force of the element while the contact slid, 0 to 1. None if the element had no
        force, or a position reference was limited.
    flagged : float
        Fraction of ticks in which the envelope changed the output.
    exact : bool
        Whether in all other ticks the command was bitwise equal to the output of the element.
    """

    share: float | None
    flagged: float
    exact: bool


def delivered(rows: Rows, causality: Causality) -> Delivered:
    """Return the delivered stimulus in the rows of an interval, whose gate is open."""
    flags = (rows["status"] & ENVELOPE_FLAGS) != 0
    held_down = rows["gate"] != 1.0
    equal = (rows["command"] == rows["command_unlimited"]).all(axis=1)
    exact = bool(equal[~flags & ~held_down].all())
    flagged = float(np.mean(flags | held_down)) if len(rows) else 0.0
    if causality is Causality.ADMITTANCE:
        return Delivered(1.0 if exact and not flagged else None, flagged, exact)
    sliding = rows["sticking"] == 0
    asked = np.hypot(*rows["command_unlimited"][sliding].T).sum()
    given = np.hypot(*rows["command"][sliding].T).sum()
    return Delivered(float(given / asked) if asked > 0.0 else (1.0 if not flagged else None), flagged, exact)
