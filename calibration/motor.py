r"""Motor identification: gain, offset, hysteresis, back-EMF (Guedelha et al. 2018, section 3.3).

This is the second phase of the identification. The friction of the joint is known from recordings without drive, so
that :math:`\tau_j + I \dot\omega + F(\omega) = \tau_0 + K u` holds for the drive signal u of the motor: its PWM,
current or voltage (32). The paper has minus the static friction there; the sign must be plus, because F opposes the
motion as a whole.

At rest the friction may have any value up to its static level. If a joint is held while its motor is driven up and
down, friction appears as hysteresis, and half of its width is the static friction (Fig. 11). The gain is the slope of
both branches, each from the middle of its stroke on: before that, the friction may still be reversing.

The friction of a joint is not constant: in a warm gear, levels and viscosity may be tens of percent lower. Each
possible change is a column whose unknown coefficient has mean 0 and standard deviation 1. If drive and motion are
independent, the recording determines the change; if they are correlated, it cannot, and the interval of the gain widens
(a mixed model; Robinson 1991).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording
from calibration.data.reading import FEWEST
from calibration.fitting.regression import least_squares, times
from calibration.friction.model import select
from calibration.parameters import (
    CHANGE,
    NORMAL_95,
    Found,
    Interval,
    JointParameters,
    friction_change,
    friction_spread,
)
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
        if self.values["gain"] != 0.0:  # the drive signal for zero output
            facts[f"zero_drive_{self.recording.drive_unit}"] = -self.values["offset"] / self.values["gain"]
        low, high = self.intervals["gain"]
        weak = ("the gain cannot be told from 0; drive the motor harder, both ways",) if low <= 0.0 <= high else ()
        return Found(self.recording.drive_unit, self.values, self.intervals, facts, weak + self.doubts)


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
    drive = recording.drive
    if drive is None:
        raise recording.error(
            "has no column for what drives the motor (pwm_percent, pwm_count, pwm_duty, current_a, voltage_v)"
        )
    if np.ptp(drive) == 0.0:
        raise recording.error(f"the drive is constant ({drive[0]:g} {recording.drive_unit}): vary it")
    speed = np.abs(recording.velocity)
    band = _REST * float(speed.max()) if rest is None else rest
    moving = speed > band
    held = bool(np.count_nonzero(moving) < FEWEST)
    gross = recording.effort
    if inertia != 0.0:
        if recording.acceleration is None:
            raise recording.error("has no accelerations, which the inertia needs (acceleration_rad_per_s2)")
        gross = gross + inertia * recording.acceleration
    known = friction(recording.velocity) if friction is not None and not held else None
    # the direction of the motion; at rest, the direction of the last change of the drive
    change = np.sign(np.diff(drive, prepend=drive[0]))
    latest = np.where(change != 0.0, np.arange(len(drive)), np.flatnonzero(change)[0])
    way = np.asarray(change[np.maximum.accumulate(latest)])
    branch = np.where(moving, np.sign(recording.velocity), way)
    uncertain = ((), ()) if known is None else (friction_spread, friction_change)
    problem = MotorProblem(drive, recording.velocity, branch, gross, known, *uncertain)
    used = moving
    if held:  # samples past the middle of a drive stroke, where static friction has reversed
        used = np.zeros(len(drive), dtype=bool)
        for first, last in itertools.pairwise([0, *np.flatnonzero(np.diff(way)).tolist(), len(drive) - 1]):
            stroke = drive[first : last + 1]
            used[first : last + 1] = np.abs(stroke - stroke[0]) > 0.5 * abs(stroke[-1] - stroke[0])
    part = problem.of(used)
    found = estimated(part.columns, part.target, part.spread, part.change)
    if found.rank < len(problem.names):
        raise recording.error("drive and motion are too correlated: gain and friction cannot be separated")
    values, reach = found.coefficients, NORMAL_95 * found.deviations
    ends = zip((values - reach).tolist(), (values + reach).tolist(), strict=True)
    return MotorFit(
        recording=recording,
        values=dict(zip(problem.names, values.tolist(), strict=True)),
        intervals=dict(zip(problem.names, ends, strict=True)),
        condition=found.condition,
        correlation=part.correlation,
        used=used,
        branch=problem.branch,
        gross=gross,
        net=problem.net(found),
        held=held,
        residual=found.residual,
        doubts=(*doubts_about_speed(recording.velocity, band, held), *doubts_about(part, found, held)),
    )


def identify_joint_motor(recording: JointRecording, joint: JointParameters, inertia: float = 0.0) -> MotorFit:
    """Identify the motor of a joint with identified friction, as `identify_motor`.

    Raises
    ------
    ConfigurationError
        If the friction is unknown, or of the other kind of joint.
    """
    if joint.rotary != recording.rotary:
        raise recording.error("slides, but its friction file is of a joint that turns, or the reverse")
    return identify_motor(
        recording,
        joint.friction_at,
        inertia=inertia,
        rest=joint.dead_band,
        friction_spread=friction_spread(joint, recording.velocity),
        friction_change=friction_change(joint, recording.velocity),
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
    halves = []
    for found in (closed, opened):
        if "viscosity" not in found.values:
            raise ConfigurationError(
                f"model {found.model}: has two viscosities; the back-EMF needs one, as in stribeck."
            )
        low, high = found.intervals.get("viscosity", (-math.inf, math.inf))
        halves.append((high - low) / 2.0)
    value, half = closed.values["viscosity"] - opened.values["viscosity"], math.hypot(*halves)
    return value, (value - half, value + half)


# --- problem ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MotorProblem:
    """Data of a motor identification.

    Attributes
    ----------
    drive, velocity, branch : (n,) float array
        Drive signal, velocity, and direction of the motion (1 or -1).
    gross : (n,) float array
        Output torque including inertia [N m] or [N].
    friction : (n,) float array or None
        Friction from the file; None if it is modelled as a hysteresis of constant width.
    spread, change : tuple of (n,) float array
        As in `calibration.motor.estimated`.
    """

    drive: Array
    velocity: Array
    branch: Array
    gross: Array
    friction: Array | None
    spread: tuple[Array, ...] = ()
    change: tuple[Array, ...] = ()

    def of(self, part: NDArray[np.bool_]) -> MotorProblem:
        """Return the problem for selected samples."""
        names = ("drive", "velocity", "branch", "gross", "friction")
        columns: dict[str, Any] = {name: select(getattr(self, name), part) for name in names}
        columns |= {name: tuple(one[part] for one in getattr(self, name)) for name in ("spread", "change")}
        return replace(self, **columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return ("gain", "offset", "hysteresis") if self.friction is None else ("gain", "offset")

    @property
    def columns(self) -> Array:
        """Columns of gain and offset, and of the hysteresis if the friction is unknown."""
        own = [self.drive, np.ones_like(self.drive)]
        return np.column_stack([*own, -self.branch] if self.friction is None else own)

    @property
    def target(self) -> Array:
        """Dependent variable: output torque plus the friction from the file."""
        return self.gross if self.friction is None else self.gross + self.friction

    @property
    def correlation(self) -> float:
        """Multiple correlation of the drive with motion and friction, 0 to 1."""
        others = (self.branch, self.velocity) if self.friction is None else (self.friction, *self.change)
        centred = self.drive - self.drive.mean()
        left = least_squares(np.column_stack((np.ones(len(self.drive)), np.column_stack(others))), self.drive).residual
        unexplained = float(left @ left) / max(float(centred @ centred), float(np.finfo(float).tiny))
        return math.sqrt(max(0.0, 1.0 - unexplained))

    def net(self, found: Estimated) -> Array:
        """Return the torque of the motor, with the friction corrected for its estimated change."""
        return self.target - times(np.column_stack(self.change), found.changes) if self.change else self.target


# --- least squares ----------------------------------------------------------------------------------------------------

_EXACT = 1e-6
"""Minimum error as a fraction of the target's rms, so that a recording without noise can be solved."""


