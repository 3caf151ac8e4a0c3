"""Passivity observer and controller: the energy that the loop injects at the handle, and a damper that takes it out.

A friction element stores energy, in its spring and its mass, and dissipates it; it cannot generate any. The loop around
it can: the zero-order hold keeps the force of a sample for a period, and it arrives late, so that a spring gives back
more than it was given.

The *observer* adds up what the handle was given beyond the element's own store: ``injected`` [J]. The *controller* adds
a damper while its own ledger shows an ``excess`` [J]. This is time-domain passivity (Hannaford and Ryu 2002) with four
differences. The store of the element, which is passive as an algorithm (Kikuuwe et al. 2006), is known and counted, and
so is what a late force lends to a handle that gains speed. What the dampers took out within the last swing is credit: a
loop that settles by itself is left alone. What friction dissipated in a slide never is: a ring that follows is noticed
at once. And since a ring that is balanced to the last joule would go on for ever, the damper outlasts the excess by
`LINGERING`.

Neither can see what it is not told: a delay that the data sheet does not state, the dynamics of the motors, what
happens between two counts of the encoder. ``docs/passivity.md`` has figures.
"""

from __future__ import annotations

import math
from typing import Any

from haptics.device import Causality, DeviceSpec
from haptics.elements.classic.bristle_kernels import STIFF
from haptics.elements.classic.kernels import IWAN
from haptics.jit import kernel
from haptics.records import Status

PASSIVITY = int(Status.PASSIVITY)

HISTORY = 512
"""Commands remembered: delays of up to 510 periods are accounted for, longer ones as if they were that long."""

LINGERING = 0.03
"""Time constant with which credit fades, and damping that nothing calls for any more [s]: a swing of a stiff handle."""

PASSIVITY_FIELDS: list[tuple[Any, ...]] = [
    ("passivity_control", "<i8"),
    ("applied_delay", "<f8"),
    ("estimator_lag", "<f8"),
    ("max_added_damping", "<f8"),
    ("encoder_step", "<f8"),
    ("device_damping", "<f8"),
    ("history", "<f8", (HISTORY, 2)),
    ("written", "<i8"),
    ("observed", "<i8"),
    ("observed_position", "<f8", (2,)),
    ("observed_force", "<f8", (2,)),
    ("last_displacement", "<f8", (2,)),
    ("last_increment", "<f8", (2,)),
    ("anchor", "<f8", (2,)),
    ("moving", "<i8"),
    ("stored", "<f8"),
    ("lent", "<f8"),
    ("injected", "<f8"),
    ("excess", "<f8"),
    ("alarmed", "<i8"),
    ("added_damping", "<f8"),
]
"""What observer and controller need in the record of the rendering; `prepare_passivity` fills the first six."""


# --- kernels: s is a record that has the fields above, those of the rendering and those of walls -----------------


@kernel
def remember(s: Any, cx: float, cy: float) -> None:
    """Take note of the command (cx, cy) that is sent in this tick."""
    slot = s.written % HISTORY
    s.history[slot, 0], s.history[slot, 1] = cx, cy
    s.written += 1


@kernel
def hold_last(s: Any, periods: int) -> None:
    """Take note of the time since the last command, `periods` ago: one that was not replaced was held."""
    for _ in range(min(periods, HISTORY) - 1):
        latest = (s.written - 1) % HISTORY
        remember(s, s.history[latest, 0], s.history[latest, 1])


@kernel
def _force_in_effect(s: Any, i: int, delay: float, periods: int) -> float:
    """Return the mean of component `i` of the force [N] over the last `periods`, all of them since the latest command.

    With a delay of n + phi periods, the period that begins with command number k is under number k - n - 1 for the part
    phi of it and under number k - n for the rest.
    """
    n = int(delay)
    phi = delay - n
    latest = s.written - 1
    total = 0.0
    counted = min(periods, n + 2)  # what comes later is under the latest command
    for j in range(counted):
        older, newer = min(latest - n - 1 + j, latest), min(latest - n + j, latest)
        total += phi * s.history[older % HISTORY, i] + (1.0 - phi) * s.history[newer % HISTORY, i]
    total += (periods - counted) * s.history[latest % HISTORY, i]
    mean: float = total / periods
    return mean


