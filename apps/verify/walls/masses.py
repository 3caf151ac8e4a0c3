"""Walls on an admittance device, whose mass is coupled implicitly.

See `apps.verify.walls.handles`. With the free velocity w of the mass without a wall, r = g w and Z = T/M, the push of a
wall is the smaller of ``(K d + (B + T K) r)/(1 + Z (B + T K) |g|^2)`` and ``2 K (d + T r)/(1 + 2 Z T K |g|^2)``, and at
least 0. Several walls are solved one after the other, each with the forces of the others, until convergence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.walls.handles import WallNumbers, Walls, blur, depths

Floats = NDArray[np.float64]

_ROUNDS = 50
"""Maximum number of Gauss-Seidel iterations over the walls."""

_AGREED = 1e-12


@dataclass(frozen=True)
class Mass:
    """Mass of an admittance device.

    Attributes
    ----------
    kilograms : (n,) array
        M [kg].
    velocity, force : (n, 2) array
        Velocity before the tick [m/s], and force without walls [N].
    acceleration : float
        Acceleration limit of the reference [m/s^2].
    """

    kilograms: Floats
    velocity: Floats
    force: Floats
    acceleration: float


@dataclass
class _Met:
    """Wall in several ticks: depth, gradient, push and drag."""

    wall: WallNumbers
    depth: Floats
    g: Floats
    push: Floats = field(init=False)
    drag: Floats = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.depth)
        self.push, self.drag = np.zeros(n), np.zeros(n)
        self.square = (self.g**2).sum(axis=1)
        self.size = np.hypot(self.g[:, 0], self.g[:, 1])
        self.tangent = (
            np.stack((-self.g[:, 1], self.g[:, 0]), axis=1) / np.where(self.size > 0.0, self.size, 1.0)[:, None]
        )

    @property
    def force(self) -> Floats:
        """Force on the mass [N]."""
        return np.asarray(-self.push[:, None] * self.g - self.drag[:, None] * self.tangent)

    def solve(self, free: Floats, Z: Floats, share: Floats, period: float) -> NDArray[np.bool_]:
        """Solve the wall for the velocity without it.

        Return the ticks in which the solution changed.
        """
        K, B = share * self.wall.stiffness, share * self.wall.damping
        c, rate = B + period * K, (self.g * free).sum(axis=1)
        soft = (K * self.depth + c * rate) / (1.0 + Z * c * self.square)
        hard = 2.0 * K * (self.depth + period * rate) / (1.0 + 2.0 * Z * period * K * self.square)
        push = np.where(self.square > 0.0, np.maximum(0.0, np.minimum(soft, hard)), 0.0)
        level = self.wall.friction * push * self.size
        drag = np.clip((free * self.tangent).sum(axis=1) / Z, -level, level)
        change = np.abs(push - self.push) + np.abs(drag - self.drag)
        self.push, self.drag = push, drag
        return np.asarray(change > _AGREED * (push + np.abs(drag)))


def on_a_mass(
    tables: Sequence[dict[str, Any]], reference: Floats, mass: Mass, share: Floats, period: float, total: int
) -> Walls:
    """Compute the effect of walls on the mass of an admittance device.

    Parameters
    ----------
    tables : sequence of dict
        Tables of the walls.
    reference : (n, 2) array
        Reference before each tick [m].
    mass : Mass
        The mass.
    share : (n,) array
        Fade-in of the walls, 0 to 1.
    period : float
        Time between two ticks [s].
    total : int
        Number of ticks of the whole recording.
    """
    found, Z = Walls(len(reference)), period / mass.kilograms
    free = mass.velocity + Z[:, None] * mass.force
    met = [_Met(wall, *depths(wall, reference)) for wall in map(WallNumbers.of, tables)]
    velocity = _meet(met, free, Z, share, period)
    for one in met:
        velocity = _braked(velocity, one.wall, one.depth, one.g, mass, period)
    touched = np.zeros(len(reference), int)
    for one in met:
        after = one.depth + period * (one.g * velocity).sum(axis=1)
        store = 0.5 * one.wall.stiffness * np.maximum(after, 0.0) ** 2
        found.add((one.push > 0.0) | (after > 0.0), one.push * one.size, one.force, store, one.wall)
        found.doubt += np.where(one.push > 0.0, blur(one.wall, reference, free, total), 0.0)
        touched += one.push > 0.0
    found.doubt += np.where(touched > 1, 100.0 * _AGREED * found.normal, 0.0)
    found.force = (velocity - free) / Z[:, None]
    return found


def _meet(met: Sequence[_Met], free: Floats, Z: Floats, share: Floats, period: float) -> Floats:
    """Solve all walls and return the resulting velocity."""
    open_ticks = np.arange(len(free))
    velocity = free.copy()
    for _ in range(_ROUNDS):
        changed = np.zeros(len(open_ticks), bool)
        for one in met:
            part = _Met(one.wall, one.depth[open_ticks], one.g[open_ticks])
            part.push, part.drag = one.push[open_ticks], one.drag[open_ticks]
            without = velocity[open_ticks] - Z[open_ticks, None] * part.force
            changed |= part.solve(without, Z[open_ticks], share[open_ticks], period)
            one.push[open_ticks], one.drag[open_ticks] = part.push, part.drag
            velocity[open_ticks] = without + Z[open_ticks, None] * part.force
        open_ticks = open_ticks[changed]
        if not len(open_ticks) or len(met) == 1:
            break
    return velocity


def _braked(free: Floats, wall: WallNumbers, depth: Floats, g: Floats, mass: Mass, period: float) -> Floats:
    """Limit the velocities so that the reference can still be stopped with 8/9 of its acceleration.

    At the surface the limit is ``a sqrt(M/(2 K))``, or the velocity that one tick can stop.
    """
    a, size = mass.acceleration * 8.0 / 9.0, np.hypot(g[:, 0], g[:, 1])
    inwards = g / np.where(size > 0.0, size, 1.0)[:, None]
    at_wall = a * np.maximum(np.sqrt(mass.kilograms / (2.0 * wall.stiffness)), period)
    tick = a * period / 2.0
    fastest = np.sqrt(tick**2 + at_wall**2 + 2.0 * a * np.maximum(-depth, 0.0)) - tick
    excess = np.where(size > 0.0, np.maximum((free * inwards).sum(axis=1) - fastest, 0.0), 0.0)
    return np.asarray(free - excess[:, None] * inwards)
