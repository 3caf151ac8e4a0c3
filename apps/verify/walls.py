"""Walls in a recording: forces and stored energy of every tick, recomputed from the rows.

Only the normal force of a wall is recorded. Each tick is therefore solved again by the equations of
`docs/how_to/walls.md`, and the normal force must agree. The total force of the walls enters the equations of the
element (`apps.verify.contact`), which hold only with the correct force, so this checks the friction too.

With depth d, gradient g and N = |g| p: ``p = max(0, min(K d + B d', 2 K d))``. On an impedance device, a spring along
the surface with elongation e holds with ``K e + B u`` up to mu N. On an admittance device, d is the depth after the
tick, and N is known before friction, because the push of the wall does not change the tangential velocity of the mass.

On an admittance device the mass is coupled implicitly. With the free velocity w of the mass without a wall, r = g w and
Z = T/M, the push of a wall is the smaller of ``(K d + (B + T K) r)/(1 + Z (B + T K) |g|^2)`` and ``2 K (d + T r)/(1 + 2
Z T K |g|^2)``, and at least 0. Several walls are solved one after the other, each with the forces of the others, until
convergence.

In a circle or a half-plane, the depth is the distance to the outline. In a polygon, the edges between two convex
corners form a face. The depths of the faces are combined in the order of the corners, from the first convex one, by
``min(a, b) - w/4 h^2``, ``h = max(0, 1 - |a - b|/w)``, w = 2 mm.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.envelope import History, braking
from apps.verify.findings import Findings
from apps.verify.recorded import EPS, ROUNDINGS, Floats, Stretch, Window, copy_rows

Depth = tuple[Floats, Floats]
"""Depth, (n,) [m], and its gradient, (n, 2)."""

WIDTH = 2e-3
"""Difference of the depths of two faces below which they blend [m]."""

_OUTSIDE = -0.01
"""Depth assigned to points far outside a polygon [m]."""


def depth_in(table: Mapping[str, Any], points: Floats) -> Depth:
    """Return depth and gradient of `points`, (n, 2) [m], in the solid of a wall's `table`.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the table does not describe a solid.
    """
    if "half_plane" in table:
        normal = np.array(table["half_plane"]["normal"], float)
        normal = normal / np.hypot(*normal)
        depth = (np.array(table["half_plane"]["point_m"], float) - points) @ normal
        return depth, np.tile(-normal, (len(points), 1))
    if "circle" in table:
        radius, inwards = float(table["circle"]["radius_m"]), np.array(table["circle"]["center_m"], float) - points
        distance = np.sqrt((inwards**2).sum(axis=1))
        core = min(WIDTH, radius / 2.0)  # the centre is rounded
        middle = distance < core
        depth = np.where(middle, radius - (distance**2 / core + core) / 2.0, radius - distance)
        return depth, inwards / np.where(middle, core, np.maximum(distance, 1e-300))[:, None]
    return _polygon(np.array(table["polygon"]["points_m"], float), points)


def on_the_surface(tables: Sequence[Mapping[str, Any]], points: Floats) -> Floats:
    """Project `points`, (n, 2) [m], onto the surface of the walls; points outside stay unchanged."""
    for table in tables:
        depth, gradient = depth_in(table, points)
        square = (gradient**2).sum(axis=1)
        inside = (depth > 0.0) & (square > 0.0)
        out = depth / np.where(square > 0.0, square, 1.0)
        points = np.where(inside[:, None], points - out[:, None] * gradient, points)
    return points


def _polygon(corners: Floats, points: Floats) -> Depth:
    """Return depth and gradient in a polygon."""
    x, y = corners[:, 0], corners[:, 1]
    if (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() < 0.0:
        corners = corners[::-1]
    way = np.roll(corners, -1, axis=0) - corners
    come = np.roll(way, 1, axis=0)
    outer = come[:, 0] * way[:, 1] - come[:, 1] * way[:, 0] > 0.0
    first = int(np.argmax(outer))
    corners, way, outer = np.roll(corners, -first, axis=0), np.roll(way, -first, axis=0), np.roll(outer, -first)
    distance, away = _edges(corners, way, points)
    inside = _inside(corners, points)
    nearest = distance.argmin(axis=1)
    rows = np.flatnonzero(~inside & (distance.min(axis=1) > 0.0))
    distance[rows, nearest[rows]] *= -1.0
    away[rows, nearest[rows]] *= -1.0
    starts = [*np.flatnonzero(outer).tolist(), len(corners)]
    faces: list[Depth] = []  # the smallest distance to the edges of each face
    for a, b in itertools.pairwise(starts):
        rows, least = np.arange(len(points)), a + distance[:, a:b].argmin(axis=1)
        faces.append((distance[rows, least], away[rows, least]))
    depth, gradient = faces[0]
    for other, slope in faces[1:]:
        h = np.clip(1.0 - np.abs(depth - other) / WIDTH, 0.0, None)
        share = np.where(other >= depth, h / 2.0, 1.0 - h / 2.0)[:, None]
        depth = np.minimum(depth, other) - WIDTH / 4.0 * h**2
        gradient = (1.0 - share) * gradient + share * slope
    box = (points < corners.min(axis=0) + _OUTSIDE) | (points > corners.max(axis=0) - _OUTSIDE)
    far = box.any(axis=1)
    return np.where(far, _OUTSIDE, depth), np.where(far[:, None], 0.0, gradient)


def _edges(corners: Floats, way: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Return distances to edges, (n, edges), and the directions away from them, (n, edges, 2)."""
    length = np.hypot(way[:, 0], way[:, 1])
    along = way / length[:, None]
    left = np.stack((-along[:, 1], along[:, 0]), axis=1)
    off = points[:, None, :] - corners[None]
    place = (off * along).sum(axis=2)
    side = (off * left).sum(axis=2)
    from_end = points[:, None, :] - np.roll(corners, -1, axis=0)[None]
    to_corner = np.where((place > length)[..., None], from_end, off)
    distance = np.hypot(to_corner[..., 0], to_corner[..., 1])
    beside = (place >= 0.0) & (place <= length)
    towards = np.where((distance > 0.0)[..., None], to_corner / np.maximum(distance, 1e-300)[..., None], left)
    straight = np.where((side >= 0.0)[..., None], left, -left)
    return np.where(beside, np.abs(side), distance), np.where(beside[..., None], straight, towards)


