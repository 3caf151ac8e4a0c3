"""Base class of virtual hands: target, grip, tremor and buttons.

A hand is a deterministic function of the device time. It is sampled once per tick for its target, and pulls the handle
to the target through its grip, a spring and a damper. The plant interpolates between two samples.

The hands of this package are parts (`devices.virtual.hands.kernels`), which the compiled loop can call. A hand may also
be a class in plain Python that implements only `Hand.sample`.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from devices.common.settings import Point, Workspace
from devices.virtual.hands.presses import edges_of, parse_presses
from haptics.device import Vector
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, documented, unrestricted


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


HAND_FIELDS: list[tuple[Any, ...]] = [
    ("handle", "<f8", (2,)),
    ("target", "<f8", (2,)),
    ("force", "<f8", (2,)),
    ("grip", "<f8"),
    ("buttons", "<i8"),
    ("edges", "<i8"),
    ("edge_count", "<i8"),
]
"""First fields of the record of a hand.

They are the last measured position of the handle [m], the fields of a `HandSample`, and the address and number of rows
of the table of button presses (`devices.virtual.hands.presses.EDGE`).
"""

HAND = np.dtype(HAND_FIELDS)

PIECE = np.dtype([("begin", "<f8"), ("end", "<f8"), ("cubic", "<f8", (2, 4))])
"""Piece of the path: start and end [s], and ascending coefficients of x and y [m]."""

ROW = np.dtype([("time", "<f8"), ("force", "<f8", (2,))])
"""Row of a script of forces: beginning [s] and force [N]."""


class CompiledHand(Hand):
    """Hand that runs without Python, by a part that fills the sample.

    The part has the signature ``(record, time, 0.0)`` (`haptics.parts`).

    Parameters
    ----------
    record : (1,) structured array
        Record that begins with `HAND_FIELDS`.
    presses : sequence of str
        Buttons that it presses, with times (`devices.virtual.hands.presses`).

    Attributes
    ----------
    place : int
        Address of the record.
    """

    def __init__(self, record: NDArray[Any], presses: Sequence[str] = ()) -> None:
        self._record = record
        self._edges = edges_of(parse_presses(presses, "hand.presses"))
        record["edges"], record["edge_count"] = self._edges.ctypes.data, len(self._edges)
        self.place: int = record.ctypes.data
        numbers = record.view(np.float64)  # all fields have this size, and `HAND_FIELDS` come first
        self._handle, self._sample = numbers[:2], numbers[2:7]
        self._buttons = record["buttons"]

    @property
    @abstractmethod
    def _part(self) -> Callable[..., None]:
        """Kernel of the part, imported on access, so that listing the hands does not import numba."""

    @functools.cached_property
    def address(self) -> int:
        """Address of the part, compiled on first use."""
        from haptics.parts import address_of_part

        return address_of_part(self._part, self._record.dtype)

    def prepare(self) -> None:
        """Compile the part and its caller; see `Hand.prepare`."""
        from haptics.parts import run_part

        copy = self._record.copy()
        run_part(self.address, copy.ctypes.data, 0.0, 0.0)

    @functools.cached_property
    def _evaluate(self) -> Callable[[float, float], None]:
        from haptics.parts import run_part

        return functools.partial(run_part, self.address, self.place)

    def sample(self, time: float, handle: Vector) -> HandSample:
        """Return the state of the hand at `time` [s], computed by the part."""
        self._handle[:] = handle
        self._evaluate(time, 0.0)
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
        (), "a list of texts BUTTON@SECONDS+DURATION", doc="buttons that it presses, such as ['2@1.5+0.2']"
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
        sound = isinstance(row, list | tuple) and len(row) == width and all(_is_finite(item) for item in row)
        if not sound:
            raise ConfigurationError(f"{where}[{number}] = {row!r}: must be {width} finite numbers.")
        rows.append(tuple(float(item) for item in row))
    return tuple(rows)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
