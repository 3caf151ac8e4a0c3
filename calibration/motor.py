r"""What a motor gives for what it is told: gain, offset, hysteresis, back-EMF (Guedelha et al. 2018, section 3.3).

The second phase of the identification: the friction of the joint is known from recordings in which nothing drove it, so
that :math:`\tau_j + I \dot\omega + F(\omega) = \tau_0 + K u` holds for what the motor is told, u: its PWM, its current
or its voltage (32). Printed there is minus the static friction; it has to be plus, for F opposes the motion as a whole.

At rest the friction may be anything up to its static level. A joint that is held while its motor is driven up and down
shows it as hysteresis, half of whose width is the static friction (Fig. 11). Its gain is the slope of both branches,
each from the middle of its stroke on: before that, the friction may still be turning over.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.measurements import FEWEST, Measurement
from calibration.parameter_keys import key
from calibration.parameters import Found, Interval, JointParameters
from calibration.regression import LinearFit, least_squares
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

NORMAL_95 = 1.959963984540054
"""A normal error is smaller than this many standard deviations in 95 of 100 cases."""

_REST = 0.01
"""A joint is at rest below this part of its top speed, where nothing else is said."""


@dataclass(frozen=True, eq=False)
class MotorFit:
    """A motor's parameters and what they were found from.

    Attributes
    ----------
    measurement : Measurement
        What was measured.
    drive : (n,) float array
        What the motor was told.
    values : mapping
        ``gain`` per unit of the drive, ``offset`` and, if the friction is not known or the joint is held,
        ``hysteresis``: half its width.
    intervals : mapping
        95 % intervals of `values`.
    condition : float
        Condition number of the fit.
    used : (n,) bool array
        Samples that were fitted.
    branch : (n,) float array
        1 where the joint moved forward, or was at rest while its drive rose; -1 the other way.
    gross, net : (n,) float array
        Torque that came out, inertia included, before and after the friction was added [N m] or [N].
    held : bool
        Whether the joint was at rest nearly all the time.
    residual : (used,) float array
        What the fit leaves.
    """

    measurement: Measurement
    drive: Array
    values: Mapping[str, float]
    intervals: Mapping[str, Interval]
    condition: float
    used: NDArray[np.bool_]
    branch: Array
    gross: Array
    net: Array
    held: bool
    residual: Array

    @property
    def rms(self) -> float:
        """Root mean square of what the fit leaves [N m] or [N]."""
        return float(np.sqrt(np.mean(self.residual**2)))

    @property
    def zero_drive(self) -> float | None:
        """What the motor must be told to give nothing, in the unit of the drive; None if it never gives anything."""
        gain = self.values["gain"]
        return -self.values["offset"] / gain if gain != 0.0 else None

    def found(self) -> Found:
        """Return what goes into a parameter file."""
        facts: dict[str, Any] = {
            "samples": len(self.used),
            "samples_used": int(self.used.sum()),
            "held": self.held,
            "condition_number": self.condition,
            key("residual_rms", "force", self.measurement.rotary): self.rms,
        }
        if self.zero_drive is not None:
            facts[f"zero_drive_{self.measurement.drive_unit}"] = self.zero_drive
        return Found(self.measurement.drive_unit, self.values, self.intervals, facts, self._warnings())

    def _warnings(self) -> tuple[str, ...]:
        low, high = self.intervals["gain"]
        doubtful = low <= 0.0 <= high
        return ("the gain cannot be told from 0; drive the motor harder, both ways",) if doubtful else ()


def identify_motor(
    measurement: Measurement,
    friction: Callable[[Array], Array] | None = None,
    *,
    inertia: float = 0.0,
    rest: float | None = None,
    friction_spread: tuple[Array, ...] = (),
) -> MotorFit:
    """Return what a motor gives for what it is told.

    Parameters
    ----------
    measurement : Measurement
        Of a joint while its motor is driven.
    friction : callable, optional
        Friction F of the joint from velocities [rad/s] to torques [N m], in their direction, and the constant of the
        sensor if there is one. Without it the friction is taken for a hysteresis of constant width.
    inertia : float
        Inertia of motor and gear as the joint feels it [kg m^2] or [kg]; needs accelerations.
    rest : float, optional
        Samples below this speed are at rest [rad/s] or [m/s]; by default 1 % of the top speed.
    friction_spread : tuple of (n,) float array
        How much the friction at each sample would change if each of its parameters were one standard deviation larger;
        the intervals account for it, the parameters taken for independent.

    Raises
    ------
    ConfigurationError
        If there is no column for the drive, or it does not change, or accelerations are missing.
    """
    drive = _required_drive(measurement)
    speed = np.abs(measurement.velocity)
    moving = speed > (_REST * float(speed.max()) if rest is None else rest)
    held = bool(np.count_nonzero(moving) < FEWEST)
    branch = _branch(measurement.velocity, drive, moving)
    gross = measurement.effort + _inertial(measurement, inertia)
    known = friction is not None and not held
    net = gross + friction(measurement.velocity) if known and friction is not None else gross
    used = _past_reversal(drive) if held else moving
    columns = [drive, np.ones_like(drive)] if known else [drive, np.ones_like(drive), -branch]
    matrix = np.column_stack(columns)[used]
    fit = least_squares(matrix, net[used])
    if fit.rank < matrix.shape[1]:
        raise measurement.error("drive and motion go together so that gain and friction cannot be told apart")
    names = ("gain", "offset", "hysteresis")[: matrix.shape[1]]
    deviations = _deviations(matrix, fit, [one[used] for one in friction_spread] if known else [])
    values = dict(zip(names, map(float, fit.coefficients), strict=True))
    intervals = {
        name: (values[name] - NORMAL_95 * deviation, values[name] + NORMAL_95 * deviation)
        for name, deviation in zip(names, deviations.tolist(), strict=True)
    }
    return MotorFit(
        measurement, drive, values, intervals, fit.condition, used, branch, gross, net, held, np.asarray(fit.residual)
    )


def friction_spread(joint: JointParameters, velocity: Array) -> tuple[Array, ...]:
    """Return what `identify_motor` asks for: how the friction moves with one standard deviation of each parameter.

    Parameters
    ----------
    joint : JointParameters
        With a friction and its intervals.
    velocity : (n,) float array
        [rad/s] or [m/s].
    """
    found = joint.known_friction()
    here = joint.friction_at(velocity)
    spread = []
    for name, interval in found.intervals.items():
        if name in found.values and name != "inertia":
            deviation = _half_width(interval) / NORMAL_95
            moved = Found(found.model, {**found.values, name: found.values[name] + deviation})
            spread.append(replace(joint, friction=moved).friction_at(velocity) - here)
    return tuple(spread)


def back_emf(closed: Found, opened: Found) -> tuple[float, Interval]:
    """Return the viscosity that the currents in the windings make, and its 95 % interval.

    The joint is moved from outside twice: at PWM 0, when currents can flow, and with the windings open. The rest of the
    friction is the same (Guedelha et al. 2018, sections 2.3, 3.2.1).

    Parameters
    ----------
    closed, opened : Found
        Friction with currents and without, models with one viscosity.

    Returns
    -------
    (float, (float, float))
        [N m s/rad] or [N s/m], as the joint feels it.

    Raises
    ------
    ConfigurationError
        If a friction has no viscosity that is the same both ways.
    """
    both = (closed, opened)
    for found in both:
        if "viscosity" not in found.values:
            raise ConfigurationError(
                f"model {found.model}: has two viscosities; the back-EMF needs one, as in stribeck."
            )
    value = closed.values["viscosity"] - opened.values["viscosity"]
    half = math.hypot(*(_half_width(found.intervals.get("viscosity", (-math.inf, math.inf))) for found in both))
    return value, (value - half, value + half)


def _half_width(interval: Interval) -> float:
    return (interval[1] - interval[0]) / 2.0


def _required_drive(measurement: Measurement) -> Array:
    if measurement.drive is None:
        raise measurement.error(
            "has no column for what drives the motor (pwm_percent, pwm_count, pwm_duty, current_a, voltage_v)"
        )
    if np.ptp(measurement.drive) == 0.0:
        raise measurement.error(f"the drive is constant ({measurement.drive[0]:g} {measurement.drive_unit}): vary it")
    return measurement.drive


def _inertial(measurement: Measurement, inertia: float) -> Array | float:
    if inertia == 0.0:
        return 0.0
    if measurement.acceleration is None:
        raise measurement.error("has no accelerations, which the inertia needs (acceleration_rad_per_s2)")
    return inertia * measurement.acceleration


def _branch(velocity: Array, drive: Array, moving: NDArray[np.bool_]) -> Array:
    """Return the way of the motion, at rest that of the drive."""
    return np.where(moving, np.sign(velocity), _way(drive))


def _way(drive: Array) -> Array:
    """Return at every sample which way the drive went last, 1 or -1."""
    change = np.sign(np.diff(drive, prepend=drive[0]))
    told = np.where(change != 0.0, np.arange(len(drive)), np.flatnonzero(change)[0])
    return np.asarray(change[np.maximum.accumulate(told)])


def _past_reversal(drive: Array) -> NDArray[np.bool_]:
    """Return where the drive is past the middle of its stroke: before, the static friction may still turn over."""
    turns = np.flatnonzero(np.diff(_way(drive)))
    past = np.zeros(len(drive), dtype=bool)
    for first, last in itertools.pairwise([0, *turns.tolist(), len(drive) - 1]):
        stroke = drive[first : last + 1]
        past[first : last + 1] = np.abs(stroke - stroke[0]) > 0.5 * abs(stroke[-1] - stroke[0])
    return past


def _deviations(matrix: Array, fit: LinearFit, spread: list[Array]) -> Array:
    """Return the standard deviations of the coefficients, neighbours in time and errors of the friction accounted for.

    The sum over lags is that of Newey and West (1987), with as many lags as the residual takes to lose its memory.
    """
    inverse = np.linalg.pinv(matrix)
    scores = inverse * fit.residual
    white = (scores**2).sum(axis=1)
    variance = white.copy()
    lags = _memory(fit.residual)
    for lag in range(1, lags + 1):
        variance += 2.0 * (1.0 - lag / (lags + 1.0)) * (scores[:, lag:] * scores[:, :-lag]).sum(axis=1)
    variance = np.maximum(variance, white)
    for change in spread:
        variance += (inverse @ change) ** 2
    return np.asarray(np.sqrt(variance))


def _memory(residual: Array) -> int:
    """Return after how many samples the residual is uncorrelated with itself, at most a tenth of them."""
    centred = residual - residual.mean()
    spectrum = np.abs(np.fft.rfft(centred, 2 * len(centred))) ** 2
    correlation = np.fft.irfft(spectrum)[: len(centred)]
    below = np.flatnonzero(correlation < 2.0 / np.sqrt(len(centred)) * correlation[0])
    return int(min(below[0] if len(below) else len(centred), len(centred) // 10))
