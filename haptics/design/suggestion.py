"""Suggested coupling parameters: the stiffest coupling that is stable on a device with a margin.

Stability alone is not enough. A kick of the bare handle must also die out soon (`settling_time`), and the handle should
not move far before the contact slides (presliding, F/K).
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
"""Maximum change of the force per encoder count, as a fraction of the friction force."""

SLACK = 3.0
"""Allowed settling time as a multiple of the shortest one, if no coupling settles within `SETTLED`."""

_DAMPINGS = 24
_FRACTIONS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.12)
"""Number of damping values searched, and fractions of the stiffness limit tried with each of them."""


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
def suggest(handle: Handle, force: float, period: float = 1e-3, margin: float = MARGIN) -> Suggestion:
    """Return the stiffest coupling that satisfies every bound with a margin, and its damping.

    The handle must remain stable with `margin` times the stiffness, and with `margin` times both stiffness and damping.
    One count of the encoder may change the force by at most `COUNT_SHARE` of the friction. After a kick the bare handle
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
    """Return the stiffness [N/m] at which one encoder count changes the force by `COUNT_SHARE`."""
    if handle.resolution == 0.0:
        return math.inf
    spare = COUNT_SHARE * force - hold_buzz(Coupling(0.0, damping, period), handle)
    return max(spare, 0.0) / handle.resolution


def _calmest(handle: Handle, allowed: Callable[[float], float], stiffest: Coupling, most: float) -> Coupling:
    """Return the stiffest coupling that settles in time, searching dampings up to `most` [N s/m]."""
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
