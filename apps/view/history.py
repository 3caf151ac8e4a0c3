"""The last seconds of the trace as contiguous columns, and the thinning that makes them quick to draw. No Qt.

Thinning is anchored to the number of a row since the start of the run, not to the edge of the picture: the same
samples are chosen in every frame, so that lines move without shimmering.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.records import Rows

Floats = NDArray[np.float64]
"""A float64 array of shape (n,)."""
Indices = NDArray[np.intp]
"""An array of indices of shape (n,)."""


class Column(IntEnum):
    """Columns of a history, in the units of the display."""

    TIME = 0
    """Nominal time [s]."""
    X = 1
    """End effector [mm]."""
    Y = 2
    PROXY_X = 3
    """Proxy [mm]."""
    PROXY_Y = 4
    VECTOR_X = 5
    """The force that is shown as a vector [N]: the command of an impedance device, the hand force otherwise."""
    VECTOR_Y = 6
    FORCE = 7
    """Its norm [N]."""
    FRICTION = 8
    """Norm of the friction force [N]."""
    SPEED = 9
    """Norm of the velocity of the end effector [mm/s]."""
    STICKING = 10
    """0 or 1."""
    LATENESS = 11
    """How late the tick started [us]."""
    ENERGY = 12
    """What the loop had injected [mJ]."""


class History:
    """The newest rows of a run, as columns.

    The buffer is twice as long as needed: columns stay contiguous and old rows are moved once per `capacity` rows.

    Parameters
    ----------
    capacity : int
        Rows to keep.
    causality : str
        Decides which force is the vector, see `Column.VECTOR_X`.

    Attributes
    ----------
    count : int
        Rows ever appended.
    """

    def __init__(self, capacity: int, causality: str = Causality.IMPEDANCE) -> None:
        self.capacity = max(int(capacity), 2)
        self._vector = "command" if causality == Causality.IMPEDANCE else "force"
        self._data = np.zeros((len(Column), 2 * self.capacity))
        self.clear()

    def __len__(self) -> int:
        return self._length

    @property
    def first(self) -> int:
        """Number of the oldest row kept, counted from the start of the run."""
        return self.count - self._length

    def column(self, column: Column) -> Floats:
        """Return a view of one column, oldest first; valid until the next `append`."""
        view: Floats = self._data[column, self._end - len(self) : self._end]
        return view

    def newest(self, column: Column) -> float:
        """Return the newest value of a column, zero if there is none."""
        return float(self._data[column, self._end - 1]) if self._length else 0.0

    def clear(self) -> None:
        """Forget all rows."""
        self.count = 0
        self._length = 0
        self._end = 0

    def append(self, rows: Rows) -> None:
        """Add trace rows (dtype `haptics.records.ROW`), oldest first."""
        self.count += len(rows)
        rows = rows[-self.capacity :]
        size = len(rows)
        if self._end + size > self._data.shape[1]:
            kept = self._length
            self._data[:, :kept] = self._data[:, self._end - kept : self._end].copy()
            self._end = kept
        self._fill(rows, slice(self._end, self._end + size))
        self._end += size
        self._length = min(self._length + size, self.capacity)

    def _fill(self, rows: Rows, place: slice) -> None:
        data = self._data
        data[Column.TIME, place] = rows["time"]
        data[Column.X : Column.Y + 1, place] = 1e3 * rows["position"].T
        data[Column.PROXY_X : Column.PROXY_Y + 1, place] = 1e3 * rows["proxy"].T
        vector = rows[self._vector]
        data[Column.VECTOR_X : Column.VECTOR_Y + 1, place] = vector.T
        data[Column.FORCE, place] = np.hypot(vector[:, 0], vector[:, 1])
        data[Column.FRICTION, place] = np.hypot(rows["friction_force"][:, 0], rows["friction_force"][:, 1])
        data[Column.SPEED, place] = 1e3 * np.hypot(rows["velocity"][:, 0], rows["velocity"][:, 1])
        data[Column.STICKING, place] = rows["sticking"] != 0
        data[Column.LATENESS, place] = 1e6 * rows["period_error"]
        data[Column.ENERGY, place] = 1e3 * rows["injected_energy"]
        # A row that is not finite is flagged by the envelope; here it must only not break the drawing.
        np.nan_to_num(data[:, place], copy=False, nan=0.0, posinf=0.0, neginf=0.0)


def every(first: int, length: int, stride: int) -> Indices:
    """Return the indices of rows whose number since the start is a multiple of `stride`, and of the newest row."""
    start = -first % stride
    chosen = np.arange(start, length, stride)
    if length and (not len(chosen) or chosen[-1] != length - 1):
        chosen = np.append(chosen, length - 1)
    return chosen


def envelope(values: Floats, first: int, size: int) -> tuple[Floats, Floats]:
    """Reduce a signal to the smallest and the largest value of every bin, so that no peak is lost.

    Parameters
    ----------
    values : (n,) float array
        The signal; its first value has the number `first` since the start of the run.
    size : int
        Rows per bin.

    Returns
    -------
    positions, extremes : (m,) float arrays
        Two points per bin, in the order in which they came; positions are indices into `values`.
    """
    if size <= 1 or len(values) < 2 * size:
        return np.arange(len(values), dtype=np.float64), values
    start = -first % size
    bins = (len(values) - start) // size
    stop = start + bins * size
    body = values[start:stop].reshape(bins, size)
    places = np.sort(np.stack((body.argmin(axis=1), body.argmax(axis=1)), axis=1), axis=1)
    places += start + size * np.arange(bins)[:, None]
    picked = np.concatenate((places.ravel(), np.arange(stop, len(values))))
    return picked.astype(np.float64), values[picked]


def averages(values: Floats, first: int, size: int) -> tuple[Floats, Floats]:
    """Reduce a signal to its mean over whole bins of `size` rows.

    Returns
    -------
    positions, means : (m,) float arrays
        One point per bin, at its middle row; positions are indices into `values`.
    """
    start = -first % size
    bins = max((len(values) - start) // size, 0)
    body = values[start : start + bins * size].reshape(bins, size)
    centres = start + size * (np.arange(bins) + 0.5)
    return centres.astype(np.float64), np.asarray(body.mean(axis=1), np.float64)


class Runs(NamedTuple):
    """Stretches of rows: index of the first row of each, and index after its last one."""

    start: Indices
    stop: Indices


def runs(flags: Floats) -> Runs:
    """Return the stretches in which `flags` is not zero."""
    edges = np.diff(np.concatenate(([0], (flags != 0).astype(np.int8), [0])))
    return Runs(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1))


def means(values: Floats, stretches: Runs) -> Floats:
    """Return the mean of `values` over each stretch."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    result: Floats = (sums[stretches.stop] - sums[stretches.start]) / np.maximum(stretches.stop - stretches.start, 1)
    return result


