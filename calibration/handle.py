r"""Identification of the bias of a force sensor and of the handle's mass and centre from poses at rest.

At rest the sensor shows the wrench, in its axes (`devices.arm.sensors.force_sensor` has the inverse),

.. math::
    F = b_F + m\,u, \qquad \tau = b_\tau + (m c) \times u

with bias b, mass m of the handle, its centre c, and gravity u in the axes of the sensor in that pose. Forces and
torques have no common parameter, and both are linear: two least-squares problems. If u is the same in all poses, as for
an arm in a horizontal plane, bias and weight are not separable in its direction. The weight is then a constant that
every tare removes.

The bias also drifts. The errors of consecutive poses are then correlated, and least squares underestimates its standard
errors. The errors are therefore modelled as the sum of white noise and a random walk, whose ratio is estimated from the
residuals by restricted likelihood, separately for forces and torques. A few dozen poses determine the ratio only
roughly, and the most likely ratio alone still gives standard errors that are too small. Therefore all candidate ratios
are averaged, weighted by their likelihood. The estimated bias is the mean over the poses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

BIASES = tuple(f"bias_{kind}_{axis}_{unit}" for kind, unit in (("force", "n"), ("torque", "nm")) for axis in "xyz")
MASS = "mass_kg"
CENTRES = tuple(f"centre_{axis}_m" for axis in "xyz")
NAMES = (MASS, *CENTRES, *BIASES)
"""Names of all parameters, including units."""

LEAST_POSES = 4
"""Minimum number of poses for standard errors."""

_WALKS = (0.0, *np.geomspace(1e-3, 10.0, 17).tolist())
"""Candidate variances of the random walk per pose, relative to the variance of the white noise.

