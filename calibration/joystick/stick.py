"""First step of a calibration: counts of the stick at known places of the handle, and metres per count."""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.person import GATES, MIDDLE, TURNS, Pair, Person, Place, Request
from devices.common.bus import TransferError
from devices.joystick.device import THE_MOTORS, StickSettings, playing
from devices.joystick.hid.usages import X, Y
from devices.joystick.parameters import Axes, DeviceIdentity
from devices.joystick.streaming import Streaming
from devices.joystick.usb.finding import connect
from devices.joystick.usb.transport import Link
from haptics.errors import ConfigurationError, DeviceFault

SILENCE = 0.25
"""Time without a report after which a stick has failed [s]."""

PAUSE = 1e-3
"""Time between two polls of the stick [s]."""


class RawStick:
    """Open stick with its effects running at level zero; a context manager.

    However the context is left, the force is zero afterwards and the stick is returned to the operating system. If this
    process dies inside, the stick ends its effects by itself after ``settings.force_duration``.

    Parameters
    ----------
    settings : StickSettings
        Settings that select the stick, its transport, and the duration of its effects.
    backend : usb.backend.IBackend, optional
        USB backend to use instead of libusb.
    wheel : bool
        Whether it has one axis.

    Attributes
    ----------
    link : Link
        Properties of the stick.
    ranges : tuple of (int, int)
        Minimum and maximum count of each axis.
    usages : tuple of int
        Usages of the axes.
    full_scale : int
        Number of steps of a level between 0 and 1.
    quantum : int
        Greatest common divisor of all observed steps of the counts, 0 without steps.
    """

    link: Link
    ranges: tuple[tuple[int, int], ...]
    usages: tuple[int, ...]
    full_scale: int
    _streaming: Streaming

    def __init__(self, settings: StickSettings, backend: Any = None, *, wheel: bool = False) -> None:
        self.settings = settings
        self._axes = THE_MOTORS if wheel else (X, Y)
        self._backend = backend
        self.quantum = 0
        self._first: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        """Open the stick and set it up.

        Raises
        ------
        DeviceNotFoundError, DeviceOpenError
            With the remedy.
        """
        own = self.settings
        with contextlib.ExitStack() as undo:
            transport = connect("", own.serial, own.transport, self._backend, own.port)
            undo.callback(transport.close)
            streaming = undo.enter_context(playing(transport, own.force_duration, own.keep_alive, self._axes))
            self.link, self.full_scale = transport.link, streaming.full_scale
            self.ranges, self.usages = streaming.layout.ranges, streaming.layout.usages
            self._streaming = streaming
            self._begun = time.perf_counter()
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Set the force to zero and release the stick."""
        self._undo.close()

    # --- measurement --------------------------------------------------------------------------------------------------

    def counts(self) -> tuple[int, int]:
        """Return the present counts of both axes; for a wheel the second is 0.

        Raises
        ------
        DeviceFault
            If the stick was removed or does not report.
        """
        sample = self._alive().sample
        assert sample is not None
        now = sample.x, sample.y
        first = self._first = self._first or now
        self.quantum = math.gcd(self.quantum, now[0] - first[0], now[1] - first[1])
        return now

    def start_once(self, level: float) -> None:
        """Start a force along the first axis with the given level, which is not renewed.

        Raises
        ------
        DeviceFault
            If the stick was removed or does not report.
        """
        try:
            self._alive().start_once(level)
        except TransferError as error:
            raise DeviceFault(str(error)) from error

    def _alive(self) -> Streaming:
        streaming = self._streaming
        if streaming.fault is not None:
            raise DeviceFault(str(streaming.fault)) from streaming.fault
        if time.perf_counter() - max(streaming.heard, self._begun) > SILENCE:
            raise DeviceFault(f"the stick has sent no complete report for {SILENCE:g} s: check cable and hub.")
        return streaming


# --- fit of the axes --------------------------------------------------------------------------------------------------

LEAST_TRAVEL = 20
"""Minimum number of distinct counts over the whole travel."""

LARGEST_MISFIT = 0.06
"""Maximum misfit of the positions as a fraction of the smaller travel."""

_STEEPEST = 0.5
"""Minimum sine of the angle between the two axes."""

Ranges = tuple[tuple[int, int], ...]


def counts_of(axes: Axes, positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the counts at positions, (2,) or (n, 2) [m]; the second count of a wheel is constant."""
    matrix = np.array(axes.counts_to_m)
    if axes.rim_radius_m:
        per_metre = np.array(((1.0 / matrix[0, 0], 0.0), (0.0, 0.0)))
        return np.asarray(positions @ per_metre.T + axes.centre_counts)
    return np.asarray(np.linalg.solve(matrix, positions.T).T + axes.centre_counts)


