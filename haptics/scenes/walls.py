r"""Walls and fixtures: solid parts of the plane, as springs with dampers and Coulomb friction.

At a *depth* d a wall pushes back with the normal force :math:`N = K d + B \dot d`. The damper is never stronger than
the spring, :math:`|B \dot d| \le K d`, so that a wall never pulls, and a fast impact does not cause a jump of the
force. Along its surface it holds with Coulomb friction of level :math:`\mu N`, through a spring and damper with the
same numbers (impedance devices) or directly (admittance devices). The friction of the plane, the scene's law, and the
friction of the wall act in parallel, as on a puck that is pushed against the cushion of a table.

`haptics.rendering.walls` has the equations of a tick, `haptics.scenes.kernels` the treatment of corners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.errors import ConfigurationError
from haptics.scenes.kernels import EDGE, WALL, WALL_CIRCLE, WALL_HALF_PLANE, WALL_POLYGON, depths
from haptics.scenes.shapes import Circle, Floats, HalfPlane, Polygon, Shape, as_points
from haptics.settings import bounded, check, documented

MAX_WALLS = 32
"""Maximum number of walls of a scene; each takes some nanoseconds per tick."""


@documented
@dataclass(frozen=True)
class Wall:
    """Solid part of the plane.

    Attributes
    ----------
    shape : Shape
        A circle, a polygon or a half-plane, solid inside.
    """

    shape: Shape
    stiffness: float = bounded(
        2000.0, above=0.0, maximum=1e7, unit="N/m", slider=(100.0, 20000.0), doc="stiffness K of the surface"
    )
    damping: float = bounded(
        10.0, minimum=0.0, maximum=1e5, unit="N s/m", slider=(0.0, 100.0), doc="damping B of the surface"
    )
    friction: float = bounded(
        0.4, minimum=0.0, maximum=10.0, slider=(0.0, 1.5), doc="friction coefficient: friction over normal force"
    )

    def __post_init__(self) -> None:
        if not isinstance(self.shape, Shape):
            raise ConfigurationError(f"wall.shape = {self.shape!r}: must be a Circle, a Polygon or a HalfPlane.")
        check(self, "wall")

    def depth(self, points: ArrayLike) -> Floats:
        """Return the depth of points (n, 2) [m] in the wall, (n,) [m]; negative outside.

        It is less than the distance to the surface where two faces are almost equally close
        (`haptics.scenes.kernels`).
        """
        return self._geometry(points)[:, 0]

    def inwards(self, points: ArrayLike) -> Floats:
        """Return the gradient of the depth at points (n, 2) [m]: (n, 2), of length 1 except at corners."""
        return self._geometry(points)[:, 1:]

    def _geometry(self, points: ArrayLike) -> Floats:
        rows, packed = as_points(points), PackedWalls((self,))
        result = np.empty((len(rows), 3))
        depths(packed.address, rows, result)
        return result


class PackedWalls:
    """Kernel records of walls; the object must be kept alive while the address is in use.

    Parameters
    ----------
    walls : sequence of Wall
        The walls.

    Attributes
    ----------
    walls : tuple of Wall
        The walls.
    count : int
        Number of walls.
    address : int
        Address of the first wall in this process; 0 without walls.

    Raises
    ------
    ConfigurationError
        If there are too many.
    """

    def __init__(self, walls: Sequence[Wall]) -> None:
        if len(walls) > MAX_WALLS:
            raise ConfigurationError(f"{len(walls)} walls: a scene has {MAX_WALLS} at most.")
        self._records: NDArray[Any] = np.zeros(max(len(walls), 1), WALL)
        self.walls, self.count = tuple(walls), len(walls)
        self.address = int(self._records.ctypes.data) if walls else 0
        self._edges: list[NDArray[Any]] = []  # the records refer to them
        for record, wall in zip(self._records, walls, strict=False):
            for name in ("stiffness", "damping", "friction"):
                record[name] = getattr(wall, name)
            match wall.shape:
                case HalfPlane(point, normal):
                    record["kind"], record["place"], record["normal"] = WALL_HALF_PLANE, point, normal
                case Circle(center, radius):
                    record["kind"], record["place"], record["radius"] = WALL_CIRCLE, center, radius
                case Polygon(points):
                    edges = _edges(np.array(points))
                    self._edges.append(edges)
                    record["kind"], record["edges"], record["count"] = WALL_POLYGON, edges.ctypes.data, len(edges)
                    record["lower"], record["upper"] = wall.shape.bounds

    def reset_contacts(self) -> None:
        """Reset the contact state of all walls."""
        for name in ("depth", "inwards", "push", "drag", "touching", "stretch"):
            self._records[name] = 0


def _edges(corners: Floats) -> NDArray[Any]:
    """Return the edges of a polygon with the solid on their left, starting at a convex corner."""
    x, y = corners.T
    if np.dot(x, np.roll(y, -1)) < np.dot(y, np.roll(x, -1)):
        corners = corners[::-1]
    ends = np.roll(corners, -1, axis=0)
    sides = ends - corners
    lengths = np.hypot(sides[:, 0], sides[:, 1])
    before = np.roll(sides, 1, axis=0)
    turns = before[:, 0] * sides[:, 1] > before[:, 1] * sides[:, 0]
    edges = np.zeros(len(corners), EDGE)
    edges["start"], edges["end"], edges["along"] = corners, ends, sides / lengths[:, None]
    edges["length"], edges["turns"] = lengths, turns
    return np.roll(edges, -int(np.argmax(turns)))
