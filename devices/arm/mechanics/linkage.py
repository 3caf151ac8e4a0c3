r"""Kinematics of an arm: forward, inverse, and the Jacobian with its rate; placed linkages and workspace checks.

An arm has two links in series, with its motors in the joints or both on the base, or is a five-bar linkage
(`devices.common.linkage`). `PlacedLinkage` adds the position and rotation of the base in the axes of the device and
the sides of the elbows. Its interface is the same for all linkages.

All coordinates are in the axes of the device: x to the right, y up, the origin in the centre of the workspace. The
record contains the transformation from the linkage's own coordinates: the position of the centre and the rotation of
the base. A rotation adds to the angles of the links at the base, and moves the second motor of a five-bar linkage.

For two links :math:`p = l_1 (\cos p_1, \sin p_1) + l_2 (\cos p_2, \sin p_2)` with the directions p of the links, which
are the joint angles if both motors are on the base, and otherwise :math:`p_1 = q_1, \; p_2 = q_1 + q_2`. The closure of
the five-bar linkage is in `devices.common.linkage`. Its Jacobian J solves :math:`M J = W`; differentiated along the
motion, with :math:`\dot M` and :math:`\dot W` from the velocities of the elbows and of the end effector, this is
:math:`M \dot J = \dot W - \dot M J`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from devices.common.linkage import OUTWARDS, FiveBar, Points, close_linkage
from haptics.errors import ConfigurationError
from haptics.jit import inlined_kernel, kernel
from haptics.records import Rows, fields
from haptics.settings import bounded, check, documented, flag

RELATIVE, ABSOLUTE, FIVE_BAR = 0, 1, 2

LINKAGE = np.dtype(
    [
        ("kind", "<i8"),
        ("lengths", "<f8", (4,)),
        *fields("<f8", "motor offsets", 2),
        ("elbows", "<i8", (2,)),
        ("side", "<i8"),
        *fields("<f8", "centre home", 2),
    ]
)
"""Kernel record of a linkage: ``lengths`` [m] of two links, or of the four links of a five-bar linkage (left inner,
left outer, right outer, right inner); ``motor``, its right motor relative to the left motor [m]; ``offsets`` of the
joint angles [rad]; ``elbows`` and ``side`` as in `devices.common.linkage.FiveBar`; ``centre`` of the workspace relative
to the base [m], and ``home``, the joint angles there [rad].
"""

LEAST_CLEARANCE = 0.2
"""Minimum distance of the whole workspace from a singularity, dimensionless; 1 is the largest possible distance."""

_ROUNDING = 1e-12  # relative tolerance of the reach, for the rounding of positions that were computed from angles

_close = kernel(close_linkage)

_Four = tuple[Any, Any, Any, Any]


@inlined_kernel
def bend(s: Any, q1: float, q2: float) -> Any:
    """Return the angle between two links [rad]."""
    return q2 + s.offsets[1] - (q1 + s.offsets[0]) if s.kind == ABSOLUTE else q2 + s.offsets[1]


@inlined_kernel
def directions(s: Any, q1: float, q2: float) -> tuple[Any, Any]:
    """Return the angles of two links against the x axis [rad]."""
    p1, p2 = q1 + s.offsets[0], q2 + s.offsets[1]
    return p1, p2 if s.kind == ABSOLUTE else p1 + p2


@kernel
def close_bars(s: Any, q1: float, q2: float) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Close a five-bar linkage; the end effector is relative to the left motor.

    See `devices.common.linkage`.
    """
    return _close(
        q1 + s.offsets[0],
        q2 + s.offsets[1],
        s.lengths[0],
        s.lengths[1],
        s.lengths[2],
        s.lengths[3],
        s.motor[0],
        s.side,
        s.motor[1],
    )


