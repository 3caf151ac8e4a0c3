"""Whether an element suits a device: every bound that applies, in a line for a person.

What a device does not state is not judged; a damping or a delay that is not stated counts as none, so that a warning
is deserved on the real device too.
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
"""What could be better by less than this factor is left as it is."""


class Severity(StrEnum):
    """How far a value is from its bound."""

    WARNING = "warning"
    """Outside."""
    NOTE = "note"
    """Inside, but by less than `haptics.design.MARGIN`; or outside where the device allows no better."""


@dataclass(frozen=True)
class Advice:
    """One bound that is exceeded, or near.

    Attributes
    ----------
    bound : str
        Which one: ``force``, ``friction``, ``stiffness``, ``damping``, ``settling``, ``presliding``, ``encoder``,
        ``mass``, ``fall``, ``approximation``, ``wall``, ``wall-corner`` or ``wall-encoder``.
    severity : Severity
        Outside, or near.
    value, limit : float
        Where the element is and where the bound is (SI); an infinite limit says that no value would do.
    text : str
        The same in a line for a person, with what to do.
    """

    bound: str
    severity: Severity
    value: float
    limit: float
    text: str

    def as_dict(self) -> dict[str, Any]:
        """Return it for a JSON file, which knows no infinity."""
        limit = self.limit if math.isfinite(self.limit) else None
        return {
            "bound": self.bound,
            "severity": str(self.severity),
            "value": self.value,
            "limit": limit,
            "text": self.text,
        }


def advise(element: Element, spec: DeviceSpec) -> list[Advice]:
    """Judge `element` on the device that `spec` describes.

    Parameters
    ----------
    element : Element
        Any model. One whose contact sticks like a spring and damper has a ``stiffness``; one that moves a mass on an
        admittance device has a ``mass``.
    spec : DeviceSpec
        The data sheet.

    Returns
    -------
    list of Advice
        Warnings first; empty if every bound that is known is kept with a margin.
    """
    found = [advice for advice in _judgements(element, spec) if advice is not None]
    return sorted(found, key=lambda advice: advice.severity is not Severity.WARNING)


def _judgements(element: Element, spec: DeviceSpec) -> Iterator[Advice | None]:
    yield _approximation(element)
    if element.law.breakaway_force == 0.0:
        return  # it never sticks, and asks nothing of the device
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
    """Return the advice where `load`, which is 1 at the bound, leaves no margin; `words` are fact and remedy."""
    fact, remedy = words
    if load > 1.0:
        return Advice(bound, Severity.WARNING, value, limit, f"{fact}; {remedy}.")
    if load * bounds.MARGIN > 1.0:
        return Advice(bound, Severity.NOTE, value, limit, f"{fact}: within a factor of {bounds.MARGIN:g}.")
    return None


def _force(element: Element, spec: DeviceSpec) -> Advice | None:
    level, most = element.law.breakaway_force, spec.max_force
    if level <= most:
        return None  # near is near enough
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
    """Judge a stable contact by how soon it is at rest and how far it gives way.

    It is a note where no coupling that keeps the other bounds would do better: the device is like that. So is a contact
    that gives way by less than `bounds.MARGIN` times the bound: softness is a matter of taste.
    """
    time = bounds.settling_time(handle, coupling)
    presliding = level / coupling.stiffness if coupling.stiffness > 0.0 else math.inf
    if math.isinf(time) or (time <= bounds.SETTLED and presliding <= bounds.PRESLIDING):
        return
    try:
        best = suggest(handle, level, coupling.period)
    except ConfigurationError:
        return  # no coupling at all is fine behind this encoder, and that is said
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
    """Return a warning if the value is clearly more than is `allowed`, else a note; `values` are it and its bound."""
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
    """Write `value` with three digits, and as long as it can be without an exponent."""
    return f"{float(f'{value:.3g}'):g}"
