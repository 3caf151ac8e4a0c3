"""What a demonstration is made of: a guide for people, the number with its bound, what stands beside it, a picture.

A module of a demonstration has a ``TITLE``, a ``GUIDE`` and ``demonstrate(showing) -> Outcome``, and is named in
`apps.gallery.registry`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from apps.reproduce.outcome import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from haptics.records import Rows


@dataclass(frozen=True)
class Guide:
    """What a visitor is told.

    Attributes
    ----------
    do, feel, see : str
        What to do, what is to be felt, what the picture shows; a sentence or two each.
    """

    do: str
    feel: str
    see: str

    @property
    def caption(self) -> str:
        """All of it, for the window."""
        return f"{self.do} {self.feel}"


@dataclass(frozen=True)
class Scene:
    """One run in a film.

    Attributes
    ----------
    title : str
        Above it.
    rows : structured array
        Its ticks.
    """

    title: str
    rows: Rows


@dataclass(frozen=True)
class Outcome:
    """What a demonstration returns.

    Attributes
    ----------
    number, bound : float
        The number that proves it, in `unit`, and the largest that it may be.
    unit : str
        Of both.
    sentence : str
        What the number is, in words.
    rows : sequence of Row
        What else must hold, each with its source; guards count as well.
    draw : callable
        Draws the picture into an empty Matplotlib figure (12 x 7 inches, constrained layout; both may be changed).
    film : sequence of Scene
        One or two runs of equal length, side by side.
    facts : dict
        What else the JSON object has.
    """

    number: float
    bound: float
    unit: str
    sentence: str
    rows: Sequence[Row]
    draw: Callable[[Figure], None]
    film: Sequence[Scene]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether the number is within its bound, and everything beside it, too."""
        return math.isfinite(self.number) and self.number <= self.bound and all(row.holds for row in self.rows)
