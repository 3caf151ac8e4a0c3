"""Friction laws in the plane whose force depends on the direction of sliding.

The forces at rest fill a convex set. While sliding, the force is the point of the set with the largest dissipated
power. Such a law is the subdifferential of a dissipation potential, and its implicit counterpart is the Yosida
approximation of that subdifferential. The counterpart exists and is unique for every mobility, although the general
formulation (52) of Kikuuwe et al. 2006 does not guarantee this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from haptics.friction.law import Law
from haptics.friction.sliding_kernels import ELLIPTIC
from haptics.settings import bounded, documented


def _force(usual: tuple[float, float], doc: str) -> Any:
    return bounded(minimum=1e-6, maximum=1e6, unit="N", usual=usual, slider=(0.05, 8.0), doc=doc)


def _angle(doc: str) -> Any:
    return bounded(0.0, minimum=-6.3, maximum=6.3, unit="rad", slider=(-1.6, 1.6), doc=doc)


@documented
@dataclass(frozen=True)
class Elliptic(Law):
    """Dry friction with different forces along two axes: F^2 v/|F v| + D v, F = diag(F_x, F_y).

    The forces at rest fill an ellipse. While sliding, the force maximises the dissipated power, so that it is parallel
    to the velocity only along the axes.
    """

    kind: ClassVar[int] = ELLIPTIC
    name: ClassVar[str] = "elliptic"
    isotropic: ClassVar[bool] = False
    force_x: float = _force((6.0, 4.0), "friction force along the first axis")
    force_y: float = _force((3.0, 2.0), "friction force along the second axis")
    angle: float = _angle("direction of the law's first axis, counter-clockwise")
    viscosity: float = bounded(0.0, minimum=0.0, unit="N s/m", slider=(0.0, 50.0), doc="viscosity D")

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        axes = (self.force_x, self.force_x, self.force_y, self.force_y)
        return self.breakaway_force, *axes, math.cos(self.angle), math.sin(self.angle), self.viscosity

    @property
    def slopes(self) -> tuple[float, float]:  # noqa: D102 (inherited)
        return self.viscosity, self.viscosity

    @property
    def breakaway_force(self) -> float:  # noqa: D102 (inherited)
        return max(self.force_x, self.force_y)


@documented
@dataclass(frozen=True)
class Asymmetric(Law):
    """Dry friction with different forces forwards, backwards and sideways.

    Along the first axis this is the one-dimensional law with different levels for v > 0 and v < 0. In the plane the
    forces at rest fill two half-ellipses that join smoothly. The solution has the properties described for `Elliptic`.
    """

    kind: ClassVar[int] = ELLIPTIC
    name: ClassVar[str] = "asymmetric"
    isotropic: ClassVar[bool] = False
    forward_force: float = _force((6.0, 4.0), "friction force while sliding in the direction of the axis")
    backward_force: float = _force((5.0, 3.0), "friction force while sliding against the axis")
    sideways_force: float = _force((6.0, 4.0), "friction force across the axis")
    angle: float = _angle("direction of the axis, counter-clockwise")
    viscosity: float = bounded(0.0, minimum=0.0, unit="N s/m", slider=(0.0, 50.0), doc="viscosity D")

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        axes = (self.forward_force, self.backward_force, self.sideways_force, self.sideways_force)
        return self.breakaway_force, *axes, math.cos(self.angle), math.sin(self.angle), self.viscosity

    @property
    def slopes(self) -> tuple[float, float]:  # noqa: D102 (inherited)
        return self.viscosity, self.viscosity

    @property
    def breakaway_force(self) -> float:  # noqa: D102 (inherited)
        return max(self.forward_force, self.backward_force, self.sideways_force)
