"""Advice on an element for a device: one line of text for every bound that is exceeded or close.

Bounds that depend on unstated device data are skipped. Unstated damping and delay count as 0; a real delay only lowers
the limits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from haptics.design import bounds
from haptics.design.loops import FIRM_GRIP, Coupling, Handle, PositionServo, growth, stuck_matrix
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from haptics.elements.models import Element
    from haptics.scenes.walls import Wall

# --- suggestions ------------------------------------------------------------------------------------------------------
#
# Suggested coupling parameters: the stiffest coupling that is stable on a device with a margin.
#
# Stability alone is not enough. A kick of the bare handle must also die out soon (`settling_time`), and the handle
# should not move far before the contact slides (presliding, F/K).

_COUNT_SHARE = 0.1  # maximum change of the force per encoder count, as a fraction of the friction force

SLACK = 3.0
"""Allowed settling time as a multiple of the shortest one, if no coupling settles within `SETTLED`."""

# Number of damping values searched, and fractions of the stiffness limit tried with each of them.
_DAMPINGS = 24
_FRACTIONS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.12)


@dataclass(frozen=True)
class Suggestion:
    """Suggested parameters of model C on a device, with the quantities behind the choice.

    Attributes
    ----------
    stiffness, damping : float
        K [N/m] and B [N s/m].
    growth : float
        Factor by which the slowest motion of the held handle changes per period; below 1.
    settling : float
        Time in which the motion of the bare handle dies out to 2 % after a kick [s].
    presliding : float
        Displacement of the handle before the contact slides, F/K [m].
    count_jump : float
        Change of the force per count of the encoder [N].
    reasons : tuple of str
        One sentence each on stability, encoder, settling and presliding.
    """

    stiffness: float
    damping: float
    growth: float
    settling: float
    presliding: float
    count_jump: float
    reasons: tuple[str, ...]


@functools.lru_cache(maxsize=256)
def suggest(handle: Handle, force: float, period: float = 1e-3, margin: float = bounds.MARGIN) -> Suggestion:
    """Return the stiffest coupling that satisfies every bound with a margin, and its damping.

    The handle must remain stable with `margin` times the stiffness, and with `margin` times both stiffness and damping.
    One count of the encoder may change the force by at most a tenth of the friction. After a kick the bare handle
    must settle within `SETTLED`, or within `SLACK` times the shortest settling time if no coupling meets `SETTLED`.

    Parameters
    ----------
    handle : Handle
        The device.
    force : float
        Friction force F to render [N].
    period : float
        Sampling period T [s].
    margin : float
        Safety factor, greater than 1.

    Raises
    ------
    ConfigurationError
        If a parameter is out of range, or the encoder is too coarse for the force.
    """
    bounds.require("force", force, "N")
    bounds.require("margin", margin, "", above=1.0)

    def allowed(damping: float) -> float:
        limits = (bounds.stiffness_limit(handle, share * damping, period) for share in (1.0, margin))
        by_encoder = math.inf
        if handle.resolution != 0.0:
            spare = _COUNT_SHARE * force - bounds.hold_buzz(Coupling(0.0, damping, period), handle)
            by_encoder = max(spare, 0.0) / handle.resolution
        return min(min(limits) / margin, by_encoder)

    most = bounds.damping_limit(handle, period) / margin
    damping = _best(allowed, 1e-9 * most, most)
    stiffness = allowed(damping)
    if not stiffness > 0.0:
        raise ConfigurationError(f"force = {force!r}: too small for an encoder of {handle.resolution:g} m.")
    coupling = Coupling(stiffness, damping, period)
    if bounds.settling_time(handle, coupling) > bounds.SETTLED:
        coupling = _most_damped(handle, allowed, coupling, most)
    limit, time = bounds.stiffness_limit(handle, coupling.damping, period), bounds.settling_time(handle, coupling)
    presliding, jump = force / coupling.stiffness, bounds.count_jump(coupling, handle)
    soft = "" if presliding <= bounds.PRESLIDING else f"; above {1e3 * bounds.PRESLIDING:g} mm it feels like rubber"
    slow = (
        ""
        if time <= bounds.SETTLED
        else f"; no coupling that keeps the other bounds is at rest within {bounds.SETTLED:g} s"
    )
    reasons = (
        f"stability: {handle.mass:g} kg with {handle.damping:g} N s/m, {1e3 * handle.total_delay:g} ms late, is held "
        f"still up to {limit:.0f} N/m at {coupling.damping:.3g} N s/m; {margin:g} times the stiffness, or stiffness "
        "and damping, would do.",
        f"encoder: a count of {1e6 * handle.resolution:g} um changes the force by {jump:.2g} N of {force:g} N.",
        f"settling: the bare handle is at rest {time:.2g} s after a kick{slow}.",
        f"presliding: the handle gives way by {1e3 * presliding:.3g} mm before the contact slides{soft}.",
    )
    slowest = growth(stuck_matrix(coupling, handle))
    return Suggestion(coupling.stiffness, coupling.damping, slowest, time, presliding, jump, reasons)


def _most_damped(handle: Handle, allowed: Callable[[float], float], stiffest: Coupling, most: float) -> Coupling:
    """Return the stiffest coupling that settles in time, searching dampings up to `most` [N s/m]."""
    tried = [(bounds.settling_time(handle, stiffest), stiffest)]
    for k in range(_DAMPINGS):
        damping = most * 1e-4 ** (k / (_DAMPINGS - 1.0))
        limit = allowed(damping)
        if limit > 0.0:
            couplings = [Coupling(part * limit, damping, stiffest.period) for part in _FRACTIONS]
            tried += [(bounds.settling_time(handle, coupling), coupling) for coupling in couplings]
    target = max(bounds.SETTLED, SLACK * min(time for time, _ in tried))
    return max((coupling for time, coupling in tried if time <= target), key=lambda coupling: coupling.stiffness)


def _best(value: Callable[[float], float], least: float, most: float) -> float:
    """Return the maximiser of a unimodal function, by golden-section search on a logarithmic scale."""
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    low, high = math.log(least), math.log(most)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = value(math.exp(left)), value(math.exp(right))
    while high - low > 1e-3:
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = value(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = value(math.exp(right))
    return math.exp(left if at_left >= at_right else right)


# --- advice -----------------------------------------------------------------------------------------------------------

_CLEARLY = 1.1  # factor by which a value must be improvable to deserve a warning


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
        Name of the bound: ``force``, ``heat``, ``friction``, ``stiffness``, ``damping``, ``settling``,
        ``presliding``, ``encoder``, ``mass``, ``fall``, ``approximation``, ``wall``, ``wall-corner`` or
        ``wall-encoder``.
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
    from haptics.friction.laws import CLOSED_FORM_SLOPE, ClosedForm

    found: list[Advice | None] = []
    law, mobility, level = element.law, element.mobility, element.law.breakaway_force
    if isinstance(law, ClosedForm) and law.ambiguity(mobility):
        limit = CLOSED_FORM_SLOPE / law.law.steepest_slope
        text = f"{law.ambiguity(mobility)}; choose the exact law, {law.law.name}, or one with a gentler slope."
        found.append(Advice("approximation", Severity.WARNING, mobility, limit, text))
    if level > 0.0:  # an element without break-away force never sticks and has no bounds on the device
        if level > spec.max_force:  # a margin is not needed for this bound
            can = "push with" if spec.causality is Causality.IMPEDANCE else "measure"
            text = (
                f"the break-away force is {level:g} N, and {spec.name} can {can} {spec.max_force:g} N at most; choose "
                "a weaker law."
            )
            found.append(Advice("force", Severity.WARNING, level, spec.max_force, text))
        elif math.isfinite(warm := spec.time_until_warm(level)):
            sustained = spec.continuous_force or math.inf
            text = (
                f"the break-away force is {level:g} N, and the motors of {spec.name} can sustain {sustained:g} N: "
                f"after {plain(warm)} s of steady sliding the envelope lowers the force; choose a weaker law, or make "
                "pauses."
            )
            found.append(Advice("heat", Severity.NOTE, level, sustained, text))
        if spec.least_friction is not None and level < spec.least_friction:
            text = (
                f"the break-away force is {level:g} N, and {spec.name} has {plain(spec.least_friction)} N of residual "
                "friction; choose a stronger law, or raise device.compensation."
            )
            found.append(Advice("friction", Severity.WARNING, level, spec.least_friction, text))
        if element.causality is Causality.IMPEDANCE:
            handle = Handle.of(spec)
            if handle is not None and hasattr(element, "stiffness"):
                found += _contact(element, handle, spec.name)
        elif (mass := getattr(element, "mass", None)) is not None:
            found.append(_mass(mass, spec, element.period))
        limit = law.mobility_limit
        fact = (
            f"the element's mobility is {plain(mobility)} m/(N s), and law {law.name} allows several forces above "
            f"{plain(limit)} (condition 15)"
        )
        remedy = "choose a law that falls more gently"
        if hasattr(law, "stribeck_velocity") and mobility > 0.0:
            smallest = bounds.smallest_stribeck_velocity(law, mobility)
            remedy = f"raise law.stribeck_velocity above {plain(smallest)} m/s"
        found.append(_advice("fall", mobility, limit, mobility / limit, (fact, remedy)))
    return _warnings_first(found)


def _warnings_first(found: Iterable[Advice | None]) -> list[Advice]:
    given = [advice for advice in found if advice is not None]
    return sorted(given, key=lambda advice: advice.severity is not Severity.WARNING)


def _advice(bound: str, value: float, limit: float, load: float, words: tuple[str, str]) -> Advice | None:
    """Return advice if `load`, which is 1 at the bound, leaves no margin; `words` are fact and remedy."""
    fact, remedy = words
    if load > 1.0:
        return Advice(bound, Severity.WARNING, value, limit, f"{fact}; {remedy}.")
    if load * bounds.MARGIN > 1.0:
        return Advice(bound, Severity.NOTE, value, limit, f"{fact}: within a factor of {bounds.MARGIN:g}.")
    return None


def _contact(element: Element, handle: Handle, device: str) -> Iterator[Advice | None]:
    """Check the stability of a sticking contact, and its encoder steps, settling time and presliding displacement.

    The advice on the last two is only a note where no coupling within the other bounds would be better, and where the
    presliding displacement is less than `bounds.MARGIN` times its bound, because softness is a matter of taste.
    """
    level, stiffness = element.law.breakaway_force, element.coupling_stiffness
    damping: float = getattr(element, "damping", 0.0)
    coupling = Coupling(stiffness, damping, element.period)
    limit = bounds.stiffness_limit(handle, damping, coupling.period)
    where = f"{device} ({handle.mass:g} kg, {handle.damping:g} N s/m, {plain(1e3 * handle.total_delay)} ms late)"
    if limit == 0.0 and damping > 0.0:
        most = bounds.damping_limit(handle, coupling.period)
        fact = f"element.damping = {damping:g} N s/m, and {where} buzzes above {plain(most)} N s/m with the hand off"
        yield _advice("damping", damping, most, damping / most if most else math.inf, (fact, "lower it"))
    else:
        damped = hasattr(element, "damping")
        by = f"with element.damping = {damping:g} N s/m" if damped else "with a model that has no damping"
        fact = (
            f"element.stiffness = {stiffness:g} N/m, and {by}, {where} buzzes above {plain(limit)} N/m with the hand "
            "off"
        )
        remedy = "lower it, or change element.damping" if damped else "lower it"
        yield _advice("stiffness", stiffness, limit, stiffness / limit if limit else math.inf, (fact, remedy))
    jump, limit = bounds.count_jump(coupling, handle), 0.5 * level
    fact = (
        f"a count of the encoder ({plain(1e6 * handle.resolution)} um) changes the force by {plain(jump)} N, and it "
        f"makes a contact that a hand loads slip above {plain(limit)} N, half of the break-away force"
    )
    yield _advice("encoder", jump, limit, jump / limit, (fact, "lower element.stiffness or element.damping"))
    time = bounds.settling_time(handle, coupling)
    presliding = level / stiffness if stiffness > 0.0 else math.inf
    if math.isinf(time) or (time <= bounds.SETTLED and presliding <= bounds.PRESLIDING):
        return
    try:
        best = suggest(handle, level, coupling.period)
    except ConfigurationError:
        return  # no coupling is possible with this encoder, which the check of the encoder reports
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
        return _advice("mass", mass, limit, math.inf, (fact, "it needs a faster servo"))
    fact = f"element.mass = {mass:g} kg, and while a contact slides {spec.name} shakes below {plain(limit)} kg {grip}"
    if spec.handle_mass:
        fact += f", with {spec.handle_mass:g} kg of handle beyond its force sensor"
    return _advice("mass", mass, limit, limit / mass, (fact, "raise it"))


def plain(value: float) -> str:
    """Format `value` with three significant digits, without an exponent where possible."""
    return f"{float(f'{value:.3g}'):g}"


# --- walls ------------------------------------------------------------------------------------------------------------
#
# On an impedance device a touched wall is another sampled spring and damper on the handle, like a sticking contact
# (`haptics.design.stuck_matrix`). While the contact with the plane sticks, both act at once, and the loop has the
# stiffness K + K_w and the damping B + B_w. The stiffness limit of the wall is therefore the result of
# `haptics.design.stiffness_limit` with both dampers minus the element's stiffness, and at most its result with the
# wall's damper alone, because the element gives no spring while the contact slides. In a corner a second wall adds
# another spring and damper (`haptics.design.bounds`).
#
# Encoder quantisation makes the force of a wall flicker by K q per count. A bare handle turns this into an
# oscillation of one or two counts, which is felt from about `_FLICKER` upwards.
#
# On an admittance device there is no limit: the wall is solved implicitly together with the mass, and is stable for
# every stiffness.

_FLICKER = 0.05  # maximum force per encoder count on a wall [N]; the rms buzz that the conformance suite allows


_WORSE = 0.95  # a corner is reported if its limit is below this fraction of the limits of its single walls


def wall_limit(handle: Handle, damping: float, period: float = 1e-3, coupling: Coupling | None = None) -> float:
    """Return the stiffness below which a wall holds the bare handle without a limit cycle [N/m].

    It is 0 if no stiffness is stable, because the damping is too low or too high.

    Parameters
    ----------
    handle : Handle
        The device.
    damping : float
        Damping of the wall [N s/m].
    period : float
        Sampling period [s].
    coupling : Coupling, optional
        Spring and damper of the element, which hold the handle at the same time if its contact can stick.
    """
    alone = bounds.stiffness_limit(handle, damping, period)
    if coupling is None:
        return alone
    both = bounds.stiffness_limit(handle, damping + coupling.damping, period) - coupling.stiffness
    return max(min(alone, both), 0.0)


def advise_walls(walls: Iterable[Wall], element: Element, spec: DeviceSpec) -> list[Advice]:
    """Check the stiffness of walls in combination with `element` on the device that `spec` describes.

    Parameters
    ----------
    walls : iterable of Wall
        The walls of a scene.
    element : Element
        The element that renders the plane.
    spec : DeviceSpec
        Data sheet of the device. Bounds that depend on unstated data are skipped.

    Returns
    -------
    list of Advice
        Warnings first, for every kind of bound about the wall that is closest to it. Empty if every bound is satisfied
        with a margin.
    """
    handle = Handle.of(spec)
    if spec.causality is not Causality.IMPEDANCE or handle is None:
        return []
    walls, stiffness = tuple(walls), getattr(element, "stiffness", 0.0)
    sticks = element.law.breakaway_force > 0.0 and stiffness > 0.0
    coupling = Coupling(stiffness, getattr(element, "damping", 0.0), element.period) if sticks else None
    beside = f" beside an element of {stiffness:g} N/m" if sticks else ""
    limits = {wall: wall_limit(handle, wall.damping, element.period, coupling) for wall in walls}
    found: list[Advice | None] = []
    for wall, limit in limits.items():
        fact = (
            f"wall.stiffness = {wall.stiffness:g} N/m, and with wall.damping = {wall.damping:g} N s/m{beside}, "
            f"{spec.name} buzzes on a wall above {plain(limit)} N/m with the hand off"
        )
        remedy = "lower it, or change wall.damping" + (" or element.stiffness" if sticks else "")
        load = wall.stiffness / limit if limit > 0.0 else math.inf
        found.append(_advice("wall", wall.stiffness, limit, load, (fact, remedy)))
        step = wall.stiffness * handle.resolution
        if step > _FLICKER:
            text = (
                f"wall.stiffness = {wall.stiffness:g} N/m, and a count of the encoder of {spec.name} "
                f"({plain(1e6 * handle.resolution)} um) is worth {plain(step)} N on it, which is felt as a flicker "
                f"above {_FLICKER:g} N where the hand is light."
            )
            found.append(Advice("wall-encoder", Severity.NOTE, step, _FLICKER, text))
    for pair, cosine in bounds.corners(walls, spec.workspace_min, spec.workspace_max):
        factor = bounds.corner_factor(handle, pair, cosine, element.period, coupling)
        if factor < _WORSE * min(limits[wall] / wall.stiffness for wall in pair):
            together = sum(wall.stiffness for wall in pair)
            each = " and ".join(f"{wall.stiffness:g}" for wall in pair)
            fact = (
                f"wall.stiffness = {each} N/m of two walls that meet: in their corner springs and dampers of both act, "
                f"and {spec.name} buzzes there above {plain(factor * together)} N/m of the two together with the hand "
                "off"
            )
            load = 1.0 / factor if factor > 0.0 else math.inf
            words = fact, "lower them, or change wall.damping"
            found.append(_advice("wall-corner", together, factor * together, load, words))
    given = [advice for advice in found if advice is not None]
    given.sort(key=lambda advice: -advice.value / max(advice.limit, 1e-9))
    return _warnings_first({advice.bound: advice for advice in reversed(given)}.values())
