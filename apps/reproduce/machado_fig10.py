"""Machado et al. 2002, Fig. 10: flexible joints under PD and PI control; see `machado_flexible`."""

from __future__ import annotations

from apps.reproduce.machado_flexible import CLASSIC, FRACTIONAL, compare, outcome
from apps.reproduce.outcome import Bound, Outcome

TITLE = "arm with flexible joints, PD and PI control (Machado et al. 2002, Fig. 10)"


def reproduce() -> Outcome:
    """Compare the response to 1 N with the expected values and with the other controller."""
    table = compare(CLASSIC, FRACTIONAL, (261, 1, 346), Bound(minimum=1.0))
    return outcome(CLASSIC, FRACTIONAL, table, "flexible joints, PD and PI control", (1000.0, 120.0))