@kernel
def _stored(s: Any) -> float:
    """Return what element and walls hold [J]: ``K |e|^2/2 + M |v|^2/2``; the springs of Iwan's model each by itself."""
    K, M, e, v = s.stiffness, s.mass, s.displacement, s.mass_velocity
    square = e[0] * e[0] + e[1] * e[1]
    if s.model == IWAN:
        n, k = int(s.numbers[0]), s.numbers[2]  # k of the stiffness belongs to n equal springs, the rest to one
        square = (1.0 - k) * (s.memory[STIFF] * s.memory[STIFF] + s.memory[STIFF + 1] * s.memory[STIFF + 1])
        for j in range(2 * n):
            square += k * (s.memory[j] * s.memory[j] / n)
    energy: float = 0.5 * K * square + 0.5 * M * (v[0] * v[0] + v[1] * v[1]) + s.wall_stored
    return energy


@kernel
def _lent(s: Any) -> float:
    """Return what a handle at the present speed w was lent because the force is late, and gives back as it stops [J].

    A coupling that comes t late gives ``-K x(-t) - B v(-t) = -K x - (B - K t) v + (B t - K t^2/2) a``, to second order:
    besides a weaker damper the opposite of a mass. Only the damper can inject; what such a mass gives it takes again.
    The spring is late by half a period more than the device, for the hold, and the damper by a whole one, since its
    velocity is a difference.
    """
    K, B, u, v = s.stiffness, s.damping, s.velocity, s.sliding_velocity
    spring_late = s.period * (s.applied_delay + s.estimator_lag + 0.5)
    damper_late = spring_late + 0.5 * s.period
    wx, wy = u[0] - v[0], u[1] - v[1]  # of the ends of the coupling against each other
    energy: float = 0.5 * (B * damper_late - 0.5 * K * spring_late * spring_late) * (wx * wx + wy * wy)
    energy += 0.5 * (damper_late * s.wall_damper_power - 0.5 * spring_late * spring_late * s.wall_spring_power)
    return energy


@kernel
def _quantisation_energy(s: Any, displacement: float, before: float) -> float:
    """Return the energy [J] that quantisation can feign in a `displacement` [m] after one of `before` a period ago.

    A spring that follows a staircase of steps q is late by half a step and gives back K q^2/2 per step that the handle,
    moving smoothly, was never given (Diolaiti et al. 2006 have it as the friction K q/2 that a device must have). What
    has gone on since the last period is no such step.
    """
    step = min(abs(displacement), abs(displacement - before), s.encoder_step)
    energy: float = 0.5 * (s.stiffness + s.wall_stiffness) * step * step
    return energy


@kernel
def _note_motion(s: Any) -> None:
    """Tell in ``s.moving`` whether the handle has certainly moved in this tick: to and fro by one count is nothing."""
    q = s.encoder_step
    s.moving = 1 if q == 0.0 else 0
    for i in range(2):
        displacement = s.position[i] - s.anchor[i]
        if abs(displacement) > 1.01 * q:  # whole counts, but for rounding
            s.anchor[i] = s.position[i] - math.copysign(q, displacement)
            s.moving = 1


@kernel
def _enter_injected(s: Any, periods: int, growth: float) -> None:
    """Enter the time since the last observation, in which the element's store grew by `growth` [J]."""
    injected = growth
    for i in range(2):
        displacement = s.position[i] - s.observed_position[i]
        if s.admittance != 0:
            injected -= 0.5 * (s.force[i] + s.observed_force[i]) * displacement
        else:
            injected += _force_in_effect(s, i, s.applied_delay, periods) * displacement
        injected -= _quantisation_energy(s, displacement, s.last_displacement[i])
        s.last_displacement[i] = displacement
    s.injected = max(0.0, s.injected + injected)


@kernel
def _holds(s: Any) -> bool:
    """Tell whether the handle is held by springs: the element sticks, or a wall does and friction slides on none."""
    return bool(s.sticking != 0 or s.wall_held == 1)


@kernel
def _enter_excess(s: Any, growth: float) -> None:
    """Enter the last period into the controller's ledger; `growth` [J] is that of the store, less what was lent.

    The device's own damping absorbs part of the energy that the zero-order hold generates (Colgate and Schenkel 1997).
    The quantisation error of the encoder excuses an excess, but is no credit.
    """
    gained, feigned = growth, 0.0
    for i in range(2):
        increment = s.period * s.velocity[i]
        gained += _force_in_effect(s, i, s.applied_delay + s.estimator_lag, 1) * increment
        gained -= s.device_damping * s.velocity[i] * increment
        feigned += _quantisation_energy(s, increment, s.last_increment[i])
        s.last_increment[i] = increment
    excess = s.excess + gained
    if excess > 0.0:
        s.excess = max(0.0, excess - feigned)
        return
    if not _holds(s):  # friction's work ends an excess, and pays for nothing later
        excess = max(excess, min(s.excess, 0.0))
    s.excess = excess * math.exp(-s.period / LINGERING)


