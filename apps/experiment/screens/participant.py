"""Window of the participant: displays messages and the hand, and sends keys and mouse positions."""

from __future__ import annotations

import string
import time
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pyglet

from apps.experiment.screens.drawing import Field, Layout, Scene, turns
from apps.experiment.screens.forms import Target
from apps.experiment.screens.messages import Cannot, Choice, Command, Show, Typed
from apps.experiment.screens.sound import Sound
from apps.experiment.settings import ScreenSettings
from apps.front_ends.front_end import Link
from apps.front_ends.messages import AskShown, Close, Key, Quit, SessionEnded, SessionStarted, Shown
from apps.opengl.plane import Corners, Plane
from apps.opengl.window import KEY, DeadMansKey, Hand, Keyboard
from apps.shared.theme import Theme, by_name
from haptics.errors import ConfigurationError
from haptics.trace import Ring

LOOK = 0.008
"""Polling period of messages, keys and the hand [s]."""

FRAME = 1 / 60
"""Minimum time between two pictures [s]."""

_SHARE = 3.0
"""Idle time after a slow picture, relative to its drawing time.

This limits the load of OpenGL in software.
"""

_NOWHERE: Corners = ((-0.1, -0.1), (0.1, 0.1))
_BLACK = "#000000"


class ParticipantWindow:
    """Display, sound and input of the participant.

    Parameters
    ----------
    link : Link
        Connection to the session.
    window : pyglet Window
        An open window.

    Attributes
    ----------
    frames : int
        Number of drawn pictures.
    """

    def __init__(self, link: Link, window: Any, settings: ScreenSettings) -> None:
        self._link, self._window, self._settings = link, window, settings
        self._theme: Theme = by_name(settings.theme)
        self._sound: Sound | None = None
        self._ring: Ring | None = None
        self._workspace = _NOWHERE
        self._show = Show("pause")
        self._dead_man = DeadMansKey(link.send)
        self._turns = 0
        self._rest_until = 0.0
        self._closed = False
        self._slider: Target | None = None
        self._reported: set[str] = set()
        self.frames = 0
        self._hand = Hand(window, link.send)
        self._keyboard = Keyboard(window, self._key)
        window.set_mouse_visible(False)
        window.push_handlers(
            on_close=self._close,
            on_resize=lambda width, height: self._lay_out(),
            on_expose=self._exposed,
            on_text=self._type,
            on_mouse_press=lambda x, y, button, modifiers: self._click(x, y),
            on_mouse_drag=lambda x, y, dx, dy, buttons, modifiers: self._drag(x),
            on_mouse_release=lambda x, y, button, modifiers: self._release(),
        )
        # Load fonts and compile shaders, so that the first pictures are not delayed by half a second.
        letters = string.ascii_letters + string.digits + string.punctuation + "←→↑↓↵"
        sample = Show("interval", letters, letters, interval=1, of=2, keys=(Choice("1", letters),), field=True)
        layout = Layout(window.width, window.height)
        Scene(sample, layout, self._theme, settings.text_scale).brush.draw()
        Field(sample, Plane(layout.field, _NOWHERE), layout.unit, self._theme).brush.draw()
        self._lay_out()

    def run(self) -> None:
        """Run until the session sends `Quit`, its pipe closes, or the window is closed."""
        while not self._closed and not self._link.gone:
            wait(self._link.waitable, LOOK)
            self.step()
        self._keyboard.release_all()
        if self._sound is not None:
            self._sound.close()
        self._window.close()

    def step(self) -> None:
        """Process messages and draw if anything has changed."""
        self._window.dispatch_events()
        for message in self._link.receive():
            self._handle(message)
        now = time.monotonic()
        self._dead_man.repeat(now)
        pacing = self._show.pacing
        if pacing is not None and pacing.heard and self._sound is not None:
            count = turns(pacing, now)
            if count > self._turns:
                self._sound.tone()
            self._turns = count
        if now >= self._rest_until and not self._closed:
            self._draw(now)

    # --- input ---

    def _handle(self, message: Any) -> None:
        match message:
            case Show():
                self._begin(message)
            case SessionStarted():
                self._follow(message)
            case SessionEnded():
                self._ring = None
                self._dead_man.set_required(False)
                self._hand.set_plane(None)
                self._dirty = True
            case AskShown():
                self._link.send(Shown())
            case Quit():
                self._closed = True

    def _begin(self, show: Show) -> None:
        """Show new contents and play their sounds. The sound device is opened on first use."""
        if (show.item is None) != (self._show.item is None):
            self._window.set_mouse_visible(show.item is not None)
        self._show = show
        self._turns = turns(show.pacing, time.monotonic()) if show.pacing is not None else 0
        self._lay_out()
        heard = show.noise or show.tone or (show.pacing is not None and show.pacing.heard)
        if self._sound is None and heard:
            self._sound = Sound(self._settings.noise_level, self._settings.tone_level)
            if self._sound.obstacle:
                self._link.send(Cannot("sound", self._sound.obstacle))
        if self._sound is not None:
            self._sound.noise(show.noise)
            if show.tone:
                self._sound.tone(2 if show.interval == 2 else 1)
        subject = show.item.text if show.item is not None else ""
        if self._scene.small and (show.item is None or subject not in self._reported):
            self._reported.add(subject)  # a form is shown again after every key
            words = f"a text for {show.kind!r} is too long to be read at 1 m; divide it into pages, or shorten it."
            self._link.send(Cannot("window", words))

    def _follow(self, message: SessionStarted) -> None:
        """Follow the trace of a block that begins."""
        self._workspace = message.workspace
        self._dead_man.set_required(message.dead_man == "key")
        try:
            self._ring = Ring.attach(Path(message.trace))
        except ConfigurationError as error:
            self._ring = None
            self._link.send(Cannot("trace", f"the hand cannot be shown: {error}"))
        self._lay_out()
        self._hand.set_plane(self._plane if message.mouse else None)

    def _key(self, name: str, down: bool, at: float) -> None:
        if name == KEY:
            self._dead_man.press(down, at)
        if name == KEY and self._dead_man.required:
            return
        if name != "escape":
            self._link.send(Key(name, down, at))
        elif down:
            self._link.send(Command("pause"))

    # --- forms ---

    def _type(self, text: str) -> None:
        plain = "".join(one for one in text if one.isprintable())
        if self._show.item is not None and plain:
            self._link.send(Typed(plain))

    def _click(self, x: float, y: float) -> None:
        """Send the answer or the drawn key at a pixel of a form."""
        target = next((one for one in self._scene.targets if one.contains(x, y)), None)
        if target is None:
            return
        message = target.at(x)
        self._link.send(message)
        if isinstance(message, Key):
            self._link.send(Key(message.name, False, message.at))
        self._slider = target if target.slides else None

    def _drag(self, x: float) -> None:
        if self._slider is not None and self._show.item is not None:
            self._link.send(self._slider.at(x))

    def _release(self) -> None:
        self._slider = None

    def _close(self) -> bool:
        self._link.send(Close())
        self._closed = True
        return True

    # --- drawing ---

    def _exposed(self) -> None:
        self._dirty = True

    def _lay_out(self) -> None:
        show, window = self._show, self._window
        window.switch_to()
        layout = Layout(window.width, window.height)
        self._plane = Plane(layout.field, self._workspace)
        self._hand.place(self._plane)
        self._scene = Scene(show, layout, self._theme, self._settings.text_scale)
        drawn = show.field and not show.dark
        self._field = Field(show, self._plane, layout.unit, self._theme) if drawn else None
        self._dirty = True

    def _draw(self, now: float) -> None:
        changed = self._scene.refresh(now, self._dead_man.held)
        if self._field is not None:
            position, ring = None, self._ring
            if ring is not None and ring.count:
                x, y = ring.slots[(ring.count - 1) % ring.capacity]["position"].tolist()
                position = x, y
            changed |= self._field.refresh(position, now)
        if not (changed or self._dirty):
            return
        self._dirty = False
        self._window.switch_to()
        ground = _BLACK if self._show.dark else self._theme.ground
        pyglet.gl.glClearColor(*(part / 255 for part in bytes.fromhex(ground[1:])), 1.0)
        self._window.clear()
        if self._field is not None:
            self._field.brush.draw()
        self._scene.brush.draw()
        self._window.flip()
        self.frames += 1
        done = time.monotonic()
        self._rest_until = max(now + FRAME, done + _SHARE * (done - now) if done - now > 0.25 * FRAME else 0.0)
