"""Kernels that keep a joint from hunting (a limit cycle) at rest, and its integrator from windup (anti-windup)."""

from __future__ import annotations

from typing import Any

from haptics.jit import inlined_kernel


@inlined_kernel
def rest(s: Any, a: Any, error: Any, seen: Any) -> Any:
    """Return whether the integrator of joint `a` stands still, and yield while the reference rests.

    To yield is to put up, slowly, with the error `seen` by the feedback: the motor does not go on pushing against the
    friction that stopped the joint, all of which then holds it against the hand. A joint that is moved further than
    friction could have kept it off yields no more until the reference moves again.
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
    """Add the integrator to the torque [N m] and keep both within the limit (anti-windup).

    At rest it stands still: it would only wind up until the joint breaks away, and again on the other side. Nor does it
    grow at the limit.
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
    """Return the torque [N m], or its mean once a joint at rest has only flickered between steps of its encoder.

    No step of the encoder need agree with the torque that holds the gearbox; the rotor, which nothing else holds, would
    hop to and fro between two of them for ever.
    """
    if not resting or s.knows_hand or abs(motor - a.anchor) > a.calm_band:
        a.anchor, a.calm, a.calm_torque = motor, 0, tau
    elif a.calm < s.patience:
        a.calm += 1
        a.calm_torque += (tau - a.calm_torque) / (a.calm + 1)
    else:
        return a.calm_torque
    return tau
