r"""Motor identification: gain, offset, hysteresis, back-EMF (Guedelha et al. 2018, section 3.3).

This is the second phase of the identification. The friction of the joint is known from recordings without drive, so
that :math:`\tau_j + I \dot\omega + F(\omega) = \tau_0 + K u` holds for the drive signal u of the motor: its PWM,
current or voltage (32). The paper has minus the static friction there; the sign must be plus, because F opposes the
motion as a whole.

At rest the friction may have any value up to its static level. If a joint is held while its motor is driven up and
down, friction appears as hysteresis, and half of its width is the static friction (Fig. 11). The gain is the slope of
both branches, each from the middle of its stroke on: before that, the friction may still be reversing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording
from calibration.data.tables import FEWEST
from calibration.motor.doubts import doubts_about, doubts_about_speed
from calibration.motor.estimate import Estimated
from calibration.motor.problem import MotorProblem
from calibration.parameters.parameters import Found, Interval
from calibration.parameters.spread import NORMAL_95
from devices.common.parameter_keys import key
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

_REST = 0.01
"""Default speed below which a joint is at rest, as a fraction of its top speed."""


@dataclass(frozen=True, eq=False)
class MotorFit:
    """Identified motor parameters, with their data.

    Attributes
    ----------
    recording : JointRecording
        Recording of the driven joint.
    drive : (n,) float array
        Drive signal of the motor.
    values : mapping
        ``gain`` per unit of the drive, ``offset`` and, if the friction is unknown or the joint is held, ``hysteresis``:
        half its width.
    intervals : mapping
        95 % intervals of `values`.
    condition : float
        Condition number of the columns of gain, offset and hysteresis.
    correlation : float
        Multiple correlation of the drive with motion and friction, 0 to 1.
    used : (n,) bool array
        Mask of the fitted samples.
    branch : (n,) float array
        1 if the joint moved forward, or was at rest with a rising drive; -1 otherwise.
    gross, net : (n,) float array
        Output torque including inertia, before and after adding the friction [N m] or [N]. The friction includes the
        change estimated from the recording.
    held : bool
        Whether the joint was at rest nearly all the time.
    residual : (used,) float array
        Residual of the fit.
    doubts : tuple of str
        Reasons to doubt the result.
    """

    recording: JointRecording
    drive: Array
    values: Mapping[str, float]
    intervals: Mapping[str, Interval]
    condition: float
    correlation: float
    used: NDArray[np.bool_]
    branch: Array
    gross: Array
    net: Array
    held: bool
    residual: Array
    doubts: tuple[str, ...] = ()

    @property
    def rms(self) -> float:
        """Root mean square of the residual [N m] or [N]."""
        return float(np.sqrt(np.mean(self.residual**2)))

    @property
    def zero_drive(self) -> float | None:
        """Drive signal for zero output, in the unit of the drive; None if the gain is zero."""
        gain = self.values["gain"]
        return -self.values["offset"] / gain if gain != 0.0 else None

    def found(self) -> Found:
        """Return the parameters for a parameter file."""
        facts: dict[str, Any] = {
            "samples": len(self.used),
            "samples_used": int(self.used.sum()),
            "held": self.held,
            "condition_number": self.condition,
            "drive_correlation": self.correlation,
            key("residual_rms", "force", self.recording.rotary): self.rms,
        }
        if self.zero_drive is not None:
            facts[f"zero_drive_{self.recording.drive_unit}"] = self.zero_drive
        return Found(self.recording.drive_unit, self.values, self.intervals, facts, self._warnings())

    def _warnings(self) -> tuple[str, ...]:
        low, high = self.intervals["gain"]
        doubtful = low <= 0.0 <= high
        weak = ("the gain cannot be told from 0; drive the motor harder, both ways",) if doubtful else ()
        return weak + self.doubts


def identify_motor(
    recording: JointRecording,
    friction: Callable[[Array], Array] | None = None,
    *,
    inertia: float = 0.0,
    rest: float | None = None,
    friction_spread: tuple[Array, ...] = (),
    friction_change: tuple[Array, ...] = (),
) -> MotorFit:
    """Identify the output of a motor as a function of its drive signal.

    Parameters
    ----------
    recording : JointRecording
        Recording of a joint while its motor is driven.
    friction : callable, optional
        Friction F of the joint from velocities [rad/s] to torques [N m], with the sign of the velocity, including the
        constant of the sensor if any. Without it the friction is modelled as a hysteresis of constant width.
    inertia : float
        Inertia of motor and gear seen at the joint [kg m^2] or [kg]; requires accelerations.
    rest : float, optional
        Speed below which samples are at rest [rad/s] or [m/s]; by default 1 % of the top speed.
    friction_spread : tuple of (n,) float array
        Change of the friction at each sample for one standard deviation of each of its parameters, assumed independent;
        the intervals account for it.
    friction_change : tuple of (n,) float array
        Possible change of the friction at each sample since its identification, such as by warming: one standard
        deviation for each parameter. Estimated together with the gain, as far as the recording determines it.

    Raises
    ------
    ConfigurationError
        If the drive signal is missing or constant, or accelerations are missing.
    """
    drive = _required_drive(recording)
    speed = np.abs(recording.velocity)
    band = _REST * float(speed.max()) if rest is None else rest
    moving = speed > band
    held = bool(np.count_nonzero(moving) < FEWEST)
    gross = recording.effort + _inertial(recording, inertia)
    known = friction(recording.velocity) if friction is not None and not held else None
    used = _past_reversal(drive) if held else moving
    problem = MotorProblem(
        drive,
        recording.velocity,
        _branch(recording.velocity, drive, moving),
        gross,
        known,
        () if known is None else friction_spread,
        () if known is None else friction_change,
    )
    used = _past_reversal(drive) if held else moving
    found = problem.of(used).solved()
    if found.rank < len(problem.names):
        raise recording.error("drive and motion are too correlated: gain and friction cannot be separated")
    doubts = doubts_about_speed(recording.velocity, band, held) + doubts_about(problem.of(used), found, held)
    return _fit(recording, problem, used, held, found, doubts)


def _fit(
    recording: JointRecording,
    problem: MotorProblem,
    used: NDArray[np.bool_],
    held: bool,
    found: Estimated,
    doubts: list[str],
) -> MotorFit:
    values = dict(zip(problem.names, found.coefficients.tolist(), strict=True))
    reach = dict(zip(problem.names, (NORMAL_95 * found.deviations).tolist(), strict=True))
    return MotorFit(
        recording=recording,
        drive=problem.drive,
        values=values,
        intervals={name: (value - reach[name], value + reach[name]) for name, value in values.items()},
        condition=found.condition,
        correlation=problem.of(used).correlation,
        used=used,
        branch=problem.branch,
        gross=problem.gross,
        net=problem.net(found),
        held=held,
        residual=found.residual,
        doubts=tuple(doubts),
    )


def back_emf(closed: Found, opened: Found) -> tuple[float, Interval]:
    """Return the viscosity due to currents in the windings (back-EMF), and its 95 % interval.

    The joint is moved externally twice: at PWM 0, when currents can flow, and with the windings open. The remaining
    friction is the same (Guedelha et al. 2018, sections 2.3, 3.2.1).

    Parameters
    ----------
    closed, opened : Found
        Friction with currents and without, from models with one viscosity.

    Returns
    -------
    (float, (float, float))
        Viscosity at the joint [N m s/rad] or [N s/m], and its interval.

    Raises
    ------
    ConfigurationError
        If a friction does not have one viscosity for both directions.
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


