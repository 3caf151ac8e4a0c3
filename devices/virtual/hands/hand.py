"""What every virtual hand has in common: where it wants the handle, how firmly it holds it, how it trembles.

A hand is a deterministic function of the device's time: it is asked once per tick where its target is, and pulls the
handle there through its grip, a spring and a damper. The plant interpolates between two such samples.

The hands of this package are parts (`devices.virtual.hands.kernels`), so that a compiled loop can ask them; a hand may
as well be a class in plain Python that has `Hand.sample` alone.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from devices.common.workspace import Point, Workspace
from devices.virtual.hands.presses import edges_of, parse_presses
from haptics.device import Vector
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, documented, free


class HandSample(NamedTuple):
    """The hand at one instant.

    Attributes
    ----------
    x, y : float
        Where it wants the handle [m].
    force_x, force_y : float
        Force it adds to that of its grip [N].
    grip : float
        Part of the grip's stiffness and damping that is in effect, 0 (let go) to 1.
    buttons : int
        The device's buttons that it holds: button n is bit n, from 1 on; bit 0 follows from the grip.
    """

    x: float
    y: float
    force_x: float = 0.0
    force_y: float = 0.0
    grip: float = 1.0
    buttons: int = 0


class Hand(ABC):
    """A hand on the handle of a virtual device.

    Attributes
    ----------
    stiffness, damping : float
        The grip, a spring [N/m] and a damper [N s/m] between the handle and the hand's target.
    start : (x, y)
        Where the handle is when the device is opened [m].
    """

    stiffness: float
    damping: float
    start: Point

    @abstractmethod
    def sample(self, time: float, handle: Vector) -> HandSample:
        """Return the hand at `time` [s]; `handle` is where the device last saw its handle, (2,) [m]."""

    def prepare(self) -> None:  # noqa: B027 (only a hand that is compiled has something to prepare)
        """Compile what `sample` needs, where somebody will wait for that; the hand stays as it is."""

    def restart(self) -> None:  # noqa: B027 (only a hand with a memory has something to forget)
        """Begin anew at time zero."""


HAND_FIELDS: list[tuple[Any, ...]] = [
    ("handle", "<f8", (2,)),
    ("target", "<f8", (2,)),
    ("force", "<f8", (2,)),
    ("grip", "<f8"),
    ("buttons", "<i8"),
    ("edges", "<i8"),
    ("edge_count", "<i8"),
]
"""What the record of a hand begins with: where the device last saw its handle [m], what a `HandSample` has, and where
the table of its presses lies, with how many rows (`devices.virtual.hands.presses.EDGE`)."""

HAND = np.dtype(HAND_FIELDS)


class CompiledHand(Hand):
    """A hand that moves without Python: by a part (`haptics.parts`) ``(record, time, 0.0)`` that fills in the sample.

    Parameters
    ----------
    record : (1,) structured array
        Begins with `HAND_FIELDS`; all else is the part's own.
    presses : sequence of str
        The buttons that it presses, and when (`devices.virtual.hands.presses`).

    Attributes
    ----------
    place : int
        Where the record lies in memory.
    """

    def __init__(self, record: NDArray[Any], presses: Sequence[str] = ()) -> None:
        self._record = record
        self._edges = edges_of(parse_presses(presses, "hand.presses"))
        record["edges"], record["edge_count"] = self._edges.ctypes.data, len(self._edges)
        self.place: int = record.ctypes.data
        numbers = record.view(np.float64)  # all fields are of this size, and `HAND_FIELDS` come first
        self._handle, self._sample = numbers[:2], numbers[2:7]
        self._buttons = record["buttons"]

    @property
    @abstractmethod
    def _part(self) -> Callable[..., None]:
        """The part's kernel, imported when it is asked for: whoever only names hands does without numba."""

    @functools.cached_property
    def address(self) -> int:
        """Where the part lies, compiled now if it never was."""
        from haptics.parts import address_of_part

        return address_of_part(self._part, self._record.dtype)

    def prepare(self) -> None:
        """Compile the part, and what calls it; see `Hand.prepare`."""
        from haptics.parts import run_part

        copy = self._record.copy()
        run_part(self.address, copy.ctypes.data, 0.0, 0.0)

    @functools.cached_property
    def _ask(self) -> Callable[[float, float], None]:
        from haptics.parts import run_part

        return functools.partial(run_part, self.address, self.place)

    def sample(self, time: float, handle: Vector) -> HandSample:
        """Return the hand at `time` [s], which the part says."""
        self._handle[:] = handle
        self._ask(time, 0.0)
        x, y, force_x, force_y, grip = self._sample.tolist()
        return HandSample(x, y, force_x, force_y, grip, int(self._buttons[0]))


@dataclass(frozen=True)
class HandSettings(ABC):
    """Base of the settings of a hand."""

    @abstractmethod
    def build(self, seed: int, workspace: Workspace) -> Hand:
        """Make the hand; raise `ConfigurationError` if it cannot do what it should within `workspace`."""


@documented
@dataclass(frozen=True)
class PressingSettings(HandSettings):
    """Settings of every hand that has a name."""

    presses: Any = free(
        (), "a list of texts BUTTON@SECONDS+DURATION", doc="buttons that it presses, such as ['2@1.5+0.2']"
    )

    def __post_init__(self) -> None:
        check(self, "hand")
        parse_presses(self.presses, "hand.presses")
        object.__setattr__(self, "presses", tuple(self.presses))  # frozen: lists from a file become tuples


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
        Naming the row of `where` that is wrong.
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
