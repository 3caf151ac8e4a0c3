"""Parameters to begin with: the stiffest coupling that a device can hold still, with a margin, and why not more."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from haptics.design.bounds import MARGIN, count_jump, damping_limit, hold_buzz, require, stiffness_limit
from haptics.design.loops import Coupling, Handle, growth, stuck_matrix
from haptics.errors import ConfigurationError

COUNT_SHARE = 0.1
"""The share of the friction that a count of the encoder may make: what much smaller means here."""


@dataclass(frozen=True)
class Suggestion:
    """Parameters for model C on a device, and what they were chosen by.

    Attributes
    ----------
    stiffness, damping : float
        K [N/m] and B [N s/m].
    growth : float
        Factor by which the slowest motion of the held handle changes per period; below 1.
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
    presliding: float
    count_jump: float
    reasons: tuple[str, ...]


def suggest(handle: Handle, force: float, period: float = 1e-3, margin: float = MARGIN) -> Suggestion:
    """Return the stiffest coupling that keeps its distance from every bound, with the damping that allows it.

    The bounds: with `margin` times the stiffness, and with `margin` times stiffness and damping, the handle must still
    be held still; and a count of the encoder may not change the force by more than `COUNT_SHARE` of the friction.

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

    def by_stability(damping: float) -> float:
        limits = (stiffness_limit(handle, share * damping, period) for share in (1.0, margin))
        return min(limits) / margin

    def by_encoder(damping: float) -> float:
        if handle.resolution == 0.0:
            return math.inf
        spare = COUNT_SHARE * force - hold_buzz(Coupling(0.0, damping, period), handle)
        return max(spare, 0.0) / handle.resolution

    most = damping_limit(handle, period) / margin
    damping = _best(lambda b: min(by_stability(b), by_encoder(b)), 1e-9 * most, most)
    stiffness = min(by_stability(damping), by_encoder(damping))
    if not stiffness > 0.0:
        raise ConfigurationError(f"force = {force!r}: too small for an encoder of {handle.resolution:g} m.")
    coupling = Coupling(stiffness, damping, period)
    return Suggestion(
        stiffness=stiffness,
        damping=damping,
        growth=growth(stuck_matrix(coupling, handle)),
        presliding=force / stiffness,
        count_jump=count_jump(coupling, handle),
        reasons=(
            _stability_reason(coupling, handle, margin),
            f"encoder: a count of {1e6 * handle.resolution:g} um changes the force by "
            f"{count_jump(coupling, handle):.2g} N of {force:g} N.",
            f"presliding: the handle gives way by {1e3 * force / stiffness:.3g} mm before the contact slides.",
        ),
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
