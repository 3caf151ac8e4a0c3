"""What a reproduction returns: rows that set an expected number beside ours, and a picture to draw.

A module of a reproduction has a ``TITLE`` and a function ``reproduce() -> Outcome``, and is named in
`apps.reproduce.registry`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Source = Literal["paper", "derived", "guard"]

SOURCES: tuple[Source, ...] = get_args(Source)


@dataclass(frozen=True)
class Bound:
    """An expectation that leaves room: any number from `minimum` to `maximum`."""

    minimum: float = -math.inf
    maximum: float = math.inf

    def __str__(self) -> str:
        if self.minimum == -math.inf:
            return f"at most {self.maximum:g}"
        if self.maximum == math.inf:
            return f"at least {self.minimum:g}"
        return f"{self.minimum:g} to {self.maximum:g}"


@dataclass(frozen=True)
class Row:
    """One number beside ours: of a paper, of its equations, or of ourselves.

    A guard notices that a result has changed and says nothing about the paper: its bound was set after seeing the
    result, or what it describes was chosen, or nothing of ours enters it. It holds or not; it is never "met".

    Attributes
    ----------
    what : str
        What is compared, in words.
    expected : float or Bound
        What must come out.
    ours : float
        What came out.
    tolerance : float
        By how much they may differ, in `unit`; 0 where they must be equal (or inside the bound).
    unit : str
        Unit of `expected`, `ours` and `tolerance`; empty for a pure number.
    source : str
        "paper" if the paper prints the number or states the fact; "derived" if it follows from the paper's equations,
        in closed form or from a separate implementation; "guard" otherwise.
    """

    what: str
    expected: float | Bound
    ours: float
    tolerance: float = 0.0
    unit: str = ""
    source: Source = "paper"

    @property
    def difference(self) -> float:
        """Ours minus the expected number, in `unit`; for a bound how far outside of it ours is."""
        if not isinstance(self.expected, Bound):
            return self.ours - self.expected
        if math.isnan(self.ours):
            return math.nan
        return max(self.ours - self.expected.maximum, 0.0) + min(self.ours - self.expected.minimum, 0.0)

    @property
    def holds(self) -> bool:
        """Whether ours is where it is expected; a number that is not finite never is."""
        return math.isfinite(self.ours) and abs(self.difference) <= self.tolerance

    @property
    def is_guard(self) -> bool:
        """Whether it says nothing about the paper."""
        return self.source == "guard"

    @property
    def met(self) -> bool | None:
        """Whether ours agrees with the paper or its equations; None for a guard, which cannot tell."""
        return None if self.is_guard else self.holds


def tally(rows: Sequence[Row]) -> dict[Source, dict[str, int]]:
    """Count the rows of each source, and how many of them hold (a number that holds is met)."""
    table: dict[Source, dict[str, int]] = {}
    for source in SOURCES:
        own = [row.holds for row in rows if row.source == source]
        table[source] = {"count": len(own), "holding": sum(own)}
    return table


def count_words(rows: Sequence[Row]) -> str:
    """Return how many numbers are met and how many guards hold, in words."""
    guards = [row.holds for row in rows if row.is_guard]
    numbers = [row.holds for row in rows if not row.is_guard]
    words = [f"{sum(numbers)} of {len(numbers)} met"] if numbers else ["no number to meet"]
    if guards:
        words.append(f"guards: {sum(guards)} of {len(guards)} hold")
    return ", ".join(words)


@dataclass(frozen=True)
class Outcome:
    """What a reproduction returns.

    Attributes
    ----------
    rows : sequence of Row
        The comparisons, in the order in which they are shown.
    draw : callable
        Draws the picture into an empty Matplotlib figure (12 x 7 inches, constrained layout; both may be changed).
    """

    rows: Sequence[Row]
    draw: Callable[[Figure], None]
