"""The picture of the stage: moving objects, drawing order, and redrawing."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

import numpy as np
from pyglet import gl

from apps.front_ends.run import RunInfo
from apps.opengl.drawing import Brush
from apps.opengl.plane import Plane
from apps.shared.theme import Theme
from apps.stage import shapes
from apps.stage.backdrop import Backdrop, Numbers, Overlay, keys, make_banner, make_help
from apps.stage.gl import Painter
from apps.stage.ground import Ground, ground_of
from apps.stage.layout import Scenery, arrange, contact_mark, handle
from apps.stage.motion import Motion, Stretch
from haptics.device import Causality

if TYPE_CHECKING:
    from haptics.scenes import Scene

_HANDLE = 2.1
"""Distance between the centre of the end effector and the near end of an arrow, in layout units."""

_LEAST_LINK = 0.8
"""Minimum length of a drawn link, in layout units: shorter ones are hidden by the signs at the ends."""

_ARROW = 0.15
"""Length of the arrow for the break-away force, as a fraction of the plane's shorter side."""


class Actors:
    """Draws the moving objects of one scenery: trail, contact, link, end effector, and force.

    Attributes
    ----------
    shapes : int
        Number of shapes in the last picture.
    """

    def __init__(self, painter: Painter, scenery: Scenery) -> None:
        self._painter, self._scenery = painter, scenery
        self._halo = max(0.28 * scenery.layout.unit, 1.5)
        self._marks = shapes.Marks(scenery.theme.panel, self._halo)
        self.shapes = 0

    def draw(self, motion: Motion) -> None:
        """Draw all objects at their present positions."""
        scenery, marks = self._scenery, self._marks
        plane, theme, unit = scenery.plane, scenery.theme, scenery.layout.unit
        contact = np.array(plane.to_window(*motion.contact))
        hand = contact + motion.displacement * plane.scale * scenery.factor
        origin = plane.to_window(0.0, 0.0)
        self.shapes = 0

        points = plane.scale * motion.trail + origin
        chosen = shapes.thinned(points)
        points, shares = points[chosen], np.linspace(0.06, 1.0, len(motion.trail))[chosen]
        width = 0.6 * unit
        self._draw_ribbon(shapes.ribbon(points, width + 2 * self._halo, theme.panel, 0.7 * shares))
        self._draw_ribbon(shapes.ribbon(points, width, theme.motion, shares))

        places, seconds = motion.sticks()
        marks.clear()
        for (x, y), time in zip((plane.scale * places + origin).tolist(), seconds.tolist(), strict=True):
            marks.square((x, y), unit * min(0.45 + 0.75 * time**0.5, 1.15), theme.stick, share=0.8)
        self._flush()

        if np.hypot(*(hand - contact)) > _LEAST_LINK * unit:
            coil, width = shapes.spring(contact, hand, 1.2 * unit), max(0.42 * unit, 2.0)
            self._draw_ribbon(shapes.zigzag(coil, width + 2 * self._halo, theme.panel, 0.8))
            self._draw_ribbon(shapes.zigzag(coil, width, theme.friction))

        marks.clear()
        contact_mark(marks, (float(contact[0]), float(contact[1])), unit, theme, sticking=motion.sticking)
        force = motion.force * scenery.per_newton
        if np.hypot(*force) > 0.5 * unit:
            # The device's force pushes the hand, so the tip of its arrow is at the hand. The hand's force starts there.
            pushes = scenery.info.causality == Causality.IMPEDANCE
            edge = _HANDLE * unit * force / np.hypot(*force)
            start, end = (hand - edge - force, hand - edge) if pushes else (hand + edge, hand + edge + force)
            marks.arrow((float(start[0]), float(start[1])), (float(end[0]), float(end[1])), 0.85 * unit, theme.force)
        handle(marks, (float(hand[0]), float(hand[1])), unit, theme)
        self._flush()

    def _draw_ribbon(self, strip: shapes.Vertices) -> None:
        self._painter.ribbon(strip)
        self.shapes += 1

    def _flush(self) -> None:
        self._painter.marks(self._marks)
        self.shapes += self._marks.count


