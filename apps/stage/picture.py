"""The picture of the stage: static parts and texts, moving objects, drawing order, and redrawing."""

from __future__ import annotations

import math
import string
from typing import TYPE_CHECKING, Any

import numpy as np
from pyglet import gl

from apps.front_ends.run import RunInfo
from apps.opengl.drawing import Brush, fit, rgba
from apps.opengl.plane import Area, Plane
from apps.shared.theme import Theme
from apps.stage import shapes
from apps.stage.gl import GROUND_SHADERS, Canvas, Mesh, NumberPicture, Painter
from apps.stage.ground import REACH, Ground, ground_of
from apps.stage.layout import Layout, Scenery, contact_mark, force_words, handle, nice_length
from apps.stage.motion import Motion, Stretch
from apps.stage.shapes import Marks, colour_of, spring, zigzag
from haptics.device import Causality

NUMBERS_EVERY = 0.15
"""Update interval of the numbers [s], slow enough for reading."""

_NAME, _SMALL = 1.2, 0.92
"""Font sizes for the name of a region and for secondary text, relative to ordinary text."""

_CORNER = np.dtype([("place", "<f4", (2,)), ("millimetres", "<f4", (2,)), ("share", "<f4", (2,))])
_RISE = 0.18
"""Vertical offset of text beside a sign, in layout units, which centres its letters on the sign."""

_VEIL_SHARE = {"dark": 0.42, "light": 0.30}
"""Opacity of the window background blended over the materials, so that moving objects stand out."""


class Backdrop:
    """Canvas with all static parts, drawn only when they change.

    Parameters
    ----------
    painter : Painter
        Draws marks and ribbons.

    Attributes
    ----------
    canvas : Canvas
        The canvas, to be shown in every frame.
    shapes : int
        Number of shapes on the canvas.
    """

    def __init__(self, painter: Painter) -> None:
        self._painter = painter
        self.canvas = Canvas()
        self.shapes = 0
        self._ground = Mesh(GROUND_SHADERS, _CORNER, gl.GL_TRIANGLE_STRIP)
        self._looks, self._others = NumberPicture(0), NumberPicture(1)

    def draw(self, scenery: Scenery, size: tuple[int, int]) -> None:
        """Redraw the canvas in the given size [pixel of the screen]."""
        theme, unit = scenery.theme, scenery.layout.unit
        self.canvas.begin(size)
        gl.glClearColor(*colour_of(theme.ground), 1.0)
        gl.glClear(gl.GL_COLOR_BUFFER_BIT)
        self._draw_ground(scenery)
        brush, marks = Brush(), Marks(theme.panel, max(0.25 * unit, 1.5))
        name_size, outline = 1.05 * scenery.layout.text, scenery.plane.outline
        for label in scenery.ground.labels:
            at = scenery.plane.to_window(*label.place)
            text = brush.text(label.words, at, name_size, theme.text, bold=True)
            fit(text, name_size, 2.0 * min(at[0] - outline.x, outline.x + outline.width - at[0]))
            _draw_pill(marks, text, at, 1.7 * name_size, theme)
        _draw_scale(scenery, marks, brush)
        coil = _write_panel(scenery, marks, brush) if scenery.layout.panel.width else np.zeros((0, 2))
        self._painter.marks(marks)
        if len(coil):
            self._painter.ribbon(zigzag(coil, max(0.42 * unit, 2.0), theme.friction))
        brush.draw()
        self.canvas.end()
        self.shapes = 1 + marks.count + brush.shapes

    def _draw_ground(self, scenery: Scenery) -> None:
        plane, theme, window = scenery.plane, scenery.theme, scenery.layout.window
        (left, low), (right, high) = plane.workspace
        self._looks.put(scenery.ground.looks)
        self._others.put(scenery.ground.others)
        self._looks.use()
        self._others.use()
        self._ground.program.use()
        for name, value in {
            "looks": 0,
            "others": 1,
            "plain_tone": colour_of(theme.panel),
            "strong_tone": colour_of(theme.faint),
            "line_tone": colour_of(theme.text),
            "solid_tone": colour_of(theme.border),
            "veil": colour_of(theme.ground),
            "veil_share": _VEIL_SHARE[theme.name],
            "raster": 1e3 * nice_length(0.25 * (right - left)),
            "pixel": 1e3 / plane.scale,
            "reach": REACH,
            "level_share": 0.5,
        }.items():
            self._ground.program[name] = value
        outline = plane.outline
        corners = np.zeros(4, _CORNER)
        shares = np.array([(0, 0), (1, 0), (0, 1), (1, 1)], float)
        corners["share"] = shares
        corners["place"] = (outline.x, outline.y) + shares * (outline.width, outline.height)
        corners["millimetres"] = 1e3 * ((left, low) + shares * (right - left, high - low))
        self._ground.draw(corners, (window.width, window.height))
        gl.glActiveTexture(gl.GL_TEXTURE0)


