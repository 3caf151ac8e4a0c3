"""Stability of a network with delayed forces (Kikuuwe et al. 2006, (63), for any network)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from haptics.device import Vector
from haptics.records import Rows

_STEPS = 200
"""Maximum number of Lanczos steps: exact for as many bodies, accurate to about 1e-3 for more."""


def stability_number(nodes: Rows, springs: Rows, contacts: Rows, period: float) -> float:
    """Return a quarter of the largest eigenvalue of :math:`M^{-1} (T^2 K + 2 T B)`, all contacts sticking.

    With the delayed forces of (60) a mode of the network obeys :math:`(z - 1)^2 + a z + b (z - 1) = 0`, where
    :math:`a = T^2 K / M` and :math:`b = T B / M`. It leaves the unit circle through z = -1, where a + 2 b = 4. Since
    the matrices are symmetric, this needs no eigenvectors, only the point where 4 M - T^2 K - 2 T B becomes indefinite.
    """
    mobility = np.sqrt(nodes["inverse_mass"])
    first = np.concatenate((springs["first"], contacts["first"]))
    second = np.concatenate((springs["second"], contacts["second"]))
    stiffness = np.concatenate((springs["stiffness"], contacts["stiffness"]))
    damping = np.concatenate((springs["damping"], contacts["damping"]))
    weight = period * (period * stiffness + 2.0 * damping)

    def apply(vector: Vector) -> Vector:
        motion = mobility * vector
        force = weight * (motion[first] - motion[second])
        load = np.bincount(first, force, len(nodes)) - np.bincount(second, force, len(nodes))
        return np.asarray(mobility * load)

    diagonal, side = _lanczos(apply, len(nodes))
    return float(np.linalg.eigvalsh(np.diag(diagonal) + np.diag(side, -1))[-1]) / 4.0


def _lanczos(apply: Callable[[Vector], Vector], size: int) -> tuple[Vector, Vector]:
    """Return diagonal and side diagonal of the tridiagonal form of a symmetric operator.

    Re-orthogonalisation is omitted: without it eigenvalues at the ends of the spectrum repeat but do not move.
    """
    diagonal, side = [], [0.0]
    before, vector = np.zeros(size), np.random.default_rng(0).standard_normal(size)
    vector /= np.linalg.norm(vector)
    for _ in range(min(_STEPS, size)):
        image = apply(vector)
        diagonal.append(float(vector @ image))
        image -= diagonal[-1] * vector + side[-1] * before
        side.append(float(np.linalg.norm(image)))
        if side[-1] <= 1e-13 * max(diagonal):
            break
        before, vector = vector, image / side[-1]
    return np.array(diagonal), np.array(side[1 : len(diagonal)])
