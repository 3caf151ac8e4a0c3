"""Timed events as text, ``NAME@SECONDS`` or ``NAME@SECONDS+DURATION``, on the clock of the run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from haptics.errors import ConfigurationError

LATEST = 1e7
"""Maximum start and duration of an event [s]; no run is longer."""

ROUNDING = 1e-9
"""Maximum difference between multiples of a period and times in settings [s]."""

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_FORM = re.compile(rf"([^@]*)@({_NUMBER})(?:\+({_NUMBER}))?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Timed:
    """Named event with its time; ``str()`` gives the text that `parts_of` parses.

    Attributes
    ----------
    name : str
        Name of the event.
    start : float
        Start on the clock of the run [s].
    duration : float or None
        Duration [s]; None for the default of the event.

    Raises
    ------
    ConfigurationError
        If the time is invalid.
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
    """Parse ``NAME@SECONDS+DURATION`` into name, start and duration [s]; None if the format is different."""
    form = _FORM.fullmatch(text.strip())
    if form is None:
        return None
    name, start, duration = form.groups()
    return name, float(start), None if duration is None else float(duration)


def plain(seconds: float) -> str:
    """Return the shortest text for exactly this number."""
    return repr(float(seconds)).removesuffix(".0")
