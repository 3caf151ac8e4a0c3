"""Kernels that prevent hunting (a limit cycle) of a joint at rest, and integrator windup."""

from __future__ import annotations

from typing import Any

from haptics.jit import inlined_kernel


@inlined_kernel
def rest(s: Any, a: Any, error: Any, seen: Any) -> Any:
    """Return True if the integrator of joint `a` is held, and yield while the reference rests.

    Yielding means to accept the error `seen` by the feedback slowly: the motor stops pushing against the friction that
    stopped the joint, so that all of this friction can hold the joint against the hand. A joint that is moved further
    than friction can explain does not yield again until the reference moves.
    """
    if a.wanted.velocity != 0.0 or a.wanted.acceleration != 0.0:
        a.insists = 0
        a.offset -= s.recovery * a.offset
        return False
    if abs(error) > a.yield_band:
        a.insists = 1
    if a.insists:
        a.offset -= s.recovery * a.offset
        return abs(error) <= a.rest_band
    a.offset += s.yielding * (seen - a.offset)
    a.integral -= s.yielding * a.integral
    return True


@inlined_kernel
def integrate(s: Any, a: Any, tau: Any, error: Any, resting: Any) -> Any:
    """Add the integrator to the torque [N m] and limit both (anti-windup).

    At rest the integrator is held: it would only wind up until the joint breaks away, and then again in the other
    direction. Nor does it grow at the limit.
    """
    u = a.control.joint.gear_ratio
    step = 0.0 if resting else s.period * a.integral_gain * error
    total = tau + (a.integral + step) / u
    clamped = min(max(total, -a.torque_limit), a.torque_limit)
    if total == clamped or (total - clamped) * step * u < 0.0:
        a.integral += step
    return clamped


@inlined_kernel
def calm(s: Any, a: Any, tau: Any, motor: Any, resting: Any) -> Any:
    """Return the torque [N m], or its mean if a joint at rest only moves between encoder steps.

    The torque that the gearbox needs may lie between the torques of two encoder steps. The rotor, which nothing else
    holds, would then oscillate between the two steps permanently.
    """
    if not resting or s.knows_hand or abs(motor - a.anchor) > a.calm_band:
        a.anchor, a.calm, a.calm_torque = motor, 0, tau
    elif a.calm < s.patience:
        a.calm += 1
        a.calm_torque += (tau - a.calm_torque) / (a.calm + 1)
    else:
        return a.calm_torque
    return tau
