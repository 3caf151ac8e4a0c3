"""Passivity observer and passivity controller for the energy that the loop injects at the handle.

A friction element stores energy in its spring and mass and dissipates energy, but cannot generate any. The loop around
it can: the zero-order hold keeps the force of a sample for a period, and the force arrives late, so that a spring
returns more energy than it received.

The *observer* integrates the energy given to the handle beyond the energy stored by the element: ``injected`` [J]. The
*controller* adds damping while a separate energy balance shows an ``excess`` [J]. This is time-domain passivity control
(Hannaford and Ryu 2002) with four differences:

- The energy stored by the element, which is passive as an algorithm (Kikuuwe et al. 2006), is known and included. So is
  the energy that a late force lends to an accelerating handle.
- Energy dissipated by the dampers within the last swing is a credit, so that a loop that settles by itself is not
  damped further.
- Energy dissipated by friction during sliding is never a credit, so that an oscillation after the slide is detected at
  once.
- The damping decays with the time constant `DECAY_TIME` after the excess, because an oscillation with an exactly
  balanced energy would continue indefinitely.

Neither can account for unknown effects: a delay missing from the specification, the dynamics of the motors, or motion
between two encoder counts. ``docs/passivity.md`` has figures.
"""

from __future__ import annotations

import math
from typing import Any

from haptics.device import Causality, DeviceSpec
from haptics.elements.classic_kernels import IWAN, STIFF
from haptics.jit import kernel
from haptics.records import Status, fields

PASSIVITY = int(Status.PASSIVITY)

HISTORY = 512
"""Number of stored commands; delays are clipped to 510 periods."""

DECAY_TIME = 0.03
"""Time constant of the decay of credit and of unneeded damping [s]; about one swing of a stiff handle."""

PASSIVITY_FIELDS: list[tuple[Any, ...]] = [
    ("passivity_control", "<i8"),
    *fields("<f8", "applied_delay estimator_lag max_added_damping encoder_step device_damping"),
    ("history", "<f8", (HISTORY, 2)),
    *fields("<i8", "written observed"),
    *fields("<f8", "observed_position observed_force last_displacement last_increment anchor", 2),
    ("moving", "<i8"),
    *fields("<f8", "stored lent injected excess"),
    ("alarmed", "<i8"),
    ("added_damping", "<f8"),
]
"""Fields of observer and controller in the record of the rendering.

`prepare_passivity` fills the first six.
"""


# --- kernels: s is a record with the fields above, those for the rendering and those for walls ------------------------


@kernel
def store_command(s: Any, cx: float, cy: float) -> None:
    """Append the command (cx, cy) of this tick to the history."""
    slot = s.written % HISTORY
    s.history[slot, 0], s.history[slot, 1] = cx, cy
    s.written += 1


@kernel
def repeat_last_command(s: Any, periods: int) -> None:
    """Append the last command to the history for the periods in which it was held; it is `periods` old."""
    for _ in range(min(periods, HISTORY) - 1):
        latest = (s.written - 1) % HISTORY
        store_command(s, s.history[latest, 0], s.history[latest, 1])


@kernel
def _force_in_effect(s: Any, i: int, delay: float, periods: int) -> float:
    """Return the mean of force component `i` [N] over the last `periods`, all after the latest command.

    With a delay of n + phi periods, command number k - n - 1 acts for the fraction phi of the period that begins with
    command number k, and command number k - n for the rest.
    """
    n = int(delay)
    phi = delay - n
    latest = s.written - 1
    total = 0.0
    counted = min(periods, n + 2)  # the latest command acts in all further periods
    for j in range(counted):
        older, newer = min(latest - n - 1 + j, latest), min(latest - n + j, latest)
        total += phi * s.history[older % HISTORY, i] + (1.0 - phi) * s.history[newer % HISTORY, i]
    total += (periods - counted) * s.history[latest % HISTORY, i]
    mean: float = total / periods
    return mean


