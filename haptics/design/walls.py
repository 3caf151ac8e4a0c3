"""Stability limits of walls on a device, and advice on the walls of a scene.

On an impedance device a touched wall is another sampled spring and damper on the handle, like a sticking contact
(`haptics.design.stuck_matrix`). While the contact with the plane sticks, both act at once, and the loop has the
stiffness K + K_w and the damping B + B_w. The stiffness limit of the wall is therefore the result of
`haptics.design.stiffness_limit` with both dampers minus the element's stiffness, and at most its result with the wall's
damper alone, because the element gives no spring while the contact slides. In a corner a second wall adds another
spring and damper (`haptics.design.bounds`).

Encoder quantisation makes the force of a wall flicker by K q per count. A bare handle turns this into an oscillation of
one or two counts, which is felt from about `FLICKER` upwards.

On an admittance device there is no limit: the wall is solved implicitly together with the mass, and is stable for every
stiffness.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from haptics.design import bounds
from haptics.design.advice import Advice, Severity, plain
from haptics.design.bounds import corner_factor, corners
from haptics.design.loops import Coupling, Handle
from haptics.device import Causality, DeviceSpec

if TYPE_CHECKING:
    from haptics.elements.models import Element
    from haptics.scenes.walls import Wall


FLICKER = 0.05
"""Maximum force per encoder count on a wall [N]; the rms buzz that the conformance suite allows."""


_WORSE = 0.95
"""A corner is reported if its limit is below this fraction of the limits of its single walls."""


def wall_limit(handle: Handle, damping: float, period: float = 1e-3, beside: Coupling | None = None) -> float:
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
    beside : Coupling, optional
        Spring and damper of the element, which hold the handle at the same time if its contact can stick.
    """
    alone = bounds.stiffness_limit(handle, damping, period)
    if beside is None:
        return alone
    both = bounds.stiffness_limit(handle, damping + beside.damping, period) - beside.stiffness
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
    found = sorted(_checks(list(walls), element, spec), key=lambda advice: -advice.value / max(advice.limit, 1e-9))
    kinds = {advice.bound: advice for advice in reversed(found)}
    return sorted(kinds.values(), key=lambda advice: advice.severity is not Severity.WARNING)


def _checks(walls: Sequence[Wall], element: Element, spec: DeviceSpec) -> Iterator[Advice]:
    handle = Handle.of(spec)
    if spec.causality is not Causality.IMPEDANCE or handle is None:
        return
    stiffness = getattr(element, "stiffness", 0.0)
    sticks = element.law.breakaway_force > 0.0 and stiffness > 0.0
    beside = Coupling(stiffness, getattr(element, "damping", 0.0), element.period) if sticks else None
    limits = {wall: wall_limit(handle, wall.damping, element.period, beside) for wall in walls}
    for wall, limit in limits.items():
        yield from _stability(wall, limit, spec.name, beside)
        yield from _flicker(wall, handle, spec.name)
    for pair, cosine in corners(tuple(walls), spec.workspace_min, spec.workspace_max):
        factor = corner_factor(handle, pair, cosine, element.period, beside)
        if factor < _WORSE * min(limits[wall] / wall.stiffness for wall in pair):
            yield from _corner(pair, factor, spec.name)


def _flicker(wall: Wall, handle: Handle, device: str) -> Iterator[Advice]:
    step = wall.stiffness * handle.resolution
    if step > FLICKER:
        text = (
            f"wall.stiffness = {wall.stiffness:g} N/m, and a count of the encoder of {device} "
            f"({plain(1e6 * handle.resolution)} um) is worth {plain(step)} N on it, which is felt as a flicker above "
            f"{FLICKER:g} N where the hand is light."
        )
        yield Advice("wall-encoder", Severity.NOTE, step, FLICKER, text)


def _stability(wall: Wall, limit: float, device: str, beside: Coupling | None) -> Iterator[Advice]:
    load = wall.stiffness / limit if limit > 0.0 else float("inf")
    with_what = f"wall.damping = {wall.damping:g} N s/m"
    if beside is not None:
        with_what += f" beside an element of {beside.stiffness:g} N/m"
    fact = (
        f"wall.stiffness = {wall.stiffness:g} N/m, and with {with_what}, {device} buzzes on a wall above "
        f"{plain(limit)} N/m with the hand off"
    )
    if load > 1.0:
        remedy = "lower it, or change wall.damping" + (" or element.stiffness" if beside is not None else "")
        yield Advice("wall", Severity.WARNING, wall.stiffness, limit, f"{fact}; {remedy}.")
    elif load * bounds.MARGIN > 1.0:
        words = f"{fact}: within a factor of {bounds.MARGIN:g}."
        yield Advice("wall", Severity.NOTE, wall.stiffness, limit, words)


def _corner(pair: tuple[Wall, Wall], factor: float, device: str) -> Iterator[Advice]:
    """Check two walls whose stiffness may be multiplied by `factor` in their corner."""
    together = sum(wall.stiffness for wall in pair)
    limit = factor * together
    each = " and ".join(f"{wall.stiffness:g}" for wall in pair)
    fact = (
        f"wall.stiffness = {each} N/m of two walls that meet: in their corner springs and dampers of both act, and "
        f"{device} buzzes there above {plain(limit)} N/m of the two together with the hand off"
    )
    if factor < 1.0:
        remedy = "lower them, or change wall.damping"
        yield Advice("wall-corner", Severity.WARNING, together, limit, f"{fact}; {remedy}.")
    elif factor < bounds.MARGIN:
        yield Advice("wall-corner", Severity.NOTE, together, limit, f"{fact}: within a factor of {bounds.MARGIN:g}.")
