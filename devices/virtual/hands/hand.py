"""Base class of virtual hands: target, grip, tremor and buttons.

A hand is a deterministic function of the device time. It is sampled once per tick for its target, and pulls the handle
to the target through its grip, a spring and a damper. The plant interpolates between two samples.

The hands of this package are parts (`devices.virtual.hands.kernels`), which the compiled loop can call. A hand may also
be a class in plain Python that implements only `Hand.sample`.
"""

from __future__ import annotations

import functools
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from devices.common.settings import ROUNDING, Point, Timed, Workspace, parts_of
from devices.virtual.hands.records import EDGE, WAVES
from haptics.device import Vector
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, documented, unrestricted

# --- button presses ---------------------------------------------------------------------------------------------------

MOST_BUTTONS = 31
"""Maximum button number; button n is bit n of the column ``buttons``."""

CLICK = 0.1
"""Default duration of a press [s]."""

_FORM = "a list of texts BUTTON@SECONDS+DURATION, such as ['2@1.5+0.2']"


@dataclass(frozen=True, slots=True)
class Press(Timed):
    """Press of a button at a time.

    ``str()`` gives text such as ``2@1.5+0.2``, which `parse_presses` parses.

    Attributes
    ----------
    name : str
        Number of the button; button 0, the dead-man's button, belongs to the grip.
    duration : float or None
        Duration of the press [s]; None for `CLICK`.

    Raises
    ------
    ConfigurationError
        If the button does not exist, or the time is invalid.
    """

    KIND: ClassVar[str] = "press"

    def __post_init__(self) -> None:
        if not (self.name.isascii() and self.name.isdecimal() and 1 <= int(self.name) <= MOST_BUTTONS):
            grip = " (0, the dead-man's, is held by a firm grip)" if self.name == "0" else ""
            raise ConfigurationError(f"press {self}: must be of a button with a number from 1 to {MOST_BUTTONS}{grip}.")
        Timed.__post_init__(self)  # `super()` without arguments fails here: `slots=True` creates the class twice


def parse_presses(texts: Any, where: str) -> tuple[Press, ...]:
    """Parse a list of ``BUTTON@SECONDS`` or ``BUTTON@SECONDS+DURATION``; `where` is its name in messages.

    Raises
    ------
    ConfigurationError
        With the invalid text and the allowed form.
    """
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ConfigurationError(f"{where} = {texts!r}: must be {_FORM}.")
    presses = []
    for text in texts:
        parts = parts_of(text)
        if parts is None:
            raise ConfigurationError(f"{where} has {text!r}: must be {_FORM}.")
        presses.append(Press(*parts))
    return tuple(presses)


def edges_of(presses: Iterable[Press]) -> NDArray[Any]:
    """Return the table of pressed buttons, (n,) of dtype `EDGE`, sorted by time.

    A tick that is due at the end of a press is outside.
    """
    spans = []
    for press in presses:
        end = press.start + (CLICK if press.duration is None else press.duration) - ROUNDING
        spans.append((press.start - ROUNDING, end, 1 << int(press.name)))
    times = sorted({time for begin, end, _ in spans for time in (begin, end)})
    edges = np.zeros(len(times), EDGE)
    edges["time"] = times
    for begin, end, bit in spans:
        edges["buttons"][np.searchsorted(times, begin) : np.searchsorted(times, end)] |= bit
    return edges


# --- tremor -----------------------------------------------------------------------------------------------------------

LOWEST, HIGHEST = 8.0, 12.0


def fill_tremor(record: NDArray[Any], amplitude: float, seed: int) -> None:
    """Write the tremor to a record, (1,), with `TREMOR_FIELDS`.

    Parameters
    ----------
    amplitude : float
        Root mean square of the norm of the force [N].
    seed : int
        Seed of the random numbers.
    """
    generator = random.Random(seed)
    size = amplitude * math.sqrt(2.0 / WAVES)
    record["trembles"] = amplitude > 0.0
    waves = []
    for _ in range(WAVES):
        frequency = LOWEST + (HIGHEST - LOWEST) * generator.random()
        phase, direction = (2.0 * math.pi * generator.random() for _ in range(2))
        waves.append((2.0 * math.pi * frequency, phase, size * math.cos(direction), size * math.sin(direction)))
    record["waves"] = waves


# --- hands ------------------------------------------------------------------------------------------------------------


class HandSample(NamedTuple):
    """State of a hand at one instant.

    Attributes
    ----------
    x, y : float
        Target of the handle [m].
    force_x, force_y : float
        Force in addition to the force of the grip [N].
    grip : float
        Effective fraction of the stiffness and damping of the grip, 0 (released) to 1.
    buttons : int
        Pressed buttons of the device: button n is bit n, from 1 on; bit 0 is derived from the grip.
    """

    x: float
    y: float
    force_x: float = 0.0
    force_y: float = 0.0
    grip: float = 1.0
    buttons: int = 0


