"""Coverage of the interval of a motor's gain, and frequency of warnings: a table for the manual.

Run as ``python -m calibration.motor.coverage``. The recordings are simulated with fixed seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from calibration.motor.trials import GAIN, SCENARIOS, Scenario, fitted

TRIALS = 20


@dataclass(frozen=True)
class Coverage:
    """Results of the trials of one scenario.

    Attributes
    ----------
    scenario : Scenario
        Conditions of the recordings.
    errors : tuple of float
        Error of the gain in each trial, relative to the true gain.
    held : tuple of bool
        Whether the interval contained the true gain.
    warned : tuple of bool
        Whether there was a warning.
    """

    scenario: Scenario
    errors: tuple[float, ...]
    held: tuple[bool, ...]
    warned: tuple[bool, ...]

    @property
    def silent_misses(self) -> int:
        """Number of trials in which the interval missed the true gain without a warning."""
        return sum(not held and not warned for held, warned in zip(self.held, self.warned, strict=True))

    def row(self) -> str:
        """Return the row of the table."""
        count, sizes = len(self.errors), np.abs(self.errors)
        return (
            f"| {self.scenario.name} | {np.median(self.errors):+.1%} | {self.errors[int(np.argmax(sizes))]:+.1%} "
            f"| {sum(self.held)} of {count} | {sum(self.warned)} of {count} | {self.silent_misses} |"
        )


def coverage(scenario: Scenario, trials: int = TRIALS) -> Coverage:
    """Run the trials of a scenario."""
    fits = [fitted(scenario, seed) for seed in range(trials)]
    intervals = [fit.intervals["gain"] for fit in fits]
    return Coverage(
        scenario,
        tuple(fit.values["gain"] / GAIN - 1.0 for fit in fits),
        tuple(low <= GAIN <= high for low, high in intervals),
        tuple(bool(fit.found().warnings) for fit in fits),
    )


def table(scenarios: Iterable[Scenario] = SCENARIOS, trials: int = TRIALS) -> str:
    """Return the table of all scenarios as Markdown."""
    rows = [coverage(scenario, trials).row() for scenario in scenarios]
    head = "| recording | gain: median error | worst | interval holds it | warned | missed in silence |"
    return "\n".join([head, "|---|---|---|---|---|---|", *rows])


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