@inlined_kernel
def position(s: Any, q1: float, q2: float) -> tuple[float, float]:
    """Return the end effector, (x, y) [m]; nan where a five-bar linkage cannot be closed."""
    if s.kind == FIVE_BAR:
        x, y, _, _, _, _, _, _ = close_bars(s, q1, q2)
        return x - s.centre[0], y - s.centre[1]
    p1, p2 = directions(s, q1, q2)
    r1, r2 = s.lengths[0], s.lengths[1]
    x, y = r1 * math.cos(p1) + r2 * math.cos(p2), r1 * math.sin(p1) + r2 * math.sin(p2)
    return x - s.centre[0], y - s.centre[1]


@inlined_kernel
def solve_outer(lx: Any, ly: Any, rx: Any, ry: Any, left: Any, right: Any) -> tuple[Any, Any]:
    """Return the v with M v = (left, right) for the matrix M with the rows (lx, ly) and (rx, ry).

    The rows are the outer links.
    """
    determinant = lx * ry - ly * rx
    return (left * ry - right * ly) / determinant, (right * lx - left * rx) / determinant


@kernel
def jacobian_of_bars(s: Any, q1: float, q2: float) -> _Four:
    """Return the Jacobian of a five-bar linkage in the order of `jacobian`."""
    _, _, lx, ly, rx, ry, left, right = close_bars(s, q1, q2)
    xx, yx = solve_outer(lx, ly, rx, ry, left, 0.0)
    xy, yy = solve_outer(lx, ly, rx, ry, 0.0, right)
    return xx, xy, yx, yy


@inlined_kernel
def jacobian(s: Any, q1: float, q2: float) -> _Four:
    """Return (dx/dq1, dx/dq2, dy/dq1, dy/dq2) [m/rad].

    Machado et al. 2002, (2d), where C_11 must read C_1.
    """
    if s.kind == FIVE_BAR:
        return jacobian_of_bars(s, q1, q2)
    p1, p2 = directions(s, q1, q2)
    r1, r2 = s.lengths[0], s.lengths[1]
    inner_x, inner_y = -r1 * math.sin(p1), r1 * math.cos(p1)
    outer_x, outer_y = -r2 * math.sin(p2), r2 * math.cos(p2)
    if s.kind == ABSOLUTE:
        return inner_x, outer_x, inner_y, outer_y
    return inner_x + outer_x, outer_x, inner_y + outer_y, outer_y


@kernel
def jacobian_rate_of_bars(s: Any, q1: float, q2: float, w1: float, w2: float) -> _Four:
    """Return the rate of the Jacobian of a five-bar linkage at the joint speeds w [rad/s].

    The order is the same as in `jacobian`. The angular velocities of the outer links follow from the velocities of
    their ends; the elbows move on circles.
    """
    _, _, lx, ly, rx, ry, left, right = close_bars(s, q1, q2)
    xx, yx = solve_outer(lx, ly, rx, ry, left, 0.0)
    xy, yy = solve_outer(lx, ly, rx, ry, 0.0, right)
    c2, s2 = s.lengths[0] * math.cos(q1 + s.offsets[0]), s.lengths[0] * math.sin(q1 + s.offsets[0])
    c4, s4 = s.lengths[3] * math.cos(q2 + s.offsets[1]), s.lengths[3] * math.sin(q2 + s.offsets[1])
    vx, vy = xx * w1 + xy * w2, yx * w1 + yy * w2
    lvx, lvy, rvx, rvy = vx + s2 * w1, vy - c2 * w1, vx + s4 * w2, vy - c4 * w2
    left_rate = -lvx * s2 + lvy * c2 - (lx * c2 + ly * s2) * w1
    right_rate = -rvx * s4 + rvy * c4 - (rx * c4 + ry * s4) * w2
    a, c = solve_outer(lx, ly, rx, ry, left_rate - lvx * xx - lvy * yx, -rvx * xx - rvy * yx)
    b, d = solve_outer(lx, ly, rx, ry, -lvx * xy - lvy * yy, right_rate - rvx * xy - rvy * yy)
    return a, b, c, d


