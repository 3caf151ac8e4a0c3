"""Walls on an impedance device: forces and stored energy of every tick, recomputed from the rows.

Only the normal force of a wall is recorded. Each tick is therefore solved again by the equations of
`docs/how_to/walls.md`, and the normal force must agree. The total force of the walls enters the equations of the
element (`apps.verify.contact.check`), which hold only with the correct force, so this checks the friction too.

With depth d, gradient g and N = |g| p: ``p = max(0, min(K d + B d', 2 K d))``. On an impedance device, a spring along
the surface with elongation e holds with ``K e + B u`` up to mu N. On an admittance device, d is the depth after the
tick, and N is known before friction, because the push of the wall does not change the tangential velocity of the mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.facts import EPS, ROUNDINGS
from apps.verify.walls.solids import depth_in

Floats = NDArray[np.float64]

_AT_ONCE = 20_000


@dataclass
class Walls:
    """Effect of walls in several ticks.

    Attributes
    ----------
    count : int
        Number of ticks.
    force : (n, 2) array
        Force on the handle, or on the mass [N].
    normal, store : (n,) array
        Normal force of all walls [N], and their stored energy [J].
    stiffness, damping : (n,) array
        Maximum stiffness [N/m] and damping [N s/m] of the touched walls.
    springs, dampers : (n,) array
        Sums of K w^2 and B w^2 [W/s, W] with the speeds w of the springs that hold.
    slides : (n,) array
        Whether the contact slides along a wall.
    doubt : (n,) array
        Rounding bound of the forces [N].
    """

    count: int
    force: Floats = field(init=False)
    normal: Floats = field(init=False)
    store: Floats = field(init=False)
    stiffness: Floats = field(init=False)
    damping: Floats = field(init=False)
    springs: Floats = field(init=False)
    dampers: Floats = field(init=False)
    slides: NDArray[np.bool_] = field(init=False)
    doubt: Floats = field(init=False)

    def __post_init__(self) -> None:
        n = self.count
        self.force, self.normal, self.store = np.zeros((n, 2)), np.zeros(n), np.zeros(n)
        self.stiffness, self.damping, self.doubt = np.zeros(n), np.zeros(n), np.zeros(n)
        self.springs, self.dampers, self.slides = np.zeros(n), np.zeros(n), np.zeros(n, bool)

    def add(self, touched: Any, normal: Floats, force: Floats, store: Floats, wall: WallNumbers) -> None:
        """Add the effect of one wall in the ticks in which it is `touched`."""
        self.force += force
        self.normal += normal
        self.store += store
        self.stiffness = np.where(touched, np.maximum(self.stiffness, wall.stiffness), self.stiffness)
        self.damping = np.where(touched, np.maximum(self.damping, wall.damping), self.damping)

    @property
    def holds(self) -> NDArray[np.bool_]:
        """Whether the handle is held by springs alone, without sliding."""
        return np.asarray((self.stiffness > 0.0) & ~self.slides)


@dataclass(frozen=True)
class WallNumbers:
    """Parameters of a wall, and the table with its shape."""

    table: dict[str, Any]
    stiffness: float
    damping: float
    friction: float

    @classmethod
    def of(cls, table: dict[str, Any]) -> WallNumbers:
        """Read the parameters from the table of a wall."""
        return cls(table, *(float(table[key]) for key in ("stiffness_n_per_m", "damping_ns_per_m", "friction")))


@dataclass
class Touch:
    """Contact state of a handle between batches of ticks.

    Attributes
    ----------
    place : (2,) array or None
        Last position; None initially.
    touched : dict
        Wall number to whether the wall was touched.
    stretch : dict
        Wall number to the elongation of the tangential spring [m].
    """

    place: Floats | None = None
    touched: dict[int, bool] = field(default_factory=dict)
    stretch: dict[int, float] = field(default_factory=dict)


def on_a_handle(
    tables: Sequence[dict[str, Any]],
    place: Floats,
    velocity: Floats,
    anew: NDArray[np.bool_],
    period: float,
    touch: Touch,
    total: int,
) -> Walls:
    """Compute the effect of walls on the handle of an impedance device.

    Parameters
    ----------
    tables : sequence of dict
        Tables of the walls.
    place, velocity : (n, 2) array
        Positions and velocities of consecutive good samples [m, m/s].
    anew : (n,) array
        Samples after a rejected one, where contacts start again.
    period : float
        Time between two ticks [s].
    touch : Touch
        Contact state before the first tick; updated to the state after the last one.
    total : int
        Number of ticks of the whole recording, over which errors accumulate.
    """
    found = Walls(len(place))
    way = np.diff(place, axis=0, prepend=place[:1] if touch.place is None else touch.place[None])
    touch.place = place[-1]
    for number, wall in enumerate(map(WallNumbers.of, tables)):
        depth, g = depths(wall, place)
        size = np.hypot(g[:, 0], g[:, 1])
        touched = (depth > 0.0) & (size > 0.0)
        rate, elastic = (g * velocity).sum(axis=1), wall.stiffness * depth
        push = np.where(touched, np.maximum(0.0, np.minimum(elastic + wall.damping * rate, 2.0 * elastic)), 0.0)
        tangent = np.stack((-g[:, 1], g[:, 0]), axis=1) / np.where(size > 0.0, size, 1.0)[:, None]
        begins = touched & (anew | ~np.concatenate(([touch.touched.get(number, False)], touched[:-1])))
        going, speed = (way * tangent).sum(axis=1), np.where(begins, 0.0, (velocity * tangent).sum(axis=1))
        level, e = wall.friction * push * size, touch.stretch.get(number, 0.0)
        drag, stretch, slides = _rubbed(wall, touched, begins, going, speed, level, period, e)
        touch.touched[number], touch.stretch[number] = bool(touched[-1]), float(stretch[-1])
        store = 0.5 * wall.stiffness * (np.where(touched, depth, 0.0) ** 2 + stretch**2)
        found.add(touched, push * size, -push[:, None] * g - drag[:, None] * tangent, store, wall)
        square = np.where(touched, rate**2 + np.where(slides, 0.0, speed**2), 0.0)
        found.springs += wall.stiffness * square
        found.dampers += wall.damping * square
        found.slides |= slides & (drag != 0.0)
        found.doubt += np.where(touched, blur(wall, place, velocity, total), 0.0)
    return found


def depths(wall: WallNumbers, points: Floats) -> tuple[Floats, Floats]:
    """Return depth and gradient at `points`, (n, 2), in batches: every point is compared with all edges."""
    parts = [depth_in(wall.table, points[k : k + _AT_ONCE]) for k in range(0, len(points), _AT_ONCE)]
    return np.concatenate([depth for depth, _ in parts]), np.concatenate([g for _, g in parts])


def _rubbed(
    wall: WallNumbers, touched: Any, begins: Any, going: Floats, speed: Floats, level: Floats, period: float, e: float
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return tangential friction [N], elongation [m] and whether the contact slides, (n,) each.

    The initial elongation is `e`.
    """
    drag, stretch, slides = np.zeros(len(going)), np.zeros(len(going)), np.zeros(len(going), bool)
    for k in np.flatnonzero(touched).tolist():
        e = 0.0 if begins[k] else e + going[k]
        sticking = wall.stiffness * e + wall.damping * speed[k]
        drag[k] = min(max(sticking, -level[k]), level[k])
        if drag[k] != sticking:
            e -= period * (sticking - drag[k]) / (wall.damping + period * wall.stiffness)
            slides[k] = True
        stretch[k] = e
    return drag, stretch, slides


def blur(wall: WallNumbers, place: Floats, velocity: Floats, total: int) -> Floats:
    """Return the rounding bound of the wall forces [N].

    Gradients change rapidly at rounded corners. Errors of the tangential spring accumulate over the `total` ticks of
    the recording.
    """
    size = np.abs(place).max(axis=1) + 0.1
    turned = (wall.stiffness * 0.1 + wall.damping * np.abs(velocity).max(axis=1)) * size / 1e-3
    return np.asarray(ROUNDINGS * EPS * (wall.stiffness * size * (1.0 + total**0.5) + turned))
