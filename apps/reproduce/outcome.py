"""Result of a reproduction: rows that compare an expected number with ours, and a picture to draw.

A reproduction is a function that returns an `Outcome`, and is listed in `apps.reproduce.command`.
"""

from __future__ import annotations

import functools
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
    """Range of expected values, from `minimum` to `maximum`."""

    minimum: float = -math.inf
    maximum: float = math.inf

    def __format__(self, specification: str) -> str:
        if self.minimum == -math.inf:
            return f"at most {self.maximum:g}"
        if self.maximum == math.inf:
            return f"at least {self.minimum:g}"
        return f"{self.minimum:g} to {self.maximum:g}"


@dataclass(frozen=True)
class Row:
    """Comparison of an expected number with ours.

    A guard detects changes of a result and proves nothing about the paper: its bound was set after seeing the result,
    or it describes a choice of ours, or it does not depend on our results. A guard holds or not; it is never "met".

    Attributes
    ----------
    what : str
        Description of the compared quantity.
    expected : float or Bound
        Expected value.
    ours : float
        Computed value.
    tolerance : float
        Permitted difference, in `unit`; 0 for equality (or a value inside the bound).
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "ours", float(self.ours))

    @property
    def difference(self) -> float:
        """Ours minus the expected number, in `unit`; for a bound, the signed distance outside it."""
        if not isinstance(self.expected, Bound):
            return self.ours - self.expected
        if math.isnan(self.ours):
            return math.nan
        return max(self.ours - self.expected.maximum, 0.0) + min(self.ours - self.expected.minimum, 0.0)

    @property
    def holds(self) -> bool:
        """Whether ours agrees with the expectation; False if it is not finite."""
        return bool(math.isfinite(self.ours) and abs(self.difference) <= self.tolerance)

    @property
    def is_guard(self) -> bool:
        """Whether the row is a guard, which proves nothing about the paper."""
        return self.source == "guard"

    @property
    def met(self) -> bool | None:
        """Whether ours agrees with the paper or its equations; None for a guard."""
        return None if self.is_guard else self.holds


def guard(description: str, expected: float | Bound, ours: float, unit: str = "", tolerance: float = 0.0) -> Row:
    """Return a row that is a guard."""
    return Row(description, expected, ours, tolerance, unit, "guard")


derived = functools.partial(Row, source="derived")
"""Row whose expected number follows from the paper's equations."""


def tally(rows: Sequence[Row]) -> dict[Source, dict[str, int]]:
    """Count the rows of each source, and the rows that hold."""
    table: dict[Source, dict[str, int]] = {}
    for source in SOURCES:
        own = [row.holds for row in rows if row.source == source]
        table[source] = {"count": len(own), "holding": sum(own)}
    return table


def count_words(rows: Sequence[Row]) -> str:
    """Format the number of met rows and of guards that hold."""
    guards = [row.holds for row in rows if row.is_guard]
    numbers = [row.holds for row in rows if not row.is_guard]
    words = [f"{sum(numbers)} of {len(numbers)} met"] if numbers else ["no number to meet"]
    if guards:
        words.append(f"guards: {sum(guards)} of {len(guards)} hold")
    return ", ".join(words)


@dataclass(frozen=True)
class Outcome:
    """Result of a reproduction.

    Attributes
    ----------
    rows : sequence of Row
        Comparisons in the order of the report.
    draw : callable
        Draws the picture into an empty Matplotlib figure (12 x 7 inches, constrained layout; both may be changed).
    """

    rows: Sequence[Row]
    draw: Callable[[Figure], None]
