"""Interfaces between trials and the servo, with or without a clock.

A script is a generator. Its requests to the stage take effect at the next tick. It yields the number of ticks to wait
before it continues. The same script therefore runs in real time and without a clock.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol, TypeVar

from apps.settings.config import SessionConfig
from haptics.records import Rows

_T = TypeVar("_T")

Script = Generator[int, None, _T]
"""Generator that yields numbers of ticks to wait, and returns its result."""


class Stage(Protocol):
    """Running session of the servo.

    Attributes
    ----------
    period : float
        Sampling period [s].
    """

    period: float

    @property
    def count(self) -> int:
        """Number of rows in the trace."""
        ...

    @property
    def slots(self) -> Rows:
        """Ring buffer of the trace."""
        ...

    def apply_parameters(self, config: SessionConfig) -> None:
        """Apply other parameters at the next tick."""
        ...

    def gate(self, closed: bool) -> None:
        """Fade the output out or in."""
        ...

    def mark(self, marker: int) -> None:
        """Set the marker of the rows from the next tick on."""
        ...

    def rows(self, first: int, marker: int) -> Rows:
        """Return the rows with this marker from index `first` on, as far as the trace contains them."""
        ...

    def write_record(self, kind: str, /, **fields: Any) -> None:
        """Write a journal record.

        A stage without a clock first writes all previous ticks to the recording.
        """
        ...


def rendered(config: SessionConfig) -> tuple[Any, ...]:
    """Return the settings that may change between intervals: law, element, scene."""
    return config.law, config.element, config.scene
