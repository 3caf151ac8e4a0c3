"""What a reproduction returns: rows that set an expected number beside ours, and a picture to draw.

A module of a reproduction has a ``TITLE`` and a function ``reproduce() -> Outcome``, and is named in
`apps.reproduce.registry`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    """One number of a paper beside ours.

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
        "paper" if the paper prints the number or states the fact, "derived" if it follows from the paper's equations.
    """

    what: str
    expected: float | Bound
    ours: float
    tolerance: float = 0.0
    unit: str = ""
    source: Literal["paper", "derived"] = "paper"

    @property
    def difference(self) -> float:
        """Ours minus the expected number, in `unit`; for a bound how far outside of it ours is."""
        if not isinstance(self.expected, Bound):
            return self.ours - self.expected
        if math.isnan(self.ours):
            return math.nan
        return max(self.ours - self.expected.maximum, 0.0) + min(self.ours - self.expected.minimum, 0.0)

    @property
    def met(self) -> bool:
        """Whether ours agrees with the expectation; a number that is not finite never does."""
        return math.isfinite(self.ours) and abs(self.difference) <= self.tolerance


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

    @property
    def met(self) -> bool:
        """Whether every row is met."""
        return all(row.met for row in self.rows)