@kernel
def observe(s: Any, periods: int) -> None:
    """Bring ``s.injected`` [J] up to date: a good sample came, `periods` after the last, and the element has stepped.

    ``X = max(0, X + dE + dS - N)``: dE is what the handle was given, force in effect times measured displacement, or,
    of an admittance device, minus the hand's force, by the trapezoidal rule, times displacement. dS is the growth of
    the element's store and N the quantisation energy of the encoder. The controller's ledger takes the displacement
    that the element was told instead of the measured one: the two need not agree to a count while the handle rests.
    """
    _note_motion(s)
    stored, lent = _stored(s), _lent(s)
    if s.observed != 0:
        _enter_injected(s, periods, stored - s.stored)
        if s.admittance == 0:
            _enter_excess(s, stored - s.stored - (lent - s.lent))
    s.stored, s.lent = stored, lent
    s.observed = 1
    for i in range(2):
        s.observed_position[i] = s.position[i]
        s.observed_force[i] = s.force[i]
    hold_last(s, periods)


@kernel
def forget(s: Any) -> None:
    """Begin the observation anew at the next good sample: nobody knows what happened since. What was found stays."""
    s.observed = s.wall_seen = 0


@kernel
def _missing_damping(s: Any, power: float) -> float:
    """Return the damping [N s/m] that takes the excess out within a period at the squared speed `power` [m^2/s^2].

    It acts from an excess of ``(K + B/T) q^2`` on, the work of one count's step in force, until nothing is left. There
    are two bounds: what the device bears, less what the element itself damps, and ``2 K (t + T/2)``, twice what a
    spring K whose force comes t late does in the opposite sense.
    """
    T, q = s.period, s.encoder_step
    K, B = s.stiffness + s.wall_stiffness, s.damping + s.wall_damping
    if s.excess > (K + B / T) * q * q:
        s.alarmed = 1
    elif s.excess <= 0.0:
        s.alarmed = 0
    opposite = 2.0 * K * T * (s.applied_delay + s.estimator_lag + 0.5)
    bound = max(min(opposite, s.max_added_damping - B), 0.0)
    wanted = 0.0
    if s.alarmed != 0 and power > 0.0:
        wanted = s.excess / (T * power) if s.excess < bound * T * power else bound
    if _holds(s):  # while it slides friction takes out more than a delay can give
        wanted = max(wanted, s.added_damping * math.exp(-T / LINGERING))
    damping: float = min(wanted, bound)
    return damping


@kernel
def dissipate(s: Any, fx: float, fy: float) -> tuple[float, float, int]:
    """Add to the force (fx, fy) [N] the damping that is missing; return it with the flag, or unchanged with 0."""
    vx, vy = s.velocity[0], s.velocity[1]
    power = vx * vx + vy * vy
    alpha = _missing_damping(s, power)
    s.added_damping = alpha if alpha > 1e-3 * s.max_added_damping else 0.0
    if s.moving == 0 or s.added_damping * power == 0.0:
        return fx, fy, 0
    return fx - alpha * vx, fy - alpha * vy, PASSIVITY


# --- what the kernels are told of a device -------------------------------------------------------------------------


def largest_added_damping(spec: DeviceSpec, period: float) -> float:
    """Return the damping that may act on a device, that of the element included [N s/m]; 0 if its mass is not known.

    A mass m with a damper whose force comes t late is stable below ``pi m / (2 t)``; half of that leaves a margin of
    two, for what is not known of the device. A sampled damper is late by the device's delay, half a period for the
    hold, half for the difference the velocity is, and the lag of its estimator.

    Parameters
    ----------
    spec : DeviceSpec
        The device. A delay that is not stated counts as none.
    period : float
        Time between two ticks [s].
    """
    if spec.causality is not Causality.IMPEDANCE or spec.mass is None:
        return 0.0
    return 0.25 * math.pi * spec.mass / ((spec.delay or 0.0) + spec.velocity_lag + period)


def prepare_passivity(core: Any, spec: DeviceSpec, period: float, control: bool) -> None:
    """Fill the fields of a (1,) record that say what the device is like [SI], and whether the controller is on."""
    delay, lag = (spec.delay or 0.0) / period, spec.velocity_lag / period
    core["passivity_control"] = control and spec.causality is Causality.IMPEDANCE
    core["applied_delay"] = min(delay, HISTORY - 2.0)
    core["estimator_lag"] = min(lag, HISTORY - 2.0 - core["applied_delay"][0])
    core["max_added_damping"] = largest_added_damping(spec, period)
    core["device_damping"] = spec.damping or 0.0
    core["encoder_step"] = spec.position_resolution or 0.0