def segments(x: Floats, y: Floats, along_x: Floats, along_y: Floats) -> tuple[Floats, Floats]:
    """Return the vertices of n separate lines that start at (x, y), in pairs: two arrays of shape (2 n,)."""
    return np.stack((x, x + along_x), axis=1).ravel(), np.stack((y, y + along_y), axis=1).ravel()


def arrow(x: float, y: float, along_x: float, along_y: float, barb: float) -> tuple[Floats, Floats]:
    """Return shaft and two barbs of one arrow as three pairs of vertices: two arrays of shape (6,).

    `barb` is the length of a barb; it is shortened to half the shaft.
    """
    length = np.hypot(along_x, along_y)
    if not length > 0:
        return np.full(6, x), np.full(6, y)
    reach = min(barb, 0.5 * length) / length
    tip_x, tip_y = x + along_x, y + along_y
    cosine, sine = -0.88 * reach, 0.47 * reach  # barbs fold back by 28 degrees
    left = tip_x + cosine * along_x - sine * along_y, tip_y + cosine * along_y + sine * along_x
    right = tip_x + cosine * along_x + sine * along_y, tip_y + cosine * along_y - sine * along_x
    return (
        np.array([x, tip_x, tip_x, left[0], tip_x, right[0]]),
        np.array([y, tip_y, tip_y, left[1], tip_y, right[1]]),
    )
