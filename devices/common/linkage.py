r"""Kinematics of a five-bar linkage: forward, inverse, and the Jacobian.

The linkage moves in a plane. Its two motors are on the base at a distance ``base``: the left one at the origin, the
right one at (base, 0). Each drives an inner link. Two outer links connect the inner ends to the end effector.

::

             end effector
                  o
     left_outer .' `. right_outer
              .'     `.
             o         o
    left_inner\       /right_inner
               o-----o
              q1  base q5

With the inner ends at :math:`p_2 = l_i (\cos q_1, \sin q_1)` and :math:`p_4 = (b, 0) + r_i (\cos q_5, \sin q_5)`, the
end effector :math:`p` is an intersection of the circle of radius ``left_outer`` about :math:`p_2` and the circle of
radius ``right_outer`` about :math:`p_4`. ``side`` selects one of the two points, usually the one to the left of the
line from :math:`p_2` to :math:`p_4`. The circles do not intersect if the inner ends are too far apart or too close
together.

The outer links are rigid, so that the velocities of their ends along the links are equal. This condition is linear in
all velocities and does not contain the angles of the outer links:

.. math::
    M \dot p = W \dot q, \qquad
    M = \begin{pmatrix} (p - p_2)^T \\ (p - p_4)^T \end{pmatrix}, \qquad
    W = \mathrm{diag}\bigl((p - p_2) \cdot p_2', \; (p - p_4) \cdot p_4'\bigr)

with :math:`p_2' = dp_2/dq_1` and :math:`p_4' = dp_4/dq_5`. The Jacobian is :math:`J = M^{-1} W`, and torques follow
from forces by :math:`\tau = J^T F`. It is singular where an inner and its outer link are collinear (:math:`W_i = 0`,
the edge of the workspace). It is undefined where the outer links are collinear (:math:`\det M = 0`): there the motors
cannot hold the end effector, and the torques grow without bound. This is the analysis of Gosselin and Angeles 1990.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, documented

Points = NDArray[np.float64]
"""Float array of shape (n, 2)."""


OUTWARDS = (1, -1)
"""Elbow orientation with both elbows outwards: the left one to the left, the right one to the right."""


# Both functions accept numbers and arrays. Drivers that need them at every tick compile them as kernels.


def close_linkage(
    q1: Any,
    q5: Any,
    left_inner: float,
    left_outer: float,
    right_outer: float,
    right_inner: float,
    base: float,
    side: int,
    rise: float = 0.0,
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Close a five-bar linkage at the motor angles (q1, q5) [rad], with the right motor at (base, rise).

    Returns
    -------
    x, y : float or array
        End effector p [m]; nan where the links cannot be closed.
    left_x, left_y, right_x, right_y : float or array
        Outer links, from the elbow to p [m]: the rows of M.
    left_lever, right_lever : float or array
        Diagonal of W [m^2].
    """
    c1, s1, c5, s5 = np.cos(q1), np.sin(q1), np.cos(q5), np.sin(q5)
    x2, y2 = left_inner * c1, left_inner * s1
    x4, y4 = base + right_inner * c5, rise + right_inner * s5
    dx, dy = x4 - x2, y4 - y2
    square = dx * dx + dy * dy
    along = (left_outer**2 - right_outer**2 + square) / (2.0 * square)
    across = side * np.sqrt(left_outer**2 / square - along * along)
    left_x, left_y = along * dx - across * dy, along * dy + across * dx
    right_x, right_y = left_x - dx, left_y - dy
    left_lever = left_inner * (c1 * left_y - s1 * left_x)
    right_lever = right_inner * (c5 * right_y - s5 * right_x)
    return x2 + left_x, y2 + left_y, left_x, left_y, right_x, right_y, left_lever, right_lever


def motor_torques(
    fx: Any, fy: Any, left_x: Any, left_y: Any, right_x: Any, right_y: Any, left_lever: Any, right_lever: Any
) -> tuple[Any, Any]:
    """Return the motor torques [N m] for the force (fx, fy) [N] at the end effector: tau = W M^-T F."""
    determinant = left_x * right_y - left_y * right_x
    left = left_lever * (right_y * fx - right_x * fy) / determinant
    right = right_lever * (left_x * fy - left_y * fx) / determinant
    return left, right


_LENGTH: dict[str, Any] = {"above": 0.0, "maximum": 10.0, "unit": "m", "doc": "length of a link"}


