"""Where trials are presented: a session of the servo, with a clock or without, seen from a script.

A script is a generator. Whatever it asks of the stage comes into force at the next tick; it yields how many ticks it
wants to go by before it goes on. So the same script runs by the wall's clock and without one.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol, TypeVar

from apps.settings.config import SessionConfig
from haptics.records import Rows

_T = TypeVar("_T")

Script = Generator[int, None, _T]
"""Yields ticks to go by; returns what comes of it."""


class Stage(Protocol):
    """A running session of the servo.

    Attributes
    ----------
    period : float
        Of a tick [s].
    """

    period: float

    @property
    def count(self) -> int:
        """Rows of the trace so far."""
        ...

    @property
    def slots(self) -> Rows:
        """The ring of the trace."""
        ...

    def take(self, config: SessionConfig) -> None:
        """Put other parameters in force."""
        ...

    def gate(self, closed: bool) -> None:
        """Let the output down, or up again."""
        ...

    def mark(self, marker: int) -> None:
        """Let the rows from the next tick on carry `marker`."""
        ...

    def rows(self, first: int, marker: int) -> Rows:
        """Return the rows with this marker, as far as the trace has them, from number `first` on."""
        ...

    def note(self, kind: str, /, **fields: Any) -> None:
        """Write a record of the journal, once everything that happened before it is in the recording."""
        ...


def rendered(config: SessionConfig) -> tuple[Any, ...]:
    """Return what may change from one interval to the next: law, element, scene."""
    return config.law, config.element, config.scene
