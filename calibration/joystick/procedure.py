"""The whole calibration of a stick, in order, from a person's first touch to the parameters."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.axes import fit_axes
from calibration.joystick.balance import GRAVITY, UNIT_MASS, Balance
from calibration.joystick.person import GATES, MIDDLE, Look, Person, Place
from calibration.joystick.pushes import TOO_FAR, Pusher, smaller_travel
from calibration.joystick.response import Response
from calibration.joystick.stick import PAUSE, RawStick
from calibration.motions import Mover, Present, drive
from devices.joystick.parameters import (
    Axes,
    DeviceIdentity,
    Force,
    Handle,
    Provenance,
    StickParameters,
    write_parameters,
)
from devices.joystick.settings import StickSettings
from haptics.errors import ConfigurationError
from haptics.reading import sha256_of
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
                "the scale of the forces needs exactly one of two options: --weight KG, a known weight that the stick "
                "will carry, or --stated-max-force N, its largest force as its maker states it."
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


@dataclass(frozen=True)
class Bench:
    """The stick: how it is looked at, and how it is moved once something is known of it.

    Attributes
    ----------
    settings : StickSettings
        Which one, and how to reach it.
    mover : callable
        Gives what moves it, by the file of what is known of it.
    backend : usb.backend.IBackend or None
        What to reach USB by while it is looked at, instead of libusb.
    """

    settings: StickSettings
    mover: Callable[[Path], Mover]
    backend: Any = None


def calibrate(bench: Bench, person: Person, request: Request, place: Path, facts: dict[str, Any]) -> Calibration:
    """Calibrate a stick: where it is brought to, how it answers pushes, and what it carries.

    Parameters
    ----------
    bench : Bench
        The stick, not open.
    person : Person
        Who moves and watches it.
    request : Request
        What is known beforehand.
    place : Path
        What the recordings begin with: ``_pushes`` and ``_weight`` are added, beside files of what is known by then.
    facts : dict
        What the recordings are to say besides.

    Raises
    ------
    ConfigurationError
        If what was measured makes no sense; says what to do.
    HapticError
        As of `calibration.motions.drive`. What was recorded stays.
    """
    seen = _look(bench, person, request)
    person.tell("Now the motors.")
    response, level, quantum = _push(bench, seen, person, request, place, facts)
    force, mass = _scale(bench, seen, response, person, request, place, facts)
    parameters = StickParameters(
        device=seen.device,
        axes=replace(seen.axes, count_quantum=max(quantum, 1)),  # all counts that were seen have a say in it
        force=force,
        handle=Handle(moving_mass_kg=_rounded(mass), damping_ns_per_m=_rounded(max(mass * response.drag, 0.0))),
        provenance=Provenance(date=datetime.date.today().isoformat(), method=_method(request, level)),
    )
    found = {
        "places_misfit_m": seen.misfit,
        "push_level": level,
        "push_misfit": response.misfit,
        "delay_s": response.delay,
    }
    return Calibration(parameters, found)


# --- places and axes --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """What was found by looking: which stick it is, its axes, how badly the places fit, the steps of its counts."""

    device: DeviceIdentity
    axes: Axes
    misfit: float
    quantum: int
    full_scale: int

    def counts(self, position: Array) -> tuple[int, int]:
        """Return the counts at a position [m]."""
        x, y = np.linalg.solve(self.axes.counts_to_m, position) + self.axes.centre_counts
        return (round(x), round(y)) if math.isfinite(x + y) else (0, 0)


def _look(bench: Bench, person: Person, request: Request) -> _Seen:
    places = GATES[request.gate]
    with RawStick(bench.settings, bench.backend) as stick:
        person.tell(f"Calibrating {stick.link}. Ctrl-C ends it at any time, and there is no force then.")
        counts = np.array([_look_at(stick, person, place) for place in places])
        person.bring(MIDDLE, stick.counts)
        axes, misfit = fit_axes(places, counts, (request.travel_x, request.travel_y), stick.ranges)
        person.tell(f"The places fit to {1e3 * misfit:.2f} mm.")
        return _Seen(_identity(stick), axes, misfit, stick.quantum, stick.full_scale)


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


# --- pushes -----------------------------------------------------------------------------------------------------------


def _push(
    bench: Bench, seen: _Seen, person: Person, request: Request, place: Path, facts: dict[str, Any]
) -> tuple[Response, float, int]:
    """Return how the handle answers pushes, the greatest level that was used, and the steps of all counts so far.

    What is known is that a newton is a level of its own effect; nothing pushes where the handle is too far out.
    """
    far = TOO_FAR * 0.5 * smaller_travel(seen.axes)
    known = StickParameters(
        device=seen.device,
        axes=replace(seen.axes, workspace_min_m=(-far, -far), workspace_max_m=(far, far)),
        force=Force(newton_to_level=((1.0, 0.0), (0.0, 1.0)), max_force_n=1.0),
    )
    folder = place.with_name(f"{place.name}_pushes")
    mover, facts = _known(bench, known, folder, facts)
    present = Present()
    pusher = Pusher(seen.axes, person, request.push_level, seen.full_scale, _looker(seen, present), mover.period)
    recording = drive(mover, pusher.explore(), folder, facts, present=present)
    assert pusher.response is not None
    return pusher.response, pusher.level, math.gcd(seen.quantum, _steps(seen, recording.rows["position"]))


def _known(bench: Bench, known: StickParameters, folder: Path, facts: dict[str, Any]) -> tuple[Mover, dict[str, Any]]:
    """Write down what is known so far; return what moves the stick by that, and the facts of its recording."""
    file = folder.with_name(f"{folder.name}.toml")
    write_parameters(file, known)
    return bench.mover(file), {**facts, "parameter_file_hash": sha256_of(file)}


def _looker(seen: _Seen, present: Present) -> Look:
    return lambda: seen.counts(present.position)


def _steps(seen: _Seen, positions: Array) -> int:
    """Return the largest number of which all steps of the counts are multiples."""
    whole = positions[np.isfinite(positions).all(axis=1)]
    counts = np.rint(np.linalg.solve(np.array(seen.axes.counts_to_m), whole.T).T + seen.axes.centre_counts)
    return int(np.gcd.reduce(np.unique(np.abs(counts - counts[0]).astype(int)), initial=0)) if len(counts) else 0


# --- scale of forces --------------------------------------------------------------------------------------------------


def _scale(
    bench: Bench,
    seen: _Seen,
    response: Response,
    person: Person,
    request: Request,
    place: Path,
    facts: dict[str, Any],
) -> tuple[Force, float]:
    """Return the forces, and the moving mass that goes with them [kg]."""
    if request.weight is not None:
        known, present, folder = _force(UNIT_MASS, response, None), Present(), place.with_name(f"{place.name}_weight")
        mover, facts = _known(bench, StickParameters(seen.device, seen.axes, known), folder, facts)
        balance = Balance(person, request.weight, known.max_force_n, _looker(seen, present), mover.period)
        drive(mover, balance.carry(), folder, facts, present=present)
        mass = request.weight * GRAVITY * UNIT_MASS / float(np.hypot(*balance.force))
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