@documented
@dataclass(frozen=True)
class FiveBar:
    """Planar five-bar linkage (pantograph).

    Its lengths are a1, a2, a3, a4 and a5 in the literature, in this order. The end effector stays on its side of the
    elbows: it could change sides only where the outer links are collinear.
    """

    left_inner: float = bounded(**_LENGTH)
    left_outer: float = bounded(**_LENGTH)
    right_outer: float = bounded(**_LENGTH)
    right_inner: float = bounded(**_LENGTH)
    base: float = bounded(minimum=0.0, maximum=10.0, unit="m", doc="distance of the motors; 0 where both have one axis")
    left_offset: float = bounded(
        0.0, unit="rad", doc="angle of the left inner link to the x axis where its joint reads zero"
    )
    right_offset: float = bounded(
        0.0, unit="rad", doc="angle of the right inner link to the x axis where its joint reads zero"
    )
    side: int = bounded(
        1,
        minimum=-1,
        maximum=1,
        doc="1: the end effector is to the left of the line from the left elbow to the right one, -1: to the right",
    )

    def __post_init__(self) -> None:
        check(self, "linkage")
        if self.side not in (-1, 1):
            raise ConfigurationError(f"linkage.side = {self.side!r}: must be 1 or -1.")

    @property
    def shape(self) -> tuple[float, float, float, float, float, int]:
        """Lengths and side, in the order of the arguments of `close_linkage`."""
        return self.left_inner, self.left_outer, self.right_outer, self.right_inner, self.base, self.side

    def positions(self, joints: ArrayLike) -> Points:
        """Compute the position of the end effector (forward kinematics).

        Parameters
        ----------
        joints : (n, 2) array
            Angles of the left and the right motor [rad].

        Returns
        -------
        (n, 2) float array
            Positions [m]; nan where the links cannot be closed.
        """
        return np.column_stack(self._close(joints)[:2])

    def joints(self, positions: ArrayLike, elbows: tuple[int, int] = OUTWARDS) -> Points:
        """Compute the motor angles for positions of the end effector (inverse kinematics).

        Parameters
        ----------
        positions : (n, 2) array
            Positions of the end effector [m].
        elbows : (int, int)
            For each arm, 1 if its elbow is to the left of the line from its motor to the end effector, -1 if it is to
            the right. They may be inconsistent with `side`; `positions` of the result shows this.

        Returns
        -------
        (n, 2) float array
            Angles between -pi and pi [rad]; nan where an arm does not reach.
        """
        ends = np.asarray(positions, dtype=np.float64)
        left = _arm_angle(ends, self.left_inner, self.left_outer, elbows[0])
        right = _arm_angle(ends - np.array((self.base, 0.0)), self.right_inner, self.right_outer, elbows[1])
        angles = np.column_stack((left - self.left_offset, right - self.right_offset))
        return np.asarray((angles + np.pi) % (2.0 * np.pi) - np.pi)

    def jacobians(self, joints: ArrayLike) -> NDArray[np.float64]:
        """Return the derivatives of `positions` with respect to the motor angles, (n, 2, 2) [m/rad].

        Row: x, y. Column: left, right motor. The derivatives are exact, and unbounded where the outer links become
        collinear.
        """
        closed = self._close(joints)[2:]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            rows = [np.column_stack(motor_torques(fx, fy, *closed)) for fx, fy in ((1.0, 0.0), (0.0, 1.0))]
        return np.stack(rows, axis=1)

    def clearance(self, joints: ArrayLike) -> Points:
        """Return the distance from singularities, (n, 2): 0 at a singularity, at most 1; nan if not closed.

        Column 0: sine of the angle between the outer links. Column 1: the smaller sine of the two angles between an
        inner link and its outer link.
        """
        _, _, left_x, left_y, right_x, right_y, left_lever, right_lever = self._close(joints)
        between = np.abs(left_x * right_y - left_y * right_x) / (self.left_outer * self.right_outer)
        left = np.abs(left_lever) / (self.left_inner * self.left_outer)
        right = np.abs(right_lever) / (self.right_inner * self.right_outer)
        return np.column_stack((between, np.minimum(left, right)))

    def _close(self, joints: ArrayLike) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
        angles = np.asarray(joints, np.float64) + np.array((self.left_offset, self.right_offset))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return close_linkage(angles[:, 0], angles[:, 1], *self.shape)


def _arm_angle(ends: Points, inner: float, outer: float, elbow: int) -> NDArray[np.float64]:
    """Return the angle of the inner link of an arm that reaches from the origin to `ends`, (n,) [rad]."""
    square = np.sum(ends * ends, axis=1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        opening = np.arccos((inner**2 - outer**2 + square) / (2.0 * inner * np.sqrt(square)))
    return np.asarray(np.arctan2(ends[:, 1], ends[:, 0]) + elbow * opening)