@kernel
def _stored_energy(s: Any) -> float:
    """Return the energy stored in element and walls [J].

    It is ``K |e|^2/2 + M |v|^2/2``; Iwan's model has several springs.
    """
    K, M, e, v = s.stiffness, s.mass, s.displacement, s.mass_velocity
    square = e[0] * e[0] + e[1] * e[1]
    if s.model == IWAN:
        n, k = int(s.numbers[0]), s.numbers[2]  # n equal springs share k of the stiffness, one spring has the rest
        square = (1.0 - k) * (s.memory[STIFF] * s.memory[STIFF] + s.memory[STIFF + 1] * s.memory[STIFF + 1])
        for j in range(2 * n):
            square += k * (s.memory[j] * s.memory[j] / n)
    energy: float = 0.5 * K * square + 0.5 * M * (v[0] * v[0] + v[1] * v[1]) + s.wall_stored
    return energy


@kernel
def _lent_energy(s: Any) -> float:
    """Return the energy [J] that the delayed force lends to the handle at its present speed.

    A coupling with a delay t exerts ``-K x(-t) - B v(-t) = -K x - (B - K t) v + (B t - K t^2/2) a``, to second order: a
    weaker damper and a negative mass. Only the damper term can inject energy; the energy of the negative mass is
    recovered when the handle stops. The spring force is half a period later than the device's delay because of the
    hold. The damper force is a full period later, because its velocity is a difference.
    """
    K, B, u, v = s.stiffness, s.damping, s.velocity, s.sliding_velocity
    spring_late = s.period * (s.applied_delay + s.estimator_lag + 0.5)
    damper_late = spring_late + 0.5 * s.period
    wx, wy = u[0] - v[0], u[1] - v[1]  # relative velocity of the ends of the coupling
    energy: float = 0.5 * (B * damper_late - 0.5 * K * spring_late * spring_late) * (wx * wx + wy * wy)
    energy += 0.5 * (damper_late * s.wall_damper_power - 0.5 * spring_late * spring_late * s.wall_spring_power)
    return energy


@kernel
def _quantisation_energy(s: Any, displacement: float, before: float) -> float:
    """Return the largest apparent energy [J] due to quantisation of a `displacement` [m].

    A spring that follows a staircase of steps q lags by half a step. It seems to return K q^2/2 per step that a
    smoothly moving handle never received. Diolaiti et al. 2006 express this as the friction K q/2 that a device must
    have. The part of the displacement that equals the previous one, `before`, is not such a step.
    """
    step = min(abs(displacement), abs(displacement - before), s.encoder_step)
    energy: float = 0.5 * (s.stiffness + s.wall_stiffness) * step * step
    return energy


@kernel
def _springs_hold(s: Any) -> bool:
    """Return True if springs hold the handle: the element sticks, or walls stick and none slides."""
    return bool(s.sticking != 0 or s.wall_held == 1)


@kernel
def observe(s: Any, periods: int) -> None:
    """Update ``s.injected`` [J] after the element's step for a good sample, `periods` after the last.

    ``X = max(0, X + dE + dS - N)``: dE is the energy given to the handle, i.e. force in effect times measured
    displacement. For an admittance device it is the negative product of the hand's force (trapezoidal rule) and the
    displacement. dS is the growth of the energy stored by the element, and N the quantisation energy of the encoder.
    The balance of the controller uses the displacement that the element received as input instead of the measured one;
    they may differ by a count while the handle rests.
    """
    q = s.encoder_step
    s.moving = 1 if q == 0.0 else 0
    for i in range(2):
        way = s.position[i] - s.anchor[i]
        if abs(way) > 1.01 * q:  # more than the jitter of one count, with tolerance for rounding
            s.anchor[i] = s.position[i] - math.copysign(q, way)
            s.moving = 1
    stored, lent = _stored_energy(s), _lent_energy(s)
    if s.observed != 0:
        injected = stored - s.stored
        for i in range(2):
            displacement = s.position[i] - s.observed_position[i]
            if s.admittance != 0:
                injected -= 0.5 * (s.force[i] + s.observed_force[i]) * displacement
            else:
                injected += _force_in_effect(s, i, s.applied_delay, periods) * displacement
            injected -= _quantisation_energy(s, displacement, s.last_displacement[i])
            s.last_displacement[i] = displacement
        s.injected = max(0.0, s.injected + injected)
        if s.admittance == 0:
            # The device's own damping absorbs part of the energy that the zero-order hold generates (Colgate and
            # Schenkel 1997). The quantisation error of the encoder reduces an excess but gives no credit.
            gained, feigned = stored - s.stored - (lent - s.lent), 0.0
            for i in range(2):
                increment = s.period * s.velocity[i]
                gained += _force_in_effect(s, i, s.applied_delay + s.estimator_lag, 1) * increment
                gained -= s.device_damping * s.velocity[i] * increment
                feigned += _quantisation_energy(s, increment, s.last_increment[i])
                s.last_increment[i] = increment
            excess = s.excess + gained
            if excess > 0.0:
                s.excess = max(0.0, excess - feigned)
            else:
                if not _springs_hold(s):  # work of friction cancels an excess but gives no credit
                    excess = max(excess, min(s.excess, 0.0))
                s.excess = excess * math.exp(-s.period / DECAY_TIME)
    s.stored, s.lent = stored, lent
    s.observed = 1
    for i in range(2):
        s.observed_position[i] = s.position[i]
        s.observed_force[i] = s.force[i]
    repeat_last_command(s, periods)


