"""What a hand slides on: one law everywhere, or a scene with the numbers of each place, and walls to slide along.

Along a wall friction is the coefficient times the normal force, beside that of the ground. What the hand does across
the surface a wall gives back; so there only the motion along it is looked at. Where two walls are touched at once
nothing can be said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from haptics.friction.law import Law
from haptics.records import Rows
from haptics.scenes import Scene

Array = NDArray[np.float64]

_NONE, _SEVERAL = -1, -2


@dataclass(frozen=True)
class Ground:
    """A law, or a scene as it is in front of the element.

    Attributes
    ----------
    law : Law
        Of the plane; on a scene that of the background.
    scene : Scene or None
        The scene.
    """

    law: Law
    scene: Scene | None = None

    def contacts(self, rows: Rows) -> Contacts:
        """Return which walls are touched in these rows, and along which direction."""
        touched, along = np.full(len(rows), _NONE), np.zeros((len(rows), 2))
        for number, wall in enumerate(self.scene.walls if self.scene is not None else ()):
            inside = wall.depth(rows["position"]) > 0.0
            inwards = wall.inwards(rows["position"])
            along[inside] = np.stack((-inwards[inside, 1], inwards[inside, 0]), axis=1)
            touched[inside] = np.where(touched[inside] == _NONE, number, _SEVERAL)
        size = np.hypot(along[:, 0], along[:, 1])
        return Contacts(touched, along / np.where(size > 0.0, size, 1.0)[:, None])

    def friction(self, rows: Rows, steps: Array, period: float, touched: NDArray[np.intp]) -> Array:
        """Return the friction against steps, (n, 2) [m], each from one of n rows to the next: (n,) [N]."""
        velocity = steps / period
        force = self.law(velocity) if self.scene is None else self.scene.force_at(rows["proxy"], velocity)
        size = np.hypot(steps[:, 0], steps[:, 1])
        found = (force * steps).sum(axis=1) / np.where(size > 0.0, size, 1.0)
        if self.scene is not None and self.scene.walls:
            rubbing = np.array([*(wall.friction for wall in self.scene.walls), 0.0])[np.maximum(touched, _NONE)]
            found = found + rubbing * np.where(touched >= 0, rows["normal_force"], 0.0)
        return np.asarray(found)

    def slack(self, rows: Rows, touched: NDArray[np.intp]) -> float:
        """Return the way after a turn in which the spring along a wall is turned round, at most [m]."""
        walls = self.scene.walls if self.scene is not None else ()
        ways = [
            2.0 * wall.friction * float(rows["normal_force"][touched == number].max(initial=0.0)) / wall.stiffness
            for number, wall in enumerate(walls)
        ]
        return max(ways, default=0.0)


@dataclass(frozen=True)
class Contacts:
    """Which wall is touched in each of some rows, and unit vectors along it.

    Attributes
    ----------
    touched : (n,) int array
        Its number from 0; negative where there is none, or more than one.
    along : (n, 2) array
        Zeros where there is none.
    """

    touched: NDArray[np.intp]
    along: Array

    @property
    def clear(self) -> NDArray[np.bool_]:
        """Where at most one wall is touched."""
        return np.asarray(self.touched != _SEVERAL)

    def on_the_surface(self, steps: Array, begin: int) -> Array:
        """Return steps, (n, 2) [m], from the rows from number `begin` on, as far as they are along a wall."""
        along, touched = (one[begin : begin + len(steps)] for one in (self.along, self.touched))
        along = along * (steps * along).sum(axis=1)[:, None]
        return np.where((touched >= 0)[:, None], along, steps)
