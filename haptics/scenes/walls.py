r"""Walls and fixtures: solid parts of the plane, as springs with dampers and Coulomb friction.

A wall gives way by its *depth* d and pushes back with the normal force :math:`N = K d + B \dot d`. The damper is never
stronger than the spring, :math:`|B \dot d| \le K d`: so a wall never pulls, and what comes upon it fast is met without
a jump. Along its surface it holds with Coulomb friction of level :math:`\mu N`, through a spring and damper of the same
numbers (impedance devices) or by itself (admittance devices). Friction of the plane, the scene's law, and of the wall
act side by side, as on a puck that is pushed against the cushion of a table.

`haptics.rendering.wall_contacts` has the equations of a tick, `haptics.scenes.wall_kernels` what happens at corners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.errors import ConfigurationError
from haptics.scenes.shapes import Circle, Floats, HalfPlane, Polygon, Shape, as_points
from haptics.scenes.wall_kernels import CIRCLE, EDGE, HALF_PLANE, POLYGON, WALL, depths
from haptics.settings import bounded, check, documented

MOST_WALLS = 32
"""Walls that a scene may have: each takes the tick some nanoseconds."""


@documented
@dataclass(frozen=True)
class Wall:
    """A solid part of the plane.

    Attributes
    ----------
    shape : Shape
        A circle, a polygon or a half-plane; its inside is solid.
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
        if not isinstance(self.shape, HalfPlane | Circle | Polygon):
            raise ConfigurationError(f"wall.shape = {self.shape!r}: must be a Circle, a Polygon or a HalfPlane.")
        check(self, "wall")

    def depth(self, points: ArrayLike) -> Floats:
        """Return how deep points, (n, 2) [m], are in the wall, (n,) [m]; negative outside.

        It is less than the distance to the surface where two faces are about equally near
        (`haptics.scenes.wall_kernels`).
        """
        return self._geometry(points)[:, 0]

    def inwards(self, points: ArrayLike) -> Floats:
        """Return the gradient of the depth at points, (n, 2) [m]: (n, 2), of length 1 but at corners."""
        return self._geometry(points)[:, 1:]

    def _geometry(self, points: ArrayLike) -> Floats:
        rows, packed = as_points(points), PackedWalls((self,))
        result = np.empty((len(rows), 3))
        depths(packed.address, rows, result)
        return result


class PackedWalls:
    """Walls as kernels read them; it must live as long as their address is in use.

    Parameters
    ----------
    walls : sequence of Wall
        The walls.

    Raises
    ------
    ConfigurationError
        If there are too many.
    """

    def __init__(self, walls: Sequence[Wall]) -> None:
        if len(walls) > MOST_WALLS:
            raise ConfigurationError(f"{len(walls)} walls: a scene has {MOST_WALLS} at most.")
        self._records: NDArray[Any] = np.zeros(max(len(walls), 1), WALL)
        self._edges = [_fill(record, wall) for record, wall in zip(self._records, walls, strict=False)]
        self.walls, self.count = tuple(walls), len(walls)

    @property
    def address(self) -> int:
        """Where the first wall lies in this process; 0 if there is none."""
        return int(self._records.ctypes.data) if self.count else 0

    def rest(self) -> None:
        """Let go of everything that is touched."""
        for name in ("depth", "inwards", "push", "drag", "touching", "stretch"):
            self._records[name] = 0


def _fill(record: Any, wall: Wall) -> NDArray[Any] | None:
    """Write a wall into a `record`; return the edges that it points to."""
    shape = wall.shape
    for name in ("stiffness", "damping", "friction"):
        record[name] = getattr(wall, name)
    if isinstance(shape, HalfPlane):
        record["kind"], record["place"], record["normal"] = HALF_PLANE, shape.point, shape.normal
        return None
    if isinstance(shape, Circle):
        record["kind"], record["place"], record["radius"] = CIRCLE, shape.center, shape.radius
        return None
    assert isinstance(shape, Polygon)
    edges = _edges(np.array(shape.points))
    record["kind"], record["edges"], record["count"] = POLYGON, edges.ctypes.data, len(edges)
    record["lower"], record["upper"] = shape.bounds
    return edges


def _edges(corners: Floats) -> NDArray[Any]:
    """Return the edges of a polygon with the solid on their left, the first from a corner that sticks out."""
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
