"""Safety envelope between element and device, as rules in a fixed order.

The rules limit the hazardous quantity: the force of an impedance device [N], or the velocity of the reference of an
admittance device [m/s].

=====  ==============  =====================================================  ======================================
order  flag            impedance device                                       admittance device
=====  ==============  =====================================================  ======================================
1      `NOT_FINITE`    sample or output not finite: safe output               safe output
2      `STALE`         sample too old: safe output                            safe output
3      `IMPLAUSIBLE`   handle faster than any hand: safe output               safe output, also if the force exceeds
                                                                              the range of its sensor
       `FOLLOWING_...  (not available)                                        end effector too far from its reference:
       ERROR`                                                                 safe output
       `ASTRAY`        following error of a motion too large: safe output,    safe output, then the run ends
                       then the run ends
4      `PASSIVITY`     damping dissipates the energy that the loop injected   (not available)
5      `RELEASED`      dead-man's switch not held: fade out                   brake, then hold
6      `FADE`          the force fades in or out                              the hand's force fades in; brake
7      `LIMITED`       norm of the force, direction kept                      norm of the velocity, direction kept
       `THERMAL`       norm of the force with warm motors, direction kept     (not available)
8      `SLEW`          slew rate: change of force per period                  slew rate: change of velocity
9      `SPEED`         overspeed: no force component along the motion         (rule 7 limits the speed)
10     `ENERGY`        energy limit: no force component along the motion      no component against the hand's force
11     `WORKSPACE`     outside: no force component that points further out    the reference stops at the edge
=====  ==============  =====================================================  ======================================

The *safe output* of an impedance device is zero force, reached in two ticks: half of the last force, then zero. An
admittance device holds its last reference. The slew rate limit (rule 8) does not apply to the safe output, nor to
components removed by rules 9 to 11. No rule reverses or increases a force, with two exceptions: the passivity
controller adds damping, and after a change of parameters the force eases from its previous value (rule 6).

Rules 4 and 10 apply to elements, which are passive, so that any net energy given to the hand is an error of the loop. A
motion (`haptics.rendering.programs`) drives the device deliberately. It has separate bounds. While it runs, the energy
observer pauses and the injected energy keeps its value.

The limits come from the specification of the device. The configuration may tighten them but never widen them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from haptics import records
from haptics.device import THERMAL_MARGIN, Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from haptics.records import Status
from haptics.settings import Checked, bounded, build, choice, documented, flag

NOT_FINITE = int(Status.NOT_FINITE)
ASTRAY = int(Status.ASTRAY)
STALE = int(Status.STALE)
IMPLAUSIBLE = int(Status.IMPLAUSIBLE)
FOLLOWING_ERROR = int(Status.FOLLOWING_ERROR)
THERMAL = int(Status.THERMAL)
PASSIVITY = int(Status.PASSIVITY)
RELEASED = int(Status.RELEASED)
FADE = int(Status.FADE)
LIMITED = int(Status.LIMITED)
SLEW = int(Status.SLEW)
SPEED = int(Status.SPEED)
ENERGY = int(Status.ENERGY)
WORKSPACE = int(Status.WORKSPACE)
UNUSABLE = records.UNUSABLE
ENVELOPE_FLAGS = UNUSABLE | PASSIVITY | RELEASED | FADE | LIMITED | THERMAL | SLEW | SPEED | ENERGY | WORKSPACE

FADE_OUT = 8e-3
"""Fade-out time of the output at the end of a run or after release of the dead-man's switch [s]."""

ROUNDING = 1.0 + 1e-9
"""Relative tolerance for differences of times on a clock that has run for days."""

SPEED_MARGIN = 0.1
"""Fraction of the speed limit, below it, over which the driving force is reduced to zero."""

DEAD_MAN_SWITCHES = ("none", "key", "button")
"""Kinds of dead-man's switches, the least demanding first; see `DeviceSpec`."""