@dataclass(frozen=True, eq=False)
class Estimated:
    """Estimated coefficients with their uncertainty.

    Attributes
    ----------
    coefficients, deviations : (p,) float array
        Coefficients of the columns, and their standard deviations.
    residual : (n,) float array
        Residual after columns and changes.
    changes : (k,) float array
        Coefficients of the changes, in their standard deviations.
    condition : float
        Condition number of the columns alone.
    rank : int
        Numerical rank of the columns.
    """

    coefficients: Array
    deviations: Array
    residual: Array
    changes: Array
    condition: float
    rank: int


def estimated(
    matrix: Array, target: Array, spread: tuple[Array, ...] = (), change: tuple[Array, ...] = ()
) -> Estimated:
    """Estimate the coefficients of columns.

    Parameters
    ----------
    matrix : (n, p) float array
        Columns, in the order of time.
    target : (n,) float array
        Dependent variable.
    spread : tuple of (n,) float array
        Change of the target for one standard deviation of each of its parameters; widens the intervals.
    change : tuple of (n,) float array
        Possible changes of the target since its identification, one standard deviation each; estimated with the
        columns.
    """
    count = matrix.shape[1]
    plain = least_squares(matrix, target)
    columns = np.column_stack((matrix, *change))
    size = 0.0
    if change:  # the standard deviation of independent errors with the same information as the residual
        left = least_squares(columns, target).residual
        summed = float(_correlated(left[None, :], memory(left))[0]) / len(left)
        size = float(np.sqrt(max(summed, _EXACT**2 * float(np.mean(target**2)))))
    prior = np.column_stack((np.zeros((len(change), count)), size * np.eye(len(change))))
    joint = np.concatenate((columns, prior))
    fit = least_squares(joint, np.concatenate((target, np.zeros(len(change)))))
    lengths = np.linalg.norm(joint, axis=0)
    lengths = np.where(lengths == 0.0, 1.0, lengths)
    scaled = joint / lengths
    inverse = (np.linalg.pinv(scaled.T @ scaled, hermitian=True) @ scaled.T / lengths[:, None])[:count]
    residual = fit.residual[: len(target)]
    own, known = inverse[:, : len(target)], inverse[:, len(target) :]
    lags = memory(residual)
    # the effective sample size corrects the residual variance for the number of unknowns
    summed = float(_correlated(residual[None, :], lags)[0])
    independent = float(residual @ residual) / summed * len(residual) if summed > 0.0 else float(len(residual))
    correction = independent / max(independent - columns.shape[1], 1.0)
    errors = correction * _correlated(own * residual, lags)
    beforehand = [(size * known) ** 2, *(times(own, one)[:, None] ** 2 for one in spread)]
    variance = errors + np.column_stack(beforehand).sum(axis=1)
    found, changes = fit.coefficients[:count], fit.coefficients[count:]
    return Estimated(found, np.asarray(np.sqrt(variance)), residual, changes, plain.condition, plain.rank)


