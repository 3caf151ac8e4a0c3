"""The safety envelope between an element and a device: one small rule after the other, in a fixed order.

The rules act on the quantity that can hurt: the force of an impedance device [N], or the velocity of the reference of
an admittance device [m/s].

=====  ==============  =====================================================  ======================================
order  flag            impedance device                                       admittance device
=====  ==============  =====================================================  ======================================
1      `NOT_FINITE`    sample or output not finite: zero force                hold the reference
2      `STALE`         sample too old: zero force                             hold the reference
3      `LIMITED`       norm of the force, direction kept                      norm of the velocity, direction kept
4      `SLEW`          change of force per period                             change of velocity per period
5      `WORKSPACE`     outside, no force component that points further out    the reference comes to rest at the edge
=====  ==============  =====================================================  ======================================

Limits come from the device's data sheet; configuration may tighten them, never widen them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from haptics._jit import kernel
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.settings import bounded, build, check
from haptics.trace import Status

NOT_FINITE = int(Status.NOT_FINITE)
STALE = int(Status.STALE)
LIMITED = int(Status.LIMITED)
SLEW = int(Status.SLEW)
WORKSPACE = int(Status.WORKSPACE)
ENVELOPE_FLAGS = NOT_FINITE | STALE | LIMITED | SLEW | WORKSPACE


@dataclass(frozen=True)
class Limits:
    """What the envelope enforces; see `DeviceSpec` for the meaning of each.

    Attributes
    ----------
    max_force : float
        Norm of the commanded force [N] (impedance).
    max_force_rate : float
        Rate of change of the commanded force [N/s] (impedance).
    max_speed : float
        Norm of the velocity of the position reference [m/s] (admittance).
    max_acceleration : float
        Rate of change of that velocity [m/s^2] (admittance).
    max_sample_age : float
        Age beyond which a sample is stale [s].
    """

    max_force: float = bounded(above=0.0, unit="N", doc="norm of the commanded force (impedance)")
    max_force_rate: float = bounded(above=0.0, unit="N/s", doc="its rate of change (impedance)")
    max_speed: float = bounded(above=0.0, unit="m/s", doc="norm of the reference's velocity (admittance)")
    max_acceleration: float = bounded(above=0.0, unit="m/s^2", doc="its rate of change (admittance)")
    max_sample_age: float = bounded(above=0.0, unit="s", doc="age beyond which a sample is stale")

    def __post_init__(self) -> None:
        check(self, "envelope")

    @classmethod
    def of(cls, spec: DeviceSpec, tighter: dict[str, float] | None = None) -> Limits:
        """Return the limits of a device, with the settings in `tighter` in place of its own.

        Raises
        ------
        ConfigurationError
            If a setting is unknown, not a positive number, or wider than the device allows.
        """
        widest = {field.name: getattr(spec, field.name) for field in fields(cls)}
        limits = build(cls, {**widest, **(tighter or {})}, "envelope")
        for name, widest_value in widest.items():
            if getattr(limits, name) > widest_value:
                raise ConfigurationError(
                    f"envelope.{name} = {getattr(limits, name):g}: must be at most {widest_value:g}, the limit of "
                    f"{spec.name}; the envelope can only be tightened."
                )
        return limits

    def pair(self, causality: Causality) -> tuple[float, float]:
        """Return (largest norm, largest rate) of the limited quantity for a device of that `causality`."""
        if causality is Causality.IMPEDANCE:
            return self.max_force, self.max_force_rate
        return self.max_speed, self.max_acceleration


# --- rules: each returns the limited vector and its flag, or 0 ---------------------------------------------------


@kernel
def sample_flag(px: float, py: float, vx: float, vy: float, fx: float, fy: float, age: float, max_age: float) -> int:
    """Rules 1 and 2 for a sample: finite, and young enough."""
    if not (math.isfinite(px + py) and math.isfinite(vx + vy) and math.isfinite(fx + fy)):
        return NOT_FINITE
    return STALE if not age <= max_age else 0


@kernel
def limit_norm(x: float, y: float, limit: float) -> tuple[float, float, int]:
    """Rule 3: shorten (x, y) to the norm `limit`; the direction is kept."""
    norm = math.hypot(x, y)
    if norm <= limit:
        return x, y, 0
    scale = limit / norm
    return x * scale, y * scale, LIMITED


@kernel
def limit_slew(x: float, y: float, last_x: float, last_y: float, step: float) -> tuple[float, float, int]:
    """Rule 4: go from the last value towards (x, y) by at most `step`."""
    dx, dy = x - last_x, y - last_y
    norm = math.hypot(dx, dy)
    if norm <= step:
        return x, y, 0
    scale = step / norm
    return last_x + dx * scale, last_y + dy * scale, SLEW


@kernel
def approach(v: float, x: float, low: float, high: float, deceleration: float, period: float) -> tuple[float, int]:
    """Rule 5 for one coordinate of an admittance reference at `x` that is to move at `v`.

    It comes to rest at the edge of [low, high] with no more than `deceleration`. From outside, where a device may have
    been left, it can only move in.
    """
    room = max(high - x, 0.0) if v > 0.0 else max(x - low, 0.0)
    # Stopping in steps takes v^2 / (2 a) + v T / 2. The very last step may have to brake by 9/8 of a: allow for that.
    a = deceleration * 8.0 / 9.0
    half = 0.5 * a * period
    fastest = min(math.sqrt(half * half + 2.0 * a * room) - half, room / period)
    if abs(v) <= fastest:
        return v, 0
    return math.copysign(fastest, v), WORKSPACE


@kernel
def push_inside(force: float, position: float, low: float, high: float) -> tuple[float, int]:
    """Rule 5 for one coordinate of an impedance force: outside, nothing that points further out."""
    if (position > high and force > 0.0) or (position < low and force < 0.0):
        return 0.0, WORKSPACE
    return force, 0
