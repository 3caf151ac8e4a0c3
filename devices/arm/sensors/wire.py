"""Interface of a kind of force sensor, and its samples."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple, Protocol


class Health(IntEnum):
    """Validity of a measurement."""

    OK = 0
    WARNING = 1
    """Valid, with a condition to report."""
    FAULT = 2
    """Invalid: the sensor is overloaded or broken."""


class Sample(NamedTuple):
    """Measurement as received.

    Attributes
    ----------
    wrench : tuple of 6 floats
        Wrench in sensor axes [N], [N m].
    received : float
        Time of reception [s, perf_counter].
    measured : float
        Time at which this measurement was received first, without repetitions [s, perf_counter].
    health : Health
        Validity.
    words : str
        Description of the problem; empty if none.
    """

    wrench: tuple[float, ...]
    received: float
    measured: float
    health: Health = Health.OK
    words: str = ""


class Wire(Protocol):
    """Communication with one kind of sensor.

    Attributes
    ----------
    name : str
        Name of the sensor, for messages.
    silence : str
        Remedy if no data arrive.
    tally : mapping
        Counters of received and missing data, by name.
    """

    name: str
    silence: str

    @property
    def tally(self) -> Mapping[str, int]:
        """Counters of received and missing data."""
        ...

    def open(self) -> None:
        """Connect, configure and start the stream.

        Raises `DeviceNotFoundError` or `DeviceOpenError` with the remedy.
        """
        ...

    def poll(self, patience: float) -> Sample | None:
        """Wait for at most `patience` [s]; read all data and return the newest sample; raise `DeviceFault`."""
        ...

    def zero(self) -> None:
        """Tare the sensor and continue the stream."""
        ...

    def close(self) -> None:
        """Stop the stream and disconnect, ignoring errors; may be called at any time."""
        ...
