"""Kernels for the references of joints and motors, compiled for one kind of servo."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from devices.arm.flatness.control_kernels import ELASTIC, NONE
from devices.arm.flatness.joint_kernels import feed_elastic, feed_rigid
from devices.arm.flatness.law_kernels import smooth_friction
from devices.arm.mechanics.dynamics import centrifugal, gravity, inertia
from devices.arm.servo.chain import follow
from devices.arm.servo.settings import LINEARISING
from haptics.jit import inlined_kernel, kernel


class ServoKind(NamedTuple):
    """Properties that select the equations of a servo.

    Attributes
    ----------
    law : int
        A value of `devices.arm.servo.settings.LAWS`.
    feed : int
        Model of the joint in its feed-forward (`devices.arm.flatness.control_kernels`).
    smooth, knows_hand : bool
        Whether a smooth reference follows the command, and whether the hand's torque is fed forward.
    """

    law: int
    feed: int
    smooth: bool
    knows_hand: bool


@inlined_kernel
def _smoothly(s: Any, a: Any, command: Any) -> None:
    follow(s, a, a.wanted, command, s.period)


@inlined_kernel
def _at_once(s: Any, a: Any, command: Any) -> None:
    """Set the reference of joint `a` to the command and its speed."""
    r = a.wanted
    r.position, r.velocity = command, (command - a.average) / s.period
    a.average = command


@inlined_kernel
def _filter_hand_torque(s: Any) -> None:
    """Filter the hand's torques [N m] and their derivatives: two poles, implicit, always stable."""
    T, b = s.period, s.hand_pole
    for i in range(2):
        before = s.known_rate[i]
        s.known_rate[i] = (before + T * b * b * (s.hand[i] - s.known[i])) / (1.0 + T * b * (2.0 + T * b))
        s.known_acceleration[i] = (s.known_rate[i] - before) / T
        s.known[i] += T * s.known_rate[i]


@inlined_kernel
def _ignore_hand_torque(s: Any) -> None:
    """Do nothing: the hand's torque is not fed forward."""


@inlined_kernel
def _bear(s: Any) -> None:
    """Compute the load of both links without feed-forward: weight, if it is held, less the hand's torque."""
    r, o = s.axis[0].wanted, s.axis[1].wanted
    g1, g2 = gravity(s.links, r.position, o.position)
    w = 1.0 if s.holds_weight else 0.0
    r.load, o.load = w * g1 - s.known[0], w * g2 - s.known[1]


@inlined_kernel
def _load(s: Any) -> None:
    """Compute inertia and load of both links at the reference: weight, coupling and hand in the model.

    The load includes the other joint's acceleration. Its derivatives treat all else as constant, as in the paper.
    """
    r, o = s.axis[0].wanted, s.axis[1].wanted
    g1, g2 = gravity(s.links, r.position, o.position)
    h1, h2 = s.known[0], s.known[1]
    h11, h12, h22 = inertia(s.links, r.position, o.position)
    c1, c2 = centrifugal(s.links, r.position, o.position, r.velocity, o.velocity)
    r.inertia, o.inertia = h11, h22
    r.load, o.load = h12 * o.acceleration + c1 + g1 - h1, h12 * r.acceleration + c2 + g2 - h2
    r.load_rate, o.load_rate = h12 * o.jerk - s.known_rate[0], h12 * r.jerk - s.known_rate[1]
    r.load_acceleration = h12 * o.snap - s.known_acceleration[0]
    o.load_acceleration = h12 * r.snap - s.known_acceleration[1]


@inlined_kernel
def _rub(friction: Any, r: Any) -> None:
    """Add the friction at the reference's speed to the load of row `r`.

    It is used by exact linearisation. Friction at the measured speed, as in (14) and (15), would turn friction that is
    steep at rest into a feedback that is unstable in a sampled servo, F'/M [1/s] against the sampling rate.
    """
    F, F1, F2 = smooth_friction(friction, r.velocity)
    r.load += F
    r.load_rate += F1 * r.acceleration
    r.load_acceleration += F2 * r.acceleration * r.acceleration + F1 * r.jerk


@inlined_kernel
def _rub_not(friction: Any, r: Any) -> None:
    """Do nothing: friction is part of the feed-forward."""


@functools.cache
def refer_part(kind: ServoKind) -> Callable[..., None]:
    """Return the function that updates the references of both joints and the resulting motor references."""
    move, know = _smoothly if kind.smooth else _at_once, _filter_hand_torque if kind.knows_hand else _ignore_hand_torque
    load, rub = _bear if kind.feed == NONE else _load, _rub if kind.law == LINEARISING else _rub_not
    prepare = feed_elastic if kind.feed == ELASTIC else feed_rigid

    @kernel
    def refer(s: Any, _x: float, _y: float) -> None:
        for i in range(2):
            move(s, s.axis[i], s.command[i])
        know(s)
        load(s)
        for i in range(2):
            rub(s.axis[i].friction, s.axis[i].wanted)
            prepare(s.axis[i].control.joint, s.axis[i].wanted)

    return refer