def _draw_pill(marks: Marks, text: Any, at: tuple[float, float], height: float, theme: Theme) -> None:
    """Draw a rounded background behind a text on the plane."""
    half = 0.5 * text.content_width
    marks.stroke((at[0] - half, at[1]), (at[0] + half, at[1]), height, theme.panel, share=0.72)


def _draw_scale(scenery: Scenery, marks: Marks, brush: Brush) -> None:
    """Draw a scale bar of a round length in the lower left corner of the plane."""
    unit, theme, plane = scenery.layout.unit, scenery.theme, scenery.plane
    (left, _), (right, _) = plane.workspace
    length = nice_length(0.25 * (right - left))
    start = plane.outline.x + 2.6 * unit, plane.outline.y + 2.6 * unit
    end = start[0] + length * plane.scale, start[1]
    marks.stroke(start, end, 0.55 * unit, theme.text)
    for at in (start, end):
        marks.stroke((at[0], at[1] - 0.8 * unit), (at[0], at[1] + 0.8 * unit), 0.4 * unit, theme.text)
    middle = 0.5 * (start[0] + end[0]), start[1] + 2.6 * unit
    words = f"{1e3 * length:g} mm" if length < 1 else f"{length:g} m"
    text = brush.text(words, middle, scenery.layout.text, theme.text, bold=True)
    _draw_pill(marks, text, middle, 1.6 * scenery.layout.text, theme)


def _write_panel(scenery: Scenery, marks: Marks, brush: Brush) -> np.ndarray:
    """Write the column at the right: the run, and the legend with one sign per line.

    Return the points of the coil in the legend, which is drawn as a ribbon.
    """
    info, theme, layout, unit = scenery.info, scenery.theme, scenery.layout, scenery.layout.unit
    marks.box(layout.panel.middle, (0.5 * layout.panel.width, 0.5 * layout.panel.height), 0.0, theme.panel)
    at, small = layout, _SMALL * layout.text
    hand = f"hand: {info.hand}" if info.hand else f"{info.rate:g} Hz"
    entries = ((info.title, at.run, theme.text), (hand, at.hand, theme.faint), ("F1: keys", at.keys, theme.faint))
    for words, y, colour in entries:
        label = brush.text(words, (at.left, y), small, colour, anchor="left")
        fit(label, small, at.right - at.left)
    left, words_at, y = at.left + 2.2 * unit, at.left + 6.4 * unit, at.legend
    contact = "proxy" if info.causality == Causality.IMPEDANCE else "contact"

    def explain(words: str) -> None:
        """Write a text beside the sign and advance to the next line."""
        nonlocal y
        brush.text(words, (words_at, y + _RISE * unit), small, theme.text, anchor="left")
        y -= at.step

    handle(marks, (left, y), unit, theme)
    explain("end effector")
    contact_mark(marks, (left, y), unit, theme, sticking=True)
    explain(f"{contact} that holds: stick")
    contact_mark(marks, (left, y), unit, theme, sticking=False)
    explain(f"{contact} that slides: slip")
    marks.stroke((left - 2.2 * unit, y), (left + 2.2 * unit, y), 0.45 * unit, theme.motion)
    marks.square((left - 0.9 * unit, y), 0.7 * unit, theme.stick)
    explain("path, and where it rested")
    if scenery.ground.walls:
        marks.square((left, y), 1.3 * unit, theme.faint)
        explain("wall")
    coil = spring(np.array((left - 2.4 * unit, y)), np.array((left + 2.4 * unit, y)), 1.0 * unit)
    explain(f"link, drawn {scenery.factor}× longer" if scenery.factor > 1 else "link, as long as it is")
    marks.arrow((left - 2.2 * unit, y), (left + 2.2 * unit, y), 0.6 * unit, theme.force)
    explain(force_words(info))
    force = nice_length((layout.panel.width - 20.0 * unit) / scenery.per_newton)  # at the scale of the plane
    tip = at.left + force * scenery.per_newton
    marks.arrow((at.left, y), (tip, y), 0.6 * unit, theme.force)
    brush.text(f"= {force:g} N", (tip + 1.6 * unit, y + _RISE * unit), small, theme.text, anchor="left")
    return coil


