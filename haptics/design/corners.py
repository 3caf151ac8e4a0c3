r"""Stability limits of corners, where the surfaces of two walls meet.

In a corner both walls hold the handle. With the unit normals n of their surfaces and tangents t, spring and damper are
the matrices

.. math:: S = \sum_i K_i (n_i n_i^T + h_i\, t_i t_i^T), \qquad D = \sum_i B_i (n_i n_i^T + h_i\, t_i t_i^T),

where h is 1 as long as friction holds along that wall, and 0 without. Two equal walls without friction whose normals
enclose the angle :math:`\varphi` give :math:`K (1 + |\cos \varphi|)` along one bisector and
:math:`K (1 - |\cos \varphi|)` along the other. Two walls whose friction holds give :math:`K_1 + K_2` in every
direction, for every angle. Dampers add up in the same way. A corner may therefore allow more or less stiffness than its
single walls, since too much damping is as harmful as too little. A sticking element adds its K and B in all directions.

The matrix of a period (`haptics.design.stuck_matrix`) is linear in K and B. The matrix in two dimensions contains S and
D in their place, as Kronecker products. It is exact, whether or not S and D have the same axes.

A corner of flat walls generates no energy as long as neither wall does: both undergo the same motion, their forces add
up, and so do the energies.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from haptics.design.bounds import edge
from haptics.design.loops import Coupling, Handle, growth, stuck_matrix

if TYPE_CHECKING:
    from haptics.scenes.walls import Wall

Side = tuple[float, float, bool]
"""Stiffness [N/m] and damping [N s/m] of a wall, and True if friction can hold along it."""

_CELLS = 300
"""Number of grid cells along the longer side of the workspace."""

_NEAR = 1.5
"""Maximum distance to both surfaces, in grid cells, at a corner; from sqrt(2) on, no corner is missed."""

_SOFTEST = 1e-3
_ROUNDING = 1e-6
"""Tolerance on eigenvalues of magnitude 1. Across a smooth corner the handle may be entirely free."""

_DIGITS = 1e-4


def corner_factor(
    handle: Handle, walls: tuple[Wall, Wall], cosine: float, period: float = 1e-3, beside: Coupling | None = None
) -> float:
    """Return the largest stable factor on the stiffness of two walls, for the bare handle in their corner.

    The result is the minimum over all cases: friction along each wall, and the contact of the element, may hold or not.
    It is 0 if no stiffness is stable, because the damping is too low or too high.

    Parameters
    ----------
    handle : Handle
        The device.
    walls : (Wall, Wall)
        The two walls.
    cosine : float
        Cosine of the angle between the normals of their surfaces, of any sign.
    period : float
        Sampling period [s].
    beside : Coupling, optional
        Spring and damper of the element, which can hold the handle at the same time.
    """
    first, second = ((wall.stiffness, wall.damping, wall.friction > 0.0) for wall in walls)
    return _factor(handle, first, second, round(abs(cosine), 2), period, beside)


@functools.lru_cache(maxsize=64)
def _factor(handle: Handle, first: Side, second: Side, cosine: float, period: float, beside: Coupling | None) -> float:
    held = itertools.product(*((0.0, 1.0)[: 1 + side[2]] for side in (first, second)))
    around = (None,) if beside is None else (None, beside)
    return min(_least(handle, first, second, cosine, h, period, also) for h in held for also in around)


def _least(
    handle: Handle,
    first: Side,
    second: Side,
    cosine: float,
    held: tuple[float, ...],
    period: float,
    beside: Coupling | None,
) -> float:
    """Return the factor for given states of friction along each wall: 1 holds, 0 does not."""
    flat, soft, damped = (stuck_matrix(Coupling(K, B, period), handle) for K, B in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)))
    by_stiffness, by_damping, still = soft - flat, damped - flat, np.kron(flat, np.eye(2))
    normals = np.array([(1.0, 0.0), (cosine, math.sqrt(max(1.0 - cosine * cosine, 0.0)))])
    axes = [np.outer(n, n) + h * (np.eye(2) - np.outer(n, n)) for n, h in zip(normals, held, strict=True)]
    springs = sum(side[0] * axis for side, axis in zip((first, second), axes, strict=True))
    dampers = sum(side[1] * axis for side, axis in zip((first, second), axes, strict=True))
    own = (beside.stiffness, beside.damping) if beside is not None else (0.0, 0.0)
    rest = still + np.kron(by_damping, dampers + own[1] * np.eye(2)) + np.kron(by_stiffness, own[0] * np.eye(2))
    stiffer = np.asarray(np.kron(by_stiffness, springs), np.float64)
    return edge(lambda factor: growth(rest + factor * stiffer) < 1.0 + _ROUNDING, _SOFTEST, 2.0, digits=_DIGITS) or 0.0


@functools.lru_cache(maxsize=4)
def corners(
    walls: tuple[Wall, ...], lower: tuple[float, float], upper: tuple[float, float]
) -> tuple[tuple[tuple[Wall, Wall], float], ...]:
    """Return the pairs of walls whose surfaces meet inside the workspace [m], or just outside of it.

    `lower` and `upper` are opposite corners of the workspace. Each pair comes with the cosine of the angle between the
    normals, the one of largest magnitude if the walls meet in several places. Places deep inside a third wall are
    skipped because the handle cannot reach them.
    """
    if len(walls) < 2:
        return ()
    span = np.subtract(upper, lower)
    step = float(span.max()) / _CELLS
    margin = 2.0 * _NEAR * step
    x, y = (np.arange(low - margin, high + margin, step) for low, high in zip(lower, upper, strict=True))
    places = np.stack(np.meshgrid(x, y), axis=2)
    depths = [-wall.shape.distance(places.reshape(-1, 2)).reshape(places.shape[:2]) for wall in walls]
    reached = np.logical_and.reduce([depth < _NEAR * step for depth in depths])
    touched = [reached & (depth > 0.0) for depth in depths]
    found = []
    for one, other in itertools.combinations(range(len(walls)), 2):
        both = touched[one] & touched[other]
        if both.any():
            found.append(((walls[one], walls[other]), _cosine(depths[one], depths[other], both)))
    return tuple(found)


def _cosine(one: NDArray[np.float64], other: NDArray[np.float64], where: NDArray[np.bool_]) -> float:
    """Return the cosine of largest magnitude between the gradients of two depth maps, (rows, columns)."""
    gradients = [np.column_stack([np.gradient(depth, axis=axis)[where] for axis in (0, 1)]) for depth in (one, other)]
    units = [each / np.maximum(np.linalg.norm(each, axis=1, keepdims=True), 1e-12) for each in gradients]
    cosines = (units[0] * units[1]).sum(axis=1)
    return float(cosines[np.argmax(np.abs(cosines))])
