"""What a picture of the stage depends on, besides the rows. No pyglet."""

from __future__ import annotations

from dataclasses import dataclass

from apps.front_ends.run import RunInfo
from apps.opengl.plane import Plane
from apps.shared.theme import Theme
from apps.stage.ground import Ground
from apps.stage.layout import Layout
from apps.stage.legend import Scales

LONGEST_LINK = 14.5
"""The link is drawn up to about so long, in units of the layout."""

_ARROW = 0.15
"""A force at which the contact breaks away has an arrow as long as this part of the plane's shorter side."""


@dataclass(frozen=True)
class Scenery:
    """A run, its ground and where they lie."""

    layout: Layout
    plane: Plane
    info: RunInfo
    theme: Theme
    ground: Ground
    scales: Scales

    @property
    def room(self) -> float:
        """How long a link may be on the plane as it is drawn [m]."""
        return LONGEST_LINK * self.layout.unit / self.plane.scale


def scales(plane: Plane, info: RunInfo, factor: int) -> Scales:
    """Return how long things are drawn on a plane."""
    outline = plane.outline
    arrow = _ARROW * min(outline.width, outline.height)
    return Scales(plane.scale, arrow / max(info.force_scale, 1e-9), factor)


def displacement_of(info: RunInfo) -> float:
    """Return the elastic displacement at which the contact breaks away [m]; zero where nobody knows."""
    stiffness = next((one.value for one in info.parameters if one.key == "element.stiffness"), 0.0)
    return info.force_scale / stiffness if stiffness > 0 else 0.0