@documented
@dataclass(frozen=True)
class Limits(Checked, section="envelope"):
    """Limits that the envelope enforces; see `DeviceSpec` for the meaning of each."""

    max_force: float = bounded(above=0.0, unit="N", doc="norm of the commanded force (impedance)")
    max_force_rate: float = bounded(above=0.0, unit="N/s", doc="rate of change of the commanded force (impedance)")
    max_speed: float = bounded(
        above=0.0,
        unit="m/s",
        doc=(
            "norm of the velocity of the position reference (admittance); speed of the handle above which no "
            "force accelerates it (impedance)"
        ),
    )
    max_acceleration: float = bounded(
        above=0.0, unit="m/s^2", doc="rate of change of the reference's velocity (admittance)"
    )
    max_sample_age: float = bounded(above=0.0, unit="s", doc="age beyond which a sample is stale")
    max_energy: float = bounded(above=0.0, unit="J", doc="energy that the loop may inject")
    plausible_speed: float = bounded(
        above=0.0, unit="m/s", doc="speed of the handle above which a sample is implausible"
    )
    fade_in: float = bounded(
        minimum=0.0,
        maximum=10.0,
        unit="s",
        doc="fade-in time after the start, after a release and after a change of parameters",
    )
    max_following_error: float = bounded(
        1000.0,
        above=0.0,
        unit="m",
        doc="distance of the end effector from its reference beyond which the reference is held (admittance)",
    )
    dead_man: str = choice("none", DEAD_MAN_SWITCHES, doc="switch that must be held for any output")
    passivity_control: bool = flag(False, doc="add damping where the loop injects energy (impedance)")

    @classmethod
    def for_device(cls, spec: DeviceSpec, tighter: dict[str, float | str | bool] | None = None) -> Limits:
        """Return the limits of a device, tightened by the settings in `tighter`.

        Raises
        ------
        ConfigurationError
            If a setting is unknown, not allowed, or wider than the device allows.
        """
        of_device = {entry.name: getattr(spec, entry.name) for entry in fields(cls) if hasattr(spec, entry.name)}
        limits = build(cls, {**of_device, **(tighter or {})}, "envelope")
        limits.require_tighter(spec)
        return limits

    def require_tighter(self, spec: DeviceSpec) -> None:
        """Raise `ConfigurationError` if a limit is wider than the device's limit or cannot be enforced."""
        for entry in fields(self):
            if hasattr(spec, entry.name):
                name, value, own = entry.name, getattr(self, entry.name), getattr(spec, entry.name)
                if name == "dead_man":
                    wider, bound = own not in ("none", value), f"{own!r}"
                elif name == "fade_in":
                    wider, bound = value < own, f"at least {own:g}"
                else:
                    wider, bound = value > own, f"at most {own:g}"
                if wider:
                    shown = repr(value) if isinstance(value, str) else f"{value:g}"
                    raise ConfigurationError(
                        f"envelope.{name} = {shown}: must be {bound}, the limit of {spec.name}; the envelope can only "
                        "be tightened."
                    )
        if self.passivity_control and (spec.causality is not Causality.IMPEDANCE or spec.mass is None):
            raise ConfigurationError(
                f"envelope.passivity_control = true: needs an impedance device whose moving mass is known, which "
                f"limits the damping; {spec.name} is none."
            )


# --- rules: each returns the limited vector and its flag, or 0 --------------------------------------------------------


@kernel
def sample_flag(px: float, py: float, vx: float, vy: float, fx: float, fy: float, age: float, max_age: float) -> int:
    """Apply rules 1 and 2 to a sample; return its flag, or 0 if it is finite and recent."""
    if not (math.isfinite(px + py) and math.isfinite(vx + vy) and math.isfinite(fx + fy)):
        return NOT_FINITE
    return STALE if not age <= max_age * ROUNDING else 0


@kernel
def plausibility_flag(dx: float, dy: float, vx: float, vy: float, duration: float, speed: float) -> int:
    """Apply rule 3 to a displacement (dx, dy) within `duration` and a velocity (vx, vy) of the handle."""
    return IMPLAUSIBLE if math.hypot(dx, dy) > speed * duration or math.hypot(vx, vy) > speed else 0


@kernel
def limit_norm(x: float, y: float, limit: float) -> tuple[float, float, int]:
    """Apply rule 7 (saturation): scale (x, y) down to the norm `limit`."""
    norm = math.hypot(x, y)
    if norm <= limit:
        return x, y, 0
    scale = limit / norm
    return x * scale, y * scale, LIMITED


@kernel
def heat_after(heat: float, x: float, y: float, continuous: float, exponent: float) -> float:
    """Return the heat of the motors after a force (x, y) for a time of `exponent` time constants."""
    final = (x * x + y * y) / (continuous * continuous)
    return final + (heat - final) * math.exp(-exponent)


@kernel
def warm_norm(heat: float, continuous: float, largest: float) -> float:
    """Return the bound of the norm of the force with motors of this `heat`: from `largest` down to `continuous`."""
    share = min(max((1.0 - heat) / THERMAL_MARGIN, 0.0), 1.0)
    return math.sqrt(continuous * continuous + share * (largest * largest - continuous * continuous))


@kernel
def limit_slew(x: float, y: float, last_x: float, last_y: float, step: float) -> tuple[float, float, int]:
    """Apply rule 8 (slew rate): move from the last value towards (x, y) by at most `step`."""
    dx, dy = x - last_x, y - last_y
    norm = math.hypot(dx, dy)
    if norm <= step:
        return x, y, 0
    scale = step / norm
    return last_x + dx * scale, last_y + dy * scale, SLEW


