"""The whole calibration of a stick, in order, from a person's first touch to the parameters."""

from __future__ import annotations

import datetime
import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.axes import fit_axes
from calibration.joystick.balance import GRAVITY, balance
from calibration.joystick.person import GATES, MIDDLE, Person, Place
from calibration.joystick.pushes import Pusher
from calibration.joystick.response import Response
from calibration.joystick.stick import PAUSE, RawStick
from devices.joystick.parameters import (
    Axes,
    DeviceIdentity,
    Force,
    Handle,
    Provenance,
    StickParameters,
)
from haptics.errors import ConfigurationError
from haptics.settings import unknown

LOOK = 0.2
"""A place is looked at for so long [s]."""

_RESTLESS, _FLICKER = 0.02, 4.0
_TRIES = 3

_ALLOWED = {
    "travel_x": (0.01, 1.0, " m"),
    "travel_y": (0.01, 1.0, " m"),
    "weight": (0.01, 5.0, " kg"),
    "stated_max_force": (0.1, 200.0, " N"),
    "push_level": (0.01, 1.0, ""),
}

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is known beforehand.

    Attributes
    ----------
    travel_x, travel_y : float
        Whole travel of the handle, from stop to stop, to the right and away from the person [m].
    gate : str
        What bounds the handle: a key of `calibration.joystick.person.GATES`.
    weight : float or None
        Mass of a weight that the stick is to carry [kg].
    stated_max_force : float or None
        The largest force that the stick can give in every direction, as its maker states it [N].
    push_level : float
        The greatest level of a push.

    Raises
    ------
    ConfigurationError
        If a value is not allowed, or not exactly one of weight and stated force is given.
    """

    travel_x: float
    travel_y: float
    gate: str = "square"
    weight: float | None = None
    stated_max_force: float | None = None
    push_level: float = 0.3

    def __post_init__(self) -> None:
        if self.gate not in GATES:
            raise unknown("--gate", self.gate, GATES)
        if (self.weight is None) == (self.stated_max_force is None):
            raise ConfigurationError(
                "the scale of the forces: give either --weight KG, a weight that the stick is to carry, or "
                "--stated-max-force N, what its maker states; one of them, not both."
            )
        for name, (least, most, unit) in _ALLOWED.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise ConfigurationError(
                    f"--{name.replace('_', '-')} = {value:g}: must be at least {least:g} and at most {most:g}{unit}."
                )


@dataclass(frozen=True)
class Calibration:
    """What came of it: the parameters, and how well everything fits."""

    parameters: StickParameters
    facts: dict[str, Any]


def calibrate(stick: RawStick, person: Person, request: Request) -> Calibration:
    """Calibrate an open stick.

    Raises
    ------
    ConfigurationError
        If what was measured makes no sense; says what to do.
    DeviceFault
        If the stick fails.
    """
    travel = request.travel_x, request.travel_y
    places = GATES[request.gate]
    person.tell(f"Calibrating {stick.link}. Ctrl-C ends it at any time, and there is no force then.")
    counts = np.array([_look_at(stick, person, place) for place in places])
    person.bring(MIDDLE, stick.counts)
    axes, misfit = fit_axes(places, counts, travel, stick.ranges)
    person.tell(f"The places fit to {1e3 * misfit:.2f} mm. Now the motors.")
    person.let_go(stick.counts)
    pusher = Pusher(stick, axes, person, request.push_level)
    response = pusher.explore()
    force, mass = _scale(stick, person, request, axes, response)
    parameters = StickParameters(
        device=_identity(stick),
        axes=replace(axes, count_quantum=max(stick.quantum, 1)),  # all counts that were seen have a say in it
        force=force,
        handle=Handle(moving_mass_kg=_rounded(mass), damping_ns_per_m=_rounded(max(mass * response.drag, 0.0))),
        provenance=Provenance(date=datetime.date.today().isoformat(), method=_method(request, pusher.level)),
    )
    facts = {
        "places_misfit_m": misfit,
        "push_level": pusher.level,
        "push_misfit": response.misfit,
        "delay_s": response.delay,
    }
    return Calibration(parameters, facts)


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


def _scale(stick: RawStick, person: Person, request: Request, axes: Axes, response: Response) -> tuple[Force, float]:
    """Return the forces, and the moving mass that goes with them [kg]."""
    if request.weight is not None:
        person.hang(request.weight, stick.counts)
        level = balance(stick, axes, response)
        person.take_off(request.weight, stick.counts)
        mass = request.weight * GRAVITY / float(np.hypot(*(response.acceleration @ level)))
        return _force(mass, response, None), mass
    stated = request.stated_max_force
    assert stated is not None
    mass = stated * _longest_row(_inverse(response.acceleration))
    return _force(mass, response, stated), mass


def _force(mass: float, response: Response, stated: float | None) -> Force:
    """Return the forces on a handle of this mass [kg]; the largest one is as `stated` [N], or else worked out."""
    level = _inverse(response.acceleration) / mass
    (a, b), (c, d) = level.tolist()
    return Force(
        newton_to_level=((a, b), (c, d)),
        max_force_n=1.0 / _longest_row(level) if stated is None else stated,
        source="weight" if stated is None else "stated",
    )


def _inverse(matrix: Array) -> Array:
    return np.linalg.inv(matrix).astype(np.float64)


def _longest_row(matrix: Array) -> float:
    return float(np.hypot(*matrix.T).max())


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
    )


def _method(request: Request, level: float) -> str:
    scale = (
        f"a weight of {request.weight:g} kg"
        if request.weight is not None
        else f"a stated largest force of {request.stated_max_force:g} N"
    )
    return (
        f"{request.gate} travel of {request.travel_x:g} m by {request.travel_y:g} m, pushes of level {level:.3g}, "
        f"{scale}"
    )


def _rounded(value: float) -> float:
    """Return three significant digits: more was not measured."""
    return float(f"{value:.3g}") if math.isfinite(value) else value