class Overlay:
    """Marks with texts over them, drawn in every frame.

    Attributes
    ----------
    marks : Marks
        The shapes.
    brush : Brush
        The texts.
    """

    def __init__(self, painter: Painter, halo: str, halo_width: float) -> None:
        self._painter = painter
        self.marks = Marks(halo, halo_width)
        self.brush = Brush()

    @property
    def shapes(self) -> int:
        """Number of marks and texts."""
        return self.brush.shapes + self.marks.count

    def draw(self) -> None:
        """Draw marks and texts."""
        self._painter.marks(self.marks)
        self.brush.draw()


class Numbers(Overlay):
    """The changing texts in the column: state, material, and numbers of the newest tick, with units."""

    def __init__(self, painter: Painter, scenery: Scenery) -> None:
        super().__init__(painter, scenery.theme.panel, 0.0)
        self._scenery = scenery
        self._values: list[Any] = []
        self._due = 0.0
        at, text = scenery.layout, scenery.layout.text
        theme, unit = scenery.theme, scenery.layout.unit
        self._sign = at.left + 2.0 * unit, at.state
        self._state = self.brush.text("", (at.left + 6.0 * unit, at.state), 2.4 * text, theme.text, True, "left")
        self._region = self.brush.text("", (at.left, at.region), _NAME * text, theme.text, True, "left")
        self._law = self.brush.text("", (at.left, at.law), _SMALL * text, theme.faint, anchor="left")
        names = [force_words(scenery.info), "speed", "elongation", "normal force"][: 4 if scenery.ground.walls else 3]
        for name, y in zip(names, at.values, strict=False):
            self.brush.text(name, (at.left, y), _SMALL * text, theme.faint, anchor="left")
            self._values.append(self.brush.text("", (at.right, y), 1.35 * text, theme.text, True, "right"))

    def refresh(self, motion: Motion, now: float, region: tuple[str, str]) -> bool:
        """Update the texts if an update is due. Return True if they were updated.

        `region` is the name of the region and a description of its law.
        """
        if now < self._due:
            return False
        self._due = now + NUMBERS_EVERY
        theme, layout = self._scenery.theme, self._scenery.layout
        self.marks.clear()
        if motion.ticks:
            contact_mark(self.marks, self._sign, 1.45 * layout.unit, theme, sticking=motion.sticking)
            _set_text(self._state, "STICK" if motion.sticking else "SLIP")
            self._state.color = rgba(theme.stick if motion.sticking else theme.motion)
        else:
            _set_text(self._state, "")
        sizes = (_NAME * layout.text, _SMALL * layout.text)
        for label, words, size in zip((self._region, self._law), region, sizes, strict=True):
            if _set_text(label, words):
                fit(label, size, layout.right - layout.left)
        force, stretch = math.hypot(*motion.force), math.hypot(*motion.displacement)
        elongation = f"{1e3 * stretch:.2f} mm" if stretch >= 1e-4 else f"{1e6 * stretch:.0f} µm"
        numbers = (_newtons(force), f"{1e3 * motion.speed:.0f} mm/s", elongation, _newtons(motion.normal_force))
        for label, value in zip(self._values, numbers, strict=False):
            _set_text(label, value)
        return True


def _set_text(label: Any, words: str) -> bool:
    """Set a text if it has changed: layout of a text takes as long as drawing a hundred shapes."""
    changed = bool(label.text != words)
    if changed:
        label.text = words
    return changed


def _newtons(force: float) -> str:
    """Format a force; a normal force that is not finite means that there is no wall."""
    return f"{force:.2f} N" if math.isfinite(force) else "no wall"


def make_banner(painter: Painter, layout: Layout, theme: Theme, words: str, loud: bool) -> Overlay:
    """Return a message at the top of the plane; an important one has a filled background."""
    unit, plane = layout.unit, layout.plane
    size = 1.1 * layout.text
    banner = Overlay(painter, theme.panel, 0.0 if loud else max(0.3 * unit, 2.0))
    room = Area(plane.x + 3 * unit, plane.y + plane.height - 16 * unit, plane.width - 6 * unit, 12 * unit)
    banner.brush.paragraphs(words, room, (size, 0.8 * size), theme.on_alarm if loud else theme.text, left=False)
    label = banner.brush.labels[-1]
    high = 0.5 * label.content_height + 1.2 * unit
    x, y = room.middle
    wide = max(0.5 * label.content_width + 2.5 * unit - high, 0.0)
    ground = theme.notice if loud else theme.panel
    banner.marks.stroke((x - wide, y), (x + wide, y), 2 * high, ground, share=0.96 if loud else 0.9)
    return banner