With larger values, noise and walk are not separable, and errors would be underestimated.
"""

_TELLS = 1e-6
"""Information about a parameter below this fraction is rounding error."""

CERTAIN = 4.0
"""Minimum mass in standard errors that differs significantly from zero."""

_MISFIT = 0.05, 0.1
"""Limits of the residual at rest: as a fraction of the variation of the weight, and absolute [N]."""


@dataclass(frozen=True)
class RestingWrenches:
    """Sensor readings in several poses.

    Attributes
    ----------
    time : (n,) float array
        Time of each pose since the beginning [s].
    gravity : (n, 3) float array
        Gravity in the axes of the sensor [m/s^2].
    wrench : (n, 6) float array
        Wrench in the axes of the sensor [N], [N m], averaged over the rest in the pose.
    """

    time: Array
    gravity: Array
    wrench: Array


@dataclass(frozen=True)
class Handle:
    """Identified handle.

    Attributes
    ----------
    values, errors : mapping
        Values by the names in `NAMES`, and their standard errors.
    unknown : tuple of str
        Names of the parameters that are not identifiable.
    resting : tuple of 6 floats
        Mean wrench, the sum of bias and weight [N], [N m].
    facts : mapping
        Properties of the fit.
    warnings : tuple of str
        Reasons to doubt the result.
    """

    values: Mapping[str, float]
    errors: Mapping[str, float]
    unknown: tuple[str, ...]
    resting: tuple[float, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def identify_handle(poses: RestingWrenches) -> Handle:
    """Identify bias, mass and centre as far as the poses determine them.

    Raises
    ------
    ConfigurationError
        If there are too few poses.
    """
    count = len(poses.time)
    if count < LEAST_POSES:
        raise ConfigurationError(f"{count} poses: must be at least {LEAST_POSES}, for standard errors.")
    u, one = poses.gravity, np.broadcast_to(np.eye(3), (count, 3, 3))
    across = np.cross(np.eye(3), u[:, None, :]).transpose(0, 2, 1)  # across @ (m c) = (m c) x u
    forces = _solve(np.concatenate([one, u[:, :, None]], axis=2), poses.wrench[:, :3], poses.time)
    torques = _solve(np.concatenate([one, across], axis=2), poses.wrench[:, 3:], poses.time)
    found: dict[str, tuple[float, float]] = {}

    def add(names: tuple[str, ...], values: Array, errors: Array) -> None:
        """Add identified parameters; the errors of others are nan."""
        pairs = zip(names, values.tolist(), errors.tolist(), strict=True)
        found.update({name: (value, error) for name, value, error in pairs if math.isfinite(error)})

    add((*BIASES[:3], MASS), forces.values, forces.errors)
    mass, mass_error = found.get(MASS, (0.0, 0.0))
    shows_torques, known = bool(poses.wrench[:, 3:].any()), mass > CERTAIN * mass_error
    if shows_torques:
        add(BIASES[3:], torques.values[:3], torques.errors[:3])
    if shows_torques and known:  # the centre from mass times centre
        centre = torques.values[3:] / mass
        add(CENTRES, centre, np.hypot(torques.errors[3:], centre * mass_error) / mass)
    doubts = []
    if MASS in found and mass < -CERTAIN * mass_error:
        doubts.append("the mass is negative: gravity or the rotation of the sensor is set wrong")
    elif MASS in found and not known:
        doubts.append(
            f"the mass may be 0 (its standard error is {mass_error:.2g} kg), so its centre cannot be identified"
        )
    if not shows_torques:
        doubts.append("the sensor measures no torques, so the centre of mass cannot be identified")
    weight = mass * float(np.sqrt(np.mean(np.sum((u - u.mean(axis=0)) ** 2, axis=1))))
    if forces.left > max(_MISFIT[0] * abs(weight), _MISFIT[1]):
        doubts.append(
            f"the residual is {forces.left:.2g} N: somebody touched the handle, or gravity or the rotation of the "
            "sensor is set wrong"
        )
    return Handle(
        values={name: found[name][0] for name in NAMES if name in found},
        errors={name: found[name][1] for name in NAMES if name in found},
        unknown=tuple(name for name in NAMES if name not in found),
        resting=tuple(poses.wrench.mean(axis=0).tolist()),
        facts={
            "poses": count,
            "residual_force_n": forces.left,
            "residual_torque_nm": torques.left,
            "walk_to_noise_force": forces.walk,
            "walk_to_noise_torque": torques.walk,
        },
        warnings=tuple(doubts),
    )


# --- least squares ----------------------------------------------------------------------------------------------------


class _Solution(NamedTuple):
    """Parameters, standard errors (nan if unidentified), rms residual, and variance ratio of the walk."""

    values: Array
    errors: Array
    left: float
    walk: float


def _solve(design: Array, shown: Array, time: Array) -> _Solution:
    """Solve design @ parameters = shown, (n, 3, p) and (n, 3), with white noise and a random walk."""
    scale = np.maximum(np.sqrt(np.sum(design**2, axis=(0, 1))), 1e-300)
    since = (time - time[0]) / max(float(np.mean(np.diff(time))), 1e-300)
    centred = np.eye(len(time)) - 1.0 / len(time)
    common = centred @ np.minimum(since[:, None], since[None, :]) @ centred  # the bias is its mean over the poses
    fits = [_fit(design / scale, shown, np.eye(len(time)) + walk * common) for walk in _WALKS]
    each, deviations, unlikely = map(np.array, zip(*fits, strict=True))
    weights = np.exp(unlikely.min() - unlikely)
    weights /= weights.sum()
    mean = weights @ each
    errors = np.sqrt(weights @ (deviations**2 + (each - mean) ** 2))
    left = float(np.sqrt(np.mean((shown - design @ (mean / scale)) ** 2)))
    return _Solution(mean / scale, errors / scale, left, float(_WALKS[int(np.argmin(unlikely))]))


def _fit(design: Array, shown: Array, covariance: Array) -> tuple[Array, Array, float]:
    """Fit with a covariance of the poses, (n, n), known up to a factor, and independent axes.

    Returns parameters, standard errors, and the negative log likelihood.
    """
    count = len(shown)
    half = np.linalg.cholesky(covariance)
    whole = np.linalg.solve(half, np.concatenate([design, shown[:, :, None]], axis=2).reshape(count, -1))
    rows = whole.reshape(3 * count, -1)
    left, sizes, right = np.linalg.svd(rows[:, :-1], full_matrices=False)
    rank = int(np.sum(sizes > _TELLS * sizes[0]))
    sizes, right = sizes[:rank], right[:rank]
    values = right.T @ (left[:, :rank].T @ rows[:, -1] / sizes)
    free = 3 * count - rank
    variance = max(float(np.sum((rows[:, -1] - rows[:, :-1] @ values) ** 2)) / free, 1e-30)
    determined = np.sum(right**2, axis=0) > 1.0 - _TELLS
    errors = np.where(determined, np.sqrt(variance * np.sum((right / sizes[:, None]) ** 2, axis=0)), math.nan)
    unlikely = 3.0 * np.sum(np.log(np.diag(half))) + np.sum(np.log(sizes)) + 0.5 * free * math.log(variance)
    return values, errors, float(unlikely)
