"""Inputs of a picture of the stage other than the rows. No pyglet."""

from __future__ import annotations

from dataclasses import dataclass

from apps.front_ends.run import RunInfo
from apps.opengl.plane import Plane
from apps.shared.theme import Theme
from apps.stage.ground import Ground
from apps.stage.layout import Layout
from apps.stage.legend import Scales

LONGEST_LINK = 14.5
"""Approximate maximum length of the drawn link, in units of the layout."""

_ARROW = 0.15
"""Length of the arrow for the break-away force, as a fraction of the plane's shorter side."""


@dataclass(frozen=True)
class Scenery:
    """A run, its ground, and its layout."""

    layout: Layout
    plane: Plane
    info: RunInfo
    theme: Theme
    ground: Ground
    scales: Scales

    @property
    def room(self) -> float:
        """Maximum length of the drawn link, in metres of the plane [m]."""
        return LONGEST_LINK * self.layout.unit / self.plane.scale


def scales(plane: Plane, info: RunInfo, factor: int) -> Scales:
    """Return the drawing scales of a plane."""
    outline = plane.outline
    arrow = _ARROW * min(outline.width, outline.height)
    return Scales(plane.scale, arrow / max(info.force_scale, 1e-9), factor)


def displacement_of(info: RunInfo) -> float:
    """Return the elastic displacement at which the contact breaks away [m]; zero if unknown."""
    stiffness = next((one.value for one in info.parameters if one.key == "element.stiffness"), 0.0)
    return info.force_scale / stiffness if stiffness > 0 else 0.0