def make_help(painter: Painter, layout: Layout, theme: Theme, entries: tuple[tuple[str, str], ...]) -> Overlay:
    """Return the help on the keys, with their functions, in the middle of the window."""
    unit, text, window = layout.unit, layout.text, layout.window
    step = 5.0 * unit
    high = step * (len(entries) + 2)
    wide = min(88.0 * unit, 0.96 * window.width)
    left, top = window.middle[0] - 0.5 * wide, window.middle[1] + 0.5 * high
    help_ = Overlay(painter, theme.border, max(0.3 * unit, 2.0))
    help_.marks.box(window.middle, (0.5 * wide, 0.5 * high), 2.0 * unit, theme.panel)
    help_.brush.text("Keys", (left + 4 * unit, top - step), 1.5 * text, theme.text, True, "left")
    for row, (key, words) in enumerate(entries):
        y = top - (row + 2) * step
        help_.brush.text(key, (left + 4 * unit, y), text, theme.motion, True, "left")
        meaning = help_.brush.text(words, (left + 20 * unit, y), text, theme.text, anchor="left")
        fit(meaning, text, wide - 24 * unit)
    return help_


def keys(space_holds: bool, mouse: bool, pointers: tuple[str, ...] = ()) -> tuple[tuple[str, str], ...]:
    """Return the keys and their functions. If the space bar must be held during the run, Esc stops it.

    Parameters
    ----------
    space_holds, mouse : bool
        Whether the space bar must be held, and whether the mouse acts as the hand.
    pointers : tuple of str
        Descriptions of the other pointing devices that can act as the hand.
    """
    stop = (("space bar", "hold it: without it there is no force"), ("Esc", "stop the run"))
    usual = (("space bar", "stop the run"), ("Esc", "leave the full screen"))
    others = tuple(("", words) for words in pointers)
    hand = (("mouse", "over the plane it is your hand; its buttons are the device's"), *others) if mouse else ()
    return (
        *(stop if space_holds else usual),
        *hand,
        ("Enter", "after the end: start again"),
        ("F1", "these keys, or not"),
        ("F2", "freeze the picture, or let it go on; the run goes on"),
        ("F7", "dark or light"),
        ("F8", "numbers and legend, or the plane alone"),
        ("F11", "full screen, or a window"),
    )


if TYPE_CHECKING:
    from haptics.scenes import Scene

_HANDLE = 2.1
"""Distance between the centre of the end effector and the near end of an arrow, in layout units."""

_LEAST_LINK = 0.8
"""Minimum length of a drawn link, in layout units: shorter ones are hidden by the signs at the ends."""

_ARROW = 0.15
"""Length of the arrow for the break-away force, as a fraction of the plane's shorter side."""


