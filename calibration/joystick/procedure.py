"""Complete calibration procedure of a stick."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.forces import (
    TOO_FAR,
    UNIT_MASS,
    Balance,
    NoAnswer,
    Push,
    Pusher,
    Response,
    agree,
    smaller_travel,
    time_release,
)
from calibration.joystick.person import GRAVITY, CountReader, Person, Request
from calibration.joystick.stick import MeasuredAxes, RawStick, measure_axes
from calibration.motions import Mover, Present, Procedure, drive
from devices.joystick.device import StickSettings
from devices.joystick.parameters import Force, Handle, Provenance, StickParameters, write_parameters
from haptics.files import sha256_of
from haptics.recording.recording import Recording

Array = NDArray[np.float64]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Calibration:
    """Result of a calibration: parameters, and measures of consistency."""

    parameters: StickParameters
    facts: dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """Access to the stick.

    Attributes
    ----------
    settings : StickSettings
        Settings that select the stick and its transport.
    mover : callable
        Creates the mover of the stick from a parameter file.
    backend : usb.backend.IBackend or None
        USB backend to use instead of libusb while counts are read.
    """

    settings: StickSettings
    mover: Callable[[Path], Mover]
    backend: Any = None


def calibrate(bench: Bench, person: Person, request: Request, place: Path, facts: dict[str, Any]) -> Calibration:
    """Calibrate a stick from known places, its response to pushes, and a weight.

    Parameters
    ----------
    bench : Bench
        Stick, not open.
    person : Person
        Person who moves and observes it.
    request : Request
        Known properties of the stick.
    place : Path
        Prefix of the recordings' names; ``_pushes`` and ``_weight`` are appended, as well as files of the parameters
        known at that time.
    facts : dict
        Additional metadata of the recordings.

    Raises
    ------
    ConfigurationError
        If measurements are inconsistent; states the remedy.
    HapticError
        As in `calibration.motions.drive`. Recordings are kept.
    """
    seen = measure_axes(bench.settings, bench.backend, person, request)
    person.show_message("Now the motors.")
    procedure = _Procedure(bench, seen, person, request, place, facts)
    pusher, response, quantum, effects = procedure.pushes()
    with RawStick(bench.settings, bench.backend, wheel=bool(request.rim_radius)) as stick:
        lasting = time_release(stick, seen.axes, response, person, request.push_level)
    person.show_message(f"It ended a force that nobody renewed after {lasting:.3f} s.")
    force, mass = procedure.scale(response, effects)
    if request.weight is None:
        scale = f"a stated largest force of {request.stated_max_force:g} N"
    else:
        scale = f"a weight of {request.weight:g} kg"
    parameters = StickParameters(
        device=seen.device,
        axes=replace(seen.axes, count_quantum=max(quantum, 1)),  # includes all counts of all steps
        force=replace(force, release_s=_rounded(lasting), full_scale=seen.full_scale),
        handle=Handle(moving_mass_kg=_rounded(mass), damping_ns_per_m=_rounded(max(mass * response.drag, 0.0))),
        provenance=Provenance(
            date=datetime.date.today().isoformat(),
            method=f"{request.size}, pushes of level {pusher.level:.3g}, {scale}",
        ),
    )
    fits = {
        "places_misfit_m": seen.misfit,
        "push_level": pusher.level,
        "push_misfit": response.misfit,
        "delay_s": response.delay,
        "release_s": lasting,
        "effects": effects,
    }
    return Calibration(parameters, fits)


@dataclass(frozen=True)
class _Procedure:
    """Steps of a calibration in which the motors move the handle; arguments as in `calibrate`."""

    bench: Bench
    seen: MeasuredAxes
    person: Person
    request: Request
    place: Path
    facts: dict[str, Any]

    def pushes(self) -> tuple[Pusher, Response, int, int]:
        """Return pushes, response of the handle, step of the counts, and the number of effects that the stick adds.

        Firmware that cannot add effects is detected with two running effects, one of them with zero force: the handle
        is pushed less than by one effect alone, or not at all.
        """
        try:
            pusher, both, quantum = self._push(2, "pushes")
        except NoAnswer as none:
            if len(self.seen.axes.usages) == 1:
                raise
            self.person.show_message(f"With two effects at once: {none} Now with one effect that is turned.")
            try:
                return *self._push(1, "pushes_of_one"), 1
            except NoAnswer:
                raise none from None
        if len(self.seen.axes.usages) == 1 or agree(self._push(1, "pushes_alone", pusher.pushes)[1], both):
            return pusher, both, quantum, 2
        self.person.show_message("The stick does not add two effects up: it is driven by one effect that is turned.")
        return *self._push(1, "pushes_of_one"), 1

    def _push(self, effects: int, name: str, before: Sequence[Push] = ()) -> tuple[Pusher, Response, int]:
        """Explore the response of the handle to pushes, or repeat the pushes of `before`.

        The stick plays `effects` effects. At this stage one newton is defined as the full level of an effect. No push
        is applied if the handle is too far out. Returns pushes, response and step of the counts.
        """
        seen = self.seen
        far = TOO_FAR * 0.5 * smaller_travel(seen.axes)
        level = ((1.0, 0.0), (0.0, float(len(seen.axes.usages) - 1)))
        known = StickParameters(
            device=seen.device,
            axes=replace(seen.axes, workspace_min_m=(-far, -far), workspace_max_m=(far, far)),
            force=Force(newton_to_level=level, max_force_n=1.0, effects=effects),
        )

        def make(read_counts: CountReader, period: float) -> tuple[Pusher, Procedure]:
            pusher = Pusher(seen.axes, self.person, self.request.push_level, seen.full_scale, read_counts, period)
            return pusher, pusher.repeat(before) if before else pusher.explore()

        pusher, recording = self._drive(known, name, make)
        quantum = math.gcd(seen.quantum, seen.steps(recording.read(columns=("position",))["position"]))
        assert pusher.response is not None
        return pusher, pusher.response, quantum

    def _drive(
        self,
        known: StickParameters,
        name: str,
        make: Callable[[CountReader, float], tuple[Made, Procedure]],
    ) -> tuple[Made, Recording]:
        """Write the present parameters to a file, and run a procedure with them; return its object and recording."""
        folder, present = self.place.with_name(f"{self.place.name}_{name}"), Present()
        file = folder.with_name(f"{folder.name}.toml")
        write_parameters(file, known)
        mover = self.bench.mover(file)
        facts = {**self.facts, "parameter_file_hash": sha256_of(file)}
        made, running = make(lambda: self.seen.counts(present.position), mover.period)
        return made, drive(mover, running, folder, facts, present=present)

    def scale(self, response: Response, effects: int) -> tuple[Force, float]:
        """Return the force table, and the corresponding moving mass [kg]."""
        weight, stated = self.request.weight, self.request.stated_max_force
        if weight is None:
            assert stated is not None
            mass = stated * _largest_level(_inverse(response.acceleration), effects)
            return _force(mass, response, stated, effects), mass
        known = _force(UNIT_MASS, response, None, effects)

        def make(read_counts: CountReader, period: float) -> tuple[Balance, Procedure]:
            balance = Balance(self.person, weight, known.max_force_n, read_counts, period)
            return balance, balance.carry()

        balance, _ = self._drive(StickParameters(self.seen.device, self.seen.axes, known), "weight", make)
        mass = weight * GRAVITY * UNIT_MASS / float(np.hypot(*balance.force))
        return _force(mass, response, None, effects), mass


def _force(mass: float, response: Response, stated: float | None, effects: int = 2) -> Force:
    """Return the force table for a handle of this mass [kg]; `stated` is the maximum force [N], if known."""
    level = _inverse(response.acceleration) / mass
    (a, b), (c, d) = level.tolist()
    return Force(
        newton_to_level=((a, b), (c, d)),
        max_force_n=1.0 / _largest_level(level, effects) if stated is None else stated,
        effects=effects,
        source="weight" if stated is None else "stated",
    )


def _inverse(matrix: Array) -> Array:
    """Return the inverse; for a wheel, where only the first number is nonzero, its reciprocal."""
    if not matrix[1].any():
        return np.array(((1.0 / matrix[0, 0], 0.0), (0.0, 0.0)))
    return np.linalg.inv(matrix).astype(np.float64)


def _largest_level(matrix: Array, effects: int) -> float:
    """Return the largest level for a force of 1 N in any direction; one effect plays the total force."""
    return float(np.hypot(*matrix.T).max()) if effects > 1 else float(np.linalg.norm(matrix, 2))


def _rounded(value: float) -> float:
    """Round to three significant digits, the precision of the measurement."""
    return float(f"{value:.3g}") if math.isfinite(value) else value
