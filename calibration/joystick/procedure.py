"""The whole calibration of a stick, in order, from a person's first touch to the parameters."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.balance import GRAVITY, UNIT_MASS, Balance
from calibration.joystick.looking import Seen, look
from calibration.joystick.person import Look, Person
from calibration.joystick.pushes import TOO_FAR, NoAnswer, Pusher, agree, smaller_travel
from calibration.joystick.release import time_release
from calibration.joystick.request import Request
from calibration.joystick.response import Push, Response
from calibration.joystick.stick import RawStick
from calibration.motions import Mover, Present, drive
from devices.joystick.parameters import (
    Force,
    Handle,
    Provenance,
    StickParameters,
    write_parameters,
)
from devices.joystick.settings import StickSettings
from haptics.reading import sha256_of

Array = NDArray[np.float64]


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
    seen = look(bench.settings, bench.backend, person, request)
    person.tell("Now the motors.")
    found, effects = _pushes(bench, seen, person, request, place, facts)
    response, level, quantum = found.response, found.level, found.quantum
    lasting = _time_release(bench, seen, response, person, request)
    force, mass = _scale(bench, seen, response, effects, person, request, place, facts)
    parameters = StickParameters(
        device=seen.device,
        axes=replace(seen.axes, count_quantum=max(quantum, 1)),  # all counts that were seen have a say in it
        force=replace(force, release_s=_rounded(lasting), full_scale=seen.full_scale),
        handle=Handle(moving_mass_kg=_rounded(mass), damping_ns_per_m=_rounded(max(mass * response.drag, 0.0))),
        provenance=Provenance(date=datetime.date.today().isoformat(), method=_method(request, level)),
    )
    fits = {
        "places_misfit_m": seen.misfit,
        "push_level": level,
        "push_misfit": response.misfit,
        "delay_s": response.delay,
        "release_s": lasting,
        "effects": effects,
    }
    return Calibration(parameters, fits)


# --- pushes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pushed:
    """How the handle answered pushes: the pushes, what they tell, and the steps of all counts so far."""

    pushes: list[Push]
    quantum: int
    level: float
    response: Response


def _pushes(
    bench: Bench, seen: Seen, person: Person, request: Request, place: Path, facts: dict[str, Any]
) -> tuple[_Pushed, int]:
    """Return how the handle answers pushes, and how many effects the stick adds up.

    Firmware that cannot add effects up shows when both play, one of them with no force: the handle is pushed less than
    by one effect alone, or not at all.
    """
    tools = bench, seen, person, request, place, facts
    if len(seen.axes.usages) == 1:
        return _push(*tools, effects=2, what="pushes"), 2
    try:
        both = _push(*tools, effects=2, what="pushes")
    except NoAnswer as none:
        person.tell(f"With two effects at once: {none} Now with one effect that is turned.")
        try:
            return _push(*tools, effects=1, what="pushes_of_one"), 1
        except NoAnswer:
            raise none from None
    alone = _push(*tools, effects=1, what="pushes_alone", before=both.pushes)
    if agree(alone.response, both.response):
        return both, 2
    person.tell("The stick does not add two effects up: it is driven by one effect that is turned.")
    return _push(*tools, effects=1, what="pushes_of_one"), 1


def _push(
    bench: Bench,
    seen: Seen,
    person: Person,
    request: Request,
    place: Path,
    facts: dict[str, Any],
    *,
    effects: int,
    what: str,
    before: Sequence[Push] = (),
) -> _Pushed:
    """Explore how the handle answers pushes, or repeat the pushes of `before`, with so many effects.

    What is known is that a newton is a level of its own effect; nothing pushes where the handle is too far out.
    """
    far = TOO_FAR * 0.5 * smaller_travel(seen.axes)
    known = StickParameters(
        device=seen.device,
        axes=replace(seen.axes, workspace_min_m=(-far, -far), workspace_max_m=(far, far)),
        force=Force(
            newton_to_level=((1.0, 0.0), (0.0, float(len(seen.axes.usages) - 1))), max_force_n=1.0, effects=effects
        ),
    )
    folder = place.with_name(f"{place.name}_{what}")
    mover, facts = _known(bench, known, folder, facts)
    present = Present()
    pusher = Pusher(seen.axes, person, request.push_level, seen.full_scale, _looker(seen, present), mover.period)
    recording = drive(mover, pusher.repeat(before) if before else pusher.explore(), folder, facts, present=present)
    quantum = math.gcd(seen.quantum, seen.steps(recording.read(columns=("position",))["position"]))
    assert pusher.response is not None
    return _Pushed(pusher.pushes, quantum, pusher.level, pusher.response)


def _known(bench: Bench, known: StickParameters, folder: Path, facts: dict[str, Any]) -> tuple[Mover, dict[str, Any]]:
    """Write down what is known so far; return what moves the stick by that, and the facts of its recording."""
    file = folder.with_name(f"{folder.name}.toml")
    write_parameters(file, known)
    return bench.mover(file), {**facts, "parameter_file_hash": sha256_of(file)}


def _looker(seen: Seen, present: Present) -> Look:
    return lambda: seen.counts(present.position)


def _time_release(bench: Bench, seen: Seen, response: Response, person: Person, request: Request) -> float:
    """Return after what time the stick ends by itself a force that nobody renews [s]."""
    with RawStick(bench.settings, bench.backend, wheel=bool(request.rim_radius)) as stick:
        lasting = time_release(stick, seen.axes, response, person, request.push_level)
    person.tell(f"It ended a force that nobody renewed after {lasting:.3f} s.")
    return lasting


# --- scale of forces --------------------------------------------------------------------------------------------------


def _scale(
    bench: Bench,
    seen: Seen,
    response: Response,
    effects: int,
    person: Person,
    request: Request,
    place: Path,
    facts: dict[str, Any],
) -> tuple[Force, float]:
    """Return the forces, and the moving mass that goes with them [kg]."""
    if request.weight is not None:
        known, present = _force(UNIT_MASS, response, None, effects), Present()
        folder = place.with_name(f"{place.name}_weight")
        mover, facts = _known(bench, StickParameters(seen.device, seen.axes, known), folder, facts)
        balance = Balance(person, request.weight, known.max_force_n, _looker(seen, present), mover.period)
        drive(mover, balance.carry(), folder, facts, present=present)
        mass = request.weight * GRAVITY * UNIT_MASS / float(np.hypot(*balance.force))
        return _force(mass, response, None, effects), mass
    stated = request.stated_max_force
    assert stated is not None
    mass = stated * _most(_inverse(response.acceleration), effects)
    return _force(mass, response, stated, effects), mass


def _force(mass: float, response: Response, stated: float | None, effects: int = 2) -> Force:
    """Return the forces on a handle of this mass [kg]; the largest one is as `stated` [N], or else worked out."""
    level = _inverse(response.acceleration) / mass
    (a, b), (c, d) = level.tolist()
    return Force(
        newton_to_level=((a, b), (c, d)),
        max_force_n=1.0 / _most(level, effects) if stated is None else stated,
        effects=effects,
        source="weight" if stated is None else "stated",
    )


def _inverse(matrix: Array) -> Array:
    """Return the inverse; of a wheel, where only the first number is not zero, that of the number."""
    if not matrix[1].any():
        return np.array(((1.0 / matrix[0, 0], 0.0), (0.0, 0.0)))
    return np.linalg.inv(matrix).astype(np.float64)


def _most(matrix: Array, effects: int) -> float:
    """Return the largest level, for a force of 1 N in whatever direction; that of one effect is of its whole force."""
    return float(np.hypot(*matrix.T).max()) if effects > 1 else float(np.linalg.norm(matrix, 2))


def _method(request: Request, level: float) -> str:
    scale = (
        f"a weight of {request.weight:g} kg"
        if request.weight is not None
        else f"a stated largest force of {request.stated_max_force:g} N"
    )
    return f"{request.size}, pushes of level {level:.3g}, {scale}"


def _rounded(value: float) -> float:
    """Return three significant digits: more was not measured."""
    return float(f"{value:.3g}") if math.isfinite(value) else value