class Hand(ABC):
    """Hand on the handle of a virtual device.

    Attributes
    ----------
    stiffness, damping : float
        Stiffness [N/m] and damping [N s/m] of the grip, between the handle and the target of the hand.
    start : (x, y)
        Position of the handle when the device is opened [m].
    """

    stiffness: float
    damping: float
    start: Point

    @abstractmethod
    def sample(self, time: float, handle: Vector) -> HandSample:
        """Return the state of the hand at `time` [s]; `handle` is the last measured position, (2,) [m]."""

    def prepare(self) -> None:  # noqa: B027 (optional override)
        """Compile `sample` in advance, without a change of the state."""

    def restart(self) -> None:  # noqa: B027 (optional override)
        """Reset the hand to time zero."""


class CompiledHand(Hand):
    """Hand that runs without Python, by a part that fills the sample.

    Parameters
    ----------
    kernel : str
        Name of the part in `devices.virtual.hands.kernels`.
    record : (1,) structured array
        Record that begins with `devices.virtual.hands.records.HAND_FIELDS`, in the initial state.
    settings : PressingSettings
        Button presses, and grip and tremor if the hand holds the handle.
    seed : int
        Seed of the tremor.
    start : (x, y)
        Position of the handle when the device is opened [m].
    tables : object
        Owner of the memory whose addresses are in the record.

    Attributes
    ----------
    place : int
        Address of the record.
    """

    def __init__(
        self, kernel: str, record: NDArray[Any], settings: PressingSettings, seed: int, start: Point, tables: object
    ) -> None:
        self.stiffness, self.damping, self.start = 0.0, 0.0, start
        if isinstance(settings, GripSettings):
            self.stiffness, self.damping = settings.stiffness, settings.damping
            fill_tremor(record, settings.tremor, seed)
        self._edges = edges_of(parse_presses(settings.presses, "hand.presses"))
        record["edges"], record["edge_count"] = self._edges.ctypes.data, len(self._edges)
        self._kernel, self._record, self._tables, self._initial = kernel, record, tables, record.copy()
        self.place: int = record.ctypes.data
        numbers = record.view(np.float64)  # all fields have this size, and `HAND_FIELDS` come first
        self._handle, self._sample = numbers[:2], numbers[2:7]
        self._buttons = record["buttons"]

    @functools.cached_property
    def address(self) -> int:
        """Address of the part, compiled on first use; listing the hands does not import numba."""
        from devices.virtual.hands import kernels
        from haptics.jit import address_of_part

        return address_of_part(getattr(kernels, self._kernel), self._record.dtype)

    def prepare(self) -> None:
        """Compile the part and its caller; see `Hand.prepare`."""
        from haptics.jit import run_part

        run_part(self.address, self._initial.copy().ctypes.data, 0.0, 0.0)

    def restart(self) -> None:
        """Reset the hand to time zero."""
        self._record[:] = self._initial

    def sample(self, time: float, handle: Vector) -> HandSample:
        """Return the state of the hand at `time` [s], computed by the part."""
        from haptics.jit import run_part

        self._handle[:] = handle
        run_part(self.address, self.place, time, 0.0)
        x, y, force_x, force_y, grip = self._sample.tolist()
        return HandSample(x, y, force_x, force_y, grip, int(self._buttons[0]))


@dataclass(frozen=True)
class HandSettings(ABC):
    """Base class of the settings of a hand."""

    @abstractmethod
    def build(self, seed: int, workspace: Workspace) -> Hand:
        """Create the hand; raise `ConfigurationError` if its motion does not fit into `workspace`."""


@documented
@dataclass(frozen=True)
class PressingSettings(HandSettings):
    """Settings of every named hand."""

    presses: Any = unrestricted(
        (), "a list of texts BUTTON@SECONDS+DURATION", doc="buttons that the hand presses, such as ['2@1.5+0.2']"
    )

    def __post_init__(self) -> None:
        check(self, "hand")
        parse_presses(self.presses, "hand.presses")
        object.__setattr__(self, "presses", tuple(self.presses))  # frozen; lists from a file become tuples


@documented
@dataclass(frozen=True)
class GripSettings(PressingSettings):
    """Settings of every hand that holds the handle."""

    stiffness: float = bounded(400.0, minimum=0.0, maximum=3000.0, unit="N/m", doc="stiffness of the grip")
    damping: float = bounded(8.0, minimum=0.0, maximum=50.0, unit="N s/m", doc="damping of the grip")
    tremor: float = bounded(
        0.0, minimum=0.0, maximum=2.0, unit="N", doc="rms force of the hand's tremor, at 8 to 12 Hz"
    )


def number_rows(value: Any, width: int, where: str) -> tuple[tuple[float, ...], ...]:
    """Return `value`, a list of lists of `width` finite numbers, as tuples of floats.

    Raises
    ------
    ConfigurationError
        With the invalid row of `where`.
    """
    if not isinstance(value, list | tuple):
        raise ConfigurationError(f"{where} = {value!r}: must be a list of rows of {width} numbers.")
    rows = []
    for number, row in enumerate(value):
        sound = isinstance(row, list | tuple) and len(row) == width
        for item in row if sound else ():
            sound &= isinstance(item, int | float) and not isinstance(item, bool) and abs(item) < 1e300
        if not sound:
            raise ConfigurationError(f"{where}[{number}] = {row!r}: must be {width} finite numbers.")
        rows.append(tuple(float(item) for item in row))
    return tuple(rows)