def fit_rim(
    places: Sequence[Place], counts: NDArray[np.float64], radius: float, turn: float, ranges: Ranges
) -> tuple[Axes, float]:
    """Fit the axis of a wheel along its rim; return the axes and the misfit of the positions.

    Parameters
    ----------
    places : sequence of Place
        Positions of the wheel as fractions of `turn`.
    counts : array, (n,)
        Counts at these positions.
    radius : float
        Radius of the rim [m].
    turn : float
        Angle of the wheel at a position of 1 [rad].
    ranges : tuple of (int, int)
        Minimum and maximum count of the axis.

    Raises
    ------
    ConfigurationError
        As `fit_axes`.
    """
    low, high = ranges[0]
    way = radius * turn * np.array([place.x for place in places])
    _require_counts(places, counts[:, None], ranges)
    per_metre, centre = np.polyfit(way, counts, 1)
    off = np.abs((counts - centre) / per_metre - way)
    _require_fit(places, off, 2.0 * radius * turn)
    reach = float(min(high - centre, centre - low) / abs(per_metre))
    axes = Axes(
        centre_counts=(float(centre), 0.0),
        counts_to_m=((float(1.0 / per_metre), 0.0), (0.0, 0.0)),
        workspace_min_m=(-reach, -radius),
        workspace_max_m=(reach, radius),
        rim_radius_m=radius,
    )
    return axes, float(off.max())


def fit_axes(places: Sequence[Place], counts: NDArray[np.float64], travel: Pair, ranges: Ranges) -> tuple[Axes, float]:
    """Fit the axes of a stick; return the axes and the misfit of the positions.

    Counts are modelled as a linear function of the position of the handle, fitted by least squares.

    Parameters
    ----------
    places : sequence of Place
        Positions of the handle.
    counts : array, (n, 2)
        Counts at these positions.
    travel : (float, float)
        Total travel along x and y [m].
    ranges : tuple of (int, int)
        Minimum and maximum count of each axis.

    Returns
    -------
    (Axes, float)
        Axes, and the largest distance between a position and its prediction [m].

    Raises
    ------
    ConfigurationError
        If the handle was not moved or was moved to wrong positions, or an axis has too small a range.
    """
    half = 0.5 * np.array(travel)
    points = np.array([(place.x, place.y) for place in places]) * half
    _require_counts(places, counts, ranges)
    design = np.column_stack((points, np.ones(len(points))))
    solution: NDArray[Any] = np.linalg.lstsq(design, counts, rcond=None)[0]
    per_metre, centre = solution[:2].T, solution[2]
    first, second = per_metre.T
    sine = abs(np.linalg.det(per_metre)) / max(float(np.hypot(*first) * np.hypot(*second)), 1e-300)
    if not sine > _STEEPEST:
        raise ConfigurationError(
            "the two axes are not independent: the counts change almost alike along x and along y. Begin again, and "
            "bring the handle to each place as it is called."
        )
    to_metres = np.linalg.inv(per_metre)
    off = np.hypot(*(to_metres @ (counts - centre).T - points.T))
    _require_fit(places, off, min(travel))
    a, b = to_metres.tolist()
    axes = Axes(
        centre_counts=(float(centre[0]), float(centre[1])),
        counts_to_m=((a[0], a[1]), (b[0], b[1])),
        workspace_min_m=(-float(half[0]), -float(half[1])),
        workspace_max_m=(float(half[0]), float(half[1])),
    )
    return axes, float(off.max())


def _require_fit(places: Sequence[Place], off: NDArray[np.float64], travel: float) -> None:
    worst = int(np.argmax(off))
    if off[worst] > LARGEST_MISFIT * travel:
        raise ConfigurationError(
            f"the places do not fit together: at {places[worst].words} the handle was {1e3 * off[worst]:.1f} mm from "
            "the place expected from the others. Start again, move the handle to each place when prompted, and hold it "
            "there, a stick against the stops."
        )


