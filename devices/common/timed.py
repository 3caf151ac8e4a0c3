"""What happens at a time, as text: ``NAME@SECONDS`` or ``NAME@SECONDS+DURATION``, on the run's clock."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from haptics.errors import ConfigurationError

LATEST = 1e7
"""Nothing begins or lasts later or longer than this [s]; no run is longer either."""

ROUNDING = 1e-9
"""Multiples of a period and times that people write differ by so much at most [s]."""

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_FORM = re.compile(rf"([^@]*)@({_NUMBER})(?:\+({_NUMBER}))?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Timed:
    """Something with a name, and its time. As text it is what `parts_of` reads.

    Attributes
    ----------
    name : str
        What happens.
    start : float
        When it begins, on the run's clock [s].
    duration : float or None
        How long it lasts [s]; None for what its name means.

    Raises
    ------
    ConfigurationError
        If its time is not one.
    """

    KIND: ClassVar[str] = "event"

    name: str
    start: float
    duration: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.start <= LATEST:
            raise ConfigurationError(
                f"{self.KIND} {self}: must begin at 0 s at the earliest and at {LATEST:g} s at the latest."
            )
        if self.duration is not None and not 0.0 < self.duration <= LATEST:
            raise ConfigurationError(f"{self.KIND} {self}: must last longer than 0 s and at most {LATEST:g} s.")

    def __str__(self) -> str:
        lasting = "" if self.duration is None else f"+{plain(self.duration)}"
        return f"{self.name}@{plain(self.start)}{lasting}"


def parts_of(text: str) -> tuple[str, float, float | None] | None:
    """Return name, start and duration [s] that stand in ``NAME@SECONDS+DURATION``; None if `text` has another form."""
    form = _FORM.fullmatch(text.strip())
    if form is None:
        return None
    name, start, duration = form.groups()
    return name, float(start), None if duration is None else float(duration)


def plain(seconds: float) -> str:
    """Return the shortest text that stands for exactly this number."""
    return repr(float(seconds)).removesuffix(".0")
