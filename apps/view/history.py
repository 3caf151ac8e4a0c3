"""The last seconds of the trace as contiguous columns, and their decimation for drawing. No Qt.

Decimation is anchored to the row numbers since the start of the run, not to the edge of the plot. The same samples are
chosen in every frame, so that moving lines do not flicker.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from haptics import records
from haptics.device import Causality
from haptics.records import Rows, Status

Floats = NDArray[np.float64]
"""A float64 array of shape (n,)."""
Indices = NDArray[np.intp]
"""An array of indices of shape (n,)."""


class Column(IntEnum):
    """Columns of a history, in display units; those of a vector are followed by its y component.

    Attributes
    ----------
    TIME
        Nominal time [s].
    X, PROXY_X
        Position of the end effector, and of the proxy [mm].
    VECTOR_X, FORCE
        Force shown as a vector [N], the command of an impedance device, else the force of the hand; and its norm.
    FRICTION, FRICTION_X
        Norm of the friction force, and the force [N].
    SPEED, VELOCITY_X
        Norm of the velocity of the end effector, and the velocity [mm/s].
    STICKING
        1 while sticking, else 0.
    LATENESS
        Start delay of the tick [us].
    ENERGY, WORK, DISSIPATED
        Energy injected by the loop, and since the first row the energy transferred from the end effector to the
        friction element, and dissipated by sliding friction [mJ].
    MEASURED_X
        Measured force [N].
    COMMAND_X
        Command to the device: a force [N], or a position [mm] for a device that takes positions.
    SLIDING, STRETCH
        Norms of the sliding velocity [mm/s] and of the elastic displacement [mm].
    REGION
        Region of the scene at the contact; 0 is the background, -1 means no scene.
    NORMAL
        Normal force against walls [N]; 0 without walls.
    """

    TIME, X, Y, PROXY_X, PROXY_Y, VECTOR_X, VECTOR_Y = range(7)
    FORCE, FRICTION, SPEED, STICKING, LATENESS, ENERGY = range(7, 13)
    VELOCITY_X, VELOCITY_Y, MEASURED_X, MEASURED_Y, FRICTION_X, FRICTION_Y, COMMAND_X, COMMAND_Y = range(13, 21)
    SLIDING, STRETCH, WORK, DISSIPATED, REGION, NORMAL = range(21, 27)


class History:
    """The newest rows of a run as columns, with a visible window.

    The window follows the newest row, or stays fixed (`hold`) while rows are added. The buffer grows with the rows up
    to twice the number of rows kept: columns stay contiguous, and old rows are moved only once per `kept` rows.

    Parameters
    ----------
    capacity : int
        Number of rows in the window.
    causality : str
        Causality of the device, which selects the force shown as a vector; see `Column.VECTOR_X`.
    kept : int
        Number of rows to keep; at least `capacity`.

    Attributes
    ----------
    capacity : int
        Number of rows in the window; can be changed, up to `kept`.
    count : int
        Total number of rows appended.
    held : bool
        Whether the window is fixed.
    """

    def __init__(self, capacity: int, causality: str = Causality.IMPEDANCE, kept: int = 0) -> None:
        self.capacity = max(int(capacity), 2)
        self.kept = max(int(kept), self.capacity)
        impedance = causality == Causality.IMPEDANCE
        self._vector = "command" if impedance else "force"
        self._command_scale = 1.0 if impedance else 1e3
        self._data = np.zeros((len(Column), 0))
        self._stop: int | None = None
        self.held = False
        self.clear()

    def __len__(self) -> int:
        return self.stop - self.first

    @property
    def oldest(self) -> int:
        """Number of the oldest row kept, counted from the start of the run."""
        return self.count - self._length

    @property
    def stop(self) -> int:
        """Number of the row after the newest one in the window."""
        if self._stop is None:
            return self.count
        return min(max(self._stop, min(self.oldest + 1, self.count)), self.count)

    @property
    def first(self) -> int:
        """Number of the oldest row in the window."""
        return max(self.stop - self.capacity, self.oldest)

    def hold(self, stop: int | None) -> None:
        """Fix the end of the window before row number `stop`, or follow the newest row if None."""
        self._stop, self.held = stop, stop is not None

    def column(self, column: Column) -> Floats:
        """Return a view of one column in the window, oldest first; valid until the next `append`."""
        newest = self._end - (self.count - self.stop)
        view: Floats = self._data[column, newest - len(self) : newest]
        return view

    def newest(self, column: Column) -> float:
        """Return the newest value of a column in the window, or 0 if the window is empty."""
        return float(self.column(column)[-1]) if len(self) else 0.0

    def clear(self) -> None:
        """Remove all rows."""
        self.count = self._length = self._end = 0

    def append(self, rows: Rows) -> None:
        """Add trace rows (dtype `haptics.records.ROW`), oldest first."""
        if not len(rows):
            return
        self.count += len(rows)
        rows = rows[-self.kept :]
        size = len(rows)
        if self._end + size > self._data.shape[1]:
            # Move the kept rows to the front, in a longer buffer if it is not yet twice as long as `kept`.
            target = min(2 * self.kept, 2 * (self._length + size))
            data = np.zeros((len(Column), target)) if target > self._data.shape[1] else self._data
            data[:, : self._length] = self._data[:, self._end - self._length : self._end]
            self._data, self._end = data, self._length
        self._fill(rows, slice(self._end, self._end + size))
        self._end += size
        self._length = min(self._length + size, self.kept)

    def _fill(self, rows: Rows, place: slice) -> None:
        data = self._data
        data[Column.TIME, place] = rows["time"]
        vector = rows[self._vector]
        data[Column.FORCE, place] = np.hypot(vector[:, 0], vector[:, 1])
        for column, values in (
            (Column.X, 1e3 * rows["position"]),
            (Column.PROXY_X, 1e3 * rows["proxy"]),
            (Column.VECTOR_X, vector),
            (Column.VELOCITY_X, 1e3 * rows["velocity"]),
            (Column.MEASURED_X, rows["force"]),
            (Column.FRICTION_X, rows["friction_force"]),
            (Column.COMMAND_X, self._command_scale * rows["command"]),
        ):
            data[column : column + 2, place] = values.T
        for column, norm, factor in (
            (Column.FRICTION, "friction_force", 1.0),
            (Column.SPEED, "velocity", 1e3),
            (Column.SLIDING, "sliding_velocity", 1e3),
            (Column.STRETCH, "displacement", 1e3),
        ):
            data[column, place] = factor * np.hypot(rows[norm][:, 0], rows[norm][:, 1])
        data[Column.STICKING, place] = rows["sticking"] != 0
        data[Column.LATENESS, place] = 1e6 * rows["period_error"]
        data[Column.ENERGY, place] = 1e3 * rows["injected_energy"]
        data[Column.REGION, place] = records.column(rows, "region")
        data[Column.NORMAL, place] = records.column(rows, "normal_force")
        # The envelope flags non-finite rows; here they must only not break the drawing.
        np.nan_to_num(data[:, place], copy=False, nan=0.0, posinf=0.0, neginf=0.0)
        # Columns that are integrals over time: each row covers the time since the previous row.
        start, times = place.start, data[Column.TIME, place]
        before = data[:, start - 1] if start else np.zeros(len(Column))
        seconds = np.maximum(np.diff(times, prepend=before[Column.TIME] if start else times[0]), 0.0)
        for column, velocity in ((Column.WORK, rows["velocity"]), (Column.DISSIPATED, rows["sliding_velocity"])):
            power = np.nan_to_num((rows["friction_force"] * velocity).sum(axis=1), posinf=0.0, neginf=0.0)
            data[column, place] = before[column] + 1e3 * np.cumsum(power * seconds)


def every(first: int, length: int, stride: int) -> Indices:
    """Return the indices of the rows whose number is a multiple of `stride`, and of the newest row.

    Rows are numbered from the start of the run.
    """
    start = -first % stride
    chosen = np.arange(start, length, stride)
    if length and (not len(chosen) or chosen[-1] != length - 1):
        chosen = np.append(chosen, length - 1)
    return chosen


def envelope(values: Floats, first: int, size: int) -> tuple[Floats, Floats]:
    """Reduce a signal to the minimum and maximum of every bin, so that no peak is lost.

    Parameters
    ----------
    values : (n,) float array
        The signal.
    first : int
        Row number of the first value since the start of the run.
    size : int
        Rows per bin.

    Returns
    -------
    positions, extremes : (m,) float arrays
        Two points per bin in temporal order; positions are indices into `values`.
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
        One point per bin, at its centre; positions are indices into `values`.
    """
    start = -first % size
    bins = max((len(values) - start) // size, 0)
    body = values[start : start + bins * size].reshape(bins, size)
    centres = start + size * (np.arange(bins, dtype=np.float64) + 0.5)
    return np.asarray(centres, np.float64), np.asarray(body.mean(axis=1), np.float64)


def arrow(x: float, y: float, along_x: float, along_y: float, barb: float) -> tuple[Floats, Floats]:
    """Return the shaft and the barbs of one arrow as three pairs of vertices: two arrays of shape (6,).

    `barb` is the length of a barb, limited to half the length of the shaft.
    """
    length = np.hypot(along_x, along_y)
    if not length > 0:
        return np.full(6, x), np.full(6, y)
    reach = min(barb, 0.5 * length) / length
    tip_x, tip_y = x + along_x, y + along_y
    cosine, sine = -0.88 * reach, 0.47 * reach  # the barbs fold back by 28 degrees
    left = tip_x + cosine * along_x - sine * along_y, tip_y + cosine * along_y + sine * along_x
    right = tip_x + cosine * along_x + sine * along_y, tip_y + cosine * along_y - sine * along_x
    return (
        np.array([x, tip_x, tip_x, left[0], tip_x, right[0]]),
        np.array([y, tip_y, tip_y, left[1], tip_y, right[1]]),
    )


class Durations:
    """Histogram of durations, in bins of equal ratio from 0.1 us to 10 ms.

    Attributes
    ----------
    counts : (50,) int array
        Ticks per bin. Values outside the range are counted in the first and the last bin.
    maximum : float
        Largest value added [us].
    """

    EDGES: Floats = np.linspace(-1.0, 4.0, 51)
    """Edges of the bins, as decimal logarithms of microseconds."""

    def __init__(self) -> None:
        self.counts: NDArray[np.int64] = np.zeros(len(self.EDGES) - 1, np.int64)
        self.maximum = 0.0

    def add(self, durations: Floats) -> None:
        """Add values [us]."""
        if len(durations):
            self.counts += self.histogram(durations)
            self.maximum = max(self.maximum, float(durations.max()))

    @classmethod
    def histogram(cls, durations: Floats) -> NDArray[np.int64]:
        """Return the number of `durations` [us] in each bin."""
        bins, first, last = len(cls.EDGES) - 1, cls.EDGES[0], cls.EDGES[-1]
        place = (np.log10(np.maximum(durations, 10**first)) - first) * (bins / (last - first))
        return np.bincount(np.minimum(place.astype(np.intp), bins - 1), minlength=bins)


FLAGS: tuple[Status, ...] = tuple(Status)
"""The counted flags: all flags."""

_LATE = int(Status.STARTED_LATE | Status.ENDED_LATE)


class Counts:
    """Accumulates counts over rows.

    Attributes
    ----------
    ticks : int
        Ticks read.
    late : int
        Ticks that started or ended late.
    skipped : int
        Skipped deadlines: gaps in the tick numbers, minus the rows that this reader lost.
    flags : (14,) int array
        Number of ticks with each flag of `FLAGS`.
    last : (14,) float array
        Time of the last tick with each flag [s]; minus infinity without such a tick.
    time : float
        Time of the newest row [s].
    newest : Status
        Flags of the newest row.
    largest_energy : float
        Maximum of the energy injected by the loop [J].
    lateness, tick_times : Durations
        Start delays and computation times.
    """

    def __init__(self) -> None:
        self.ticks = self.late = self.skipped = 0
        self.time = self.largest_energy = 0.0
        self.newest = Status(0)
        self.flags: NDArray[np.int64] = np.zeros(len(FLAGS), np.int64)
        self.last: Floats = np.full(len(FLAGS), -np.inf)
        self._previous_tick = -1
        self.lateness, self.tick_times = Durations(), Durations()

    def add(self, rows: Rows, unseen: int = 0) -> None:
        """Add rows, oldest first. `unseen` is the number of rows lost by the reader since the last call."""
        if not len(rows):
            return
        first, last = int(rows["tick"][0]), int(rows["tick"][-1])
        before = self._previous_tick if self._previous_tick >= 0 else first - 1
        self.skipped += max(last - before - len(rows) - unseen, 0)
        self._previous_tick = last
        self.ticks += len(rows)
        self.time = float(rows["time"][-1])
        status = rows["status"]
        self.newest = Status(int(status[-1]))
        self.largest_energy = float(np.fmax(self.largest_energy, np.fmax.reduce(rows["injected_energy"])))
        self.late += int(np.count_nonzero(status & _LATE))
        for number, flag in enumerate(FLAGS):
            hits = np.flatnonzero(status & int(flag))
            if len(hits):
                self.flags[number] += len(hits)
                self.last[number] = rows["time"][hits[-1]]
        self.lateness.add(1e6 * rows["period_error"])
        self.tick_times.add(1e6 * rows["tick_time"])


class RateMeter:
    """Measures the rate of rows over about one second of wall-clock time."""

    def __init__(self) -> None:
        self._marks: list[tuple[float, int]] = []

    def update(self, now: float, count: int) -> float | None:
        """Record that `count` rows have been read at time `now` [s].

        Return the rate [Hz]; None until it has been measured for half a second.
        """
        self._marks.append((now, count))
        while len(self._marks) > 2 and now - self._marks[1][0] >= 1.0:
            self._marks.pop(0)
        start, before = self._marks[0]
        return None if now - start < 0.5 else (count - before) / (now - start)


SEGMENT = 1.0
"""Maximum length of a segment [s]."""


@dataclass(frozen=True)
class Spectrum:
    """One-sided power spectral density, summed over both components of a vector.

    Attributes
    ----------
    frequency : (m,) float array
        From 0 to half the rate [Hz].
    density : (m,) float array
        Power spectral density, in the squared unit of the signal per hertz. Its integral is the variance.
    seconds : float
        Length of a segment [s].
    segments : int
        Number of segments averaged.
    """

    frequency: Floats
    density: Floats
    seconds: float
    segments: int

    @property
    def method(self) -> str:
        """Description of the method."""
        return (
            f"Welch: Hann window {self.seconds:.2g} s, {self.segments} segments that overlap by half, "
            f"resolution {1.5 / self.seconds:.2g} Hz"  # noise bandwidth of the Hann window, 1.5 bins
        )


def welch(x: Floats, y: Floats, rate: float) -> Spectrum | None:
    """Return the spectrum of the vector (x, y), sampled at `rate` [Hz]; None for fewer than 16 rows.

    Segments of `SEGMENT`, or the whole signal if it is shorter, overlap by half. The mean of each segment is removed.
    """
    size = min(len(x), round(SEGMENT * rate))
    if size < 16:
        return None
    starts = np.arange(0, len(x) - size + 1, max(size // 2, 1))
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    density = np.zeros(size // 2 + 1)
    for values in (x, y):
        parts = np.lib.stride_tricks.sliding_window_view(values, size)[starts]
        parts = (parts - parts.mean(axis=1, keepdims=True)) * window
        density += (np.abs(np.fft.rfft(parts, axis=1)) ** 2).mean(axis=0)
    density *= 2.0 / (rate * (window**2).sum())
    density[0] /= 2.0
    if size % 2 == 0:
        density[-1] /= 2.0
    frequency = np.linspace(0.0, rate / 2 if size % 2 == 0 else rate / 2 * (size - 1) / size, len(density))
    return Spectrum(frequency, np.asarray(density, np.float64), size / rate, len(starts))