@kernel
def remove_component(x: float, y: float, ax: float, ay: float, share: float) -> tuple[float, float]:
    """Remove `share` (0 to 1) of the component of (x, y) along (ax, ay) if it is positive."""
    norm = math.hypot(ax, ay)
    if not norm > 0.0:
        return x, y
    ux, uy = ax / norm, ay / norm
    part = share * (x * ux + y * uy)
    return (x - part * ux, y - part * uy) if part > 0.0 else (x, y)


@kernel
def limit_driving(x: float, y: float, vx: float, vy: float, limit: float) -> tuple[float, float, int]:
    """Apply rule 9 (overspeed): reduce a force along the velocity, down to zero at the speed `limit`."""
    margin = SPEED_MARGIN * limit
    excess = math.hypot(vx, vy) - (limit - margin)
    if not (excess > 0.0 and x * vx + y * vy > 0.0):
        return x, y, 0
    x, y = remove_component(x, y, vx, vy, min(excess / margin, 1.0))
    return x, y, SPEED


@kernel
def limit_energy(x: float, y: float, ax: float, ay: float, injected: float, limit: float) -> tuple[float, float, int]:
    """Apply rule 10: if more than `limit` [J] are `injected`, remove the component along (ax, ay)."""
    if not (injected > limit and x * ax + y * ay > 0.0):
        return x, y, 0
    x, y = remove_component(x, y, ax, ay, 1.0)
    return x, y, ENERGY


@kernel
def limit_approach(
    v: float, x: float, low: float, high: float, deceleration: float, period: float
) -> tuple[float, int]:
    """Apply rule 11 to one coordinate of an admittance reference at `x` with the velocity `v`.

    The reference stops at the edge of [low, high] with at most `deceleration`. From outside, where the device may be at
    the start, it can only move inwards.
    """
    room = max(high - x, 0.0) if v > 0.0 else max(x - low, 0.0)
    # Stopping in steps takes v^2 / (2 a) + v T / 2. The last step may have to brake by 9/8 of a, so a is reduced.
    a = deceleration * 8.0 / 9.0
    half = 0.5 * a * period
    fastest = min(math.sqrt(half * half + 2.0 * a * room) - half, room / period)
    if abs(v) <= fastest:
        return v, 0
    return math.copysign(fastest, v), WORKSPACE


@kernel
def limit_outward(force: float, position: float, low: float, high: float) -> tuple[float, int]:
    """Apply rule 11 to one coordinate of a force: remove outward force outside of the workspace."""
    if (position > high and force > 0.0) or (position < low and force < 0.0):
        return 0.0, WORKSPACE
    return force, 0


# --- messages ---------------------------------------------------------------------------------------------------------


def failure_message(begun: Any, now: Any, max_following_error: float, duration: float) -> str:
    """Return the reason why the output of a device was the safe output for too long.

    Parameters
    ----------
    begun, now : trace row
        First and last of these ticks.
    max_following_error : float
        Limit of the following error [m].
    duration : float
        Maximum duration of the safe output [s].
    """
    first, status = int(begun["tick"]), int(now["status"])
    if status & ASTRAY:
        far, fast = math.hypot(*begun["displacement"]), math.hypot(*begun["velocity"])
        return (
            f"it did not follow its motion at tick {first}: the end effector was {1e3 * far:.0f} mm from where it "
            f"should be, at {fast:.2f} m/s. Let go of it, see that nothing is in its way, or choose slower motions."
        )
    if status & FOLLOWING_ERROR:
        (x, y), (ahead, beside) = now["position"], now["proxy"] - now["position"]
        return (
            f"it does not follow: since tick {first} its end effector, at ({x:.3f} m, {y:.3f} m), has been more than "
            f"{1e3 * max_following_error:.3g} mm from its reference, now {1e3 * ahead:.1f} mm in x and "
            f"{1e3 * beside:.1f} mm in y. "
            "Something holds or blocks it, or its motors are off or too weak. Keep clear of it, as it may move when it "
            "is freed; free it, see that its motors are on, and start again. A slow arm may need a larger "
            "max_following_error in the settings of its device."
        )
    fault = "was too old"
    if status & NOT_FINITE:
        fault = "was not a finite number"
    elif status & IMPLAUSIBLE:
        fault = "showed an implausible jump in position, or a force beyond the range of its sensor"
    return (
        f"no usable sample since tick {first}, for {duration * 1e3:.0f} ms (the last sample, or the element's "
        f"output for it, {fault}): check its connection and start again."
    )