@inlined_kernel
def turning_acceleration(s: Any, q1: float, q2: float, w1: float, w2: float) -> tuple[float, float]:
    """Return the part of the end effector's acceleration that the speeds alone cause, (dJ/dt) w [m/s^2]."""
    if s.kind == FIVE_BAR:
        a, b, c, d = jacobian_rate_of_bars(s, q1, q2, w1, w2)
        return a * w1 + b * w2, c * w1 + d * w2
    p1, p2 = directions(s, q1, q2)
    o2 = w2 if s.kind == ABSOLUTE else w1 + w2
    inner, outer = s.lengths[0] * w1 * w1, s.lengths[1] * o2 * o2
    return -inner * math.cos(p1) - outer * math.cos(p2), -inner * math.sin(p1) - outer * math.sin(p2)


# --- inverse kinematics ----------------------------------------------------------------------------------------------


@kernel
def _reach(x: float, y: float, inner: float, outer: float, elbow: int) -> float:
    """Return the direction of the inner of two links that reach (x, y) from the origin [rad], or nan."""
    square = x * x + y * y
    distance = math.sqrt(square)
    spare = _ROUNDING * (inner + outer)
    if not abs(inner - outer) - spare <= distance <= inner + outer + spare or distance == 0.0:
        return math.nan
    cosine = (inner * inner - outer * outer + square) / (2.0 * inner * distance)
    return math.atan2(y, x) + elbow * math.acos(min(max(cosine, -1.0), 1.0))


@kernel
def _near(angle: float, home: float) -> float:
    """Return the angle within half a turn of `home` [rad]."""
    turns = (angle - home) / (2.0 * math.pi)
    return angle if math.isnan(turns) else angle - 2.0 * math.pi * math.floor(turns + 0.5)


@kernel
def inverse(s: Any, x: float, y: float) -> tuple[float, float]:
    """Return the joint angles for (x, y) [m], each within half a turn of ``s.home`` [rad].

    ``s.elbows`` selects the sides of the elbows. Both angles are nan out of reach, and where a five-bar linkage would
    have to be assembled to the other `side`.
    """
    x, y, r = x + s.centre[0], y + s.centre[1], s.lengths
    p1 = _reach(x, y, r[0], r[1], s.elbows[0])
    elbow_x, elbow_y = r[0] * math.cos(p1), r[0] * math.sin(p1)
    if s.kind == FIVE_BAR:
        p2 = _reach(x - s.motor[0], y - s.motor[1], r[3], r[2], s.elbows[1])
        dx, dy = s.motor[0] + r[3] * math.cos(p2) - elbow_x, s.motor[1] + r[3] * math.sin(p2) - elbow_y
        if not s.side * (dx * (y - elbow_y) - dy * (x - elbow_x)) > 0.0:
            return math.nan, math.nan
    else:
        p2 = math.atan2(y - elbow_y, x - elbow_x)
        if s.kind == RELATIVE:
            p2 -= p1
    return _near(p1 - s.offsets[0], s.home[0]), _near(p2 - s.offsets[1], s.home[1])


# --- arrays of poses -------------------------------------------------------------------------------------------------


_POSITIONS, _JOINTS, _JACOBIANS = range(3)


@kernel
def _fill(linkage: Rows, pairs: Any, results: Any, quantity: int) -> None:
    """Compute positions or Jacobians at joint angles, or joint angles at positions.

    `linkage` is a (1,) array, `pairs` (n, 2), `results` (n, 2) or (n, 4).
    """
    s = linkage[0]
    for k in range(len(pairs)):
        a, b, r = pairs[k, 0], pairs[k, 1], results[k]
        if quantity == _POSITIONS:
            r[0], r[1] = position(s, a, b)
        elif quantity == _JOINTS:
            r[0], r[1] = inverse(s, a, b)
        else:
            r[0], r[1], r[2], r[3] = jacobian(s, a, b)