def _inside(corners: Floats, points: Floats) -> NDArray[np.bool_]:
    """Return which points are inside, by the winding number of the outline."""
    turns = np.zeros(len(points), int)
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        left = (b[0] - a[0]) * (points[:, 1] - a[1]) - (points[:, 0] - a[0]) * (b[1] - a[1]) > 0.0
        turns += (a[1] <= points[:, 1]) & (b[1] > points[:, 1]) & left
        turns -= (a[1] > points[:, 1]) & (b[1] <= points[:, 1]) & ~left
    return np.asarray(turns != 0)


_AT_ONCE = 20_000


class Walls:
    """Effect of walls in several ticks.

    Attributes
    ----------
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

    def __init__(self, count: int) -> None:
        self.force, self.slides = np.zeros((count, 2)), np.zeros(count, bool)
        self.normal, self.store, self.stiffness, self.damping = (np.zeros(count) for _ in range(4))
        self.springs, self.dampers, self.doubt = (np.zeros(count) for _ in range(3))

    def add(self, touched: Any, normal: Floats, force: Floats, store: Floats, wall: WallNumbers) -> None:
        """Add the effect of one wall in the ticks in which it is `touched`."""
        self.force += force
        self.normal += normal
        self.store += store
        self.stiffness = np.where(touched, np.maximum(self.stiffness, wall.stiffness), self.stiffness)
        self.damping = np.where(touched, np.maximum(self.damping, wall.damping), self.damping)


class WallNumbers:
    """Parameters of a wall [N/m, N s/m, 1], and the table with its shape."""

    def __init__(self, table: dict[str, Any]) -> None:
        self.table = table
        self.stiffness, self.damping = float(table["stiffness_n_per_m"]), float(table["damping_ns_per_m"])
        self.friction = float(table["friction"])


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
    for number, wall in enumerate(map(WallNumbers, tables)):
        depth, g = depths(wall, place)
        size = np.hypot(g[:, 0], g[:, 1])
        touched = (depth > 0.0) & (size > 0.0)
        rate, elastic = (g * velocity).sum(axis=1), wall.stiffness * depth
        push = np.where(touched, np.maximum(0.0, np.minimum(elastic + wall.damping * rate, 2.0 * elastic)), 0.0)
        tangent = np.stack((-g[:, 1], g[:, 0]), axis=1) / np.where(size > 0.0, size, 1.0)[:, None]
        begins = touched & (anew | ~np.concatenate(([touch.touched.get(number, False)], touched[:-1])))
        going, speed = (way * tangent).sum(axis=1), np.where(begins, 0.0, (velocity * tangent).sum(axis=1))
        # Tangential friction [N] and elongation [m].
        level, e = wall.friction * push * size, touch.stretch.get(number, 0.0)
        drag, stretch, slides = np.zeros(len(place)), np.zeros(len(place)), np.zeros(len(place), bool)
        for k in np.flatnonzero(touched).tolist():
            e = 0.0 if begins[k] else e + going[k]
            sticking = wall.stiffness * e + wall.damping * speed[k]
            drag[k] = min(max(sticking, -level[k]), level[k])
            if drag[k] != sticking:
                e -= period * (sticking - drag[k]) / (wall.damping + period * wall.stiffness)
                slides[k] = True
            stretch[k] = e
        touch.touched[number], touch.stretch[number] = bool(touched[-1]), float(stretch[-1])
        store = 0.5 * wall.stiffness * (np.where(touched, depth, 0.0) ** 2 + stretch**2)
        found.add(touched, push * size, -push[:, None] * g - drag[:, None] * tangent, store, wall)
        square = np.where(touched, rate**2 + np.where(slides, 0.0, speed**2), 0.0)
        found.springs += wall.stiffness * square
        found.dampers += wall.damping * square
        found.slides |= slides & (drag != 0.0)
        found.doubt += np.where(touched, wall_blur(wall, place, velocity, total), 0.0)
    return found


def depths(wall: WallNumbers, points: Floats) -> tuple[Floats, Floats]:
    """Return depth and gradient at `points`, (n, 2), in batches: every point is compared with all edges."""
    parts = [depth_in(wall.table, points[k : k + _AT_ONCE]) for k in range(0, len(points), _AT_ONCE)]
    return np.concatenate([depth for depth, _ in parts]), np.concatenate([g for _, g in parts])


def wall_blur(wall: WallNumbers, place: Floats, velocity: Floats, total: int) -> Floats:
    """Return the rounding bound of the wall forces [N].

    Gradients change rapidly at rounded corners. Errors of the tangential spring accumulate over the `total` ticks of
    the recording.
    """
    size = np.abs(place).max(axis=1) + 0.1
    turned = (wall.stiffness * 0.1 + wall.damping * np.abs(velocity).max(axis=1)) * size / 1e-3
    return np.asarray(ROUNDINGS * EPS * (wall.stiffness * size * (1.0 + total**0.5) + turned))


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


class _Met:
    """Wall in several ticks: depth, gradient, push and drag."""

    def __init__(self, wall: WallNumbers, depth: Floats, g: Floats) -> None:
        self.wall, self.depth, self.g = wall, depth, g
        self.push, self.drag = np.zeros(len(depth)), np.zeros(len(depth))
        self.square, self.size = (g**2).sum(axis=1), np.hypot(g[:, 0], g[:, 1])
        length = np.where(self.size > 0.0, self.size, 1.0)[:, None]
        self.tangent = np.stack((-g[:, 1], g[:, 0]), axis=1) / length

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
    met = [_Met(wall, *depths(wall, reference)) for wall in map(WallNumbers, tables)]
    open_ticks, velocity = np.arange(len(free)), free.copy()
    for _ in range(_ROUNDS):  # solve all walls one after the other, in the ticks that still change
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
    for one in met:
        # Limit the velocities so that the reference can still be stopped with 8/9 of its acceleration.
        g = one.g
        a, size = mass.acceleration * 8.0 / 9.0, np.hypot(g[:, 0], g[:, 1])
        inwards = g / np.where(size > 0.0, size, 1.0)[:, None]
        at_wall = a * np.maximum(np.sqrt(mass.kilograms / (2.0 * one.wall.stiffness)), period)
        tick = a * period / 2.0
        fastest = np.sqrt(tick**2 + at_wall**2 + 2.0 * a * np.maximum(-one.depth, 0.0)) - tick
        excess = np.where(size > 0.0, np.maximum((velocity * inwards).sum(axis=1) - fastest, 0.0), 0.0)
        velocity = np.asarray(velocity - excess[:, None] * inwards)
    touched = np.zeros(len(reference), int)
    for one in met:
        after = one.depth + period * (one.g * velocity).sum(axis=1)
        store = 0.5 * one.wall.stiffness * np.maximum(after, 0.0) ** 2
        found.add((one.push > 0.0) | (after > 0.0), one.push * one.size, one.force, store, one.wall)
        found.doubt += np.where(one.push > 0.0, wall_blur(one.wall, reference, free, total), 0.0)
        touched += one.push > 0.0
    found.doubt += np.where(touched > 1, 100.0 * _AGREED * found.normal, 0.0)
    found.force = (velocity - free) / Z[:, None]
    return found


class Touching:
    """Computes the effect of the walls over consecutive windows."""

    def __init__(self) -> None:
        self._tables: list[dict[str, Any]] = []
        self._touch = Touch()
        self._last: Walls | None = None

    def walls(self, run: Window, history: History, findings: Findings) -> Walls:
        """Return the effect of the walls in every tick of a window; zero in bad ticks and without walls."""
        found, versions = Walls(run.count), run.column("settings_version")
        if self._last is not None and run.skip:
            copy_rows(found, slice(0, run.skip), self._last, slice(-run.skip, None))
        good = np.flatnonzero(run.good & ~run.in_motion)
        good = good[good >= run.skip]
        tables = {version: tables_of(run.journal.get(version, {})) for version in np.unique(versions).tolist()}
        changes = (np.flatnonzero(np.diff(versions[good])) + 1).tolist()
        begins = [k for k in changes if tables[versions[good[k]]] != tables[versions[good[k - 1]]]]
        for rows in np.split(good, begins):
            if len(rows):
                self._enter(run, history, tables[versions[rows[0]]], rows, found)
        # Compare the recorded normal force with the computed one in ticks with walls.
        walled = [version for version, entry in run.journal.items() if tables_of(entry)]
        rows = good[np.isin(versions[good], walled)]
        off = run.column("normal_force")[rows] - found.normal[rows]
        words = "the normal force is not that of the walls at this depth"
        findings.residual("walls", "normal force", run.tick[rows], off, found.doubt[rows], "N", words)
        self._last = found
        return found

    def _enter(
        self, run: Window, history: History, walls: list[dict[str, Any]], rows: NDArray[np.int64], found: Walls
    ) -> None:
        """Add the effect of `walls` in some rows."""
        if walls != self._tables:
            self._tables, self._touch = walls, Touch()
        if not walls:
            return
        if run.impedance:
            anew = (history.after_bad[rows] > 0) | history.fresh[rows]
            anew[0] |= self._touch.place is None
            place, velocity = run.column("position")[rows], run.column("velocity")[rows]
            met = on_a_handle(walls, place, velocity, anew, run.period, self._touch, run.total)
        else:
            felt_share = np.where(braking(history, slice(0, run.count)), 1.0, history.share)
            before = np.concatenate((np.zeros((1, 2)), run.column("friction_force")[:-1]))
            through_a_spring = (run.parameter("stiffness") > 0.0) & ~history.fresh & (history.after_bad == 0)
            force = felt_share[:, None] * run.column("force") - np.where(through_a_spring[:, None], before, 0.0)
            mass = Mass(run.parameter("mass")[rows], run.last[rows], force[rows], float(run.limit("max_acceleration")))
            met = on_a_mass(walls, run.reference[rows], mass, felt_share[rows], run.period, run.total)
        copy_rows(found, rows, met)


def tables_of(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tables of the walls in some settings."""
    scene = settings.get("scene")
    return list(scene.get("walls", [])) if isinstance(scene, dict) else []


def check_proxy(stretch: Stretch, proxy: Floats, findings: Findings) -> None:
    """Check that the recorded proxy is the projection of the proxy onto the surface of the walls."""
    expected = on_the_surface(tables_of(stretch.settings), proxy)
    off = np.abs(stretch["proxy"] - expected).max(axis=1)
    off[np.isnan(expected).any(axis=1) & np.isnan(stretch["proxy"]).any(axis=1)] = 0.0  # the position is unknown
    words = "the proxy is not on the surface of the wall"
    findings.residual("proxy", "proxy", stretch.tick, off, np.full(len(off), 1e-12), "m", words)
