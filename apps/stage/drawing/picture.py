"""The picture of the stage: its content, drawing order, and redrawing."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from pyglet import gl

from apps.front_ends.run import RunInfo
from apps.opengl.paint import Brush
from apps.opengl.plane import Plane
from apps.shared.theme import Theme
from apps.stage.drawing.actors import Actors, Painter
from apps.stage.drawing.backdrop import Backdrop
from apps.stage.drawing.notes import Banner, Help, keys
from apps.stage.drawing.panel import Numbers
from apps.stage.ground import Ground, ground_of
from apps.stage.layout import arrange
from apps.stage.motion import Motion, Stretch
from apps.stage.scenery import Scenery, displacement_of, scales

if TYPE_CHECKING:
    from haptics.scenes import Scene


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
        self._said = ("", False)
        self._banner: Banner | None = None
        self._help: Help | None = None
        self.theme = theme
        window.switch_to()
        self._painter = Painter()
        self._backdrop = Backdrop(self._painter)
        self._lay_out()

    @property
    def plane(self) -> Plane:
        """Mapping of the workspace to the window."""
        return self.scenery.plane

    @property
    def shapes(self) -> int:
        """Number of shapes in the last picture, without the static ones."""
        notes = [note.shapes for note in (self._banner, self._help if self._helping else None) if note is not None]
        return 1 + self._actors.shapes + (self._numbers.shapes if self._panel else 0) + sum(notes)

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
        self._lay_out()
        self._stretch.expect(displacement_of(info), self.scenery.room)
        self._lay_out()

    def show_scene(self, scene: Scene | None) -> None:
        """Show another scene of the same run."""
        self._scene = scene
        self._lay_out()

    def explain(self, entries: tuple[tuple[str, str], ...]) -> None:
        """Set the keys and their functions (`notes.keys`) for the help."""
        self._entries = entries
        self._lay_over()

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self.theme = theme
        self._lay_out()

    def resize(self) -> None:
        """Update the layout after a change of the window's size."""
        self._lay_out()

    def toggle_panel(self) -> None:
        """Show or hide the column with numbers and legend."""
        self._panel = not self._panel
        self._lay_out()

    def toggle_help(self) -> None:
        """Show or hide the help on keys."""
        self._helping = not self._helping

    def announce(self, words: str, loud: bool) -> None:
        """Show a message at the top; empty text removes it."""
        if (words, loud) != self._said:
            self._said = (words, loud)
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
            self._lay_out()
        self._backdrop.show()
        gl.glViewport(0, 0, *self._window.get_framebuffer_size())
        if motion.ticks:
            self._actors.draw(motion)
        newest = not self._panel or self._numbers.refresh(motion, now, region)
        if self._panel:
            self._numbers.draw()
        if self._banner is not None:
            self._banner.draw()
        if self._helping and self._help is not None:
            self._help.draw()
        self._window.flip()
        return newest

    def _lay_out(self) -> None:
        """Compute the layout and redraw the static parts."""
        self._window.switch_to()
        layout = arrange(self._window.width, self._window.height, self._panel)
        plane = Plane(layout.plane, self._info.workspace)
        factors = scales(plane, self._info, self._stretch.factor)
        self.scenery = Scenery(layout, plane, self._info, self.theme, self._ground(plane), factors)
        self._painter.size = (layout.window.width, layout.window.height)
        self._actors = Actors(self._painter, self.scenery)
        self._numbers = Numbers(self._painter, self.scenery)
        self._lay_over()
        self._backdrop.draw(self.scenery, self._window.get_framebuffer_size())

    def _ground(self, plane: Plane) -> Ground:
        """Return the ground. It is recomputed only if scene or size change."""
        outline = plane.outline
        key = (self._scene, plane.workspace, round(outline.width), round(outline.height))
        if self._grounds is None or self._grounds[0] != key:
            self._grounds = key, ground_of(self._scene, plane.workspace, (outline.width, outline.height))
        return self._grounds[1]

    def _lay_over(self) -> None:
        """Recreate the message and the help."""
        words, loud = self._said
        layout = self.scenery.layout
        self._banner = Banner(self._painter, layout, self.theme, words, loud) if words else None
        self._help = Help(self._painter, layout, self.theme, self._entries)
