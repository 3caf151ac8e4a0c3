"""How many random examples a test takes: fewer in the first stage than in the second."""

from __future__ import annotations

import os

FEW = 4
"""The second stage has so many times as many."""

LEAST = 5


def scaled(number: int) -> int:
    """Return how many of the `number` examples of the second stage are tried in this run."""
    return min(number, max(number // FEW, LEAST)) if os.environ.get("HAPTICS_EXAMPLES", "few") == "few" else number
