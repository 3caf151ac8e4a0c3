"""How many random examples a test takes: fewer in the first stage than in the second."""

from __future__ import annotations

from hypothesis import settings

FEW = 4
"""The second stage has so many times as many."""

LEAST = 5
"""So many are tried in the first stage too, if there are as many."""


def scaled(number: int) -> int:
    """Return how many of the `number` examples of the second stage are tried in this run."""
    first = settings.get_current_profile_name() == "few"  # of tests/conftest.py
    return min(number, max(number // FEW, LEAST)) if first else number