def _require_counts(places: Sequence[Place], counts: NDArray[np.float64], ranges: Ranges) -> None:
    """Validate that the handle moved, and that no converter saturates: motion beyond its range is not detected."""
    for (other, before), (place, pair) in itertools.combinations(zip(places, counts, strict=True), 2):
        if np.abs(pair - before).max() < LEAST_TRAVEL:
            here, there = (f"({one[0]:.0f}, {one[-1] if len(one) > 1 else 0.0:.0f})" for one in (pair, before))
            raise ConfigurationError(
                f"the counts at {place.words} are those at {other.words}: {here} and {there}. Move the handle, and "
                "make sure that it is this stick's."
            )
    for place, pair in zip(places, counts, strict=True):
        for axis, count, (low, high) in zip("XY"[: len(ranges)], pair, ranges, strict=True):
            if low < high and not low < count < high:
                raise ConfigurationError(
                    f"at {place.words} axis {axis} is at the end of its range, {count:g}, but the handle moves on. "
                    "Set the range of the axis to the whole travel with its maker's tool, then begin again."
                )


# --- places -----------------------------------------------------------------------------------------------------------

LOOK = 0.2
"""Duration of the measurement at a place [s]."""

_RESTLESS, _FLICKER = 0.02, 4.0
_TRIES = 3

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MeasuredAxes:
    """Result of the first step.

    Attributes
    ----------
    device : DeviceIdentity
        Identity of the stick.
    axes : Axes
        Conversion from counts to metres.
    misfit : float
        Misfit of the places [m].
    quantum : int
        Greatest common divisor of all steps of the counts.
    full_scale : int
        Number of steps of a level between 0 and 1.
    """

    device: DeviceIdentity
    axes: Axes
    misfit: float
    quantum: int
    full_scale: int

    def counts(self, position: Array) -> tuple[int, int]:
        """Return the counts at a position [m]."""
        x, y = counts_of(self.axes, position)
        return (round(x), round(y)) if math.isfinite(x + y) else (0, 0)

    def steps(self, positions: Array) -> int:
        """Return the greatest common divisor of all steps of the counts."""
        whole = positions[np.isfinite(positions).all(axis=1)]
        counts = np.rint(counts_of(self.axes, whole))
        return int(np.gcd.reduce(np.unique(np.abs(counts - counts[0]).astype(int)), initial=0)) if len(counts) else 0


def measure_axes(settings: StickSettings, backend: Any, person: Person, request: Request) -> MeasuredAxes:
    """Ask the person to move the handle to its places, and fit the axes to the counts there.

    Raises
    ------
    ConfigurationError
        If it was not held still, or the measurements are inconsistent.
    HapticError
        As in `RawStick`.
    """
    places = TURNS if request.rim_radius else GATES[request.gate]
    with RawStick(settings, backend, wheel=bool(request.rim_radius)) as stick:
        person.show_message(f"Calibrating {stick.link}. Ctrl-C ends it at any time, and there is no force then.")
        if request.rim_radius:
            person.show_message(f"The angle is {request.turn:g} degrees from straight ahead.")
        counts = np.array([_mean_counts_at(stick, person, place) for place in places])
        person.bring(MIDDLE, stick.counts)
        if request.rim_radius:
            axes, misfit = fit_rim(places, counts[:, 0], request.rim_radius, math.radians(request.turn), stick.ranges)
        else:
            travel = request.travel_x or 0.0, request.travel_y or 0.0
            axes, misfit = fit_axes(places, counts, travel, stick.ranges)
        person.show_message(f"The places fit to {1e3 * misfit:.2f} mm.")
        axes = replace(axes, usage_x=stick.usages[0])
        link = stick.link
        same = ("vendor_id", "product_id", "serial", "name", "out_endpoint", "bcd_device")
        device = DeviceIdentity(
            report_descriptor_sha256=link.digest,
            in_interval_s=link.in_interval,
            out_interval_s=link.out_interval,
            **{name: getattr(link, name) for name in same},
        )
        return MeasuredAxes(device, axes, misfit, stick.quantum, stick.full_scale)


def _mean_counts_at(stick: RawStick, person: Person, place: Place) -> Array:
    """Return the mean counts at a place, where the handle must be still."""
    for _ in range(_TRIES):
        person.bring(place, stick.counts)
        end, seen = time.perf_counter() + LOOK, []
        while time.perf_counter() < end:
            seen.append(stick.counts())
            time.sleep(PAUSE)
        table = np.array(seen, dtype=float)
        spread = float(np.ptp(table, axis=0).max())
        if spread <= max(_RESTLESS * min(high - low for low, high in stick.ranges), _FLICKER):
            mean: Array = table.mean(axis=0)
            person.show_message(f"At {place.words} the counts are ({mean[0]:.0f}, {mean[1]:.0f}).")
            return mean
        person.show_message(f"The handle moved meanwhile, by {spread:.0f} counts: hold it still.")
    raise ConfigurationError(f"the handle was not held still at {place.words}: begin again.")
