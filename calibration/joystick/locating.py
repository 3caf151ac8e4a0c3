"""First step of a calibration: the person moves the handle to known places, where counts are read."""

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
"""Duration of the measurement at a place [s]."""

_RESTLESS, _FLICKER = 0.02, 4.0
_TRIES = 3

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Seen:
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


def look(settings: StickSettings, backend: Any, person: Person, request: Request) -> Seen:
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
            axes, misfit = fit_axes(places, counts, request.travel, stick.ranges)
        person.show_message(f"The places fit to {1e3 * misfit:.2f} mm.")
        axes = replace(axes, usage_x=stick.usages[0])
        return Seen(_identity(stick), axes, misfit, stick.quantum, stick.full_scale)


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
