"""Advice on an element for a device: one line of text for every bound that is exceeded or close.

Bounds that depend on unstated device data are skipped. Unstated damping and delay count as 0; a real delay only lowers
the limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from haptics.design import bounds
from haptics.design.loops import FIRM_GRIP, Coupling, Handle, PositionServo
from haptics.design.suggestion import suggest
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from haptics.elements.models import Element


_CLEARLY = 1.1
"""Factor by which a value must be improvable to deserve a warning."""


class Severity(StrEnum):
    """Position of a value relative to its bound."""

    WARNING = "warning"
    """The bound is exceeded."""
    NOTE = "note"
    """Within the bound by less than `haptics.design.MARGIN`, or unavoidably beyond it on this device."""


@dataclass(frozen=True)
class Advice:
    """A bound that is exceeded or close.

    Attributes
    ----------
    bound : str
        Name of the bound: ``force``, ``friction``, ``stiffness``, ``damping``, ``settling``, ``presliding``,
        ``encoder``, ``mass``, ``fall``, ``approximation``, ``wall``, ``wall-corner`` or ``wall-encoder``.
    severity : Severity
        Exceeded, or close.
    value, limit : float
        Value of the element and its bound (SI). An infinite limit means that no value satisfies the bound.
    text : str
        Description for the user, with the remedy.
    """

    bound: str
    severity: Severity
    value: float
    limit: float
    text: str

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON; an infinite limit becomes None."""
        limit = self.limit if math.isfinite(self.limit) else None
        return {
            "bound": self.bound,
            "severity": str(self.severity),
            "value": self.value,
            "limit": limit,
            "text": self.text,
        }


def advise(element: Element, spec: DeviceSpec) -> list[Advice]:
    """Check the parameters of `element` on the device that `spec` describes.

    Parameters
    ----------
    element : Element
        Any model. Models whose contact sticks like a spring and damper have a ``stiffness``; models that move a mass on
        an admittance device have a ``mass``.
    spec : DeviceSpec
        Data sheet of the device.

    Returns
    -------
    list of Advice
        Warnings first. Empty if every bound that can be computed is satisfied with a margin.
    """
    found = [advice for advice in _judgements(element, spec) if advice is not None]
    return sorted(found, key=lambda advice: advice.severity is not Severity.WARNING)


def _judgements(element: Element, spec: DeviceSpec) -> Iterator[Advice | None]:
    yield _approximation(element)
    if element.law.breakaway_force == 0.0:
        return  # an element without break-away force never sticks and has no bounds on the device
    yield _force(element, spec)
    yield _friction(element, spec)
    if element.causality is Causality.IMPEDANCE:
        handle = Handle.of(spec)
        if handle is not None and hasattr(element, "stiffness"):
            coupling = Coupling(element.coupling_stiffness, getattr(element, "damping", 0.0), element.period)
            yield _coupling(coupling, handle, spec.name, damped=hasattr(element, "damping"))
            yield _encoder(coupling, handle, element.law.breakaway_force)
            yield from _calm(coupling, handle, element.law.breakaway_force, spec.name)
    else:
        mass = getattr(element, "mass", None)
        if mass is not None:
            yield _mass(mass, spec, element.period)
    yield _fall(element)


def _judged(bound: str, value: float, limit: float, load: float, words: tuple[str, str]) -> Advice | None:
    """Return advice if `load`, which is 1 at the bound, leaves no margin; `words` are fact and remedy."""
    fact, remedy = words
    if load > 1.0:
        return Advice(bound, Severity.WARNING, value, limit, f"{fact}; {remedy}.")
    if load * bounds.MARGIN > 1.0:
        return Advice(bound, Severity.NOTE, value, limit, f"{fact}: within a factor of {bounds.MARGIN:g}.")
    return None


def _force(element: Element, spec: DeviceSpec) -> Advice | None:
    level, most = element.law.breakaway_force, spec.max_force
    if level <= most:
        return None  # a margin is not needed for this bound
    can = "push with" if spec.causality is Causality.IMPEDANCE else "measure"
    text = f"the break-away force is {level:g} N, and {spec.name} can {can} {most:g} N at most; choose a weaker law."
    return Advice("force", Severity.WARNING, level, most, text)


def _friction(element: Element, spec: DeviceSpec) -> Advice | None:
    level, least = element.law.breakaway_force, spec.least_friction
    if least is None or level >= least:
        return None
    text = (
        f"the break-away force is {level:g} N, and {spec.name} has {plain(least)} N of friction left of its own; "
        "choose a stronger law, or raise device.compensation."
    )
    return Advice("friction", Severity.WARNING, level, least, text)


def _coupling(coupling: Coupling, handle: Handle, device: str, *, damped: bool) -> Advice | None:
    stiffness, damping = coupling.stiffness, coupling.damping
    limit = bounds.stiffness_limit(handle, damping, coupling.period)
    where = f"{device} ({handle.mass:g} kg, {handle.damping:g} N s/m, {plain(1e3 * handle.total_delay)} ms late)"
    if limit == 0.0 and damping > 0.0:
        most = bounds.damping_limit(handle, coupling.period)
        fact = f"element.damping = {damping:g} N s/m, and {where} buzzes above {plain(most)} N s/m with the hand off"
        return _judged("damping", damping, most, damping / most if most else math.inf, (fact, "lower it"))
    by = f"with element.damping = {damping:g} N s/m" if damped else "with a model that has no damping"
    fact = f"element.stiffness = {stiffness:g} N/m, and {by}, {where} buzzes above {plain(limit)} N/m with the hand off"
    remedy = "lower it, or change element.damping" if damped else "lower it"
    return _judged("stiffness", stiffness, limit, stiffness / limit if limit else math.inf, (fact, remedy))