@kernel
def restart_observation(s: Any) -> None:
    """Restart the observation at the next good sample; ``injected`` and ``excess`` are kept.

    The energy until then is unknown.
    """
    s.observed = s.wall_seen = 0


@kernel
def dissipate(s: Any, fx: float, fy: float) -> tuple[float, float, int]:
    """Add the damping that dissipates the excess within a period to the force (fx, fy) [N].

    Return the force with the flag, or unchanged with 0.

    The damping acts from an excess of ``(K + B/T) q^2``, the work of the force step of one count, until the excess is
    zero. It has two bounds: the largest damping of the device minus the damping of the element, and
    ``2 K (t + T/2)``, twice the negative damping of a spring K with a force delay t.
    """
    vx, vy = s.velocity[0], s.velocity[1]
    power = vx * vx + vy * vy
    T, q = s.period, s.encoder_step
    K, B = s.stiffness + s.wall_stiffness, s.damping + s.wall_damping
    if s.excess > (K + B / T) * q * q:
        s.alarmed = 1
    elif s.excess <= 0.0:
        s.alarmed = 0
    opposite = 2.0 * K * T * (s.applied_delay + s.estimator_lag + 0.5)
    bound = max(min(opposite, s.max_added_damping - B), 0.0)
    alpha = 0.0
    if s.alarmed != 0 and power > 0.0:
        alpha = s.excess / (T * power) if s.excess < bound * T * power else bound
    if _springs_hold(s):  # while sliding, friction dissipates more than the delay can inject
        alpha = max(alpha, s.added_damping * math.exp(-T / DECAY_TIME))
    alpha = min(alpha, bound)
    s.added_damping = alpha if alpha > 1e-3 * s.max_added_damping else 0.0
    if s.moving == 0 or s.added_damping * power == 0.0:
        return fx, fy, 0
    return fx - alpha * vx, fy - alpha * vy, PASSIVITY


# --- parameters of a device -------------------------------------------------------------------------------------------


def largest_added_damping(spec: DeviceSpec, period: float) -> float:
    """Return the largest damping of a device including the element's [N s/m]; 0 if its mass is unknown.

    A mass m with a damper whose force is delayed by t is stable below ``pi m / (2 t)``. Half of this value leaves a
    safety factor of two for unknown properties of the device. The delay of a sampled damper is the sum of the device's
    delay, half a period for the hold, half a period for the velocity difference, and the lag of the velocity estimator.

    Parameters
    ----------
    spec : DeviceSpec
        The device. An unknown delay counts as zero.
    period : float
        Time between two ticks [s].
    """
    if spec.causality is not Causality.IMPEDANCE or spec.mass is None:
        return 0.0
    return 0.25 * math.pi * spec.mass / ((spec.delay or 0.0) + spec.velocity_lag + period)


def prepare_passivity(core: Any, spec: DeviceSpec, period: float, control: bool) -> None:
    """Write the parameters of the device [SI] and the controller switch into a (1,) record."""
    delay, lag = (spec.delay or 0.0) / period, spec.velocity_lag / period
    core["passivity_control"] = control and spec.causality is Causality.IMPEDANCE
    core["applied_delay"] = min(delay, HISTORY - 2.0)
    core["estimator_lag"] = min(lag, HISTORY - 2.0 - core["applied_delay"][0])
    core["max_added_damping"] = largest_added_damping(spec, period)
    core["device_damping"] = spec.damping or 0.0
    core["encoder_step"] = spec.position_resolution or 0.0
