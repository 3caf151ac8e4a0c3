"""Walls: normal force, cone of friction and store of every tick, from positions, velocities and the hand's force.

Nothing of a wall is recorded but the normal force. So the tick is solved once more from what was recorded, by the
equations of `docs/how_to/walls.md`, and the normal force must come out; the force of the walls goes into the equations
of the element (`apps.verify.contact.check`), which do not hold with another: so friction is checked, too.

With depth d, gradient g, N = |g| p: ``p = max(0, min(K d + B d', 2 K d))``; on an impedance device a spring along the
surface, stretched by e, holds with ``K e + B u`` up to mu N. On an admittance device d is that after the tick, and N is
known before friction: what moves a mass across the normal is not changed by the wall's push.
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
    """What walls do in some ticks.

    Attributes
    ----------
    count : int
        Ticks.
    force : (n, 2) array
        On the hand, or the mass [N].
    normal, store, stiffness : (n,) array
        Normal force of all together [N], what they store [J], stiffness of the stiffest that is touched [N/m].
    springs, dampers : (n,) array
        Sums of K w^2 and B w^2 [W/s, W] with the speeds w of the springs that hold.
    slides : (n,) array
        Whether friction slides on one of them.
    doubt : (n,) array
        How far forces may be off by rounding [N].
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
        """Enter what one wall does in the ticks in which it is `touched`."""
        self.force += force
        self.normal += normal
        self.store += store
        self.stiffness = np.where(touched, np.maximum(self.stiffness, wall.stiffness), self.stiffness)
        self.damping = np.where(touched, np.maximum(self.damping, wall.damping), self.damping)

    @property
    def holds(self) -> NDArray[np.bool_]:
        """Whether walls hold the handle by springs alone."""
        return np.asarray((self.stiffness > 0.0) & ~self.slides)


@dataclass(frozen=True)
class WallNumbers:
    """The numbers of a wall, and where it is."""

    table: dict[str, Any]
    stiffness: float
    damping: float
    friction: float

    @classmethod
    def of(cls, table: dict[str, Any]) -> WallNumbers:
        """Return those in a wall's table."""
        return cls(table, *(float(table[key]) for key in ("stiffness_n_per_m", "damping_ns_per_m", "friction")))


@dataclass
class Touch:
    """How a handle touched walls before some ticks.

    Attributes
    ----------
    place : (2,) array or None
        Where it was; None at the beginning.
    touched : dict
        Number of a wall to whether it was touched.
    stretch : dict
        Number of a wall to the stretch of the spring along it [m].
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
    """Return what walls do to the handle of an impedance device.

    Parameters
    ----------
    tables : sequence of dict
        The walls.
    place, velocity : (n, 2) array
        Of the samples [m, m/s], all good ones, one after the other.
    anew : (n,) array
        Where a sample was refused just before, so that contacts begin anew.
    period : float
        Time between two ticks [s].
    touch : Touch
        How it touched the walls before; afterwards how it does after the last tick.
    total : int
        Ticks of the whole recording, in which errors add up.
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
    """Return depth and gradient at `points`, (n, 2), some at a time: there are many, and each meets all edges."""
    parts = [depth_in(wall.table, points[k : k + _AT_ONCE]) for k in range(0, len(points), _AT_ONCE)]
    return np.concatenate([depth for depth, _ in parts]), np.concatenate([g for _, g in parts])


def _rubbed(
    wall: WallNumbers, touched: Any, begins: Any, going: Floats, speed: Floats, level: Floats, period: float, e: float
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return friction [N] and stretch [m] along a wall, which was `e` before, and whether it slides, (n,) each."""
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
    """Return how far forces may be off by rounding [N]; at the rounding of corners gradients turn quickly.

    Errors of the spring along the wall add up over the `total` ticks of the recording.
    """
    size = np.abs(place).max(axis=1) + 0.1
    turned = (wall.stiffness * 0.1 + wall.damping * np.abs(velocity).max(axis=1)) * size / 1e-3
    return np.asarray(ROUNDINGS * EPS * (wall.stiffness * size * (1.0 + total**0.5) + turned))