class Picture:
    """Draws a run on a window.

    Parameters
    ----------
    window : pyglet Window
        An open window.
    theme : Theme
        Initial colours.

    Attributes
    ----------
    theme : Theme
        Present colours.
    scenery : Scenery
        Run, ground and layout of the picture.
    """

    def __init__(self, window: Any, theme: Theme) -> None:
        self._window = window
        self._info = RunInfo()
        self._scene: Scene | None = None
        self._grounds: tuple[object, Ground] | None = None
        self._stretch = Stretch()
        self._entries = keys(False, False)
        self._panel, self._helping = True, False
        self._message = ("", False)
        self._banner: Overlay | None = None
        self._help: Overlay | None = None
        self.theme = theme
        window.switch_to()
        self._painter = Painter()
        self._backdrop = Backdrop(self._painter)
        self.lay_out()

    @property
    def shapes(self) -> int:
        """Number of shapes in the last picture, without the static ones."""
        overlays = (self._numbers if self._panel else None, self._banner, self._help if self._helping else None)
        return 1 + self._actors.shapes + sum(one.shapes for one in overlays if one is not None)

    @property
    def static_count(self) -> int:
        """Number of static shapes, which are drawn only when one of them changes."""
        return self._backdrop.shapes

    def warm_up(self) -> None:
        """Load glyphs, so that the first pictures are not delayed."""
        brush = Brush()
        for size in (0.92, 1.0, 1.2, 1.35, 2.4):
            brush.text(string.printable[:95] + "×µ", (0, 0), size * self.scenery.layout.text, self.theme.text, True)
        brush.draw()

    def show_run(self, info: RunInfo, scene: Scene | None = None) -> None:
        """Show another run and its scene, if any."""
        self._info, self._scene = info, scene
        self.lay_out()
        stiffness = info.values.get("element.stiffness", 0.0)
        self._stretch.expect(info.force_scale / stiffness if stiffness > 0 else 0.0, self.scenery.room)
        self.lay_out()

    def show_scene(self, scene: Scene | None) -> None:
        """Show another scene of the same run."""
        self._scene = scene
        self.lay_out()

    def explain(self, entries: tuple[tuple[str, str], ...]) -> None:
        """Set the keys and their functions (`keys`) for the help."""
        self._entries = entries
        self._lay_over()

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self.theme = theme
        self.lay_out()

    def toggle_panel(self) -> None:
        """Show or hide the column with numbers and legend."""
        self._panel = not self._panel
        self.lay_out()

    def toggle_help(self) -> None:
        """Show or hide the help on keys."""
        self._helping = not self._helping

    def announce(self, words: str, loud: bool) -> None:
        """Show a message at the top; empty text removes it."""
        if (words, loud) != self._message:
            self._message = (words, loud)
            self._lay_over()

    def draw(self, motion: Motion, now: float, region: tuple[str, str]) -> bool:
        """Draw the present state of a run and flip the window; return True if the numbers were updated.

        Parameters
        ----------
        now : float
            Time on the monotonic clock [s].
        region : (str, str)
            Name of the material under the contact, and a description of its law.
        """
        self._window.switch_to()
        if self._stretch.follow(motion.largest, self.scenery.room):
            self.lay_out()
        self._backdrop.canvas.show()
        gl.glViewport(0, 0, *self._window.get_framebuffer_size())
        if motion.ticks:
            self._actors.draw(motion)
        newest = not self._panel or self._numbers.refresh(motion, now, region)
        for overlay in (self._numbers if self._panel else None, self._banner, self._help if self._helping else None):
            if overlay is not None:
                overlay.draw()
        self._window.flip()
        return newest

    def lay_out(self) -> None:
        """Compute the layout, as after a change of the window's size, and redraw the static parts."""
        self._window.switch_to()
        layout = arrange(self._window.width, self._window.height, self._panel)
        plane = Plane(layout.plane, self._info.workspace)
        outline = plane.outline
        # The ground is recomputed only if scene or size change.
        key = (self._scene, plane.workspace, round(outline.width), round(outline.height))
        if self._grounds is None or self._grounds[0] != key:
            self._grounds = key, ground_of(self._scene, plane.workspace, (outline.width, outline.height))
        self.scenery = Scenery(
            layout,
            plane,
            self._info,
            self.theme,
            self._grounds[1],
            per_newton=_ARROW * min(outline.width, outline.height) / max(self._info.force_scale, 1e-9),
            factor=self._stretch.factor,
        )
        self._painter.size = (layout.window.width, layout.window.height)
        self._actors = Actors(self._painter, self.scenery)
        self._numbers = Numbers(self._painter, self.scenery)
        self._lay_over()
        self._backdrop.draw(self.scenery, self._window.get_framebuffer_size())

    def _lay_over(self) -> None:
        """Recreate the message and the help."""
        words, loud = self._message
        layout = self.scenery.layout
        self._banner = make_banner(self._painter, layout, self.theme, words, loud) if words else None
        self._help = make_help(self._painter, layout, self.theme, self._entries)