def _calm(coupling: Coupling, handle: Handle, level: float, device: str) -> Iterator[Advice]:
    """Check the settling time and the presliding displacement of a stable contact.

    The advice is only a note where no coupling within the other bounds would be better, and where the presliding
    displacement is less than `bounds.MARGIN` times its bound, because softness is a matter of taste.
    """
    time = bounds.settling_time(handle, coupling)
    presliding = level / coupling.stiffness if coupling.stiffness > 0.0 else math.inf
    if math.isinf(time) or (time <= bounds.SETTLED and presliding <= bounds.PRESLIDING):
        return
    try:
        best = suggest(handle, level, coupling.period)
    except ConfigurationError:
        return  # no coupling is possible with this encoder, which `_encoder` reports
    better = f"element.stiffness = {plain(best.stiffness)} and element.damping = {plain(best.damping)}"
    if time > bounds.SETTLED:
        fact = f"a sticking contact needs {plain(time)} s to come to rest on {device} with the hand off"
        remedy = f"choose {better}: {plain(best.settling)} s"
        yield _calmness("settling", (time, bounds.SETTLED), max(bounds.SETTLED, best.settling), (fact, remedy))
    if presliding > bounds.PRESLIDING:
        give = plain(1e3 * presliding)
        fact = f"a hand moves the handle by {give} mm (F/K) before the contact slides, which feels soft"
        remedy = f"choose {better}: {plain(1e3 * best.presliding)} mm"
        allowed = max(bounds.MARGIN * bounds.PRESLIDING, best.presliding)
        yield _calmness("presliding", (presliding, bounds.PRESLIDING), allowed, (fact, remedy))


def _calmness(bound: str, values: tuple[float, float], allowed: float, words: tuple[str, str]) -> Advice:
    """Return a warning if the value clearly exceeds `allowed`, else a note."""
    (value, limit), (fact, remedy) = values, words
    if value > _CLEARLY * allowed:
        return Advice(bound, Severity.WARNING, value, limit, f"{fact}; {remedy}.")
    return Advice(bound, Severity.NOTE, value, limit, f"{fact}: above {limit:g} (SI).")


def _encoder(coupling: Coupling, handle: Handle, level: float) -> Advice | None:
    jump, limit = bounds.count_jump(coupling, handle), 0.5 * level
    fact = (
        f"a count of the encoder ({plain(1e6 * handle.resolution)} um) changes the force by {plain(jump)} N, and it "
        f"makes a contact that a hand loads slip above {plain(limit)} N, half of the break-away force"
    )
    return _judged("encoder", jump, limit, jump / limit, (fact, "lower element.stiffness or element.damping"))


def _mass(mass: float, spec: DeviceSpec, period: float) -> Advice | None:
    servo, limit = PositionServo.of(spec), spec.least_mass
    if limit is None:
        if servo is None:
            return None
        limit = bounds.mass_limit(servo, period)
    stiffness, damping = (servo.grip_stiffness, servo.grip_damping) if servo else FIRM_GRIP
    grip = f"in a grip of {stiffness:g} N/m and {damping:g} N s/m"
    if math.isinf(limit):
        fact = f"{spec.name} follows its reference so late that no element.mass keeps it from shaking {grip}"
        return _judged("mass", mass, limit, math.inf, (fact, "it needs a faster servo"))
    fact = f"element.mass = {mass:g} kg, and while a contact slides {spec.name} shakes below {plain(limit)} kg {grip}"
    if spec.handle_mass:
        fact += f", with {spec.handle_mass:g} kg of handle beyond its force sensor"
    return _judged("mass", mass, limit, limit / mass, (fact, "raise it"))


def _fall(element: Element) -> Advice | None:
    law, mobility, limit = element.law, element.mobility, element.law.mobility_limit
    fact = (
        f"the element's mobility is {plain(mobility)} m/(N s), and law {law.name} allows several forces above "
        f"{plain(limit)} (condition 15)"
    )
    remedy = "choose a law that falls more gently"
    if hasattr(law, "stribeck_velocity") and mobility > 0.0:
        smallest = bounds.smallest_stribeck_velocity(law, mobility)
        remedy = f"raise law.stribeck_velocity above {plain(smallest)} m/s"
    return _judged("fall", mobility, limit, mobility / limit, (fact, remedy))


def _approximation(element: Element) -> Advice | None:
    from haptics.friction.closed_form import CLOSED_FORM_SLOPE, ClosedForm

    law, mobility = element.law, element.mobility
    if not isinstance(law, ClosedForm) or not law.doubt(mobility):
        return None
    limit = CLOSED_FORM_SLOPE / law.law.steepest_slope
    text = f"{law.doubt(mobility)}; choose the exact law, {law.law.name}, or one with a gentler slope."
    return Advice("approximation", Severity.WARNING, mobility, limit, text)


def plain(value: float) -> str:
    """Format `value` with three significant digits, without an exponent where possible."""
    return f"{float(f'{value:.3g}'):g}"