def memory(residual: Array) -> int:
    """Return the lag [samples] at which the residual is uncorrelated, at most a tenth of the samples."""
    centred = residual - residual.mean()
    spectrum = np.abs(np.fft.rfft(centred, 2 * len(centred))) ** 2
    correlation = np.asarray(np.fft.irfft(spectrum)[: len(centred)])
    below = np.flatnonzero(correlation < 2.0 / np.sqrt(len(residual)) * correlation[0])
    return int(min(below[0] if len(below) else len(residual), len(residual) // 10))


def _correlated(scores: Array, lags: int) -> Array:
    """Return the variance of sums of correlated numbers, at least the variance without correlation.

    Newey and West 1987.
    """
    count = scores.shape[1]
    spectrum = np.abs(np.fft.rfft(scores, 2 * count, axis=1)) ** 2
    products = np.fft.irfft(spectrum, axis=1)[:, : lags + 1]
    weights = 2.0 * (1.0 - np.arange(lags + 1) / (lags + 1.0))
    weights[0] = 1.0
    return np.asarray(np.maximum(times(products, weights), products[:, 0]))


# --- doubts -----------------------------------------------------------------------------------------------------------

FOLLOWS = 0.9
"""Multiple correlation of the drive with the friction above which they are hardly separable."""
_SURE = 4.0
"""Standard deviations of a significant difference, with a margin for multiple comparisons."""
_NOTABLE = 0.05
"""Relative change of the friction that is reported."""
_SLOW = 5.0
"""Median speed, in dead bands, below which a recording is slow."""
_ROUNDING = 1e-6
"""Differences smaller than this fraction of the torque are rounding errors."""
_CHUNK, _CREEP, _FEWEST_CHUNKS = 20, 0.1, 10
"""Criteria for creeping.

Number of samples of a mean velocity, minimum mean as a fraction of the dead band, and minimum number of means.
"""


def doubts_about(problem: MotorProblem, found: Estimated, held: bool) -> list[str]:
    """Return the reasons to doubt an identified motor.

    Parameters
    ----------
    problem : MotorProblem
        Problem of the fitted samples.
    found : Estimated
        Estimate, whose first coefficient is the gain.
    held : bool
        Whether the joint was at rest nearly all the time.
    """
    if held:
        return doubts_about_halves(problem.columns, problem.target, problem.names)
    doubts, correlation, friction = [], problem.correlation, problem.friction
    if correlation >= FOLLOWS:
        rests = f"changed by no more than {2.0 * CHANGE:.0%}" if problem.change else "is exactly that of its file"
        if friction is None:
            rests = "does not depend on the speed"
        doubts.append(
            f"the drive follows the motion (correlation {correlation:.2f}): gain and friction can hardly be separated, "
            f"and the intervals hold only if the friction {rests}; drive the motor independently of the motion"
        )
    # an additional column: the speed, on which a constant hysteresis does not depend, or the friction of the file
    columns = np.column_stack((problem.columns, -problem.velocity if friction is None else friction))
    wider = estimated(columns, problem.target, problem.spread)
    change, deviation = float(wider.coefficients[-1]), float(wider.deviations[-1])
    known = wider.rank == columns.shape[1]
    if friction is None:
        doubts += doubts_about_halves(problem.columns, problem.target, problem.names)
        if known and not abs(change) < _SURE * deviation:
            doubts.append(
                "the friction depends on the speed, which a hysteresis of constant width does not (with viscosity the "
                f"gain would be {wider.coefficients[0]:.4g}); record the friction and give --friction"
            )
        return doubts
    # compare the halves with the identified friction, and with a friction scaled separately in each half
    plain = doubts_about_halves(problem.columns, problem.net(found), problem.names)
    if not plain and correlation <= FOLLOWS:
        scaled = np.column_stack((problem.columns, -friction))
        plain = doubts_about_halves(scaled, problem.gross, (*problem.names, "friction relative to its file"))
    doubts += plain
    if known and not abs(change) < max(_NOTABLE, _SURE * deviation):
        how = "lower" if change > 0.0 else "higher"
        doubts.append(
            f"the friction is {abs(change):.0%} {how} than in its file (give or take {2.0 * deviation:.0%}); record it "
            "anew, as warm as the joint is when it is driven"
        )
    return doubts


def doubts_about_speed(velocity: Array, rest: float, held: bool) -> list[str]:
    """Return a warning if the joint moved so slowly that its friction is hardly known.

    Parameters
    ----------
    velocity : (n,) float array
        Velocity of all samples.
    rest : float
        Speed below which samples counted as rest, both here and in the identification of the friction.
    held : bool
        Whether the joint is assumed to be at rest nearly all the time.
    """
    if held:
        # Means over samples show whether velocities below the dead band are motion and not noise.
        count = len(velocity) // _CHUNK
        chunks = velocity[: count * _CHUNK].reshape(count, _CHUNK)
        if count < _FEWEST_CHUNKS:
            return []
        means = chunks.mean(axis=1)
        size, noise = float(np.sqrt(np.mean(means**2))), float(chunks.std(axis=1).mean()) / np.sqrt(_CHUNK)
        if not size > max(_CREEP * rest, 3.0 * noise):
            return []
        return ["the joint was taken as held, but it creeps: the gain contains friction; hold it, or drive it faster"]
    slow = float(np.mean(np.abs(velocity) <= rest))
    if float(np.median(np.abs(velocity))) >= _SLOW * rest:
        return []
    return [
        f"the joint moved slowly: {slow:.0%} of the samples are in the dead band ({rest:.3g}) and left out, and most "
        "others are just above it, where the friction is known least; move it faster"
    ]


def doubts_about_halves(matrix: Array, target: Array, names: tuple[str, ...]) -> list[str]:
    """Return warnings about differences between the first and the second half of a recording.

    Parameters
    ----------
    matrix : (n, p) float array
        Columns, in the order of time.
    target : (n,) float array
        Dependent variable.
    names : tuple of str
        Names of the columns.
    """
    half = len(target) // 2
    if half < FEWEST:
        return []
    first, second = (estimated(matrix[part], target[part]) for part in (slice(half), slice(half, None)))
    if min(first.rank, second.rank) < matrix.shape[1]:
        return []
    apart = np.abs(second.coefficients - first.coefficients)
    sure = apart > _SURE * np.hypot(first.deviations, second.deviations)
    sizes = np.sqrt(np.mean(matrix**2, axis=0)) * apart
    significant = sure & (sizes > _ROUNDING * np.sqrt(np.mean(target**2)))
    return [
        f"drift: the {name} is {one:.4g} in the first half and {other:.4g} in the second; let the joint run warm first"
        for name, one, other, differs in zip(names, first.coefficients, second.coefficients, significant, strict=True)
        if differs
    ]
