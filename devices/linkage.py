r"""Linkages: from joint angles to the end effector.

The five-bar linkage lies in a plane. Its two motors stand on the base, a distance ``base`` apart: the left one at the
origin, the right one at (base, 0). Each drives an inner link; two outer links join the inner ends at the end effector.

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
end effector is where the circle of radius ``left_outer`` about :math:`p_2` meets that of radius ``right_outer`` about
:math:`p_4`. Of the two points it is the one to the left of the line from :math:`p_2` to :math:`p_4`: the elbows bend
outwards. No such point exists where the inner ends are too far apart or too close together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.settings import bounded, check

Points = NDArray[np.float64]
"""Float array of shape (n, 2)."""


def _length() -> float:
    value: float = bounded(above=0.0, maximum=10.0, unit="m", doc="length between joint axes")
    return value


@dataclass(frozen=True)
class FiveBar:
    """A planar five-bar linkage (pantograph), elbows outwards.

    Attributes
    ----------
    left_inner, left_outer, right_outer, right_inner, base : float
        Link lengths [m]; a1, a2, a3, a4, a5 in the literature.
    left_offset, right_offset : float
        Angle of each inner link to the x axis where its joint reads zero [rad].
    """

    left_inner: float = _length()
    left_outer: float = _length()
    right_outer: float = _length()
    right_inner: float = _length()
    base: float = _length()
    left_offset: float = bounded(0.0, unit="rad", doc="angle of the left inner link at joint angle zero")
    right_offset: float = bounded(0.0, unit="rad", doc="angle of the right inner link at joint angle zero")

    def __post_init__(self) -> None:
        check(self, "linkage")

    def positions(self, joints: ArrayLike) -> Points:
        """Return where the end effector is.

        Parameters
        ----------
        joints : (n, 2) array
            Angles of the left and the right motor [rad].

        Returns
        -------
        (n, 2) float array
            Positions [m]; nan where the links cannot be closed.
        """
        left, right = self._inner_ends(np.asarray(joints, dtype=np.float64))
        span = right - left
        square = np.sum(span * span, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            along = (self.left_outer**2 - self.right_outer**2 + square) / (2.0 * square)
            across = np.sqrt(self.left_outer**2 / square - along**2)
        normal = np.column_stack((-span[:, 1], span[:, 0]))
        return np.asarray(left + along[:, None] * span + across[:, None] * normal)

    def passive_joints(self, joints: ArrayLike) -> Points:
        """Return the angles of the outer links against the inner ones, (n, 2) [rad], for motor angles (n, 2) [rad]."""
        angles = np.asarray(joints, dtype=np.float64)
        left, right = self._inner_ends(angles)
        end = self.positions(angles)
        outer = np.column_stack([np.arctan2(d[:, 1], d[:, 0]) for d in (end - left, end - right)])
        return np.asarray((outer - self._inner_angles(angles) + np.pi) % (2.0 * np.pi) - np.pi)

    def _inner_angles(self, joints: Points) -> Points:
        return np.asarray(joints + np.array((self.left_offset, self.right_offset)))

    def _inner_ends(self, joints: Points) -> tuple[Points, Points]:
        angles = self._inner_angles(joints)
        directions = np.stack((np.cos(angles), np.sin(angles)), axis=-1)
        left = self.left_inner * directions[:, 0]
        right = self.right_inner * directions[:, 1] + np.array((self.base, 0.0))
        return left, right
