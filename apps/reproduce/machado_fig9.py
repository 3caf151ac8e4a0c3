"""Machado et al. 2002, Fig. 9: flexible joints under fractional-order control; see `machado_flexible`."""

from __future__ import annotations

from apps.reproduce.machado_flexible import CLASSIC, FRACTIONAL, compare, outcome
from apps.reproduce.outcome import Bound, Outcome

TITLE = "arm with flexible joints, control of fractional order (Machado et al. 2002, Fig. 9)"


def reproduce() -> Outcome:
    """Compare the response to 1 N with the expected values and with the other controller."""
    table = compare(FRACTIONAL, CLASSIC, (11, 4, 15), Bound(maximum=1.0))
    return outcome(FRACTIONAL, CLASSIC, table, "flexible joints, fractional-order control (CF)", (400.0, 60.0))
