"""Interface of a kind of force sensor, and the sample that comes from it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple, Protocol


class Health(IntEnum):
    """Whether a measurement can be trusted."""

    OK = 0
    WARNING = 1
    """It can; there is something to know all the same."""
    FAULT = 2
    """It cannot: the sensor is overloaded or broken."""


class Sample(NamedTuple):
    """One measurement as it came from the wire.

    Attributes
    ----------
    wrench : tuple of 6 floats
        In the axes of the sensor [N], [N m].
    received : float
        When it came [s, perf_counter].
    measured : float
        When a measurement came that was not the one before [s, perf_counter].
    health : Health
        Whether it can be trusted.
    words : str
        What is the matter; empty if nothing.
    """

    wrench: tuple[float, ...]
    received: float
    measured: float
    health: Health = Health.OK
    words: str = ""


class Wire(Protocol):
    """One kind of sensor: how to talk to it.

    Attributes
    ----------
    name : str
        The sensor, for messages.
    silence : str
        What to do when nothing comes from it.
    tally : mapping
        What came and what did not, by name.
    """

    name: str
    silence: str

    @property
    def tally(self) -> Mapping[str, int]:
        """What came and what did not."""
        ...

    def open(self) -> None:
        """Connect, set up and start the stream; raise `DeviceNotFoundError` or `DeviceOpenError` with the remedy."""
        ...

    def look(self, patience: float) -> Sample | None:
        """Wait for at most `patience` [s]; take all that is there and return the newest; raise `DeviceFault`."""
        ...

    def zero(self) -> None:
        """Tare the sensor, and stream on."""
        ...

    def close(self) -> None:
        """Stop the stream and disconnect; does what it can, may be called at any time."""
        ...