def _required_drive(recording: JointRecording) -> Array:
    if recording.drive is None:
        raise recording.error(
            "has no column for what drives the motor (pwm_percent, pwm_count, pwm_duty, current_a, voltage_v)"
        )
    if np.ptp(recording.drive) == 0.0:
        raise recording.error(f"the drive is constant ({recording.drive[0]:g} {recording.drive_unit}): vary it")
    return recording.drive


def _inertial(recording: JointRecording, inertia: float) -> Array | float:
    if inertia == 0.0:
        return 0.0
    if recording.acceleration is None:
        raise recording.error("has no accelerations, which the inertia needs (acceleration_rad_per_s2)")
    return inertia * recording.acceleration


def _branch(velocity: Array, drive: Array, moving: NDArray[np.bool_]) -> Array:
    """Return the direction of the motion; at rest, the direction of the drive's change."""
    return np.where(moving, np.sign(velocity), _way(drive))


def _way(drive: Array) -> Array:
    """Return the direction of the last change of the drive at every sample, 1 or -1."""
    change = np.sign(np.diff(drive, prepend=drive[0]))
    told = np.where(change != 0.0, np.arange(len(drive)), np.flatnonzero(change)[0])
    return np.asarray(change[np.maximum.accumulate(told)])


def _past_reversal(drive: Array) -> NDArray[np.bool_]:
    """Return a mask of samples past the middle of a drive stroke, where static friction has reversed."""
    turns = np.flatnonzero(np.diff(_way(drive)))
    past = np.zeros(len(drive), dtype=bool)
    for first, last in itertools.pairwise([0, *turns.tolist(), len(drive) - 1]):
        stroke = drive[first : last + 1]
        past[first : last + 1] = np.abs(stroke - stroke[0]) > 0.5 * abs(stroke[-1] - stroke[0])
    return past
