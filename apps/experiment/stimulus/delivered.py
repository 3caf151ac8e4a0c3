"""Delivered: the commands of an interval against what the element asked for, tick by tick, with the flags."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from haptics.device import Causality
from haptics.records import Rows
from haptics.rendering.envelope import ENVELOPE_FLAGS


@dataclass(frozen=True)
class Delivered:
    """What was commanded in an interval.

    Attributes
    ----------
    share : float or None
        Of what the element asked for, how much was commanded, 0 to 1: by force, while the contact slid. None where
        nothing was asked for, or a position reference was cut short.
    flagged : float
        Share of ticks in which the envelope changed the output.
    exact : bool
        Whether in every other tick the command was, to the last bit, what the element asked for.
    """

    share: float | None
    flagged: float
    exact: bool


def delivered(rows: Rows, causality: Causality) -> Delivered:
    """Return what was commanded in the rows of an interval, whose gate is open."""
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