def draw_actors(painter: Painter, scenery: Scenery, motion: Motion) -> int:
    """Draw the moving objects: trail, contact, link, end effector, and force. Return the number of shapes."""
    plane, theme, unit = scenery.plane, scenery.theme, scenery.layout.unit
    halo = max(0.28 * unit, 1.5)
    marks = shapes.Marks(theme.panel, halo)
    contact = np.array(plane.to_window(*motion.contact))
    hand = contact + motion.displacement * plane.scale * scenery.factor
    origin = plane.to_window(0.0, 0.0)
    painter.shapes = 0

    points = plane.scale * motion.trail + origin
    chosen = shapes.thinned(points)
    points, shares = points[chosen], np.linspace(0.06, 1.0, len(motion.trail))[chosen]
    width = 0.6 * unit
    painter.ribbon(shapes.ribbon(points, width + 2 * halo, theme.panel, 0.7 * shares))
    painter.ribbon(shapes.ribbon(points, width, theme.motion, shares))

    places, seconds = motion.sticks()
    marks.clear()
    for (x, y), time in zip((plane.scale * places + origin).tolist(), seconds.tolist(), strict=True):
        marks.square((x, y), unit * min(0.45 + 0.75 * time**0.5, 1.15), theme.stick, share=0.8)
    painter.marks(marks)

    if np.hypot(*(hand - contact)) > _LEAST_LINK * unit:
        coil, width = shapes.spring(contact, hand, 1.2 * unit), max(0.42 * unit, 2.0)
        painter.ribbon(shapes.zigzag(coil, width + 2 * halo, theme.panel, 0.8))
        painter.ribbon(shapes.zigzag(coil, width, theme.friction))

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
    painter.marks(marks)
    return painter.shapes


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
    info, scene, theme : RunInfo, Scene or None, Theme
        Run, its scene, and colours. Call `lay_out` after a change.
    panel : bool
        Whether the column with numbers and legend is shown. Call `lay_out` after a change.
    helping : bool
        Whether the help on keys is shown.
    scenery : Scenery
        Run, ground and layout of the picture.
    backdrop : Backdrop
        The static shapes, which are drawn only when one of them changes.
    """

    def __init__(self, window: Any, theme: Theme) -> None:
        self._window = window
        self.info = RunInfo()
        self.scene: Scene | None = None
        self._grounds: tuple[object, Ground] | None = None
        self._stretch = Stretch()
        self._entries = keys(False, False)
        self.panel, self.helping = True, False
        self._message, self._moving = ("", False), 0
        self._banner: Overlay | None = None
        self._help: Overlay | None = None
        self.theme = theme
        window.switch_to()
        self._painter = Painter()
        self.backdrop = Backdrop(self._painter)
        self.lay_out()

    @property
    def shapes(self) -> int:
        """Number of shapes in the last picture, without the static ones."""
        return 1 + self._moving + sum(one.shapes for one in self._overlays)

    @property
    def _overlays(self) -> list[Overlay]:
        shown = (self._numbers if self.panel else None, self._banner, self._help if self.helping else None)
        return [one for one in shown if one is not None]

    def warm_up(self) -> None:
        """Load glyphs, so that the first pictures are not delayed."""
        brush = Brush()
        for size in (0.92, 1.0, 1.2, 1.35, 2.4):
            brush.text(string.printable[:95] + "×µ", (0, 0), size * self.scenery.layout.text, self.theme.text, True)
        brush.draw()

    def show_run(self, info: RunInfo, scene: Scene | None = None) -> None:
        """Show another run and its scene, if any."""
        self.info, self.scene = info, scene
        self.lay_out()
        stiffness = info.values.get("element.stiffness", 0.0)
        self._stretch.expect(info.force_scale / stiffness if stiffness > 0 else 0.0, self.scenery.room)
        self.lay_out()

    def explain(self, entries: tuple[tuple[str, str], ...]) -> None:
        """Set the keys and their functions (`keys`) for the help."""
        self._entries = entries
        self._lay_over()

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
        self.backdrop.canvas.show()
        gl.glViewport(0, 0, *self._window.get_framebuffer_size())
        self._moving = draw_actors(self._painter, self.scenery, motion) if motion.ticks else 0
        newest = not self.panel or self._numbers.refresh(motion, now, region)
        for overlay in self._overlays:
            overlay.draw()
        self._window.flip()
        return newest

    def lay_out(self) -> None:
        """Compute the layout, as after a change of the window's size, and redraw the static parts."""
        self._window.switch_to()
        layout = Layout(self._window.width, self._window.height, self.panel)
        plane = Plane(layout.plane, self.info.workspace)
        outline = plane.outline
        # The ground is recomputed only if scene or size change.
        key = (self.scene, plane.workspace, round(outline.width), round(outline.height))
        if self._grounds is None or self._grounds[0] != key:
            self._grounds = key, ground_of(self.scene, plane.workspace, (outline.width, outline.height))
        self.scenery = Scenery(
            layout,
            plane,
            self.info,
            self.theme,
            self._grounds[1],
            per_newton=_ARROW * min(outline.width, outline.height) / max(self.info.force_scale, 1e-9),
            factor=self._stretch.factor,
        )
        self._painter.size = (layout.window.width, layout.window.height)
        self._numbers = Numbers(self._painter, self.scenery)
        self._lay_over()
        self.backdrop.draw(self.scenery, self._window.get_framebuffer_size())

    def _lay_over(self) -> None:
        """Recreate the message and the help."""
        words, loud = self._message
        layout = self.scenery.layout
        self._banner = make_banner(self._painter, layout, self.theme, words, loud) if words else None
        self._help = make_help(self._painter, layout, self.theme, self._entries)