@kernel
def flange_angle(s: Any, q1: float, q2: float) -> float:
    """Return the angle of the outer link, which carries the sensor [rad]; the left one of a five-bar."""
    if s.kind == FIVE_BAR:
        _, _, x, y, _, _, _, _ = close_bars(s, q1, q2)
        return math.atan2(y, x)
    return float(directions(s, q1, q2)[1])


Pair = tuple[float, float]

# Number of grid points along each side of a workspace at which the outer links of a five-bar linkage are checked.
_GRID = 65


@documented
@dataclass(frozen=True)
class SerialTwoLink:
    """Two links in series on a base at the origin."""

    length_1: float = bounded(above=0.0, maximum=10.0, unit="m", doc="length of the inner link")
    length_2: float = bounded(above=0.0, maximum=10.0, unit="m", doc="length of the outer link")
    absolute: bool = flag(
        False,
        doc="whether both joint angles are those of the links against the base (both motors stand there); else "
        "the second is the angle between the links (a motor in each joint)",
    )

    def __post_init__(self) -> None:
        check(self, "linkage")


@dataclass(frozen=True)
class PlacedLinkage:
    """Linkage placed in the axes of the device, whose origin is the centre of the workspace.

    Attributes
    ----------
    linkage : SerialTwoLink or FiveBar
        The linkage; its own coordinates have their origin in the base, at the left motor of a five-bar linkage.
    centre : (float, float)
        Centre of the workspace in the linkage's own coordinates [m].
    rotation : float
        Angle of the base in the axes of the device, counter-clockwise [rad].
    elbows : (int, int)
        Side of each elbow relative to the line from its motor to the end effector: left (1) or right (-1). Two links in
        series use the first only: with 1 their relative second angle is negative.
    """

    linkage: SerialTwoLink | FiveBar
    centre: Pair = (0.0, 0.0)
    rotation: float = 0.0
    elbows: tuple[int, int] = OUTWARDS

    def positions(self, joints: ArrayLike) -> Points:
        """Return the end effector, (n, 2) [m], at joint angles (n, 2) [rad]; nan if not closed."""
        return self._evaluate(_POSITIONS, joints)

    def joints(self, positions: ArrayLike) -> Points:
        """Return the joint angles, (n, 2) [rad], for positions (n, 2) [m]; nan out of reach.

        The angles are within half a turn of `home`: they are continuous along a path inside the workspace.
        """
        return self._evaluate(_JOINTS, positions)

    def jacobians(self, joints: ArrayLike) -> NDArray[np.float64]:
        """Return the derivatives of `positions` with respect to the joint angles, (n, 2, 2) [m/rad].

        Rows are x and y, columns the joints.
        """
        return self._evaluate(_JACOBIANS, joints).reshape(-1, 2, 2)

    def _evaluate(self, quantity: int, values: ArrayLike) -> NDArray[np.float64]:
        """Return the results, (n, 2) or (n, 4), of the kernel for pairs of values, (n, 2)."""
        pairs = np.ascontiguousarray(np.asarray(values, np.float64).reshape(-1, 2))
        results = np.empty((len(pairs), 4 if quantity == _JACOBIANS else 2))
        _fill(self.record, pairs, results, quantity)
        return results

    def clearance(self, joints: ArrayLike) -> NDArray[np.float64]:
        """Return the distance from singular poses at joint angles (n, 2): (n, k), 0 if singular, at most 1.

        Two links have one kind of singular pose (k = 1), stretched and folded; the distance is the sine of the angle
        between the links. For a five-bar linkage see `devices.common.linkage.FiveBar.clearance`.
        """
        angles = np.asarray(joints, np.float64).reshape(-1, 2)
        if isinstance(self.linkage, FiveBar):
            return self.linkage.clearance(angles)
        bend = angles[:, 1:] - angles[:, :1] if self.linkage.absolute else angles[:, 1:]
        return np.asarray(np.abs(np.sin(bend)))

    @property
    def home(self) -> Pair:
        """Joint angles at the device's origin [rad]; nan if the arm does not reach it."""
        first, second = self.joints((0.0, 0.0))[0].tolist()
        return first, second

    @functools.cached_property
    def record(self) -> NDArray[Any]:
        """Kernel record of the linkage, (1,) of dtype `LINKAGE`."""
        record = np.zeros(1, LINKAGE)
        cosine, sine = math.cos(self.rotation), math.sin(self.rotation)
        linkage, (x, y) = self.linkage, self.centre
        record["centre"] = cosine * x - sine * y, sine * x + cosine * y
        record["elbows"] = self.elbows
        if isinstance(linkage, FiveBar):
            record["kind"], record["side"] = FIVE_BAR, linkage.side
            record["lengths"] = linkage.shape[:4]
            record["motor"] = linkage.base * cosine, linkage.base * sine
            record["offsets"] = linkage.left_offset + self.rotation, linkage.right_offset + self.rotation
        else:
            record["kind"] = ABSOLUTE if linkage.absolute else RELATIVE
            record["lengths"][0, :2] = linkage.length_1, linkage.length_2
            record["offsets"] = self.rotation, self.rotation if linkage.absolute else 0.0
        home = np.empty((1, 2))
        _fill(record, np.zeros((1, 2)), home, _JOINTS)
        record["home"] = home if np.isfinite(home).all() else 0.0
        return record

    def least_clearance(self, lower: Pair, upper: Pair) -> float:
        """Return the minimum clearance in a rectangle; 0 if a part of it is out of reach.

        The angle between an inner and an outer link depends only on the distance from their motor, which gives the
        minimum sine over the whole rectangle in closed form. The clearance of the outer links of a five-bar linkage
        from a common line is evaluated on a grid.

        Parameters
        ----------
        lower, upper : (float, float)
            Lower left and upper right corner in the axes of the device [m].
        """
        corners, s = np.array((lower, upper)), self.record[0]
        left = _least_bend(corners + s["centre"], s["lengths"][0], s["lengths"][1])
        if not isinstance(self.linkage, FiveBar):
            return left
        right = _least_bend(corners + s["centre"] - s["motor"], s["lengths"][3], s["lengths"][2])
        grid = np.stack(np.meshgrid(*np.linspace(lower, upper, _GRID).T), axis=-1).reshape(-1, 2)
        between = self.linkage.clearance(self.joints(grid))[:, 0].min()
        return min(left, right, float(between)) if np.isfinite(between) else 0.0

    def require_workspace(self, lower: Pair, upper: Pair, clearance: float = LEAST_CLEARANCE) -> None:
        """Raise an error if a pose in a workspace is out of reach or too close to a singular pose.

        Raises
        ------
        ConfigurationError
            With the minimum clearance and the remedy.
        """
        least = self.least_clearance(lower, upper)
        if not least >= clearance:
            where = f"workspace from ({lower[0]:g}, {lower[1]:g}) to ({upper[0]:g}, {upper[1]:g}) m about its centre"
            flaw = f"comes within {least:.3g} of a singular pose" if least > 0.0 else "is not all within reach"
            raise ConfigurationError(
                f"{where}: {flaw} of the linkage, and {clearance:g} is needed (0 singular, 1 best): choose a smaller "
                "one, another centre or other lengths."
            )


def _least_bend(corners: Points, inner: float, outer: float) -> float:
    """Return the minimum sine of the angle between two links over a rectangle, relative to their motor.

    The sine increases with the distance until the links are at right angles and decreases beyond. The minimum is
    therefore at the nearest or the farthest point of the rectangle.
    """
    nearest = np.hypot(*np.maximum(np.maximum(corners[0], -corners[1]), 0.0))
    farthest = np.hypot(*np.abs(corners).max(axis=0))
    cosines = (np.array((nearest, farthest)) ** 2 - inner**2 - outer**2) / (2.0 * inner * outer)
    return float(np.sqrt(np.maximum(1.0 - cosines**2, 0.0)).min())
