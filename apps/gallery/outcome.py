"""Data types of a demonstration: guide for the visitor, film scenes and outcome.

The module of a demonstration has a ``TITLE``, a ``GUIDE`` and ``demonstrate(showing) -> Outcome``, and is listed in
`apps.gallery.command`.
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
    """Instructions for the visitor.

    Attributes
    ----------
    do, feel, see : str
        Action, expected sensation, and contents of the picture; one or two sentences each.
    """

    do: str
    feel: str
    see: str

    @property
    def caption(self) -> str:
        """Text for the window."""
        return f"{self.do} {self.feel}"


@dataclass(frozen=True)
class Scene:
    """One run in a film.

    Attributes
    ----------
    title : str
        Title above the run.
    rows : structured array
        Recorded ticks of the run.
    """

    title: str
    rows: Rows


@dataclass(frozen=True)
class Outcome:
    """Result of a demonstration.

    Attributes
    ----------
    number, bound : float
        Measured number and its largest permitted value, in `unit`.
    unit : str
        Unit of both.
    sentence : str
        Sentence that introduces the number.
    rows : sequence of Row
        Further checks, each with its source. Guards must hold as well.
    draw : callable
        Function that draws the picture into an empty Matplotlib figure (12 x 7 inches, constrained layout). It may
        change size and layout.
    film : sequence of Scene
        One or two runs of equal length, shown next to each other.
    facts : dict
        Additional entries of the JSON object.
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
        """Whether the number is within its bound and all further checks hold."""
        return math.isfinite(self.number) and self.number <= self.bound and all(row.holds for row in self.rows)
