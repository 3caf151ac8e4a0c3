"""Warnings about an identified motor: reasons to doubt the result."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibration.data.tables import FEWEST
from calibration.motor.estimate import Estimated, estimated
from calibration.motor.problem import MotorProblem
from calibration.parameters.spread import CHANGE

Array = NDArray[np.float64]

FOLLOWS = 0.9
"""Multiple correlation of the drive with the friction above which they are hardly separable."""
_SURE = 4.0
"""Standard deviations of a significant difference, with a margin for multiple comparisons."""
_NOTABLE = 0.05
"""Relative change of the friction that is reported."""
_SLOW = 5.0
"""Median speed, in dead bands, below which a recording is slow."""
_EXACT = 1e-6
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
    doubts = _follows(problem) + _halves(problem, found)
    return doubts + (_speed_dependent(problem) if problem.friction is None else _changed(problem, problem.friction))


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
        return (
            ["the joint was taken as held, but it creeps: the gain contains friction; hold it, or drive it faster"]
            if _creeps(velocity, rest)
            else []
        )
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
    told = sure & (sizes > _EXACT * np.sqrt(np.mean(target**2)))
    return [
        f"drift: the {name} is {one:.4g} in the first half and {other:.4g} in the second; let the joint run warm first"
        for name, one, other, differs in zip(names, first.coefficients, second.coefficients, told, strict=True)
        if differs
    ]


def _follows(problem: MotorProblem) -> list[str]:
    correlation = problem.correlation
    if correlation < FOLLOWS:
        return []
    rests = f"changed by no more than {2.0 * CHANGE:.0%}" if problem.change else "is exactly that of its file"
    if problem.friction is None:
        rests = "does not depend on the speed"
    return [
        f"the drive follows the motion (correlation {correlation:.2f}): gain and friction can hardly be separated, and "
        f"the intervals hold only if the friction {rests}; drive the motor independently of the motion"
    ]


def _halves(problem: MotorProblem, found: Estimated) -> list[str]:
    """Compare the halves, with the identified friction and with a friction scaled separately in each half."""
    if problem.friction is None:
        return doubts_about_halves(problem.columns, problem.target, problem.names)
    plain = doubts_about_halves(problem.columns, problem.net(found), problem.names)
    if plain or problem.correlation > FOLLOWS:
        return plain
    scaled = np.column_stack((problem.columns, -problem.friction))
    return doubts_about_halves(scaled, problem.gross, (*problem.names, "friction relative to its file"))


def _changed(problem: MotorProblem, friction: Array) -> list[str]:
    """Return a warning if the friction differs from that in its file."""
    columns = np.column_stack((problem.columns, friction))
    found = estimated(columns, problem.target, problem.spread)
    change, deviation = float(found.coefficients[-1]), float(found.deviations[-1])
    if found.rank < columns.shape[1] or abs(change) < max(_NOTABLE, _SURE * deviation):
        return []
    how = "lower" if change > 0.0 else "higher"
    return [
        f"the friction is {abs(change):.0%} {how} than in its file (give or take {2.0 * deviation:.0%}); record it "
        "anew, as warm as the joint is when it is driven"
    ]


def _speed_dependent(problem: MotorProblem) -> list[str]:
    """Return a warning if the constant hysteresis leaves speed-dependent friction in the gain."""
    columns = np.column_stack((problem.columns, -problem.velocity))
    found = estimated(columns, problem.target)
    if found.rank < columns.shape[1] or abs(found.coefficients[-1]) < _SURE * found.deviations[-1]:
        return []
    return [
        "the friction depends on the speed, which a hysteresis of constant width does not (with viscosity the gain "
        f"would be {found.coefficients[0]:.4g}); record the friction and give --friction"
    ]


def _creeps(velocity: Array, rest: float) -> bool:
    """Return True if velocities below the dead band are motion and not noise, from means over samples."""
    count = len(velocity) // _CHUNK
    if count < _FEWEST_CHUNKS:
        return False
    chunks = velocity[: count * _CHUNK].reshape(count, _CHUNK)
    means = chunks.mean(axis=1)
    size, noise = float(np.sqrt(np.mean(means**2))), float(chunks.std(axis=1).mean()) / np.sqrt(_CHUNK)
    return bool(size > max(_CREEP * rest, 3.0 * noise))
