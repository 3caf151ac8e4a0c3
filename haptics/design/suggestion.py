"""Suggested parameters: the stiffest coupling that a device holds without a limit cycle, with a margin, and why.

A coupling must not only be stable. A kick of the bare handle must die out soon (`settling_time`), and the handle should
not give way far before the contact slides (presliding, F/K).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

from haptics.design.bounds import (
    MARGIN,
    PRESLIDING,
    SETTLED,
    count_jump,
    damping_limit,
    hold_buzz,
    require,
    settling_time,
    stiffness_limit,
)
from haptics.design.loops import Coupling, Handle, growth, stuck_matrix
from haptics.errors import ConfigurationError

COUNT_SHARE = 0.1
"""The share of the friction that a count of the encoder may make: what much smaller means here."""

SLACK = 3.0
"""Where nothing settles within `SETTLED`, stiffness may cost so many times the shortest time there is."""

_DAMPINGS = 24
_FRACTIONS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.12)
"""Dampings that are tried, and fractions of the stiffness that each allows."""


@dataclass(frozen=True)
class Suggestion:
    """Parameters for model C on a device, and what they were chosen by.

    Attributes
    ----------
    stiffness, damping : float
        K [N/m] and B [N s/m].
    growth : float
        Factor by which the slowest motion of the held handle changes per period; below 1.
    settling : float
        After a kick, the time in which the motion of the bare handle dies out to 2 % [s].
    presliding : float
        How far the handle gives way before the contact slides, F/K [m].
    count_jump : float
        What one count of the encoder does to the force [N].
    reasons : tuple of str
        A sentence for every bound: stability, encoder, presliding.
    """

    stiffness: float
    damping: float
    growth: float
    settling: float
    presliding: float
    count_jump: float
    reasons: tuple[str, ...]


@functools.lru_cache(maxsize=256)
def suggest(handle: Handle, force: float, period: float = 1e-3, margin: float = MARGIN) -> Suggestion:
    """Return the stiffest coupling that keeps its distance from every bound, with the damping that allows it.

    The bounds: with `margin` times the stiffness, and with `margin` times stiffness and damping, the handle must still
    be held still; a count of the encoder may not change the force by more than `COUNT_SHARE` of the friction; and after
    a kick the bare handle must be at rest within `SETTLED`, or, where no coupling does that, within `SLACK` times the
    shortest time.

    Parameters
    ----------
    handle : Handle
        The device.
    force : float
        Friction force to be rendered F [N].
    period : float
        Time between two samples T [s].
    margin : float
        More than 1.

    Raises
    ------
    ConfigurationError
        If a number is not allowed.
    """
    require("force", force, "N")
    require("margin", margin, "", above=1.0)

    def allowed(damping: float) -> float:
        limits = (stiffness_limit(handle, share * damping, period) for share in (1.0, margin))
        return min(min(limits) / margin, _by_encoder(handle, force, damping, period))

    most = damping_limit(handle, period) / margin
    damping = _best(allowed, 1e-9 * most, most)
    stiffness = allowed(damping)
    if not stiffness > 0.0:
        raise ConfigurationError(f"force = {force!r}: too small for an encoder of {handle.resolution:g} m.")
    coupling = Coupling(stiffness, damping, period)
    if settling_time(handle, coupling) > SETTLED:
        coupling = _calmest(handle, allowed, coupling, most)
    reasons = _stability_reason(coupling, handle, margin), *_other_reasons(coupling, handle, force)
    return Suggestion(
        stiffness=coupling.stiffness,
        damping=coupling.damping,
        growth=growth(stuck_matrix(coupling, handle)),
        settling=settling_time(handle, coupling),
        presliding=force / coupling.stiffness,
        count_jump=count_jump(coupling, handle),
        reasons=reasons,
    )


def _by_encoder(handle: Handle, force: float, damping: float, period: float) -> float:
    """Return the stiffness up to which a count of the encoder is a small part of the force [N/m]."""
    if handle.resolution == 0.0:
        return math.inf
    spare = COUNT_SHARE * force - hold_buzz(Coupling(0.0, damping, period), handle)
    return max(spare, 0.0) / handle.resolution


def _calmest(handle: Handle, allowed: Callable[[float], float], stiffest: Coupling, most: float) -> Coupling:
    """Return the stiffest coupling that settles in time, or not much later than any does; dampings up to `most`."""
    tried = [(settling_time(handle, stiffest), stiffest)]
    for k in range(_DAMPINGS):
        damping = most * 1e-4 ** (k / (_DAMPINGS - 1.0))
        limit = allowed(damping)
        if limit > 0.0:
            couplings = [Coupling(part * limit, damping, stiffest.period) for part in _FRACTIONS]
            tried += [(settling_time(handle, coupling), coupling) for coupling in couplings]
    target = max(SETTLED, SLACK * min(time for time, _ in tried))
    return max((coupling for time, coupling in tried if time <= target), key=lambda coupling: coupling.stiffness)


def _other_reasons(coupling: Coupling, handle: Handle, force: float) -> tuple[str, str, str]:
    presliding, time = force / coupling.stiffness, settling_time(handle, coupling)
    soft = "" if presliding <= PRESLIDING else f"; above {1e3 * PRESLIDING:g} mm it feels like rubber"
    slow = "" if time <= SETTLED else f"; no coupling that keeps the other bounds is at rest within {SETTLED:g} s"
    return (
        f"encoder: a count of {1e6 * handle.resolution:g} um changes the force by "
        f"{count_jump(coupling, handle):.2g} N of {force:g} N.",
        f"settling: the bare handle is at rest {time:.2g} s after a kick{slow}.",
        f"presliding: the handle gives way by {1e3 * presliding:.3g} mm before the contact slides{soft}.",
    )


def _stability_reason(coupling: Coupling, handle: Handle, margin: float) -> str:
    limit = stiffness_limit(handle, coupling.damping, coupling.period)
    return (
        f"stability: {handle.mass:g} kg with {handle.damping:g} N s/m, {1e3 * handle.total_delay:g} ms late, is held "
        f"still up to {limit:.0f} N/m at {coupling.damping:.3g} N s/m; {margin:g} times the stiffness, or stiffness "
        "and damping, would do."
    )


def _best(value: Callable[[float], float], least: float, most: float) -> float:
    """Return where `value`, which rises and then falls, is largest: the golden section, on a logarithmic scale."""
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
