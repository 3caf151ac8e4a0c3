"""Ground under the hand: a single law, or a scene with regions and walls.

The friction along a wall is the coefficient times the normal force, in addition to the friction of the ground.
Perpendicular to the surface the wall is elastic, so that only tangential motion is evaluated. Rows that touch two walls
at once are not evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from haptics.friction.laws import Law
from haptics.records import Rows
from haptics.scenes import Scene

Array = NDArray[np.float64]

_NONE, _SEVERAL = -1, -2


@dataclass(frozen=True)
class Ground:
    """Friction law, or scene with the borders of the element (`haptics.scenes.scene.fitted`).

    Attributes
    ----------
    law : Law
        Law of the plane, or of the background of the scene.
    scene : Scene or None
        Scene, if any.
    """

    law: Law
    scene: Scene | None = None

    def contacts(self, rows: Rows) -> Contacts:
        """Return the touched walls in the rows, and the directions along them."""
        touched, along = np.full(len(rows), _NONE), np.zeros((len(rows), 2))
        for number, wall in enumerate(self.scene.walls if self.scene is not None else ()):
            inside = wall.depth(rows["position"]) > 0.0
            inwards = wall.inwards(rows["position"])
            along[inside] = np.stack((-inwards[inside, 1], inwards[inside, 0]), axis=1)
            touched[inside] = np.where(touched[inside] == _NONE, number, _SEVERAL)
        size = np.hypot(along[:, 0], along[:, 1])
        return Contacts(touched, along / np.where(size > 0.0, size, 1.0)[:, None])

    def friction(self, rows: Rows, steps: Array, period: float, touched: NDArray[np.intp]) -> Array:
        """Return the friction against the steps between rows, shape (n,) [N]; `steps` has shape (n, 2) [m]."""
        velocity = steps / period
        force = self.law(velocity) if self.scene is None else self.scene.force_at(rows["proxy"], velocity)
        size = np.hypot(steps[:, 0], steps[:, 1])
        found = (force * steps).sum(axis=1) / np.where(size > 0.0, size, 1.0)
        if self.scene is not None and self.scene.walls:
            rubbing = np.array([*(wall.friction for wall in self.scene.walls), 0.0])[np.maximum(touched, _NONE)]
            found = found + rubbing * np.where(touched >= 0, rows["normal_force"], 0.0)
        return np.asarray(found)

    def slack(self, rows: Rows, touched: NDArray[np.intp]) -> float:
        """Return the maximum path after a reversal in which the spring along a wall is reloaded [m]."""
        walls = self.scene.walls if self.scene is not None else ()
        ways = [
            2.0 * wall.friction * float(rows["normal_force"][touched == number].max(initial=0.0)) / wall.stiffness
            for number, wall in enumerate(walls)
        ]
        return max(ways, default=0.0)


@dataclass(frozen=True)
class Contacts:
    """Touched wall and unit vector along it, for each row.

    Attributes
    ----------
    touched : (n,) int array
        Index of the wall, negative for no wall or several walls.
    along : (n, 2) array
        Unit vectors, zero without a wall.
    """

    touched: NDArray[np.intp]
    along: Array

    @property
    def clear(self) -> NDArray[np.bool_]:
        """Mask of the rows that touch at most one wall."""
        return np.asarray(self.touched != _SEVERAL)

    def on_the_surface(self, steps: Array, begin: int) -> Array:
        """Return `steps` from row `begin` on, shape (n, 2) [m], projected on the wall where one is touched."""
        along, touched = (one[begin : begin + len(steps)] for one in (self.along, self.touched))
        along = along * (steps * along).sum(axis=1)[:, None]
        return np.where((touched >= 0)[:, None], along, steps)
