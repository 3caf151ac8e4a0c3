"""The first part of a calibration: a person brings the handle to places, and its counts are looked at."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.axes import counts_of, fit_axes, fit_rim
from calibration.joystick.person import GATES, MIDDLE, TURNS, Person, Place
from calibration.joystick.request import Request
from calibration.joystick.stick import PAUSE, RawStick
from devices.joystick.parameters import Axes, DeviceIdentity
from devices.joystick.settings import StickSettings
from haptics.errors import ConfigurationError

LOOK = 0.2
"""A place is looked at for so long [s]."""

_RESTLESS, _FLICKER = 0.02, 4.0
_TRIES = 3

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Seen:
    """What was found by looking.

    Attributes
    ----------
    device : DeviceIdentity
        Which stick it is.
    axes : Axes
        From counts to metres.
    misfit : float
        How badly the places fit together [m].
    quantum : int
        The largest number of which all steps of the counts were multiples.
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
        """Return the largest number of which all steps of the counts are multiples."""
        whole = positions[np.isfinite(positions).all(axis=1)]
        counts = np.rint(counts_of(self.axes, whole))
        return int(np.gcd.reduce(np.unique(np.abs(counts - counts[0]).astype(int)), initial=0)) if len(counts) else 0


def look(settings: StickSettings, backend: Any, person: Person, request: Request) -> Seen:
    """Have the handle brought to its places, and fit its axes to the counts there.

    Raises
    ------
    ConfigurationError
        If it was not held still, or what was seen makes no sense.
    HapticError
        As of `RawStick`.
    """
    places = TURNS if request.rim_radius else GATES[request.gate]
    with RawStick(settings, backend, wheel=bool(request.rim_radius)) as stick:
        person.tell(f"Calibrating {stick.link}. Ctrl-C ends it at any time, and there is no force then.")
        if request.rim_radius:
            person.tell(f"The angle is {request.turn:g} degrees from straight ahead.")
        counts = np.array([_look_at(stick, person, place) for place in places])
        person.bring(MIDDLE, stick.counts)
        if request.rim_radius:
            axes, misfit = fit_rim(places, counts[:, 0], request.rim_radius, math.radians(request.turn), stick.ranges)
        else:
            axes, misfit = fit_axes(places, counts, request.travel, stick.ranges)
        person.tell(f"The places fit to {1e3 * misfit:.2f} mm.")
        axes = replace(axes, usage_x=stick.usages[0])
        return Seen(_identity(stick), axes, misfit, stick.quantum, stick.full_scale)


def _look_at(stick: RawStick, person: Person, place: Place) -> Array:
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
            person.tell(f"At {place.words} the counts are ({mean[0]:.0f}, {mean[1]:.0f}).")
            return mean
        person.tell(f"The handle moved meanwhile, by {spread:.0f} counts: hold it still.")
    raise ConfigurationError(f"the handle was not held still at {place.words}: begin again.")


def _identity(stick: RawStick) -> DeviceIdentity:
    link = stick.link
    return DeviceIdentity(
        vendor_id=link.vendor_id,
        product_id=link.product_id,
        serial=link.serial,
        name=link.name,
        report_descriptor_sha256=link.digest,
        in_interval_s=link.in_interval,
        out_interval_s=link.out_interval,
        out_endpoint=link.out_endpoint,
        bcd_device=link.bcd_device,
    )
