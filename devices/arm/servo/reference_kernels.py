"""What the joints are to do, as kernels made for one kind of servo: reference, load, and what the motors do for it."""

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
    """What decides which equations a servo has.

    Attributes
    ----------
    law : int
        Of `devices.arm.servo.settings.LAWS`.
    feed : int
        The model of the joint in its feed-forward (`devices.arm.flatness.control_kernels`).
    smooth, knows_hand : bool
        Whether a smooth reference follows the command, and whether the hand's torque is fed forward.
    """

    law: int
    feed: int
    smooth: bool
    knows_hand: bool


@inlined_kernel
def _smoothly(s: Any, a: Any, command: Any) -> None:
    """Let a smooth reference of joint `a` follow the command."""
    follow(s, a, a.wanted, command, s.period)


@inlined_kernel
def _at_once(s: Any, a: Any, command: Any) -> None:
    """Make the command the reference of joint `a`, with its speed."""
    r = a.wanted
    r.position, r.velocity = command, (command - a.average) / s.period
    a.average = command


@inlined_kernel
def _know_hand(s: Any) -> None:
    """Advance what is known of the hand's torques [N m] and their derivatives: two poles, implicitly, always stable."""
    T, b = s.period, s.hand_pole
    for i in range(2):
        before = s.known_rate[i]
        s.known_rate[i] = (before + T * b * b * (s.hand[i] - s.known[i])) / (1.0 + T * b * (2.0 + T * b))
        s.known_acceleration[i] = (s.known_rate[i] - before) / T
        s.known[i] += T * s.known_rate[i]


@inlined_kernel
def _know_nothing(s: Any) -> None:
    """Know nothing of the hand."""


@inlined_kernel
def _bear(s: Any) -> None:
    """Fill in the load of both links where nothing is fed forward: their weight, if it is held, less the hand."""
    r, o = s.axis[0].wanted, s.axis[1].wanted
    g1, g2 = gravity(s.links, r.position, o.position)
    w = 1.0 if s.holds_weight else 0.0
    r.load, o.load = w * g1 - s.known[0], w * g2 - s.known[1]


@inlined_kernel
def _load(s: Any) -> None:
    """Fill in inertia and load of both links at the reference: what the model knows of weight, coupling and hand.

    The load changes with the other joint's acceleration; its derivatives hold all else for constant, as the paper does.
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
    """Add to the load of row `r` the friction at the reference's speed.

    Exact linearisation takes it so: friction at the measured speed, as in (14) and (15), would make of a friction that
    is steep at rest a feedback that no sampled servo can bear, F'/M [1/s] against the sampling rate.
    """
    F, F1, F2 = smooth_friction(friction, r.velocity)
    r.load += F
    r.load_rate += F1 * r.acceleration
    r.load_acceleration += F2 * r.acceleration * r.acceleration + F1 * r.jerk


@inlined_kernel
def _rub_not(friction: Any, r: Any) -> None:
    """Leave friction to the feed-forward."""


@functools.cache
def refer_part(kind: ServoKind) -> Callable[..., None]:
    """Return the part that brings the reference of both joints to the present, and what their motors do for it."""
    move, know = _smoothly if kind.smooth else _at_once, _know_hand if kind.knows_hand else _know_nothing
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
