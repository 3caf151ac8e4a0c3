r"""Identification of the bias of a force sensor and of the handle's mass and centre from poses at rest.

At rest the sensor shows the wrench, in its axes (`devices.arm.sensors.mounting` has the inverse),

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
    u, zero, one = poses.gravity, np.zeros(count), np.broadcast_to(np.eye(3), (count, 3, 3))
    across = np.stack(  # across @ (m c) = (m c) x u
        [
            np.stack([zero, u[:, 2], -u[:, 1]], axis=1),
            np.stack([-u[:, 2], zero, u[:, 0]], axis=1),
            np.stack([u[:, 1], -u[:, 0], zero], axis=1),
        ],
        axis=1,
    )
    forces = _solve(np.concatenate([one, u[:, :, None]], axis=2), poses.wrench[:, :3], poses.time)
    torques = _solve(np.concatenate([one, across], axis=2), poses.wrench[:, 3:], poses.time)
    found = {
        **_identified_parameters(BIASES[:3], forces.values[:3], forces.errors[:3]),
        **_identified_parameters((MASS,), forces.values[3:], forces.errors[3:]),
    }
    shows_torques = bool(poses.wrench[:, 3:].any())
    if shows_torques:
        found |= _identified_parameters(BIASES[3:], torques.values[:3], torques.errors[:3])
        found |= _centre(torques.values[3:], torques.errors[3:], found.get(MASS))
    weight = found.get(MASS, (0.0, 0.0))[0] * float(np.sqrt(np.mean(np.sum((u - u.mean(axis=0)) ** 2, axis=1))))
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
        warnings=tuple(_doubts(found, forces.left, weight, shows_torques)),
    )


def _identified_parameters(names: tuple[str, ...], values: Array, errors: Array) -> dict[str, tuple[float, float]]:
    """Return the identified parameters with their errors by name; unidentified ones have the error nan."""
    pairs = zip(names, values.tolist(), errors.tolist(), strict=True)
    return {name: (value, error) for name, value, error in pairs if math.isfinite(error)}


def _centre(moments: Array, errors: Array, mass: tuple[float, float] | None) -> dict[str, tuple[float, float]]:
    """Return the centre from mass times centre, if the mass is significant."""
    if mass is None or not mass[0] > CERTAIN * mass[1]:
        return {}
    values = moments / mass[0]
    return _identified_parameters(CENTRES, values, np.hypot(errors, values * mass[1]) / mass[0])


def _doubts(found: dict[str, tuple[float, float]], left: float, weight: float, shows_torques: bool) -> list[str]:
    doubts = []
    if MASS in found:
        mass, error = found[MASS]
        if mass < -CERTAIN * error:
            doubts.append("the mass is negative: gravity or the rotation of the sensor is set wrong")
        elif mass <= CERTAIN * error:
            doubts.append(
                f"the mass may be 0 (its standard error is {error:.2g} kg), so its centre cannot be identified"
            )
    if not shows_torques:
        doubts.append("the sensor measures no torques, so the centre of mass cannot be identified")
    if left > max(_MISFIT[0] * abs(weight), _MISFIT[1]):
        doubts.append(
            f"the residual is {left:.2g} N: somebody touched the handle, or gravity or the rotation of the sensor is "
            "set wrong"
        )
    return doubts


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
    unlikely = np.array([fit.unlikely for fit in fits])
    weights = np.exp(unlikely.min() - unlikely)
    weights /= weights.sum()
    each = np.array([fit.values for fit in fits])
    mean = weights @ each
    errors = np.sqrt(weights @ (np.array([fit.errors for fit in fits]) ** 2 + (each - mean) ** 2))
    left = float(np.sqrt(np.mean((shown - design @ (mean / scale)) ** 2)))
    return _Solution(mean / scale, errors / scale, left, float(_WALKS[int(np.argmin(unlikely))]))


class _Fit(NamedTuple):
    values: Array
    errors: Array
    unlikely: float


def _fit(design: Array, shown: Array, covariance: Array) -> _Fit:
    """Fit with a covariance of the poses, (n, n), known up to a factor, and independent axes."""
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
    return _Fit(values, errors, float(unlikely))
